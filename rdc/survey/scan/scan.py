"""Measures what deduplication would save. `scan` returns a report, `survey` an outcome that can be merged."""

from __future__ import annotations

import os
import time

from rdc.catalog.location import USER_CATALOG, opened_catalog
from rdc.errors import UsageError
from rdc.limits.catalog import CATALOG_BYTES
from rdc.model.scan import ScanOptions
from rdc.progress import silent
from rdc.survey.read.capped_store import CappedStore
from rdc.survey.scan.scanner import Scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter
    from rdc.survey.scan.outcome import Outcome

__all__ = ["scan", "survey"]


def scan(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions = ScanOptions(),  # noqa: B008 - frozen
    *,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    reporter: Reporter = silent,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> ScanReport:
    """Measures what deduplication and compression would save below `paths` (several, or one).

    `catalog` is asked before a file is read, and stores new signatures. `stopped` is asked between pieces of
    work; True ends the scan with the files read so far. `clock` returns seconds and never goes back. Raises
    UsageError. Failures of single files are in the report.
    """
    from rdc.survey.scan.summary import report_of

    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]  # a string is a sequence too, and '/' alone would be a path
    return report_of(survey(paths, options, catalog=catalog, reporter=reporter, stopped=stopped, clock=clock))


def survey(
    paths: Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions,
    *,
    catalog: SignatureStore | UserCatalog | None = None,
    reporter: Reporter = silent,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Like `scan`, but returns an outcome that can be saved and merged before it is reported."""
    if not paths:
        raise UsageError("a scan needs at least one path")
    if options.sample is not None and not 0 < options.sample <= 1:
        raise UsageError(f"a sample of {options.sample:g}: above 0 and at most 1 is expected")
    with opened_catalog(catalog, reporter) as store:
        # One scan may store at most half of the catalog. The other half stays for syncs.
        capped = CappedStore(store, CATALOG_BYTES // 2, finds=not options.fixed)
        scanner = Scanner(options, capped, reporter, stopped, clock)
        return scanner.run([os.fsencode(path) for path in paths])
