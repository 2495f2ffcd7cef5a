"""How one side says which paths of the source take part: Selected messages, right after Open."""

from __future__ import annotations

from rdc.errors import ProtocolError
from rdc.lean.records import replace
from rdc.limits.wire import SELECTED_MESSAGE_BYTES, SELECTED_PER_MESSAGE
from rdc.model.selection import SelectedPaths
from rdc.protocol.messages import Role, Selected
from rdc.session.runtime.commands import Receive, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.session.runtime.commands import Conversation

__all__ = ["receive_selected", "send_selected"]


def send_selected(role: Role, selected: Sequence[SelectedPaths], round_: int = 0) -> Conversation[None]:
    """Sends the selection. `role`: of the side that hears it. A destination hears the names alone."""
    parts = list(_parts(selected)) or [SelectedPaths(b"", ())]
    for number, part in enumerate(parts):
        origin = part.origin if role is Role.SOURCE else b""
        yield Send(Selected(origin, part.names, number == len(parts) - 1), round_)


def _parts(selected: Sequence[SelectedPaths]) -> Iterator[SelectedPaths]:
    for paths in selected:
        names: list[bytes] = []
        size = 0
        for name in paths.names:
            if names and (
                len(names) == SELECTED_PER_MESSAGE or size + len(name) + 1 > SELECTED_MESSAGE_BYTES
            ):
                yield replace(paths, names=tuple(names))
                names, size = [], 0
            names.append(name)
            size += len(name) + 1
        yield replace(paths, names=tuple(names))


def receive_selected() -> Conversation[tuple[SelectedPaths, ...]]:
    """What the dialler selects. Raises ProtocolError for any other message."""
    selected: list[SelectedPaths] = []
    while True:
        received = yield Receive()
        if received is None or not isinstance(received.message, Selected):
            raise ProtocolError("expected Selected")
        selected.append(SelectedPaths(received.message.origin, received.message.names))
        if received.message.last:
            return tuple(selected)
