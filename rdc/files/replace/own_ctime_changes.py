"""Recognises ctime changes that this run itself made to files with several names.

Replacing one name of a file, or setting its metadata, changes the ctime seen under its other names. Without
this record, a later decision about another name would take the file for changed.
"""

from __future__ import annotations

import os

from rdc.files.base.taking_names import replace_name
from rdc.files.root.source_file import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.entries import Identity

__all__ = ["OwnCtimeChanges"]

REMEMBERED_FILES = 1 << 16
"""Files remembered, at about 500 bytes each. Beyond this, the second name of a file counts as changed in this
run and is replaced by the next run."""


class OwnCtimeChanges:
    """Remembers, for each such file, a chain of identities connected only by this run's own changes."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, int], list[Identity]] = {}

    def explains(self, is_meant: Callable[[Identity], bool], found: Identity) -> bool:
        """Return whether `found` is the last identity of a chain in which an earlier one satisfies
        `is_meant`."""
        states = self._states.get((found.device, found.inode))
        return states is not None and states[-1] == found and any(map(is_meant, states))

    def replace(self, old: bytes, name: bytes, directory: int) -> None:
        """Rename `old` over `name`, a file with other names; both are in `directory`. Raises OSError."""
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            before = identity_of(os.fstat(fd))
            replace_name(old, name, directory)
            now = os.fstat(fd)
        finally:
            os.close(fd)
        after = identity_of(now)
        if now.st_nlink and (after.size, after.mtime_ns) == (before.size, before.mtime_ns):
            self.note(before, after)
        else:
            self._states.pop((before.device, before.inode), None)

    def note(self, before: Identity, after: Identity) -> None:
        """Record that this run's own change turned identity `before` into `after`."""
        key = (before.device, before.inode)
        states = self._states.pop(key, None)
        if states is None or states[-1] != before:
            states = [before]
        states.append(after)
        if len(self._states) >= REMEMBERED_FILES:
            del self._states[next(iter(self._states))]
        self._states[key] = states
