"""SignatureStore: what the signer needs of a catalog, and the choice of one."""

from __future__ import annotations

from array import array

from rdc.lean.enums import Enum
from rdc.lean.records import Record
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from rdc.catalog.similar import SimilarFiles
    from rdc.chunking import ChunkParams
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.model.preserved import FileSystemFacts
    from rdc.signature.codec import ShortSignatures
    from rdc.signature.tree import SignatureTree


class UserCatalog(Enum):
    """Type of USER_CATALOG, for annotations."""

    USER_CATALOG = "user catalog"


USER_CATALOG: Final = UserCatalog.USER_CATALOG
"""A `catalog` argument: the catalog of the user who runs this process."""


# Many small files as columns: their listing, and their signatures.


class SmallFiles(Record):
    """Listed files of one tree. For `sign_small`, each has at most BULK_BYTES."""

    root: Root
    paths: bytes
    """Relative to `root`, each followed by NUL."""
    devices: array[int]
    inodes: array[int]
    sizes: array[int]
    """Typecode 'Q'."""
    mtimes: array[int]
    ctimes: array[int]
    """Typecode 'q', nanoseconds."""

    def __len__(self) -> int:
        return len(self.sizes)

    def identity(self, row: int) -> Identity:
        """Return the listed identity of one row."""
        return Identity(
            self.devices[row], self.inodes[row], self.sizes[row], self.mtimes[row], self.ctimes[row]
        )


class SignedFiles(Record):
    """Some rows of a SmallFiles, with their signatures."""

    rows: array[int]
    """Typecode 'I', increasing; the columns below have one of theirs each, in this order."""
    signatures: ShortSignatures
    ctimes: array[int]
    """Typecode 'q': when they were read."""
    data: bytes | None
    """Their contents, one behind another. None: they were known and not read, or they were released."""

    def chosen(self, numbers: Sequence[int]) -> SignedFiles:
        """Return the files with these numbers, which increase, without their contents."""
        return SignedFiles(
            array("I", [self.rows[number] for number in numbers]),
            self.signatures.chosen(numbers),
            array("q", [self.ctimes[number] for number in numbers]),
            None,
        )


class SignatureStore:
    """Stores signatures of files by the identity that fstat reports. Threads may share one.

    This class finds nothing and stores nothing; a store overrides what it does. No method raises because of
    the store's own failures: a signature that is not found is made again, and one that cannot be stored is
    lost.
    """

    @property
    def directory(self) -> bytes | None:
        """The directory for other notes on the same files; None: there is none."""
        return None

    def now(self) -> int:
        """Nanoseconds on the clock that stamps files. Read it BEFORE a file's first byte and pass it to
        `put`."""
        return 0

    def get(self, source: SourceFile, params: ChunkParams) -> SignatureTree | None:
        """Return the signature of exactly this state of the file, or None."""
        return None

    def root(self, source: SourceFile, params: ChunkParams) -> bytes | None:
        """Return the root of the signature that `get` would return, without reading the chunk list."""
        return None

    def put(self, source: SourceFile, tree: SignatureTree, began: int) -> None:
        """Store the signature of `source`, which was read from `began` on and found unchanged afterwards."""

    def find_small(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        """Return the rows of `files` whose listed state is known, each with its encoded signature."""
        return []

    def find_roots(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        """Return the rows of `files` whose listed state is known, each with its root."""
        return []

    def put_small(self, files: SmallFiles, signed: SignedFiles, chosen: Sequence[int], began: int) -> None:
        """Store signatures of files that were read from `began` on and are unchanged since they were listed.
        `chosen` are rows of `signed`."""

    def similar(self, below: bytes, params: ChunkParams) -> SimilarFiles:
        """Return the known files below the directory `below`, to search for similar ones. Nothing is read
        before the first query."""
        from rdc.catalog.similar import SimilarFiles

        return SimilarFiles(None, below, params)

    def remember_in_sync(self, key: bytes) -> None:
        """Remember a 32-byte key of two trees that were found in sync."""

    def is_in_sync(self, key: bytes) -> bool:
        """Return whether two trees with this key were found in sync."""
        return False

    def facts_of(self, key: bytes) -> FileSystemFacts | None:
        """Return what was learned of the file system with this key (see mount_key), or None."""
        return None

    def remember_facts(self, key: bytes, facts: FileSystemFacts) -> None:
        """Remember what was learned of a file system."""

    def flush(self) -> None:
        """Write everything that waits in memory."""

    def close(self) -> None:
        """Flush and close the store. Later calls may open it again."""

    def take_notices(self) -> list[str]:
        """Messages for the user about the store, one printable line each. Each is returned once."""
        return []


class NoCatalog(SignatureStore):
    """Stores nothing."""


class FactsAlone(SignatureStore):
    """A store with another store's knowledge of file systems and none of its files: for a run that may
    believe no signature, or tell of none."""

    def __init__(self, store: SignatureStore) -> None:
        self._store = store

    def facts_of(self, key: bytes) -> FileSystemFacts | None:
        return self._store.facts_of(key)

    def remember_facts(self, key: bytes, facts: FileSystemFacts) -> None:
        self._store.remember_facts(key, facts)
