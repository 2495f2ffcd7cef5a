"""make_parts: all parts of a job, made by the workers of an executor."""

from __future__ import annotations

import os
from contextlib import suppress

from rdc.cluster.part_directory import PartDirectory
from rdc.cluster.run_marker import RunMarker
from rdc.cluster.slice_runs import SliceRuns
from rdc.cluster.slice_task import SliceTask
from rdc.cluster.worker_facts import worker_facts
from rdc.files.own.opened_path import OpenedPath
from rdc.model.scan import ScanSlice
from rdc.progress import Progressed, check_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from rdc.cluster.jobs import SliceJob
    from rdc.progress import Reporter, StopSignal
    from rdc.survey.slices import SlicedHead

__all__ = ["make_parts"]

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
    """Makes the parts that are missing in the directory `out`, and returns the names of all.

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
        """Counts a part from an earlier run. Returns whether there is one."""
        head = self._parts.complete(number)
        if head is not None:
            self._add(head)
        return head is not None

    def finish(self, number: int) -> None:
        """Counts a new part. Raises RdcError if it is not there."""
        self._add(self._parts.head(number))

    def _add(self, head: SlicedHead) -> None:
        assert head.slices is not None  # noqa: S101 - PartDirectory returns no others
        self._done += head.size
        self._report(Progressed("read", self._done, max(self._done, head.slices.most.bytes)))
