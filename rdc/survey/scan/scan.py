"""One scan from its options to its report: measures what deduplication would save."""

from __future__ import annotations

import os
import threading
import time

from rdc.catalog.catalog import UserCatalog, opened_catalog
from rdc.catalog.store import SignatureStore, SignedFiles, SmallFiles
from rdc.errors import UsageError
from rdc.files.objects.object_store import is_url
from rdc.limits import CATALOG_BYTES
from rdc.model.scan import ScanOptions
from rdc.progress import Reporter, silent
from rdc.survey.scan.scanner import Scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.chunking import ChunkParams
    from rdc.files.own.output_file import Claims
    from rdc.files.root.source_file import SourceFile
    from rdc.signature.tree import SignatureTree
    from rdc.survey.count.counters import Outcome
    from rdc.survey.scan.walk import Gatherer, Walked


# CappedStore: a signature store that limits what one scan may store, so that it does not evict everything
# else.


class CappedStore(SignatureStore):
    """A SignatureStore over another one, for what a scan asks: signatures. Lookups pass through; of new
    entries, about `most` bytes are stored. Objects of a store have no descriptor, and nothing of them is
    looked up or stored."""

    def __init__(self, store: SignatureStore, most: int, *, finds: bool = True) -> None:
        """`finds`: False makes every lookup fail, for callers that need each file's content."""
        self._store = store
        self._left = most
        self._finds = finds
        self._lock = threading.Lock()

    def now(self) -> int:
        return self._store.now()

    def get(self, source: SourceFile, params: ChunkParams) -> SignatureTree | None:
        return self._store.get(source, params) if self._finds and source.fileno() >= 0 else None

    def root(self, source: SourceFile, params: ChunkParams) -> bytes | None:
        return self._store.root(source, params) if self._finds and source.fileno() >= 0 else None

    def put(self, source: SourceFile, tree: SignatureTree, began: int) -> None:
        if source.fileno() < 0:
            return
        size = tree.levels[0].records * 36 + 200
        with self._lock:
            if size > self._left:
                return
            self._left -= size
        self._store.put(source, tree, began)

    def find_small(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return self._store.find_small(files, params) if self._finds else []

    def find_roots(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return self._store.find_roots(files, params) if self._finds else []

    def put_small(self, files: SmallFiles, signed: SignedFiles, chosen: Sequence[int], began: int) -> None:
        counts, stored = signed.signatures.counts, []
        with self._lock:
            for row in chosen:
                size = counts[row] * 36 + 200
                if size <= self._left:
                    self._left -= size
                    stored.append(row)
        self._store.put_small(files, signed, stored, began)


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
        from rdc.survey.scan.objects import check_urls

        check_urls(given, options)
    with opened_catalog(catalog, reporter) as store:
        # One scan may store at most half of the catalog. The other half stays for syncs.
        capped = CappedStore(store, CATALOG_BYTES // 2, finds=not options.fixed)
        scanner = Scanner(options, capped, reporter, stopped, clock, threads, listed, claims)
        return scanner.run(given)
