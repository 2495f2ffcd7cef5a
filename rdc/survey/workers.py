"""Work spread over a few threads, results in order, no more in flight than the threads need."""

from __future__ import annotations

import os
from collections import deque
from itertools import chain, islice

from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from rdc.threads import Task

__all__ = ["in_order", "usable_workers"]

T = TypeVar("T")
R = TypeVar("R")

WORKERS_MAX = 4
"""Threads: each holds the interpreter's lock for a part of its work, so that more would wait for it."""

ALONE = 4
"""Tasks done by the caller before threads are started: a small job is over by then, and starting the first
thread costs some milliseconds."""


def usable_workers() -> int:
    """Threads worth starting in this process."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cpus = os.cpu_count() or 1
    return min(WORKERS_MAX, cpus)


def in_order(work: Callable[[T], R], tasks: Iterable[T], workers: int) -> Generator[R, None, None]:
    """`work(task)` for each task, results in the order of tasks.

    Twice as many tasks as workers are in flight. Leaving early, by an exception too, waits for those that
    run: whoever wants to leave soon makes `work` end soon.
    """
    rest: Iterator[T] = iter(tasks)
    for task in rest if workers <= 1 else islice(rest, ALONE):
        yield work(task)
    first = next(rest, None)
    if first is None:
        return
    from rdc.threads import Threads

    threads = Threads(workers, "rdc survey")
    flying: deque[Task[R]] = deque()
    try:
        for task in chain((first,), rest):
            flying.append(threads.submit(work, task))
            if len(flying) >= 2 * workers:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
    finally:
        for left in flying:
            left.cancel()
        threads.close()
