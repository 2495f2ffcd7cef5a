"""CappedStore: a signature store that limits what one scan may store, so that it does not evict everything
else."""

from __future__ import annotations

import threading

from rdc.catalog.store import SignatureStore, SignedFiles, SmallFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.chunking import ChunkParams
    from rdc.files.root.source_file import SourceFile
    from rdc.signature.tree import SignatureTree

__all__ = ["CappedStore"]


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
