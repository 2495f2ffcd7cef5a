"""`scan`: measures what deduplication and compression would save."""

from __future__ import annotations

import os
import time

from rdc.catalog.arguments import check_job, path_list
from rdc.catalog.location import USER_CATALOG
from rdc.checks import check_argument, check_callable
from rdc.files.own.claims import Claims
from rdc.files.own.output_file import Output, claim_outputs, write_output
from rdc.model.scan import ScanOptions
from rdc.progress import silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter, StopSignal

__all__ = ["scan", "scan_claimed"]


def scan(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ScanReport:
    """Measures what deduplication and compression would save below `paths` (several, or one): files and
    directories, and URLs s3://BUCKET/NAME of objects.

    `part`: a file to write the counts to, for `rdc.merge`. It never replaces a file that is read, and another
    file that is no part only with `overwrite`. `catalog` is asked before a file is read and gets
    new signatures. Once `stop` is set, the scan ends with the files read so far: the report's coverage
    has the reason 'interrupted' and its exit is ExitCode.INTERRUPTED. `clock` returns seconds and never goes
    back. Raises UsageError. Failures of single files are in the report.

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
    check_argument("scan", "options", options, ScanOptions, None)
    check_argument("scan", "part", part, str, bytes, os.PathLike, None)
    check_argument("scan", "overwrite", overwrite, bool)
    check_job("scan", reporter, catalog, stop)
    check_callable("scan", "clock", clock)
    from rdc.survey.parts.sections import SCAN_PART

    output = None if part is None else Output(os.fsencode(part), SCAN_PART, overwrite)
    claims = claim_outputs([output] if output else [])
    return scan_claimed(
        given,
        options or ScanOptions(),
        output,
        claims,
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
    catalog: SignatureStore | UserCatalog | None,
    reporter: Reporter,
    stop: StopSignal | None,
    clock: Callable[[], float],
) -> ScanReport:
    """Scan as `scan` does. `claims`: all results of this run, `part` among them, which the scan must not
    read."""
    from rdc.survey.parts.part_file import encode_part
    from rdc.survey.scan.scan import survey
    from rdc.survey.scan.summary import report_of

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
    return report_of(outcome)
