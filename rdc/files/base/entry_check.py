"""EntryCheck: whether an entry is still the one that was listed, apart from what this run itself did to it.

Right before a run changes what is at a path, it looks at it once more. An entry that is not the one that was
listed belongs to somebody else and stays, and so does one where nothing was listed. Some steps of the run
change entries that a later step checks: a file loses one of its names or gets one (its ctime changes), its
metadata are set, it moves. The run notes these, as chains of identities that only its own steps connect.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from enum import Enum

from rdc.files.base.metadata import KIND_OF_FORMAT, kind_of
from rdc.model.entries import ALL_FIELDS, ComparedFields, Identity, Kind, is_same_entry
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, TypeAlias


# Waits until the clock that stamps files has passed a file's last change, so that the next change is visible.
#
# A change sets the ctime from this clock, which moves in ticks of 1 to 10 ms, or 1 s on coarse file systems.
# (Since Linux 6.13 some file systems stamp the first change after a stat more finely.) A file that is read in
# the tick of its last change may change again with the same stat. A comparison of two stats would call it
# unchanged, and one mtime would stand for two contents.

_CLOCK_REALTIME_COARSE = 5
"""The value in linux/time.h; Python has no name for it."""

_SECOND = 1_000_000_000
_PAUSE_NS = 1_000_000

FUTURE_NS = 2 * _SECOND
"""A ctime further ahead than this was stamped by another clock, or before this clock was set back. Waiting
for it would prove nothing, or take years."""


def file_clock() -> int:
    """Return the clock that this kernel's file systems stamp with, in nanoseconds: the time of day, up to a
    tick late."""
    if sys.platform.startswith("linux"):
        return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
    return time.time_ns()


def outlast(ctime_ns: int) -> None:
    """Return once any change of the file gives it another ctime than `ctime_ns`. That is nearly always at
    once.

    A ctime of whole seconds is taken for the mark of a file system that keeps no finer times. That is wrong
    once in 10^9 times.
    """
    end = ctime_ns if ctime_ns % _SECOND else ctime_ns + _SECOND - 1
    while end - FUTURE_NS <= (now := file_clock()) <= end:
        time.sleep(min(_PAUSE_NS, end - now + 1) / _SECOND)


REMEMBERED_ENTRIES = 1 << 16
"""Entries whose own steps are remembered, at about 500 bytes each. Beyond this, an entry that the run itself
changed counts as changed by somebody else; the next run goes on with it."""


class Anything(Enum):
    """Type of ANYTHING, for annotations."""

    ANYTHING = "anything"


ANYTHING: Final = Anything.ANYTHING
"""As what is expected: any entry or none, for those who act on what they did not list. A directory is still
not replaced by another kind of entry."""

Expected: TypeAlias = "Identity | Anything | None"
"""What a path is to have right before it changes: an entry as it was listed, anything, or nothing."""


def identity_of(found: os.stat_result) -> Identity:
    """Return the identity of an entry with this stat."""
    kind = KIND_OF_FORMAT[found.st_mode >> 12]
    size = found.st_size if kind == Kind.FILE else 0
    mtime, ctime = packed_time(found.st_mtime_ns), packed_time(found.st_ctime_ns)
    return Identity(found.st_dev, found.st_ino, size, mtime, ctime, kind)


def stat_entry(name: bytes, parent: int) -> os.stat_result:
    """Return the stat of an entry of an open directory, without following a link. Raises OSError."""
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def found_at(name: bytes, directory: int) -> os.stat_result | None:
    """Return the stat of an entry of an open directory, None if nothing is there. Raises OSError."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def difference_from(expected: Identity | None, found: os.stat_result | None) -> tuple[str, str]:
    """Return what was expected at a path and what was found there, for a message."""
    if expected is None:
        what = "nothing" if found is None else f"a {kind_of(found.st_mode).name.lower()}"
        return "nothing there", what
    if found is None:
        return f"the {Kind(expected.kind).name.lower()} that was there", "nothing"
    return f"the {Kind(expected.kind).name.lower()} that was there", "that it was changed or replaced"


class EntryCheck:
    """For one tree and one run. Threads may share it."""

    def __init__(self, fields: ComparedFields = ALL_FIELDS) -> None:
        self.fields = fields
        """What counts of identities: what the file system keeps stable and every view shows as it is."""
        self._chains: dict[tuple[int, int], list[Identity]] = {}
        """By device and inode number of the last identity in it."""

    def leave_out(self, fields: ComparedFields) -> None:
        """Have no field count that does not count in `fields`."""
        self.fields = self.fields.both(fields)

    def is_still(self, expected: Identity, now: Identity) -> bool:
        """Return whether `now` is the entry `expected`, or what this run's own steps made of it."""
        if is_same_entry(expected, now, self.fields):
            return True
        chain = self._chains.get((now.device, now.inode))
        return (
            chain is not None
            and is_same_entry(chain[-1], now, self.fields)
            and any(is_same_entry(expected, former, self.fields) for former in chain)
        )

    def is_expected(self, expected: Expected, found: os.stat_result | None) -> bool:
        """Return whether a path has what it is to have; `found` is the stat of what it has."""
        if isinstance(expected, Identity):
            return found is not None and self.is_still(expected, identity_of(found))
        return expected is ANYTHING or found is None

    def note(self, before: Identity, after: Identity) -> None:
        """Record that a step of this run turned identity `before` into `after`."""
        if before == after:
            return
        chain = self._chains.pop((before.device, before.inode), None)
        if chain is None or chain[-1] != before:
            chain = [before]
        chain.append(after)
        if len(self._chains) >= REMEMBERED_ENTRIES:
            del self._chains[next(iter(self._chains))]
        self._chains[(after.device, after.inode)] = chain

    def note_named(self, before: Identity, after: os.stat_result | None) -> None:
        """Record that an entry got or lost a name, or was renamed, by a step of this run; `after`: its stat
        now. If more than its ctime changed, somebody else was there, and nothing is recorded."""
        if after is not None:
            now = identity_of(after)
            if (before.kind, before.size, before.mtime_ns) == (now.kind, now.size, now.mtime_ns):
                self.note(before, now)

    def take_name(
        self,
        name: bytes,
        directory: int,
        require: Callable[[os.stat_result | None], None],
        step: Callable[[], None],
    ) -> None:
        """Call `step`, which takes `name` of an open directory away from the entry that has it.

        `require` receives the stat of that entry, None if there is none, right before; it raises if the entry
        has to stay. If the entry has other names, it is recognised under these afterwards. Raises OSError.
        """
        found = found_at(name, directory)
        if found is None or found.st_nlink < 2 or stat.S_ISDIR(found.st_mode):
            require(found)
            step()
            return
        try:
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        except FileNotFoundError:
            require(None)
            raise
        try:
            before = identity_of(os.fstat(fd))
            require(found_at(name, directory))
            step()
            self.note_named(before, os.fstat(fd))
        finally:
            os.close(fd)
