"""How a destination learns the source's manifest: it asks only for nodes that differ from its own."""

from __future__ import annotations

from rdc.errors import ExitCode, ProtocolError
from rdc.lean.records import dataclass, replace
from rdc.progress import Problem
from rdc.protocol.messages import Manifest as ManifestMessage
from rdc.protocol.messages import MountPoints, Owners, RowsPart, RowsRequest, TierAnswer, TierRequest, TopTier
from rdc.session.runtime.commands import Receive, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.preserved import Preserved
    from rdc.protocol.connection import Received
    from rdc.session.runtime.commands import Conversation
    from rdc.session.runtime.event_relay import EventRelay
    from rdc.session.transfer.destination import Destination
    from rdc.session.trees.owner_mapping import OwnerMapping
    from rdc.tree.manifest import Manifest

__all__ = ["Offer", "discover", "next_message", "receive_offer", "receive_owners"]

NO_OWNERS = "users and groups are not kept, so they are not mapped either: that needs root at DST"
"""What a run says that maps owners and keeps none."""


def next_message(events: EventRelay) -> Conversation[Received]:
    """The next message that is not an event for the user."""
    while True:
        received = yield Receive()
        if received is not None and not events.take(received.message):
            return received


@dataclass(frozen=True, slots=True)
class Offer:
    """A manifest that the source offered."""

    manifest: ManifestMessage
    round: int
    """The round to go on with."""
    first: bool
    """It was the source's first offer; the topmost nodes follow unasked."""


def receive_offer(
    events: EventRelay,
    preserved: Preserved,
    on_mount_points: Callable[[Sequence[bytes]], None],
    owners: OwnerMapping | None = None,
) -> Conversation[Offer]:
    """The source's manifest for what both sides preserve.

    The source sends a first manifest unasked and may have guessed wrong what the destination preserves.
    `on_mount_points`: takes the mount points that the source did not enter. `owners`: takes the names of
    owners.
    """
    first = True
    while True:
        received = yield from next_message(events)
        message = received.message
        if isinstance(message, MountPoints):
            on_mount_points(message.paths)
            continue
        if isinstance(message, Owners) and owners is not None:
            owners.take(message)
            continue
        if isinstance(message, TopTier):
            continue
        if not isinstance(message, ManifestMessage):
            raise ProtocolError(f"expected Manifest, found {type(message).__name__}")
        if message.kept == preserved:
            return Offer(message, received.round + 1, first)
        first = False


def receive_owners(context: Destination, owners: OwnerMapping) -> Conversation[None]:
    """Receives the names of the owners in Start, and notes what they become."""
    received = yield from next_message(context.events)
    if not isinstance(received.message, Owners):
        raise ProtocolError(f"expected Owners, found {type(received.message).__name__}")
    owners.take(received.message)
    if not owners.applies:
        context.events.report(Problem(ExitCode.OK, b"", NO_OWNERS))
    context.start = replace(context.start, metadata=owners.metadata(context.start.metadata))


def discover(
    own: Manifest,
    entries: int,
    into: Manifest,
    secret: bytes,
    events: EventRelay,
    round_: int,
    *,
    preserved: Preserved,
    top: bool,
) -> Conversation[int]:
    """Appends the source's manifest, which has `entries` entries, to `into`. Returns the round to go on with.

    Short digests may collide, so the caller compares the digest of the whole manifest. `into` stays empty if
    this notices a collision. `top`: the topmost nodes come unasked.
    """
    # Imported here: in most runs the manifests are equal, or small enough to be listed.
    from rdc.plan.manifest_descent import ManifestDescent
    from rdc.tree.fold import Fold

    descent = ManifestDescent(Fold(own, preserved.at_destination), entries, secret, owner=preserved.owner)
    # Both sides fold at the same time: the source after it has sent its offer, this side meanwhile.
    descent.prepare()
    if top:
        received = yield from next_message(events)
        first = received.message
        if not isinstance(first, TopTier):
            raise ProtocolError(f"expected the top of the manifest, found {type(first).__name__}")
        descent.take_top(first.level, first.references)
    while True:
        for ask in descent.questions():
            kind = RowsRequest if ask.rows else TierRequest
            yield Send(kind(ask.level, ask.nodes, int(ask.groups)), round_)
        if descent.complete:
            break
        received = yield from next_message(events)
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
