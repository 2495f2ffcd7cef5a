"""How the dialler asks for a session: Open, and the filter rules that have no room in it."""

from __future__ import annotations

from rdc.errors import ProtocolError
from rdc.lean.records import replace
from rdc.limits.wire import RULES_BYTES
from rdc.protocol.messages import Open, Role, Rules
from rdc.protocol.wire.options import rule_bytes
from rdc.session.runtime.commands import Receive, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.model.selection import DirectoryRules, FilterRule
    from rdc.model.sync import SyncOptions
    from rdc.session.runtime.commands import Conversation

__all__ = ["receive_rules", "send_open"]


def send_open(
    role: Role,
    path: bytes,
    secret: bytes,
    options: SyncOptions,
    *,
    selects: bool = False,
    needs: str | None = None,
) -> Conversation[None]:
    """Ask for a session. `role`: that the answerer takes. `selects`: Selected messages follow. `needs`: one
    more feature that the session cannot do without."""
    open_ = Open.asking(role, path, secret, options, selects=selects)
    if needs is not None:
        open_ = replace(open_, needs=" ".join(filter(None, (open_.needs, needs))))
    yield Send(open_, 0)
    if open_.rules_follow:
        parts = list(_parts(options.rules))
        for number, part in enumerate(parts):
            yield Send(Rules(part, number == len(parts) - 1), 0)


def _parts(
    rules: Sequence[FilterRule | DirectoryRules],
) -> Iterator[tuple[FilterRule | DirectoryRules, ...]]:
    first = size = 0
    for number, rule in enumerate(rules):
        more = rule_bytes(rule)
        if size + more > RULES_BYTES:
            yield tuple(rules[first:number])
            first, size = number, 0
        size += more
    yield tuple(rules[first:])


def receive_rules() -> Conversation[tuple[FilterRule | DirectoryRules, ...]]:
    """The rules that follow an Open. Raises ProtocolError for any other message."""
    rules: list[FilterRule | DirectoryRules] = []
    while True:
        received = yield Receive()
        if received is None or not isinstance(received.message, Rules):
            raise ProtocolError("expected Rules")
        rules += received.message.rules
        if received.message.last:
            return tuple(rules)
