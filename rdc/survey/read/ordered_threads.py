"""in_order: runs tasks in a few threads, with results in order and a bounded number in progress."""

from __future__ import annotations

import os
from collections import deque
from itertools import chain, islice

from rdc.lean.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from rdc.lean.threads import Task

__all__ = ["in_order", "usable_workers"]

T = TypeVar("T")
R = TypeVar("R")

WORKERS_MAX = 4
"""Most threads in use. Each holds the interpreter's lock for part of its work; more would wait for it."""

ALONE = 4
"""Tasks that the caller runs before threads are started. A small job is done by then, and starting the first
thread takes some milliseconds."""


def usable_workers() -> int:
    """Number of threads worth starting in this process."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cpus = os.cpu_count() or 1
    return min(WORKERS_MAX, cpus)


def in_order(
    work: Callable[[T], R], tasks: Iterable[T], workers: int, waits: Callable[[], bool] = lambda: False
) -> Generator[R, None, None]:
    """Yields `work(task)` for each task, in the order of tasks.

    `waits`: asked after each task of a single worker; once True, a second one takes the next task while the
    first waits for storage. Twice as many tasks as workers are in progress then. Leaving early, also by an
    exception, waits for the running tasks; to leave soon, `work` must end soon.
    """
    rest: Iterator[T] = iter(tasks)
    for task in rest if workers <= 1 else islice(rest, ALONE):
        yield work(task)
        if workers <= 1 and waits():
            workers = 2
            break
    first = next(rest, None)
    if first is None:
        return
    from rdc.lean.threads import Threads

    threads = Threads(workers, "rdc survey")
    in_flight: deque[Task[R]] = deque()
    try:
        for task in chain((first,), rest):
            in_flight.append(threads.submit(work, task))
            if len(in_flight) >= 2 * workers:
                yield in_flight.popleft().result()
        while in_flight:
            yield in_flight.popleft().result()
    finally:
        for left in in_flight:
            left.cancel()
        threads.close()
