"""The files that a scan found, as columns of some seventy bytes per file, and how they are read:
singly, or in batches of some hundred that one thread signs.
"""

from __future__ import annotations

import os
import random
from array import array
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate, islice
from operator import lt

from rdc.catalog.small_files import BULK_BYTES, SmallOutcome, sign_small
from rdc.catalog.store import SignatureStore, SignedFiles, SmallFiles
from rdc.errors import FileError
from rdc.files.base.directory_descriptors import is_unchanged
from rdc.files.facts.extents import holes, shared_bytes
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.lean.typed import TypeVar
from rdc.limits import SCAN_HOLES
from rdc.model.entries import Identity, little_endian_integers, strings
from rdc.survey.count.counters import NO_HOLES, FixedBlocks, Holes
from rdc.survey.walk.file_columns import Directory, FileColumns, FileRows, Met

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.chunking import ChunkParams
    from rdc.files.objects.object_file import ObjectSource
    from rdc.files.objects.object_store import ObjectTree
    from rdc.files.root.source_file import SourceFile


# Found: the files that a scan found, stored as columns by directory, some seventy bytes per file.

LARGE_DIRECTORY = 4096
"""Directories with at least this many names keep their split list while files are taken in random order."""

RUN_FILES = 64
"""Most files in one run. The scan may stop between two runs."""


class FoundFile(Record):
    """One file to read."""

    root: Root | ObjectTree
    directory: int
    """Number of its directory in ChunkLocations."""
    path: bytes
    """Path relative to the root."""
    size: int
    """Bytes, as listed."""
    inode: tuple[int, int]
    """Device and inode number, as listed; 0 and the version of an object."""

    @property
    def shown(self) -> bytes:
        """The path as the user would type it."""
        return self.root.shown(self.path)

    def open(self) -> SourceFile:
        """Open whatever file has this path now, or an object as it was listed. Raises FileError."""
        if isinstance(self.root, Root):
            return self.root.open_read(self.path)
        return self.root.open_object(self.path, self.size, self.inode[1])

    def read_again(self, identity: Identity, offset: int, length: int) -> bytes | None:
        """Return the content if the file still has this identity, else None."""
        try:
            with self.open() as source:
                return source.pread(offset, length) if is_unchanged(identity, source.identity) else None
        except FileError:
            return None


class Run(Record):
    """Neighbouring files of one directory: rows `start` to `stop` of what was found."""

    found: Found
    directory: Directory
    names: list[bytes]
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def file(self, row: int) -> FoundFile:
        found, here = self.found, self.directory
        path, inode = here.prefix + self.names[row - self.start], (found.devices[row], found.inodes[row])
        return FoundFile(here.root, here.number, path, found.sizes[row], inode)

    @property
    def bytes(self) -> int:
        """The bytes of all its files, as listed."""
        return sum(self.found.sizes[self.start : self.stop])

    def part(self, start: int, stop: int) -> Run:
        names = self.names[start - self.start : stop - self.start]
        return Run(self.found, self.directory, names, start, stop)


class Found(FileColumns):
    """All files of a walk, in its order or shuffled, with what else a scan asks of a listing.

    A search for duplicates sorts all sizes at once and drops most files unread, while a scan reads every
    file, directory by directory.
    """

    def __init__(self) -> None:
        super().__init__()
        self.links = array("I")
        self.mtimes, self.ctimes = array("q"), array("q")
        self._roots: dict[int, Root | ObjectTree] = {}
        self.bytes = 0

    def add_met(self, met: Met, number: int, files: FileRows) -> None:
        """Add files of the directory `number`."""
        path = met.path
        shown = os.path.join(met.root.shown(path), b"")
        self.add(Directory(met.root, path + b"/" if path else b"", shown, number), files)

    def add(self, directory: Directory, files: FileRows) -> None:
        first = len(self)
        super().add(directory, files)
        self.links += little_endian_integers("I", files.inodes.links)
        self.mtimes += little_endian_integers("q", files.mtimes)
        self.ctimes += little_endian_integers("q", files.inodes.ctimes)
        self._roots[id(directory.root)] = directory.root
        self.bytes += sum(self.sizes[first:])

    def waits(self) -> bool:
        """Return whether a file system with some of the files makes opens wait, as Depth finds out."""
        return any(isinstance(root, Root) and root.depths.opening.now > 1 for root in self._roots.values())

    def release(self) -> None:
        """Close the descriptors of all roots. No file can be opened from then on."""
        for root in self._roots.values():
            root.release()

    def in_order(self) -> Iterator[Run]:
        for number, directory in enumerate(self._directories):
            names, first = strings(self._names[number]), self._starts[number]
            for start in range(0, len(names), RUN_FILES):
                some = names[start : start + RUN_FILES]
                yield Run(self, directory, some, first + start, first + start + len(some))

    def shuffled(self, seed: int) -> Iterator[Run]:
        """Yield every file once, each as its own run, in random order. All orders are equally likely; the
        same seed over the same tree gives the same order."""
        order = array("I", range(len(self)))
        random.Random(seed).shuffle(order)  # noqa: S311 - a sample, no secret
        cached: dict[int, list[bytes]] = {}
        for row in order:
            number = self._number(row)
            names = cached.get(number)
            if names is None:
                names = strings(self._names[number])
                if len(names) >= LARGE_DIRECTORY:
                    cached[number] = names
            yield Run(self, self._directories[number], [names[row - self._starts[number]]], row, row + 1)


# ScannedFile: one file that a scan reads singly, with what fstat and its extents say.

_SHARING = {0x9123683E, 0x58465342, 0xCA451A4E, 0x7461636F}
"""f_type of btrfs, xfs, bcachefs and ocfs2, which can share extents. On other file systems the query would
cost one system call per file for nothing."""


class SharingDevices:
    """Remembers which devices hold file systems that share extents between files. Threads may share one."""

    def __init__(self) -> None:
        self._known: dict[int, bool] = {0: False}
        """By device. Objects have device 0."""

    def known(self, device: int) -> bool | None:
        """Return whether this device holds such a file system. None if none of its files was asked about."""
        return self._known.get(device)

    def has(self, source: SourceFile) -> bool:
        """Return whether the open file lies on such a file system."""
        device = source.identity.device
        known = self._known.get(device)
        if known is None:
            from rdc.files.facts.file_systems import type_of

            known = self._known[device] = type_of(source.fileno()) in _SHARING
        return known


class ScannedFile:
    """A file to be read. `identity`, `allocated`, `shared` and `holes` are set when it is opened."""

    __slots__ = (
        "_object",
        "_sharing",
        "allocated",
        "blocks",
        "content",
        "found",
        "holes",
        "identity",
        "shared",
    )

    identity: Identity
    """Identity of the opened file."""

    def __init__(self, found: FoundFile, sharing: SharingDevices, blocks: FixedBlocks | None) -> None:
        """`blocks`: receives the content as it is read, unless the file has holes."""
        self._sharing = sharing
        self.found = found
        self.blocks = blocks
        self.allocated = 0
        self.shared = 0
        """Bytes in shared extents."""
        self.holes = NO_HOLES
        self.content: bytes | FileError | None = None
        """The contents of an object that was read with others, or the reason why it could not be read."""
        self._object: ObjectSource | None = None
        """An object that was opened. It has its last ranges in memory, which would be requests."""

    def open(self) -> SourceFile:
        """Open the file; runs in any thread. Raises FileError."""
        if isinstance(self.content, FileError):
            raise self.content
        source = self.found.open()
        try:
            if source.fileno() < 0:
                self._take_object(source)
            self.identity = source.identity
            self.allocated = source.allocated
            if source.allocated < source.size:
                self.holes = Holes(islice(holes(source.fileno(), source.size), SCAN_HOLES))
            if self.blocks is not None and not self.holes:
                source.on_span = self.blocks.span
            if self._sharing.has(source):
                self.shared = shared_bytes(source.fileno())
        except BaseException:
            source.close()
            raise
        return source

    def _take_object(self, source: SourceFile) -> None:
        from rdc.files.objects.object_file import ObjectSource

        assert isinstance(source, ObjectSource)  # noqa: S101 - all others have descriptors
        if isinstance(self.content, bytes):
            source.fill(self.content)
        self._object = source

    def read(self, offset: int, length: int) -> bytes | None:
        """Read content again. None if the file has changed or is gone."""
        if self._object is not None:
            try:
                return self._object.pread(offset, length)
            except FileError:
                return None
        return self.found.read_again(self.identity, offset, length)


# SmallBatch: up to some hundred files that a scan collects and one thread signs.

T = TypeVar("T")

BATCH_FILES = 512
BATCH_BYTES = 1 << 20
"""A batch is full at this many files, or at this many bytes once it has FEW_FILES files: its own cost is
negligible then, and its contents are still cached when they are hashed."""

FEW_FILES = 16
BATCH_MOST = BULK_BYTES
"""Bytes of the largest batch. One of fewer files than FEW_FILES grows up to it, because Python takes as long
for a batch as C for some hundred KiB."""


class SmallBatch:
    """Files of one tree, row by row. It is not changed after it was given to a thread."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._firsts = array("I")
        self.locations = array("I")
        """The location of each file, as ChunkLocations numbers them."""
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.locations)

    def add(self, run: Run, locations: list[int]) -> None:
        """Add files of the same tree, with the location of each."""
        self._firsts.append(len(self))
        self._runs.append(run)
        self.locations.extend(locations)
        self.bytes += run.bytes

    def is_full(self) -> bool:
        return self.bytes >= BATCH_BYTES and len(self) >= FEW_FILES

    @property
    def root(self) -> Root | ObjectTree:
        """Root of the tree. The batch must not be empty."""
        return self._runs[0].directory.root

    def file(self, row: int) -> FoundFile:
        number = bisect_right(self._firsts, row) - 1
        run = self._runs[number]
        return run.file(run.start + row - self._firsts[number])

    def names(self) -> list[bytes]:
        """Return the names without their directories."""
        return [name for run in self._runs for name in run.names]

    def directories(self) -> array[int]:
        """Typecode 'I': the number of each file's directory in ChunkLocations."""
        column = array("I")
        for run in self._runs:
            column.extend(array("I", (run.directory.number,)) * len(run))
        return column

    def mtimes(self, rows: Sequence[int]) -> Sequence[int]:
        """Return the times of the last modification of these rows, packed; none of objects."""
        return _chosen(self.files.mtimes, array("I", rows))

    @cached_property
    def allocated(self) -> array[int]:
        """Typecode 'Q': bytes allocated on disk."""
        column = array("Q")
        for run in self._runs:
            column += run.found.allocated[run.start : run.stop]
        return column

    @cached_property
    def files(self) -> SmallFiles:
        """The listed files, which are not objects."""
        root = self.root
        assert isinstance(root, Root)  # noqa: S101 - objects have no such columns
        paths: list[bytes] = []
        devices, inodes, sizes = (array("Q") for _ in range(3))
        mtimes, ctimes = array("q"), array("q")
        for run in self._runs:
            found, part = run.found, slice(run.start, run.stop)
            between = b"\0" + run.directory.prefix
            paths.append(between[1:] + between.join(run.names) + b"\0")
            devices += found.devices[part]
            inodes += found.inodes[part]
            sizes += found.sizes[part]
            mtimes += found.mtimes[part]
            ctimes += found.ctimes[part]
        return SmallFiles(root, b"".join(paths), devices, inodes, sizes, mtimes, ctimes)


class SignedBatch(Record):
    """A batch with its results."""

    batch: SmallBatch
    outcome: SmallOutcome
    hollow: list[int]
    """Rows with holes, which were not signed."""
    shared: int
    """Bytes in shared extents of all signed files."""


def located(batch: SmallBatch, signed: SignedFiles) -> Sequence[int]:
    """Return the location of each file that was signed."""
    return _chosen(batch.locations, signed.rows)


def named(batch: SmallBatch, signed: SignedFiles) -> tuple[Sequence[int], Sequence[bytes]]:
    """Return the directory and the name of each file that was signed."""
    return _chosen(batch.directories(), signed.rows), _chosen(batch.names(), signed.rows)


def reader(batch: SmallBatch, signed: SignedFiles) -> Callable[[int, int, int], bytes | None]:
    """Read parts of what was signed once more, by row there, offset and length in bytes."""
    if signed.data is None:
        return lambda row, offset, length: _read_again(batch, signed.rows[row], offset, length)
    data, starts = signed.data, array("Q", accumulate(signed.signatures.sizes, initial=0))
    return lambda row, offset, length: data[starts[row] + offset : starts[row] + offset + length]


def _chosen(column: Sequence[T], rows: array[int]) -> Sequence[T]:
    return column if len(rows) == len(column) else [column[row] for row in rows]


def _read_again(batch: SmallBatch, row: int, offset: int, length: int) -> bytes | None:
    return batch.file(row).read_again(batch.files.identity(row), offset, length)


def sign_batch(
    batch: SmallBatch,
    params: ChunkParams,
    catalog: SignatureStore,
    sharing: SharingDevices,
    *,
    keep: bool = True,
) -> SignedBatch:
    """Sign the files of `batch`, which are not objects. Threads may run this in parallel. `keep`: the
    contents stay in the result until it is counted. Otherwise `reader` reads files again."""
    files = batch.files
    hollow: list[int] = []
    if any(map(lt, batch.allocated, files.sizes)):
        # Fewer allocated bytes than the size may mean compression or inline data instead of holes.
        candidates = [row for row, size in enumerate(files.sizes) if batch.allocated[row] < size]
        hollow = [row for row in candidates if _look(batch, row, _has_holes)]
    outcome = sign_small(files, params, catalog, hollow)
    shared = 0
    for device in set(files.devices):
        if sharing.known(device) is False:
            continue
        rows = [
            row for part in (outcome.read, outcome.known) for row in part.rows if files.devices[row] == device
        ]
        if rows and _look(batch, rows[0], sharing.has):
            shared += sum([_look(batch, row, _shared_bytes) for row in rows])
    if not keep:
        outcome = replace(outcome, read=replace(outcome.read, data=None))
    return SignedBatch(batch, outcome, hollow, shared)


def _look(batch: SmallBatch, row: int, question: Callable[[SourceFile], int]) -> int:
    """Ask `question` of an open file. 0 if the file differs from its listing."""
    found = batch.file(row)
    try:
        with found.open() as source:
            same = (source.identity.device, source.identity.inode) == found.inode
            return question(source) if same else 0
    except FileError:
        return 0  # reading the file will report the error


def _has_holes(source: SourceFile) -> bool:
    return source.allocated < source.size and any(holes(source.fileno(), source.size))


def _shared_bytes(source: SourceFile) -> int:
    return shared_bytes(source.fileno())
