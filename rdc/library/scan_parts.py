"""`scan_parts`: the parts of one scan, made by the workers of an executor."""

from __future__ import annotations

import os

from rdc.catalog.arguments import check_job, path_list
from rdc.checks import check_argument, check_method
from rdc.errors import UsageError
from rdc.model.scan import ScanOptions, ScanSlice
from rdc.progress import Progressed, silent
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from rdc.cluster.part_directory import PartDirectory
    from rdc.progress import Reporter, StopSignal
    from rdc.survey.parts.part_head import PartHead

__all__ = ["scan_parts"]

ATTEMPTS = 3


def scan_parts(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    executor: Executor | Callable[[], Executor],
    slices: int,
    out: str | bytes | os.PathLike[str],
    options: ScanOptions | None = None,
    *,
    threads: int = 1,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> tuple[str, ...]:
    """Scans `paths` in `slices` slices, each a task of `executor`, and returns their parts for `rdc.merge`.

    `executor`: any Executor of concurrent.futures, or a function that makes one. Only with a function can a
    process pool be replaced whose worker died. Workers write into the directory `out`, which all machines see
    by its name, like `paths`. Before it reads anything, a worker compares its version of rdc and what it sees
    at `paths` with this machine.

    A task that fails is run again, at most three times in all. Complete parts of the same scan that are in
    `out` already are kept, so a run that was ended goes on where it was. `threads`: that read and hash in
    each task. `reporter` receives Progressed events of the phase 'read', in bytes, after each slice. Once
    `stop` is set, or after KeyboardInterrupt, running tasks end without a part; `stop` raises StoppedError.

    Raises UsageError for a worker that differs and for a part of another scan in `out`, RdcError with
    ExitCode.PARTIAL if slices have no part in the end.

        >>> import os, rdc
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> os.makedirs("data/a"), os.mkdir("parts")
        (None, None)
        >>> for name in ("data/one", "data/a/other"):
        ...     with open(name, "wb") as file:
        ...         _ = file.write(b"the same" * 1000)
        >>> with ThreadPoolExecutor(2) as executor:
        ...     parts = rdc.scan_parts("data", executor, 3, "parts")
        >>> rdc.merge(parts).duplicate_bytes
        8000
    """
    given = path_list("scan_parts", "paths", paths)
    if not callable(executor):
        check_method("scan_parts", "executor", executor, "submit")
    check_argument("scan_parts", "slices", slices, int)
    check_argument("scan_parts", "out", out, str, bytes, os.PathLike)
    check_argument("scan_parts", "options", options, ScanOptions, None)
    check_argument("scan_parts", "threads", threads, int)
    check_job("scan_parts", reporter, None, stop)
    shared = options or ScanOptions()
    if not given:
        raise UsageError("a scan needs at least one path")
    if shared.slice is not None:
        raise UsageError("scan_parts: options.slice is of one slice; the argument slices gives their number")
    last = ScanSlice(slices, slices)
    from rdc.cluster.part_directory import PartDirectory
    from rdc.cluster.run_marker import RunMarker
    from rdc.cluster.slice_runs import SliceRuns
    from rdc.cluster.slice_task import SliceTask
    from rdc.cluster.worker_facts import worker_facts

    directory = os.path.abspath(os.fsencode(out))
    facts = worker_facts(given)
    parts = PartDirectory(directory, slices, given, shared, facts)
    marker = RunMarker(directory)
    marker.begin()
    try:
        progress = _Progress(parts, reporter)
        missing = [number for number in range(1, last.of + 1) if not progress.keep(number)]
        tasks = {
            number: SliceTask(
                tuple(given),
                replace(shared, slice=ScanSlice(number, slices)),
                parts.path(number),
                marker.path,
                threads,
                facts,
            )
            for number in missing
        }
        runs = SliceRuns(executor, tasks, ATTEMPTS, reporter, stop, progress.finish)
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
        """Counts a part from an earlier run. Returns whether there is one."""
        head = self._parts.complete(number)
        if head is not None:
            self._add(head)
        return head is not None

    def finish(self, number: int) -> None:
        """Counts a new part. Raises RdcError if it is not there."""
        self._add(self._parts.head(number))

    def _add(self, head: PartHead) -> None:
        assert head.slices is not None  # noqa: S101 - PartDirectory returns no others
        self._done += head.found_bytes
        self._report(Progressed("read", self._done, max(self._done, head.slices.most.bytes)))
