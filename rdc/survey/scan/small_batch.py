"""SmallBatch: up to some hundred files that a scan collects and one thread signs."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from operator import lt

from rdc.catalog.small_files import BULK_BYTES, SmallOutcome, sign_small
from rdc.catalog.store import SignatureStore, SignedFiles, SmallFiles
from rdc.errors import FileError
from rdc.files.facts.extents import holes, shared_bytes
from rdc.files.root.root import Root
from rdc.lean.records import dataclass, replace
from rdc.lean.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.chunking import ChunkParams
    from rdc.files.objects.object_tree import ObjectTree
    from rdc.files.root.source_file import SourceFile
    from rdc.survey.scan.found_files import FoundFile, Run
    from rdc.survey.scan.scanned_file import SharingDevices

__all__ = [
    "BATCH_BYTES",
    "BATCH_FILES",
    "BATCH_MOST",
    "SignedBatch",
    "SmallBatch",
    "located",
    "named",
    "reader",
    "sign_batch",
]

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
        """Adds files of the same tree, with the location of each."""
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
        """The names without their directories."""
        return [name for run in self._runs for name in run.names]

    def directories(self) -> array[int]:
        """Typecode 'I': the number of each file's directory in ChunkLocations."""
        column = array("I")
        for run in self._runs:
            column.extend(array("I", (run.directory.number,)) * len(run))
        return column

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


@dataclass(frozen=True, slots=True)
class SignedBatch:
    """A batch with its results."""

    batch: SmallBatch
    outcome: SmallOutcome
    hollow: list[int]
    """Rows with holes, which were not signed."""
    shared: int
    """Bytes in shared extents of all signed files."""


def located(batch: SmallBatch, signed: SignedFiles) -> Sequence[int]:
    """The location of each file that was signed."""
    return _chosen(batch.locations, signed.rows)


def named(batch: SmallBatch, signed: SignedFiles) -> tuple[Sequence[int], Sequence[bytes]]:
    """The directory and the name of each file that was signed."""
    return _chosen(batch.directories(), signed.rows), _chosen(batch.names(), signed.rows)


def reader(batch: SmallBatch, signed: SignedFiles) -> Callable[[int, int, int], bytes | None]:
    """Reads parts of what was signed once more, by row there, offset and length in bytes."""
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
    """Signs the files of `batch`, which are not objects. Threads may run this in parallel. `keep`: the
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
    """Asks `question` of an open file. 0 if the file differs from its listing."""
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
