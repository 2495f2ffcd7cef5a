"""Measures what deduplication would save."""

from __future__ import annotations

import os
import time

from rdc.catalog.catalog import UserCatalog, opened_catalog
from rdc.errors import UsageError
from rdc.files.objects.object_url import is_url
from rdc.limits.sessions import CATALOG_BYTES
from rdc.model.scan import ScanOptions
from rdc.progress import silent
from rdc.survey.read.capped_store import CappedStore
from rdc.survey.scan.scanner import Scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.files.own.claims import Claims
    from rdc.progress import Reporter
    from rdc.survey.scan.gatherer import Gatherer, Walked
    from rdc.survey.scan.outcome import Outcome

__all__ = ["survey"]


def survey(
    paths: Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions,
    *,
    catalog: SignatureStore | UserCatalog | None = None,
    reporter: Reporter = silent,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    threads: int | None = None,
    listed: Callable[[Gatherer], Walked] | None = None,
    claims: Claims | None = None,
) -> Outcome:
    """Returns an outcome, which can be saved and merged before it is reported.

    `stopped` is asked between pieces of work; True ends the scan with the files read so far. `clock` returns
    seconds and never goes back. `threads`: that read and hash; None for one a CPU. `listed`: takes
    the place of the walk, see Scanner. `claims`: the results of this run. Raises UsageError.
    Failures of single files are in the outcome.
    """
    if not paths:
        raise UsageError("a scan needs at least one path")
    if options.sample is not None and not 0 < options.sample <= 1:
        raise UsageError(f"a sample of {options.sample:g}: above 0 and at most 1 is expected")
    given = [os.fsencode(path) for path in paths]
    if any(map(is_url, given)):
        from rdc.survey.scan.object_walk import check_urls

        check_urls(given, options)
    with opened_catalog(catalog, reporter) as store:
        # One scan may store at most half of the catalog. The other half stays for syncs.
        capped = CappedStore(store, CATALOG_BYTES // 2, finds=not options.fixed)
        scanner = Scanner(options, capped, reporter, stopped, clock, threads, listed, claims)
        return scanner.run(given)
