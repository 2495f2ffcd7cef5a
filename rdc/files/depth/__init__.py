"""The number of calls to storage in flight at a time, and the C code that makes them.

All folders of rdc.files that make the same call for many entries use it.
"""

from __future__ import annotations

import time
from _thread import allocate_lock

from rdc.files.base.syscalls import share_of_descriptors
from rdc.lean.records import Record
from rdc.lean.typed import Protocol, TypeVar
from rdc.limits import DEPTH_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.lean.threads import Task


# Depth: how many calls to storage are in flight at a time.
#
# One is enough where calls do not wait: on files in the page cache a second thread only costs. Where they
# wait, as on a network or a disk that is not cached, the rate grows with the depth until the storage is busy.
# So the depth starts at 1, or at more where calls are known to wait. It is doubled while calls wait and the
# last doubling made them so much faster.

DEPTH_MOST = 32
"""Most calls in flight unless a user asks for more."""

WAIT_NANOSECONDS = 100_000
"""Mean wait of a call, from which on several are in flight. To start a thread costs 20 us."""

GROWTH = 1.2
"""The factor by which calls must become faster for the last doubling to stay."""

WINDOW_ROWS = 16
"""Rows of the first decision. Later ones take four times as many rows as are in flight."""

STEADY_ROWS = 1024
"""Rows until a steady depth is tried once more: the storage may have been busy for others."""


_bound = [DEPTH_LIMIT]
"""The requests of this process."""


def bound_depth(most: int) -> None:
    """Have no more than `most` calls in flight on each tree that this process opens from now on, whatever is
    asked for: in a process that serves one peer, as its other limits. The bound only decreases."""
    _bound[0] = max(1, min(_bound[0], most))


class RowsSeen(Record):
    """Measurements of the C code over the rows of one call (rows_at_once.h)."""

    rows: int
    """All rows."""
    own_rows: int
    """Rows that the calling thread did."""
    waited: int
    """Nanoseconds that it waited in them."""
    elapsed: int
    """Nanoseconds of the whole call."""
    no_descriptor: int
    """1 if a row found no free descriptor."""
    no_thread: int
    """1 if the system refused a thread."""


class Looking(Protocol):
    """The number of entries of a directory that are looked at together: a Depth."""

    @property
    def now(self) -> int: ...
    @property
    def most(self) -> int: ...
    def saw(self, seen: RowsSeen, /) -> None: ...


class Depth:
    """The depth of one kind of call on one tree. Threads may share it."""

    __slots__ = (
        "_before",
        "_lock",
        "_looked",
        "_own",
        "_rows",
        "_steady",
        "_times",
        "fixed",
        "most",
        "now",
    )

    def __init__(self, fixed: int = 0, first: int = 1) -> None:
        """Take `fixed`: the depth from the first call on, up to DEPTH_LIMIT; 0: chosen by the waits. `first`:
        the depth until waits were measured."""
        self.most = share_of_descriptors(min(min(fixed, DEPTH_LIMIT) or DEPTH_MOST, _bound[0]))
        """The upper bound of `now`."""
        self.fixed = min(fixed, self.most)
        self.now = self.fixed or min(first, self.most)
        """Calls to have in flight, at least 1."""
        self._steady = self._looked = False
        self._before = 0.0
        """Rows per nanosecond at the depth before this one."""
        self._rows = self._own = 0
        self._times = (0, 0)
        self._lock = allocate_lock()

    @property
    def rows(self) -> int:
        """Return how many rows may pass before `saw` is to be called."""
        if self.fixed or self._steady or (self.now == 1 and self._looked):
            return STEADY_ROWS
        return max(WINDOW_ROWS, 4 * self.now)

    def saw(self, seen: RowsSeen) -> None:
        """Take in what became of some rows, and decide again."""
        with self._lock:
            if seen.no_thread:
                self.most = self.now = 1
            elif seen.no_descriptor and self.now > 1:
                self.most = self.now = self.now // 2
                self._forget(steady=True)
            if not self.fixed and seen.rows:
                self._add(seen)

    def _add(self, seen: RowsSeen) -> None:
        self._rows += seen.rows
        self._own += seen.own_rows
        waited, elapsed = self._times[0] + seen.waited, self._times[1] + seen.elapsed
        self._times = waited, elapsed
        if self._rows < (STEADY_ROWS if self._steady else max(WINDOW_ROWS, 4 * self.now)):
            return
        self._looked = True
        if waited <= WAIT_NANOSECONDS * self._own:
            self.now = 1
            self._forget(steady=False)
            return
        rate = self._rows / max(elapsed, 1)
        if self._steady or self.now == 1 or rate >= GROWTH * self._before:
            self._before = rate
            grown = min(2 * self.now, self.most)
            self._forget(steady=grown == self.now)
            self.now = grown
        else:
            self.now = max(1, self.now // 2)
            self._forget(steady=True)

    def _forget(self, *, steady: bool) -> None:
        self._rows = self._own = 0
        self._times = (0, 0)
        self._steady = steady


class Depths:
    """The depths of one tree. Each kind of call has its own, since their rates cannot be compared."""

    __slots__ = ("listing", "looking", "opening", "reading", "renaming", "setting", "writing")

    def __init__(self, fixed: int = 0, first: int = 1) -> None:
        """Apply `fixed` to all calls, as in Depth, and `first` to lists and opens: a store of objects begins
        with more than one."""
        self.listing = Depth(fixed, first)
        """Lists of directories. The wait of one is the mean of its calls."""
        self.looking = Depth(fixed)
        """Stats of the entries of one directory."""
        self.opening = Depth(fixed, first)
        self.reading = Depth(fixed)
        """Reads of files that are open."""
        self.writing = Depth(fixed)
        self.renaming = Depth(fixed)
        self.setting = Depth(fixed)
        """Changes of metadata."""

    @property
    def found(self) -> int:
        """The greatest depth of all, for calls that are not measured."""
        measured = (self.listing, self.looking, self.opening, self.reading, self.renaming, self.setting)
        return max(self.writing.now, *[depth.now for depth in measured])


# calls_at_once: the same call of Python for several items at a time, in place of a loop.

T = TypeVar("T")
R = TypeVar("R")


def calls_at_once(work: Callable[[T], R], items: Sequence[T], depths: Depths) -> list[R]:
    """Return `work(item)` of each item, in order. So many calls are in flight as `depths` found of others.

    All calls have ended when this returns or raises. It raises the exception of the first item that has one.
    """
    most = min(depths.found, len(items))
    if most <= 1:
        return [work(item) for item in items]
    from rdc.lean.threads import Threads

    threads = Threads(most, "rdc calls")
    tasks: list[Task[R]] = []
    try:
        for item in items:
            tasks.append(threads.submit(work, item))
    except RuntimeError:
        # The system refuses even one thread.
        return [work(item) for item in items]
    finally:
        threads.close()
    return [task.result() for task in tasks]


# ReadRate: a bound on the bytes read from storage in a second, for storage that others need as well.

BURST_SECONDS = 0.1
"""A run that read less than its rate may catch up at once, by at most this many seconds of the rate."""


class ReadRate:
    """Lets `rate` bytes a second pass on average. All threads of a run share one.

    Each caller gets a time of its own behind those before it, and sleeps until then. So after t seconds at
    most rate * (t + BURST_SECONDS) bytes were let pass, and what the last callers asked for.
    """

    def __init__(
        self,
        rate: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`rate`: bytes a second, above 0. `clock`: seconds that never go back."""
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._next = clock()
        """The time at which the bytes that were let pass are paid for."""
        self._lock = allocate_lock()

    def take(self, size: int) -> None:
        """Return when `size` more bytes may be read."""
        with self._lock:
            now = self._clock()
            start = max(self._next, now - BURST_SECONDS)
            self._next = start + size / self._rate
        if start > now:
            self._sleep(start - now)
