"""A list of paths that the far side has, as --files-from=:FILE names it.

The answerer reads it and sends the names before Opened, so they cost no round trip of their own.
"""

from __future__ import annotations

import os
from contextlib import closing

from rdc.errors import ExitCode, FileError, UsageError, printable
from rdc.limits.wire import SELECTED_LIST_BYTES
from rdc.model.selection import SelectedPaths, check_bounds, listed_names, select_listed
from rdc.protocol.messages import Role
from rdc.session.selecting import send_selected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.location import FarList
    from rdc.session.runtime.commands import Conversation
    from rdc.session.trees.sites import Site

__all__ = ["send_listed"]


def send_listed(
    listed: FarList, site: Site, path: bytes, role: Role, round_: int
) -> Conversation[tuple[SelectedPaths, ...]]:
    """Reads the list below `site`, sends what it selects, and returns that. `path`: this side's directory.
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
    """The content of the file at `path`. What is no regular file is refused: a fifo would block."""
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
