"""One side tells the other which paths of the source are synced, in Selected messages right after Open."""

from __future__ import annotations

import os
from contextlib import closing

from rdc.errors import ExitCode, FileError, ProtocolError, UsageError, printable
from rdc.lean.records import replace
from rdc.limits import SELECTED_LIST_BYTES, SELECTED_MESSAGE_BYTES, SELECTED_PER_MESSAGE
from rdc.model.selection import SelectedPaths, check_bounds, listed_names, select_listed
from rdc.protocol.messages import Role, Selected
from rdc.session.runtime.commands import Conversation, Receive, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.model.location import FarList
    from rdc.session.trees.sites import Site


def send_selected(role: Role, selected: Sequence[SelectedPaths], round_: int = 0) -> Conversation[None]:
    """Send the selection. `role`: of the side that hears it. A destination hears the names alone."""
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
    """Return what the dialler selects. Raises ProtocolError for any other message."""
    selected: list[SelectedPaths] = []
    while True:
        received = yield Receive()
        if received is None or not isinstance(received.message, Selected):
            raise ProtocolError("expected Selected")
        selected.append(SelectedPaths(received.message.origin, received.message.names))
        if received.message.last:
            return tuple(selected)


# A list of paths that the remote side has, as --files-from=:FILE names it.
#
# The answerer reads it and sends the names before Opened, so they cost no round trip of their own.


def send_listed(
    listed: FarList, site: Site, path: bytes, role: Role, round_: int
) -> Conversation[tuple[SelectedPaths, ...]]:
    """Read the list below `site`, send what it selects, and return that. `path`: this side's directory.
    `role`: this side's.

    Raises FileError for a list that cannot be read, UsageError for one that is too long or has '..' in it.
    """
    names = listed_names(_read(listed.path, site), nul=listed.nul)
    directory = path if role is Role.SOURCE else b""
    selected = select_listed(directory, names, relative=listed.relative)
    check_bounds(selected)
    yield from send_selected(role.other, selected, round_)
    return selected


def _read(path: bytes, site: Site) -> bytes:
    """Return the content of the file at `path`. What is no regular file is refused: a fifo would block."""
    with closing(site.open_base()) as base:
        try:
            with base.open_read(site.below_base(path)) as file:
                if file.size > SELECTED_LIST_BYTES:
                    raise UsageError(
                        f"{printable(path)}: more than {SELECTED_LIST_BYTES} bytes of paths; rdc takes no"
                        " more"
                    )
                parts = []
                at = 0
                while at <= SELECTED_LIST_BYTES and (part := os.pread(file.fileno(), 1 << 20, at)):
                    parts.append(part)
                    at += len(part)
        except FileError as error:
            missing = isinstance(error.__cause__, FileNotFoundError)
            why = "no such file here; check the path" if missing else str(error)
            raise FileError(path, f"--files-from={printable(path)}: {why}", code=ExitCode.FILE_IO) from error
    return b"".join(parts)
