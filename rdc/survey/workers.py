"""Work spread over a few threads, results in order, no more in flight than the threads need."""

from __future__ import annotations

import os
from _queue import SimpleQueue  # the C part of queue
from _thread import allocate_lock
from collections import deque
from itertools import chain, islice
from threading import Thread

from rdc.typed import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

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
    jobs: SimpleQueue[_Job[T, R] | None] = SimpleQueue()
    threads = [
        Thread(target=_work_off, args=(work, jobs), name=f"rdc survey {number}", daemon=True)
        for number in range(workers)
    ]
    flying: deque[_Job[T, R]] = deque()
    try:
        for thread in threads:
            thread.start()
        for task in chain((first,), rest):
            job: _Job[T, R] = _Job(task)
            flying.append(job)
            jobs.put(job)
            if len(flying) >= 2 * workers:
                yield flying.popleft().outcome()
        while flying:
            yield flying.popleft().outcome()
    finally:
        for job in flying:
            job.cancelled = True
        for _ in threads:
            jobs.put(None)
        for thread in threads:
            if thread.ident is not None:
                thread.join()


class _Job(Generic[T, R]):
    """A task and what becomes of it. concurrent.futures has the same, and takes 10 ms to load: with it comes
    logging, and half as many modules again as a search needs."""

    __slots__ = ("_done", "_error", "_result", "cancelled", "task")

    def __init__(self, task: T) -> None:
        self.task = task
        self.cancelled = False
        self._done = allocate_lock()
        self._done.acquire()
        self._error: BaseException | None = None

    def run(self, work: Callable[[T], R]) -> None:
        """In a thread. Raises nothing: that is the caller's to see."""
        try:
            self._result = work(self.task)
        except BaseException as error:  # noqa: BLE001 - raised again by outcome()
            self._error = error
        finally:
            self._done.release()

    def outcome(self) -> R:
        """Waits; what `work` returned, or raises what it raised."""
        self._done.acquire()
        if self._error is not None:
            raise self._error
        return self._result


def _work_off(work: Callable[[T], R], jobs: SimpleQueue[_Job[T, R] | None]) -> None:
    while (job := jobs.get()) is not None:
        if not job.cancelled:
            job.run(work)
