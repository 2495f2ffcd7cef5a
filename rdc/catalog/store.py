"""What the signer needs of a catalog, and the catalog that remembers nothing."""

from __future__ import annotations

from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.similar import SimilarFiles
    from rdc.catalog.small_files import SignedFiles, SmallFiles
    from rdc.chunking.params import ChunkParams
    from rdc.files.source import SourceFile
    from rdc.signature.tree import SignatureTree

__all__ = ["NoCatalog", "SignatureStore"]


class SignatureStore(Protocol):
    """Remembers signatures of files by what fstat says of them. Threads may share one.

    No method raises because of the store's own troubles: what cannot be found is signed anew, what cannot be
    kept is forgotten.
    """

    def now(self) -> int:
        """Nanoseconds by the clock that stamps files; read BEFORE a file's first byte, for `put`."""

    def get(self, source: SourceFile, params: ChunkParams) -> SignatureTree | None:
        """The signature of exactly this state of the file, or None."""

    def root(self, source: SourceFile, params: ChunkParams) -> bytes | None:
        """Its root alone: what a comparison needs, without the chunk list."""

    def put(self, source: SourceFile, tree: SignatureTree, began: int) -> None:
        """Keep the signature of what was read from `source` since `began`, found unchanged after."""

    def find_small(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        """Rows of `files` whose state as listed is known, and their encoded signatures."""

    def find_roots(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        """The same with their roots alone."""

    def put_small(self, files: SmallFiles, signed: SignedFiles, chosen: Sequence[int], began: int) -> None:
        """Keep signatures of what was read since `began` and was found unchanged since it was listed:
        `chosen` are rows of `signed`."""

    def similar(self, below: bytes, params: ChunkParams) -> SimilarFiles:
        """The remembered files below the directory `below`, to be asked which are like others. Costs nothing
        before the first question."""

    def settle(self, key: bytes) -> None:
        """Remember 32 bytes that name a state of two trees in which nothing was left to do."""

    def is_settled(self, key: bytes) -> bool: ...

    def flush(self) -> None:
        """Write what was gathered."""

    def close(self) -> None:
        """Flush and give everything back; later calls may open it again."""

    def take_notices(self) -> list[str]:
        """What a person should know of the store, each once: one printable line each."""


class NoCatalog:
    """A SignatureStore that remembers nothing."""

    def now(self) -> int:
        return 0

    def get(self, source: SourceFile, params: ChunkParams) -> SignatureTree | None:
        return None

    def root(self, source: SourceFile, params: ChunkParams) -> bytes | None:
        return None

    def put(self, source: SourceFile, tree: SignatureTree, began: int) -> None:
        pass

    def find_small(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return []

    def find_roots(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return []

    def put_small(self, files: SmallFiles, signed: SignedFiles, chosen: Sequence[int], began: int) -> None:
        pass

    def similar(self, below: bytes, params: ChunkParams) -> SimilarFiles:
        from rdc.catalog.similar import SimilarFiles

        return SimilarFiles(None, below, params)

    def settle(self, key: bytes) -> None:
        pass

    def is_settled(self, key: bytes) -> bool:
        return False

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take_notices(self) -> list[str]:
        return []
