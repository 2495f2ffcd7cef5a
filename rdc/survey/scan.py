"""Measures what deduplication would save: from paths to a report, or to an outcome that can be merged."""

from __future__ import annotations

import os
import time

from rdc.catalog.location import USER_CATALOG, opened_catalog
from rdc.errors import UsageError
from rdc.limits import CATALOG_BYTES
from rdc.model.scan import ScanOptions
from rdc.progress import silent
from rdc.survey.scanner import Scanner
from rdc.survey.thrift import ThriftyStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter
    from rdc.survey.outcome import Outcome

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
    """Measure what deduplication and compression would save below `paths`, or below the one path given.

    `catalog` is asked before a file is read and told afterwards. `stopped` is asked between pieces of work
    whether to end with what is done; `clock` gives seconds that never go back. Raises UsageError; what goes
    wrong with single files is in the report.
    """
    from rdc.survey.summary import report_of

    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]  # a string is a sequence too, of which '/' would be one
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
    """As `scan`, but what it returns can be saved and merged before it is reported."""
    if not paths:
        raise UsageError("a scan needs at least one path")
    if options.sample is not None and not 0 < options.sample <= 1:
        raise UsageError(f"a sample of {options.sample:g}: above 0 and at most 1 is expected")
    with opened_catalog(catalog, reporter) as store:
        # Half of the catalog at most is for one scan: the other half is what syncs go by.
        thrifty = ThriftyStore(store, CATALOG_BYTES // 2, finds=not options.fixed)
        scanner = Scanner(options, thrifty, reporter, stopped, clock)
        return scanner.run([os.fsencode(path) for path in paths])
