"""`rdc.scan`, `rdc.scan_parts` and `rdc.merge`: what deduplication and compression would save, in one scan,
by the workers of an executor, and as one report of several scans."""

from __future__ import annotations

import os
import time
from functools import partial
from itertools import accumulate

from rdc.catalog.store import USER_CATALOG, UserCatalog
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.files.objects.object_store import is_url
from rdc.files.own.output_file import Claims, Output, claim_outputs, write_output
from rdc.lean.checks import check_argument, check_callable, check_method
from rdc.lean.records import replace
from rdc.library import check_job, options_of, path_list, public, reporting
from rdc.model.scan import MergeOptions, ScanOptions
from rdc.progress import Progressed, check_stop, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from typing import BinaryIO

    from rdc.catalog.store import SignatureStore
    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter, StopSignal
    from rdc.survey.count.counters import Outcome


@public
def scan(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    since: str | bytes | os.PathLike[str] | None = None,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: Reporter = silent,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    clock: Callable[[], float] = time.monotonic,
    **keywords: object,
) -> ScanReport:
    """Measure what deduplication and compression would save below `paths` (several, or one): files and
    directories, and URLs s3://BUCKET/NAME of objects.

    `part`: a file to write the counts to, for `rdc.merge`. It never replaces a file that is read, and another
    file that is no part only with `overwrite`. `since`: the part of an earlier scan of the same paths, for
    the report's `growth`. `catalog` is asked before a file is read and gets new signatures. Once `stop` is
    set, the scan ends with the files read so far: the report's coverage has the reason 'interrupted' and its
    exit is ExitCode.INTERRUPTED. `clock` returns seconds and never goes back. Raises UsageError. Failures of
    single files are in the report.

        >>> import os, rdc
        >>> os.mkdir("data")
        >>> for name in ("a", "b"):
        ...     with open(f"data/{name}", "wb") as file:
        ...         _ = file.write(b"the same" * 1000)
        >>> report = rdc.scan("data", catalog=None)
        >>> report.files, report.bytes, report.duplicate_bytes
        (2, 16000, 8000)
    """
    given = path_list("scan", "paths", paths)
    options = options_of("scan", ScanOptions, options, keywords)
    check_argument("scan", "part", part, str, bytes, os.PathLike, None)
    check_argument("scan", "overwrite", overwrite, bool)
    check_argument("scan", "since", since, str, bytes, os.PathLike, None)
    reporter = reporting("scan", reporter, progress)
    check_job("scan", reporter, catalog, stop)
    check_callable("scan", "clock", clock)
    from rdc.survey.parts.sections import SCAN_PART

    output = None if part is None else Output(os.fsencode(part), SCAN_PART, overwrite)
    claims = claim_outputs([output] if output else [])
    return scan_claimed(
        given,
        options,
        output,
        claims,
        since=since,
        catalog=catalog,
        reporter=reporter,
        stop=stop,
        clock=clock,
    )


def scan_claimed(
    paths: Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions,
    part: Output | None,
    claims: Claims,
    *,
    since: str | bytes | os.PathLike[str] | None = None,
    catalog: SignatureStore | UserCatalog | None,
    reporter: Reporter,
    stop: StopSignal | None,
    clock: Callable[[], float],
) -> ScanReport:
    """Scan as `scan` does. `claims`: all results of this run, `part` among them, which the scan must not
    read."""
    from rdc.survey.parts.growth import check_same_paths
    from rdc.survey.parts.part_file import encode_part
    from rdc.survey.scan.scanner import survey

    before = None if since is None else _earlier(since, options.memory)
    if before is not None and since is not None:
        check_same_paths(before.paths, list(map(os.fsencode, paths)), printable(os.fsdecode(since)))
    outcome = survey(
        paths,
        options,
        catalog=catalog,
        reporter=reporter,
        stopped=(lambda: False) if stop is None else stop.is_set,
        clock=clock,
        claims=claims,
    )
    if part is not None:
        write_output(part, encode_part(outcome))
    return _report(outcome, before, since)


def _earlier(since: str | bytes | os.PathLike[str], memory: int) -> Outcome:
    """Return what an earlier scan counted. Raises RdcError and UsageError, with the part's name."""
    from rdc.survey.parts.merge import PartSource, merge_parts

    name = os.fsdecode(since)
    return merge_parts([PartSource(printable(name), partial(_opened, name))], memory)


def _report(
    outcome: Outcome, before: Outcome | None, since: str | bytes | os.PathLike[str] | None
) -> ScanReport:
    """Return the report, with the growth since an earlier scan. Raises UsageError if that one is of other
    paths."""
    from rdc.survey.scan.summary import report_of

    report = report_of(outcome)
    if before is None or since is None:
        return report
    from rdc.survey.parts.growth import growth_of

    return replace(report, growth=growth_of(before, outcome, printable(os.fsdecode(since))))


@public
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
    """Scan `paths` in `slices` slices, each a task of `executor`, and return their parts for `rdc.merge`.

    `executor`: any Executor of concurrent.futures, or a function that makes one. Only with a function can a
    process pool be replaced whose worker died. Workers write into the directory `out`, which all machines see
    by its name, like `paths`. Before it reads anything, a worker compares its version of rdc and what it sees
    at `paths` with this machine.

    A task that fails is run again, at most three times in total. Complete parts of the same scan that are in
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
        from rdc.survey.scan.objects import check_urls

        check_urls(given, shared)
    from rdc.cluster.jobs import ScanJob
    from rdc.cluster.make_parts import make_parts

    job = ScanJob(tuple(given), shared)
    return make_parts(job, executor, slices, out, threads=threads, reporter=reporter, stop=stop)


@public
def merge(
    parts: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: MergeOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    since: str | bytes | os.PathLike[str] | None = None,
    reporter: Reporter = silent,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    **keywords: object,
) -> ScanReport:
    """Merge the parts that `rdc.scan` wrote into one report, as if one scan had read all files.

    `part`: a file to write what was merged to, as a part again. It never replaces one of `parts`, and another
    file that is no part only with `overwrite`. `since`: as for `rdc.scan`. `reporter` receives Progressed
    events of the phase 'read', in bytes of parts, before each part and at the end. Once `stop` is set, the
    merge raises StoppedError before the next part. Raises RdcError for a part that cannot be read or is
    damaged, and UsageError for parts of different options; both name the part.

        >>> import os, rdc
        >>> os.mkdir("data")
        >>> with open("data/file", "wb") as file:
        ...     _ = file.write(b"content" * 1000)
        >>> for name in ("a.rdcscan", "b.rdcscan"):
        ...     _ = rdc.scan("data", catalog=None, part=name)
        >>> rdc.merge(["a.rdcscan", "b.rdcscan"]).duplicate_bytes
        7000
    """
    names = [os.fsdecode(path) for path in path_list("merge", "parts", parts)]
    options = options_of("merge", MergeOptions, options, keywords)
    check_argument("merge", "part", part, str, bytes, os.PathLike, None)
    check_argument("merge", "overwrite", overwrite, bool)
    check_argument("merge", "since", since, str, bytes, os.PathLike, None)
    reporter = reporting("merge", reporter, progress)
    check_job("merge", reporter, None, stop)
    from rdc.survey.parts.sections import SCAN_PART

    output = None if part is None else Output(os.fsencode(part), SCAN_PART, overwrite)
    claim_outputs([output] if output else []).check_named(map(os.fsencode, names))
    from rdc.survey.parts.merge import PartSource, merge_parts

    before_this = None if since is None else _earlier(since, options.memory)
    sizes = [_size(name) for name in names]
    done = list(accumulate(sizes, initial=0))

    def before(number: int) -> None:
        check_stop(stop)
        reporter(Progressed("read", done[number], done[-1]))

    sources = [PartSource(name, partial(_opened, name)) for name in names]
    outcome = merge_parts(sources, options.memory, before=before)
    reporter(Progressed("read", done[-1], done[-1]))
    if output is not None:
        from rdc.survey.parts.part_file import encode_part

        write_output(output, encode_part(outcome))
    return _report(outcome, before_this, since)


def _opened(name: str) -> BinaryIO:
    try:
        return open(name, "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from error


def _size(name: str) -> int:
    """Return the bytes of a part. A pipe has none until it is read."""
    try:
        return os.stat(name).st_size
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: OSError | ValueError) -> RdcError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return RdcError(f"{name}: cannot read the part: {reason}", code=ExitCode.FILE_IO)
