"""OwnTimes: tells whether anybody but rdc has touched a file since a sync left it, by its ctime.

Its owner can give a file any content, size and mtime, but no ctime. A sync notes the ctimes that it leaves
(Left, Held). An undo changes them again. So it says by a line in its own record on which files it has begun
to act, for one that goes on after a kill. For the undo of the sync before, it says by a line in that record
that a file at its new ctime is what it was at an earlier one (Own).
"""

from __future__ import annotations

from rdc.undoing.journal import Own

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from rdc.undoing.store import StoredSync

__all__ = ["OwnTimes"]


class OwnTimes:
    """The files that an undo acts on, by inode number."""

    def __init__(self, record: StoredSync, older: StoredSync | None) -> None:
        """`record`: of the sync that is undone. `older`: of the sync that is undone next, if there is one."""
        self._record = record
        self._older = older
        self._lines: dict[int, Own] | None = None
        """For each inode, the last line about it. None: not read yet."""
        self._acted: dict[int, int] = {}
        """The ctimes that this undo gave to files: further steps may be about them."""

    def _line(self, inode: int) -> Own | None:
        if self._lines is None:
            self._lines = {}
            # Most records have no such line, and nobody asks.
            for each in self._record.backwards():
                if isinstance(each, Own):
                    self._lines.setdefault(each.inode, each)
        return self._lines.get(inode)

    def pass_on(self) -> None:
        """Repeat in the older record what this one says about files, before the first step: the sync may not
        have touched them."""
        if self._older is not None:
            self._line(0)
            lines = [each for each in (self._lines or {}).values() if each.now is not None]
            self._older.append([*lines], fsync=False)

    def explain(self, found: os.stat_result, left: int | None) -> bool:
        """Return whether nobody but rdc has touched a file, whose stat is `found`, since it had the ctime
        `left`. None: that is unknown."""
        inode, now = found.st_ino, found.st_ctime_ns
        if now in (left, self._acted.get(inode)):
            return True
        line = self._line(inode)
        return line is not None and (line.now is None or (line.now == now and line.was == left))

    def begin(self, inode: int) -> None:
        """Note that the undo is about to act on a file that nobody else has touched."""
        self._record.append([Own(inode, 0, None)], fsync=False)

    def became(self, found: os.stat_result, was: int) -> None:
        """Note that a file that nobody else has touched, whose stat is `found`, is now what it was at the
        ctime `was`, before the sync."""
        self._acted[found.st_ino] = found.st_ctime_ns
        if self._older is not None and was:
            self._older.append([Own(found.st_ino, was, found.st_ctime_ns)], fsync=False)
