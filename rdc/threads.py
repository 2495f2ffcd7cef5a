"""A few threads that work off what they are given.

concurrent.futures has the same, and takes 5 ms to load on either side of a sync: with it comes logging, and
half as many modules again as a search needs.
"""

from __future__ import annotations

from _queue import SimpleQueue  # the C part of queue
from _thread import allocate_lock
from threading import Thread

from rdc.typed import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Task", "Threads"]

R = TypeVar("R")


class Task(Generic[R]):
    """A call and what becomes of it."""

    __slots__ = ("_arguments", "_cancelled", "_done", "_error", "_result", "_work")

    def __init__(self, work: Callable[..., R], arguments: tuple[Any, ...]) -> None:
        self._work = work
        self._arguments = arguments
        self._cancelled = False
        self._error: BaseException | None = None
        self._done = allocate_lock()
        self._done.acquire()

    def cancel(self) -> None:
        """Where it has not begun it is not made any more. Nobody is to wait for it."""
        self._cancelled = True

    def done(self) -> bool:
        """Whether result() would not wait."""
        return not self._done.locked()

    def result(self) -> R:
        """Waits; what the call returned, or raises what it raised."""
        with self._done:
            if self._error is not None:
                raise self._error
            return self._result

    def run(self) -> None:
        """In a thread. Raises nothing: that is for whoever waits to see."""
        try:
            if not self._cancelled:
                self._result = self._work(*self._arguments)
        except BaseException as error:  # noqa: BLE001 - raised again by result()
            self._error = error
        finally:
            self._done.release()


class Threads:
    """Up to `most` threads, each started when there is work for one more. They end with `close`, or after
    what they were given when this object goes; a process does not wait for them."""

    def __init__(self, most: int, name: str) -> None:
        """`name`: what the threads are shown as, before their numbers."""
        self._most = most
        self._name = name
        self._started: list[Thread] = []
        self._queue: SimpleQueue[Task[Any] | None] = SimpleQueue()

    def submit(self, work: Callable[..., R], *arguments: Any) -> Task[R]:
        """Has `work` called with `arguments` in a thread, after all that was submitted before was begun."""
        if len(self._started) < self._most:
            self._start()
        task = Task(work, arguments)
        self._queue.put(task)
        return task

    def _start(self) -> None:
        number = len(self._started)
        # It must not know of this object, which would never go.
        thread = Thread(target=_work_off, args=(self._queue,), name=f"{self._name} {number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system has no more: those that run will do.
            if not self._started:
                raise
        else:
            self._started.append(thread)

    def close(self) -> None:
        """Waits until everything that was submitted is done, or skipped."""
        self._end()
        for thread in self._started:
            thread.join()
        self._started = []

    def _end(self) -> None:
        for _ in self._started:
            self._queue.put(None)

    __del__ = _end


def _work_off(queue: SimpleQueue[Task[Any] | None]) -> None:
    while (task := queue.get()) is not None:
        task.run()
        del task  # what it returned is the caller's alone
