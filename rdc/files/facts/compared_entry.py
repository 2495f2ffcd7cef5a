"""Opens the entry that was compared, and no other, to set what it has besides its content."""

from __future__ import annotations

import os
from contextlib import contextmanager

from rdc.files.base.metadata import kind_of
from rdc.files.base.os_errors import changed
from rdc.files.root.node_kinds import is_of_kind
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.files.root.root import Root
    from rdc.model.entries import Kind

__all__ = ["ComparedEntry", "compared_entry"]

_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class ComparedEntry:
    """An entry that is open as a path."""

    fd: int
    found: os.stat_result
    """Its stat, which was compared."""


@contextmanager
def compared_entry(
    root: Root,
    path: bytes,
    name: bytes,
    directory: int,
    kind: Kind,
    is_meant: Callable[[os.stat_result], bool],
) -> Iterator[ComparedEntry]:
    """Open the entry `name` of the open `directory` as a path, for the time of the block, and yield it.
    With --fake-super, an entry of any kind may stand for one of `kind`.

    Raises OSError. Raises FileChangedError if the entry has another kind or `is_meant` refuses its stat.
    """
    fd = os.open(name, _PATH, dir_fd=directory)
    try:
        now = os.fstat(fd)
        if not is_of_kind(now.st_mode, kind) and not root.reads.fakes:
            raise changed(path, root.shown(path), kind.name.lower(), kind_of(now.st_mode).name.lower())
        if not is_meant(now):
            raise changed(path, root.shown(path), "the one that was compared", "another")
        yield ComparedEntry(fd, now)
    finally:
        os.close(fd)
