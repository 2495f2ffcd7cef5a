"""SliceRuns: gives slices to an executor until each has its part, and runs again what died."""

from __future__ import annotations

from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from queue import Empty, SimpleQueue

from rdc.cluster.slice_task import SliceResult, packed_task, run_slice, unpacked_result
from rdc.errors import ExitCode, IncompatiblePeerError, RdcError, UsageError, one_line
from rdc.lean.records import dataclass
from rdc.progress import STOP_SECONDS, Problem, check_stop
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from rdc.cluster.slice_task import SliceTask
    from rdc.progress import Reporter, StopSignal

__all__ = ["END_SECONDS", "SliceRuns"]

END_SECONDS = 30.0
"""The longest wait for running tasks after the end was announced. They look every half second, but a step may
take longer on slow storage."""

IN_FLIGHT = 4096
"""Tasks given to the executor at a time: more than workers, and few enough to be withdrawn at once."""


_MARKER_GONE = (
    "its worker does not see the file .rdcparts-*.run beside the parts: that machine has another directory at"
    " this path, or another run began there"
)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A task that is with the executor."""

    number: int
    executor: Executor
    future: Future[bytes | str]


class SliceRuns:
    """Runs tasks by number of slice. A failed one is run again, at most `attempts` times in all.

    If a worker dies, a ProcessPoolExecutor is broken as a whole. A new one takes the tasks that it had, if
    the caller gave the means to make one. That ends after `attempts` breaks without a finished slice in
    between, so a slice that kills each worker cannot go on for ever.
    """

    def __init__(
        self,
        executor: Executor | Callable[[], Executor],
        tasks: Mapping[int, SliceTask],
        attempts: int,
        reporter: Reporter,
        stop: StopSignal | None,
        finished: Callable[[int], None],
    ) -> None:
        """`finished` is called with the number of each slice that should have its part. It raises RdcError if
        the part is not there, and the slice has failed then."""
        self._make = None if isinstance(executor, Executor) else executor
        self._executor = executor if isinstance(executor, Executor) else None
        self._tasks = tasks
        self._attempts = attempts
        self._report = reporter
        self._stop = stop
        self._finished = finished
        self._waiting = deque(tasks)
        self._sent: dict[Future[bytes | str], _Sent] = {}
        self._done: SimpleQueue[Future[bytes | str]] = SimpleQueue()
        self._failures: dict[int, int] = {}
        self._errors: list[str] = []
        self._breaks = 0

    def run(self) -> None:
        """Returns when each slice has its part. Raises RdcError if some have none, StoppedError once `stop`
        is set."""
        while self._waiting or self._sent:
            check_stop(self._stop)
            while self._waiting and len(self._sent) < IN_FLIGHT:
                self._send(self._waiting.popleft())
            try:
                future = self._done.get(timeout=STOP_SECONDS)
            except Empty:
                continue
            sent = self._sent.pop(future, None)
            if sent is not None:
                self._take(sent)
        if self._errors:
            raise RdcError(
                f"{len(self._errors)} of {len(self._tasks)} slices have no part; run again to go on from the"
                f" others: {self._errors[0]}",
                code=ExitCode.PARTIAL,
            )

    def close(self) -> None:
        """Withdraws what has not begun, waits for the rest, and ends an executor that was made here."""
        for sent in self._sent.values():
            sent.future.cancel()
        left = {future for future, sent in self._sent.items() if not future.done()}
        if left:
            from concurrent.futures import wait

            wait(left, timeout=END_SECONDS)
        if self._make is not None and self._executor is not None:
            self._executor.shutdown(wait=True)
            self._executor = None

    def _send(self, number: int) -> None:
        if self._executor is None:
            assert self._make is not None  # noqa: S101 - a given executor stays
            self._executor = self._make()
        try:
            future = self._executor.submit(run_slice, __version__, packed_task(self._tasks[number]))
        except (BrokenExecutor, RuntimeError) as error:
            # RuntimeError: the executor was shut down.
            self._waiting.appendleft(number)
            self._renew(self._executor, error)
            return
        self._sent[future] = _Sent(number, self._executor, future)
        future.add_done_callback(self._done.put)

    def _take(self, sent: _Sent) -> None:
        try:
            returned = sent.future.result()
            result = unpacked_result(returned) if isinstance(returned, bytes) else None
        except (BrokenExecutor, CancelledError) as error:
            # All tasks of a broken pool fail, also those that had not begun.
            self._waiting.append(sent.number)
            self._renew(sent.executor, error)
            return
        except Exception as error:  # noqa: BLE001 - an engine may raise anything that is its own
            result = SliceResult("", one_line(f"{type(error).__name__}: {error}"))
        if result is None:
            raise IncompatiblePeerError(
                f"worker with rdc {one_line(str(returned))}: expected {__version__}; install the same version"
                " there"
            )
        if result.is_stopped:
            result = SliceResult(result.host, _MARKER_GONE)
        if not result.error:
            try:
                self._finished(sent.number)
            except RdcError as error:
                result = SliceResult(result.host, str(error), isinstance(error, UsageError))
        if result.error:
            self._failed(sent.number, result)
        else:
            self._breaks = 0

    def _failed(self, number: int, result: SliceResult) -> None:
        task = self._tasks[number]
        text = f"slice {task.slice}: {result.error}"
        if result.is_final:
            raise UsageError(text)
        self._failures[number] = self._failures.get(number, 0) + 1
        if self._failures[number] >= self._attempts:
            self._errors.append(text)
            return
        again = f"{text}; run again ({self._failures[number] + 1} of {self._attempts})"
        self._report(Problem(ExitCode.OK, task.part, again))
        self._waiting.append(number)

    def _renew(self, broken: Executor, error: BaseException) -> None:
        """Replaces an executor that takes no more work."""
        if self._executor is not broken:
            return  # another task of it was first
        self._breaks += 1
        text = one_line(str(error)) or type(error).__name__
        if self._make is None or self._breaks >= self._attempts:
            raise RdcError(
                f"the workers ended, and {len(self._waiting) + len(self._sent)} slices have no part;"
                f" run again to go on from the others: {text}",
                code=ExitCode.PARTIAL,
            )
        self._report(Problem(ExitCode.OK, b"", f"a worker died, others take its work: {text}"))
        broken.shutdown(wait=False, cancel_futures=True)
        self._executor = None
