"""What was done here to files with several names: its traces in their stat are not somebody else's change.

A file loses a name when that becomes another file, or gets other metadata under one of its names, and its
ctime tells, whichever of its names is looked at. Whoever decided what to do about a second name of it would
otherwise find it changed.
"""

from __future__ import annotations

import os

from rdc.files.source import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.entries import Identity

__all__ = ["Parted"]

PARTED_FILES = 1 << 16
"""Files remembered, some 500 bytes each, for as long as names of them may still be replaced: of those beyond,
a second name that is replaced in one run is told to be changed, and replaced by the next."""


class Parted:
    """Remembers, of such files, each stat between which nothing else happened to them."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, int], list[Identity]] = {}

    def explains(self, is_meant: Callable[[Identity], bool], found: Identity) -> bool:
        """Whether only what was done here made one that `is_meant` what is `found`."""
        states = self._states.get((found.device, found.inode))
        return states is not None and states[-1] == found and any(map(is_meant, states))

    def replace(self, old: bytes, name: bytes, directory: int) -> None:
        """rename(2) of `old` over `name`, which is a file with other names, both in `directory`. Raises
        OSError."""
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            before = identity_of(os.fstat(fd))
            os.rename(old, name, src_dir_fd=directory, dst_dir_fd=directory)
            now = os.fstat(fd)
        finally:
            os.close(fd)
        after = identity_of(now)
        if now.st_nlink and (after.size, after.mtime_ns) == (before.size, before.mtime_ns):
            self.note(before, after)
        else:
            self._states.pop((before.device, before.inode), None)

    def note(self, before: Identity, after: Identity) -> None:
        """A file was `before`, and is `after` by nothing but what was done here."""
        key = (before.device, before.inode)
        states = self._states.pop(key, None)
        if states is None or states[-1] != before:
            states = [before]
        states.append(after)
        if len(self._states) >= PARTED_FILES:
            del self._states[next(iter(self._states))]
        self._states[key] = states
