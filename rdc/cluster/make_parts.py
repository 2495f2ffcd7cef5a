"""make_parts: all parts of a job, made by the workers of an executor; what died is run again."""

from __future__ import annotations

import os
import re
from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, Executor, wait
from contextlib import suppress
from queue import Empty, SimpleQueue

from rdc.cluster.slice_task import (
    RunMarker,
    SliceResult,
    SliceTask,
    WorkerFacts,
    packed_task,
    run_slice,
    unpacked_result,
    worker_facts,
)
from rdc.errors import ExitCode, IncompatiblePeerError, RdcError, UsageError, one_line, printable
from rdc.files.own.output_file import OpenedPath
from rdc.lean.records import Record
from rdc.model.scan import ScanSlice
from rdc.progress import STOP_SECONDS, Problem, Progressed, Reporter, StopSignal, check_stop
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from rdc.cluster.jobs import SliceJob
    from rdc.survey.slices import SlicedHead


# PartDirectory: the parts of a job in slices in one directory, some of them from an earlier run.


def slices_in(directory: bytes, ending: bytes) -> int | None:
    """Return the number of slices that the parts in a directory name; None without parts, or if they
    differ."""
    pattern = re.compile(rb"slice-\d+-of-(\d+)\." + re.escape(ending))
    try:
        found = {int(name[1]) for name in map(pattern.fullmatch, os.listdir(directory)) if name}
    except OSError:
        return None
    return found.pop() if len(found) == 1 else None


class FoundPart(Record):
    """A part of the job that is there."""

    bytes: int
    """Bytes of the files of its slice, as listed."""
    total: int
    """Bytes of the files of all slices."""


class PartDirectory:
    """Names the parts of one job, and says which of them are there."""

    def __init__(self, directory: bytes, of: int, job: SliceJob, facts: WorkerFacts) -> None:
        self._directory = directory
        self._of = of
        self._job = job
        self._roots = tuple(root.inode for root in facts.roots)

    def path(self, number: int) -> bytes:
        digits = len(str(self._of))
        name = b"slice-%0*d-of-%d.%b" % (digits, number, self._of, self._job.ending)
        return os.path.join(self._directory, name)

    def complete(self, number: int) -> FoundPart | None:
        """Return a part from an earlier run; None if there is none, or a damaged or stopped one.

        Raises UsageError, with its name, for a part of another job, which nobody wants to lose.
        """
        path = self.path(number)
        if not os.path.lexists(path):
            return None
        try:
            head, part = self._checked(number)
            return part if self._job.is_whole(path, head) else None
        except UsageError:
            raise
        except (RdcError, OSError):
            return None

    def part(self, number: int) -> FoundPart:
        """Return a part. Raises RdcError if it cannot be read, UsageError if it is of another job."""
        return self._checked(number)[1]

    def _checked(self, number: int) -> tuple[SlicedHead, FoundPart]:
        path = self.path(number)
        try:
            head = self._job.head(path)
        except OSError as error:
            raise RdcError(f"{printable(path)}: cannot read the part: {error.strerror}") from error
        if head.slices is None or head.slices.numbers != (number,):
            raise UsageError(f"{printable(path)}: expected slice {number}/{self._of}, found another part")
        try:
            self._job.check(head, self._of, self._roots)
        except UsageError as error:
            raise UsageError(f"{error}; or name another directory") from error
        return head, FoundPart(head.size, head.slices.most.bytes)


# SliceRuns: gives slices to an executor until each has its part, and runs again what died.

END_SECONDS = 30.0
"""The longest wait for running tasks after the end was announced. They look every half second, but a step may
take longer on slow storage."""

IN_FLIGHT = 4096
"""Tasks given to the executor at a time: more than workers, and few enough to be withdrawn at once."""


_MARKER_GONE = (
    "its worker does not see the file .rdcparts-*.run beside the parts: that machine has another directory at"
    " this path, or another run began there"
)


class _Sent(Record):
    """A task that is with the executor."""

    number: int
    executor: Executor
    future: Future[bytes | str]


class SliceRuns:
    """Runs tasks by number of slice. A failed one is run again, at most `attempts` times in total.

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
        self._is_given = isinstance(executor, Executor)
        self._make: Callable[[], Executor]
        self._make = (lambda: executor) if isinstance(executor, Executor) else executor
        self._executor: Executor | None = None
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
        """Return when each slice has its part. Raises RdcError if some have none, StoppedError once `stop`
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
        """Withdraw what has not begun, wait for the rest, and end an executor that was made here."""
        for sent in self._sent.values():
            sent.future.cancel()
        left = {future for future, sent in self._sent.items() if not future.done()}
        if left:
            wait(left, timeout=END_SECONDS)
        if not self._is_given and self._executor is not None:
            self._executor.shutdown(wait=True)
            self._executor = None

    def _send(self, number: int) -> None:
        if self._executor is None:
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
        """Replace an executor that takes no more work."""
        if self._executor is not broken:
            return  # another task of it was first
        self._breaks += 1
        text = one_line(str(error)) or type(error).__name__
        if self._is_given or self._breaks >= self._attempts:
            raise RdcError(
                f"the workers ended, and {len(self._waiting) + len(self._sent)} slices have no part;"
                f" run again to go on from the others: {text}",
                code=ExitCode.PARTIAL,
            )
        self._report(Problem(ExitCode.OK, b"", f"a worker died, others take its work: {text}"))
        broken.shutdown(wait=False, cancel_futures=True)
        self._executor = None


# make_parts: all parts of a job, made by the workers of an executor.

ATTEMPTS = 3


def make_parts(
    job: SliceJob,
    executor: Executor | Callable[[], Executor],
    slices: int,
    out: str | bytes | os.PathLike[str],
    *,
    threads: int,
    reporter: Reporter,
    stop: StopSignal | None,
) -> tuple[str, ...]:
    """Make the parts that are missing in the directory `out`, and return the names of all.

    Raises UsageError for a number of slices that cannot be, for a directory that a link of another user leads
    to, for a worker that differs and for a part of another job, RdcError if slices have no part in the end,
    StoppedError once `stop` is set.
    """
    last = ScanSlice(slices, slices)
    directory = os.path.abspath(os.fsencode(out))
    with suppress(OSError):  # one that is missing is reported below
        OpenedPath(os.path.join(directory, b"")).close()
    facts = worker_facts(job.paths, job.method)
    parts = PartDirectory(directory, slices, job, facts)
    marker = RunMarker(directory)
    marker.begin()
    try:
        progress = _Progress(parts, reporter)
        missing = [number for number in range(1, last.of + 1) if not progress.keep(number)]
        ordered: Sequence[int] = ()
        if missing:
            ordered = job.list_slices(
                slices, missing, marker.list_path, lambda: stop is not None and stop.is_set()
            )
        check_stop(stop)
        tasks = {
            number: SliceTask(
                job,
                ScanSlice(number, slices),
                parts.path(number),
                marker.list_path(number),
                marker.path,
                threads,
                facts,
            )
            for number in ordered
        }

        def finish(number: int) -> None:
            progress.finish(number)
            marker.drop_list(number)

        runs = SliceRuns(executor, tasks, ATTEMPTS, reporter, stop, finish)
        try:
            runs.run()
        finally:
            marker.end()
            runs.close()
    finally:
        marker.end()
    return tuple(os.fsdecode(parts.path(number)) for number in range(1, slices + 1))


class _Progress:
    """Adds up the bytes of the slices that have their part."""

    def __init__(self, parts: PartDirectory, reporter: Reporter) -> None:
        self._parts = parts
        self._report = reporter
        self._done = 0

    def keep(self, number: int) -> bool:
        """Count a part from an earlier run. Returns whether there is one."""
        part = self._parts.complete(number)
        if part is not None:
            self._add(part)
        return part is not None

    def finish(self, number: int) -> None:
        """Count a new part. Raises RdcError if it is not there."""
        self._add(self._parts.part(number))

    def _add(self, part: FoundPart) -> None:
        self._done += part.bytes
        self._report(Progressed("read", self._done, max(self._done, part.total)))
