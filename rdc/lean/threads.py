"""A small pool of daemon threads.

concurrent.futures offers the same, but takes 9.3 ms of CPU to load beside this module (40 paired runs),
because it loads logging. Both sides of a sync would pay for it.
"""

from __future__ import annotations

from queue import SimpleQueue
from threading import Lock, Thread

from rdc.lean.typed import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


R = TypeVar("R")


class Task(Generic[R]):
    """One submitted call and its result."""

    __slots__ = ("_arguments", "_cancelled", "_done", "_error", "_result", "_work")

    def __init__(self, work: Callable[..., R], arguments: tuple[Any, ...]) -> None:
        self._work = work
        self._arguments = arguments
        self._cancelled = False
        self._error: BaseException | None = None
        self._done = Lock()
        self._done.acquire()

    def cancel(self) -> None:
        """Skip the call if it has not begun. result() must not be used afterwards."""
        self._cancelled = True

    def done(self) -> bool:
        """Return whether the call has ended, so that result() does not wait."""
        return not self._done.locked()

    def result(self) -> R:
        """Wait for the call. Returns its result or raises its exception."""
        with self._done:
            if self._error is not None:
                raise self._error
            return self._result

    def run(self) -> None:
        """Make the call in the current thread. Raises nothing; result() raises the exception."""
        try:
            if not self._cancelled:
                self._result = self._work(*self._arguments)
        except BaseException as error:  # noqa: BLE001 - raised again by result()
            self._error = error
        finally:
            self._done.release()


class Threads:
    """A pool of up to `most` threads. Each of the first calls starts one.

    The threads end with `close`, or after the submitted calls once this object is deleted. A process does not
    wait for them at exit.
    """

    def __init__(self, most: int, name: str) -> None:
        """`name` is the prefix of the threads' names; a number follows it."""
        self._most = most
        self._name = name
        self._started: list[Thread] = []
        self._queue: SimpleQueue[Task[Any] | None] = SimpleQueue()

    def submit(self, work: Callable[..., R], *arguments: Any) -> Task[R]:
        """Queue a call of `work` with `arguments`. Calls begin in the order of submission.

        Raises RuntimeError if the system refuses even the first thread.
        """
        if len(self._started) < self._most:
            self._start()
        task = Task(work, arguments)
        self._queue.put(task)
        return task

    def _start(self) -> None:
        number = len(self._started)
        # The thread must not refer to this object, or the object would never be deleted.
        thread = Thread(target=_run_tasks, args=(self._queue,), name=f"{self._name} {number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system refuses more threads. The running ones do the work.
            if not self._started:
                raise
        else:
            self._started.append(thread)

    def close(self) -> None:
        """Wait until every submitted call has ended or was skipped, then ends the threads."""
        self._end()
        for thread in self._started:
            thread.join()
        self._started = []

    def _end(self) -> None:
        for _ in self._started:
            self._queue.put(None)

    __del__ = _end


def _run_tasks(queue: SimpleQueue[Task[Any] | None]) -> None:
    """Run queued tasks until None comes. The main function of a thread."""
    while (task := queue.get()) is not None:
        task.run()
        del task  # the result belongs to the caller alone
