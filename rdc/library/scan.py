"""`scan`: measures what deduplication and compression would save."""

from __future__ import annotations

import os
import time

from rdc.catalog.arguments import check_job, path_list
from rdc.catalog.location import USER_CATALOG
from rdc.checks import check_argument, check_callable
from rdc.model.scan import ScanOptions
from rdc.progress import silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter, StopSignal

__all__ = ["scan"]


def scan(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ScanReport:
    """Measures what deduplication and compression would save below `paths` (several, or one): files and
    directories, and URLs s3://BUCKET/NAME of objects.

    `part`: a file to write the counts to, for `rdc.merge`. `catalog` is asked before a file is read and gets
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
    check_job("scan", reporter, catalog, stop)
    check_callable("scan", "clock", clock)
    from rdc.survey.scan.scan import survey
    from rdc.survey.scan.summary import report_of

    outcome = survey(
        given,
        options or ScanOptions(),
        catalog=catalog,
        reporter=reporter,
        stopped=(lambda: False) if stop is None else stop.is_set,
        clock=clock,
    )
    if part is not None:
        from rdc.survey.parts.part_file import write_part

        write_part(outcome, os.fsdecode(part))
    return report_of(outcome)
