"""How a destination learns the source's manifest: by asking along what differs from its own."""

from __future__ import annotations

from rdc.errors import ProtocolError
from rdc.protocol.messages import RowsPart, RowsRequest, TierAnswer, TierRequest, TopTier
from rdc.session.commands import Receive, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.kept import Kept
    from rdc.protocol.connection import Received
    from rdc.session.commands import Conversation
    from rdc.session.news import News
    from rdc.tree.manifest import Manifest

__all__ = ["discover", "next_message"]


def next_message(news: News) -> Conversation[Received]:
    """The next message that is no news."""
    while True:
        received = yield Receive()
        if received is not None and not news.take(received.message):
            return received


def discover(
    own: Manifest,
    entries: int,
    into: Manifest,
    secret: bytes,
    news: News,
    round_: int,
    *,
    kept: Kept,
    top: bool,
) -> Conversation[int]:
    """Appends the source's manifest, of so many entries, to `into`; the round to go on with.

    What comes out is as true as short references are different: the caller compares the digest of the whole.
    Where a collision is noticed, `into` stays empty. `top`: the topmost nodes come unasked.
    """
    # Most runs end before this: the manifests are equal, or small enough to come whole.
    from rdc.plan.manifest_descent import ManifestDescent
    from rdc.tree.fold import Fold

    descent = ManifestDescent(Fold(own, kept), entries, secret, owner=kept.owner)
    # Both sides fold at the same time: the source when it has told its manifest, and we meanwhile.
    descent.prepare()
    if top:
        received = yield from next_message(news)
        first = received.message
        if not isinstance(first, TopTier):
            raise ProtocolError(f"expected the top of the manifest, found {type(first).__name__}")
        descent.take_top(first.level, first.references)
    while True:
        for ask in descent.asks():
            kind = RowsRequest if ask.rows else TierRequest
            yield Send(kind(ask.level, ask.nodes, int(ask.groups)), round_)
        if descent.complete:
            break
        received = yield from next_message(news)
        round_ = max(round_, received.round + 1)
        message = received.message
        if isinstance(message, TierAnswer):
            descent.take_tier(message.level, message.firsts, message.counts, message.references)
        elif isinstance(message, RowsPart):
            descent.take_rows(message.rows, message.counts, last=message.last)
        else:
            raise ProtocolError(f"expected manifest nodes, found {type(message).__name__}")
    if not descent.collided:
        descent.assemble(into)
    return round_
