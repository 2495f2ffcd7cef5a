"""Signs all files of a tree, so that the catalog knows them."""

from __future__ import annotations

from array import array
from functools import partial

from rdc.catalog.signer import FileSigner, SignTask, sign_in_order
from rdc.catalog.small_files import SMALL_BYTES, SmallOutcome, sign_small
from rdc.catalog.store import SmallFiles
from rdc.errors import FileError
from rdc.files.base.paths import join
from rdc.lean.records import Record
from rdc.model.entries import Kind, little_endian_integers, strings
from rdc.survey.read import in_order
from rdc.tree.filters import FilteredTree, FilterList
from rdc.tree.walk import WalkedDirectory, measuring_walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.progress import Reporter


BATCH_FILES = 512
BATCH_BYTES = 1 << 20
"""Limits of the small files that one thread signs together."""

ALONE_FILES = 256
"""Larger files that wait until they are signed."""


class IndexedFiles(Record):
    """Files that were signed together, or one that could not be."""

    files: int
    bytes: int
    known: bool = False
    """True if the catalog knew them, so that they were not read."""
    error: FileError | None = None


class TreeIndexer:
    """Signs the files that `filters` leave of one tree. Small ones are read in batches, as many at a time as
    `root.depths` say, and others one by one."""

    def __init__(self, root: Root, filters: FilterList, signer: FileSigner, reporter: Reporter) -> None:
        self._root = root
        self._filters = filters
        self._signer = signer
        self._report = reporter
        self._alone: list[SignTask[bytes]] = []

    def run(self) -> Iterator[IndexedFiles]:
        """Yield what was done. A file that fails is part of that; what ends the run is raised: RdcError."""
        for done in in_order(self._sign, self._batches(), self._signer.workers):
            yield from self._counted(done)
            if len(self._alone) >= ALONE_FILES:
                yield from self._sign_alone()
        yield from self._sign_alone()

    def _batches(self) -> Iterator[SmallFiles]:
        batch = _Batch(self._root)
        for directory in measuring_walk(
            self._root, self._filters.at_source(FilteredTree(self._root)), self._report
        ):
            yield from self._small(directory, batch)
            # In a tree of large files no batch fills, and those that wait must not become too many.
            if len(self._alone) >= ALONE_FILES and batch.paths:
                yield batch.taken()
        if batch.paths:
            yield batch.taken()

    def _small(self, directory: WalkedDirectory, batch: _Batch) -> Iterator[SmallFiles]:
        """Add the small files of a directory to the batch, and yield it when it is full. Others wait."""
        listing, inodes = directory.listing, directory.inodes
        sizes = little_endian_integers("Q", listing.sizes)
        columns = (
            little_endian_integers("Q", inodes.devices),
            little_endian_integers("Q", inodes.inodes),
            sizes,
            little_endian_integers("q", listing.mtimes),
            little_endian_integers("q", inodes.ctimes),
        )
        names = strings(listing.names)
        for row in listing.rows_of(Kind.FILE):
            path = join(directory.path, names[row])
            if sizes[row] > SMALL_BYTES:
                self._wait(path, sizes[row])
                continue
            batch.add(path, [column[row] for column in columns])
            if batch.is_full():
                yield batch.taken()

    def _wait(self, path: bytes, size: int) -> None:
        self._alone.append(SignTask(path, size, partial(self._root.open_read, path)))

    def _sign(self, files: SmallFiles) -> _SignedBatch:
        return _SignedBatch(files, sign_small(files, self._signer.params, self._signer.catalog))

    def _counted(self, done: _SignedBatch) -> Iterator[IndexedFiles]:
        for signed, known in ((done.outcome.known, True), (done.outcome.read, False)):
            if len(signed.rows):
                yield IndexedFiles(len(signed.rows), sum(signed.signatures.sizes), known)
        if done.outcome.failed:
            names = strings(done.files.paths)
            for row, _ in done.outcome.failed:
                # Read alone, the file as it is now is signed, or its own error says why not.
                self._wait(names[row], done.files.sizes[row])

    def _sign_alone(self) -> Iterator[IndexedFiles]:
        tasks, self._alone = self._alone, []
        for signed in sign_in_order(self._signer, tasks, roots_only=True):
            if signed.error is not None:
                yield IndexedFiles(0, 0, error=signed.error)
            elif signed.identity is not None:
                yield IndexedFiles(1, signed.identity.size, signed.known)


class _SignedBatch(Record):
    files: SmallFiles
    outcome: SmallOutcome


class _Batch:
    """Small files that wait to be signed together."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._start()

    def _start(self) -> None:
        self.paths: list[bytes] = []
        self._columns = array("Q"), array("Q"), array("Q"), array("q"), array("q")
        self._bytes = 0

    def add(self, path: bytes, facts: Sequence[int]) -> None:
        """Add a file. `facts`: device, inode, size, and mtime and ctime in nanoseconds."""
        self.paths.append(path)
        for column, fact in zip(self._columns, facts, strict=True):
            column.append(fact)
        self._bytes += facts[2]

    def is_full(self) -> bool:
        return len(self.paths) >= BATCH_FILES or self._bytes >= BATCH_BYTES

    def taken(self) -> SmallFiles:
        """Return the files of the batch, which is empty then."""
        paths = b"\0".join(self.paths) + b"\0"
        devices, inodes, sizes, mtimes, ctimes = self._columns
        self._start()
        return SmallFiles(self._root, paths, devices, inodes, sizes, mtimes, ctimes)
