"""SignatureStore: what the signer needs of a catalog."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.similar import SimilarFiles
    from rdc.catalog.small_columns import SignedFiles, SmallFiles
    from rdc.chunking.params import ChunkParams
    from rdc.files.root.source_file import SourceFile
    from rdc.model.file_system_facts import FileSystemFacts
    from rdc.signature.tree import SignatureTree

__all__ = ["NoCatalog", "SignatureStore"]


class SignatureStore:
    """Stores signatures of files by the identity that fstat reports. Threads may share one.

    This class finds nothing and stores nothing; a store overrides what it does. No method raises because of
    the store's own failures: a signature that is not found is made again, and one that cannot be stored is
    lost.
    """

    def now(self) -> int:
        """Nanoseconds on the clock that stamps files. Read it BEFORE a file's first byte and pass it to
        `put`."""
        return 0

    def get(self, source: SourceFile, params: ChunkParams) -> SignatureTree | None:
        """The signature of exactly this state of the file, or None."""
        return None

    def root(self, source: SourceFile, params: ChunkParams) -> bytes | None:
        """The root of the signature that `get` would return, without reading the chunk list."""
        return None

    def put(self, source: SourceFile, tree: SignatureTree, began: int) -> None:
        """Stores the signature of `source`, which was read from `began` on and found unchanged afterwards."""

    def find_small(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        """The rows of `files` whose listed state is known, each with its encoded signature."""
        return []

    def find_roots(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        """The rows of `files` whose listed state is known, each with its root."""
        return []

    def put_small(self, files: SmallFiles, signed: SignedFiles, chosen: Sequence[int], began: int) -> None:
        """Stores signatures of files that were read from `began` on and are unchanged since they were listed.
        `chosen` are rows of `signed`."""

    def similar(self, below: bytes, params: ChunkParams) -> SimilarFiles:
        """The known files below the directory `below`, to search for similar ones. Nothing is read before the
        first query."""
        from rdc.catalog.similar import SimilarFiles

        return SimilarFiles(None, below, params)

    def remember_in_sync(self, key: bytes) -> None:
        """Remembers a 32-byte key of two trees that were found in sync."""

    def is_in_sync(self, key: bytes) -> bool:
        """Whether two trees with this key were found in sync."""
        return False

    def facts_of(self, key: bytes) -> FileSystemFacts | None:
        """What was learned of the file system with this key of mount_key; None for nothing."""
        return None

    def remember_facts(self, key: bytes, facts: FileSystemFacts) -> None:
        """Remembers what was learned of a file system."""

    def flush(self) -> None:
        """Writes everything that waits in memory."""

    def close(self) -> None:
        """Flushes and closes the store. Later calls may open it again."""

    def take_notices(self) -> list[str]:
        """Messages for the user about the store, one printable line each. Each is returned once."""
        return []


class NoCatalog(SignatureStore):
    """Stores nothing."""
