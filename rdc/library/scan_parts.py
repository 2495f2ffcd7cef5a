"""`scan_parts`: the parts of one scan, made by the workers of an executor."""

from __future__ import annotations

import os

from rdc.catalog.arguments import check_job, path_list
from rdc.checks import check_argument, check_method
from rdc.errors import UsageError
from rdc.files.objects.object_url import is_url
from rdc.model.scan import ScanOptions
from rdc.progress import silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from rdc.progress import Reporter, StopSignal

__all__ = ["scan_parts"]


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
    if any(map(is_url, given)):
        from rdc.survey.scan.object_walk import check_urls

        check_urls(given, shared)
    from rdc.cluster.make_parts import make_parts
    from rdc.cluster.scan_job import ScanJob

    job = ScanJob(tuple(given), shared)
    return make_parts(job, executor, slices, out, threads=threads, reporter=reporter, stop=stop)
