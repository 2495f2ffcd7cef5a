"""ListAhead: lists the directories of a walk, and the next ones ahead while each makes the walk wait.

A walk knows which directories come next: those of its stack. Listed ahead, they wait for storage together.
The walk still gets one after the other, in its own order. A directory that cannot be listed ahead, or is
large, is listed when its turn comes, so that errors and memory are those of a walk without this.
"""

from __future__ import annotations

import errno
from time import perf_counter_ns

from rdc.errors import RdcError
from rdc.files.depth.depth import DEPTH_MOST, WAIT_NANOSECONDS, Depth, RowsSeen
from rdc.lean.records import dataclass
from rdc.lean.typed import Protocol
from rdc.limits.wire import AHEAD_BYTES, DIRECTORY_BYTES, ENTRY_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.depth.depth import Depths, Looking
    from rdc.lean.threads import Task, Threads
    from rdc.model.entries import Listed

__all__ = ["ListAhead"]

WINDOW_DIRECTORIES = 16
"""Directories that are looked at together. Half of them have to be slow, so that a processor that was busy
with others once is no reason for threads."""


class Listable(Protocol):
    """A tree whose directories can be listed: a Root."""

    @property
    def depths(self) -> Depths: ...

    @property
    def lists_ahead(self) -> bool:
        """Whether threads may list several directories at a time."""

    def list_unviewed(
        self, path: bytes, *, limit: int = DIRECTORY_BYTES, looking: Looking | None = None
    ) -> Listed: ...

    def viewed(self, path: bytes, listed: Listed) -> Listed: ...


@dataclass(frozen=True, slots=True)
class _Ahead:
    """What a thread made of one directory."""

    listed: Listed | None
    """None if it could not be listed within the bound."""
    waited: int
    """Nanoseconds."""
    no_descriptor: bool

    @property
    def size(self) -> int:
        """Bytes, as the bound counts them."""
        if self.listed is None:
            return 0
        return ENTRY_BYTES * self.listed.listing.count + len(self.listed.listing.names)


class _TimedLooks:
    """Stands for the depth at which the entries of a directory are looked at, and keeps the time they took.

    It is measured where no other thread of Python is waited for.
    """

    def __init__(self, depth: Depth) -> None:
        self._depth = depth
        self.elapsed = 0
        """Nanoseconds of the last directory."""

    @property
    def now(self) -> int:
        return self._depth.now

    @property
    def most(self) -> int:
        return self._depth.most

    def saw(self, seen: RowsSeen) -> None:
        self.elapsed = seen.elapsed
        self._depth.saw(seen)


class ListAhead:
    """For one walk over `root`, which lists each directory once."""

    def __init__(self, root: Listable, *, ahead: bool = True) -> None:
        """`ahead`: False if the walk leaves out directories of its stack."""
        self._root = root
        self._may = ahead and root.lists_ahead
        self._depth = root.depths.listing
        self._looks = _TimedLooks(root.depths.looking)
        self._tasks: dict[bytes, Task[_Ahead]] = {}
        self._running: list[Task[_Ahead]] = []
        self._ahead_bytes = 0
        """Bytes of what was listed ahead and not taken yet."""
        self._threads: Threads | None = None
        self._slow = self._looked = self._elapsed = self._waited = 0

    def take(self, path: bytes, following: Sequence[bytes]) -> Listed:
        """List one directory. `following`: those that come after it, the next one last. Raises RdcError."""
        if not self._may or (self._depth.now == 1 and not self._tasks):
            return self._list_alone(path)
        begun = perf_counter_ns()
        if self._depth.now > 1:
            self._submit(path, following)
        task = self._tasks.pop(path, None)
        if task is None:
            return self._list_alone(path)
        ahead = task.result()
        if task not in self._running:
            self._ahead_bytes -= ahead.size
        else:
            self._running.remove(task)
        elapsed = perf_counter_ns() - begun
        calls = 1 if ahead.listed is None else 1 + ahead.listed.listing.count
        # A directory counts as one row, whose wait is that of a mean call.
        self._depth.saw(RowsSeen(1, 1, ahead.waited // calls, elapsed, ahead.no_descriptor, 0))
        if ahead.listed is None:
            return self._root.viewed(path, self._root.list_unviewed(path))
        return self._root.viewed(path, ahead.listed)

    def _list_alone(self, path: bytes) -> Listed:
        listed = self._root.list_unviewed(path, looking=self._looks)
        waited, self._looks.elapsed = self._looks.elapsed, 0
        mean = waited // (1 + listed.listing.count)
        self._looked += 1
        self._slow += mean > WAIT_NANOSECONDS
        self._elapsed += waited
        self._waited += mean
        if self._looked == WINDOW_DIRECTORIES:
            counted = self._waited if 2 * self._slow >= self._looked else 0
            self._depth.saw(RowsSeen(self._looked, self._looked, counted, self._elapsed, 0, 0))
            self._slow = self._looked = self._elapsed = self._waited = 0
        return self._root.viewed(path, listed)

    def _submit(self, path: bytes, following: Sequence[bytes]) -> None:
        """Begin to list `path` and the next ones, as many as the depth and the bound let be."""
        self._count_ended()
        if self._threads is None:
            from rdc.lean.threads import Threads

            self._threads = Threads(max(self._depth.now, DEPTH_MOST), "rdc walk")
        limit = (AHEAD_BYTES - self._ahead_bytes) // self._depth.now
        # Few directories share the calls in flight.
        others = len(self._running) + len(following)
        looking = Depth(max(1, self._depth.now // (1 + others)))
        at = len(following)
        last = max(0, at - 4 * self._depth.now)
        while len(self._running) < self._depth.now and self._ahead_bytes <= AHEAD_BYTES // 2:
            if path not in self._tasks:
                try:
                    task = self._threads.submit(self._try, path, limit, looking)
                except RuntimeError:
                    self._depth.saw(RowsSeen(0, 0, 0, 0, 0, 1))
                    return
                self._tasks[path] = task
                self._running.append(task)
            at -= 1
            if at < last:
                return
            path = following[at]

    def _count_ended(self) -> None:
        running = []
        for task in self._running:
            if task.done():
                self._ahead_bytes += task.result().size
            else:
                running.append(task)
        self._running = running

    def _try(self, path: bytes, limit: int, looking: Depth) -> _Ahead:
        """List a directory in a thread."""
        begun = perf_counter_ns()
        listed, no_descriptor = None, False
        try:
            listed = self._root.list_unviewed(path, limit=limit, looking=looking)
        except RdcError as error:
            cause = error.__cause__
            no_descriptor = isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE)
        return _Ahead(listed, perf_counter_ns() - begun, no_descriptor)

    def close(self) -> None:
        """End the threads, when the calls in flight have ended. May be called again."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._running.clear()
        if self._threads is not None:
            self._threads.close()
            self._threads = None
