"""Counters: everything that a scan counts, in bounded memory, and Outcome: all that its report is made
from.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from functools import partial
from itertools import accumulate, chain, repeat
from operator import sub
from sys import byteorder

from xxhash import xxh3_128_intdigest

from rdc.chunking import ChunkParams
from rdc.errors import ExitCode, UsageError, worse
from rdc.kernel import Folder
from rdc.lean.records import Record
from rdc.limits import SCAN_PROBLEMS
from rdc.model.scan import FIXED_LEVELS, ScanOptions, ScanProblem
from rdc.signature.codec import ShortSignatures
from rdc.survey.count.chunk_counter import (
    STRATA,
    ChunkCounter,
    CompressionSample,
    expected_shift,
    sample_size,
)
from rdc.survey.count.chunk_locations import ChunkLocations, ChunkReferences, ResemblingFiles
from rdc.survey.count.identical import Ages, IdenticalFiles
from rdc.survey.slices import SliceSet, option_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.progress import Problem
    from rdc.signature.tree import SignatureTree


# The levels of a scan: their names, how they are made, and their shares of the memory.

FINE_PARAMS = ChunkParams.for_mean(4096)
"""Chunk parameters of every scan: min 1,557, max 6,228 (rdc/signature/FORMAT.md)."""

FILE_LEVEL = "file"
FINE_LEVEL = "cdc-4096"
FOLDED = (FINE_LEVEL, "cdc-16384", "cdc-65536")
"""Each level groups chunks of the level before it."""

FOLD_MIN, FOLD_MAX = 1, 6
"""A group has (1, 6] items, about 4. That is the step from one level to the next."""

FOLLOWED = "cdc-16384"
"""The level whose chunks are followed to directories. It is also the headline's level."""

_FILE_MEAN = 32 << 10
"""Mean file size in bytes, assumed for the division of memory. It is that of source trees."""


def mean_of(level: str) -> int:
    """Approximate mean bytes of a chunk of this level."""
    return _FILE_MEAN if level == FILE_LEVEL else int(level.partition("-")[2])


def memory_shares(memory: int, fixed: tuple[str, ...]) -> dict[str, int]:
    """Divide `memory` bytes among the levels by the number of chunks expected. Raises UsageError for a level
    that does not exist."""
    for level in fixed:
        if level not in FIXED_LEVELS:
            raise UsageError(f"--level {level}: unknown; there are {', '.join(FIXED_LEVELS)}")
    levels = (FILE_LEVEL, *FOLDED, *fixed)
    weights = {level: 1 / mean_of(level) for level in levels}
    return {level: int(memory * weight / sum(weights.values())) for level, weight in weights.items()}


def keys_of(digests: Buffer) -> bytes:
    """Return the keys of chunks from their 32-byte digests: the first 8 bytes as a big-endian number, which
    is also a record's rank."""
    keys = array("Q", bytes(digests))[::4]
    if byteorder == "little":
        keys.byteswap()
    return keys.tobytes()


def root_key(root: bytes) -> int:
    """Return the key of a whole file."""
    return int.from_bytes(root[:8], "big")


# Holes: the holes of one file, which take no space and are not counted.


class Holes:
    """Ranges of bytes [start, end). False if there are none."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        """`ranges`: sorted and disjoint."""
        found = list(ranges)
        self._starts = [start for start, _ in found]
        self._ends = [end for _, end in found]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def cover(self, start: int, end: int) -> bool:
        """Return whether the range lies wholly in one hole."""
        number = bisect_right(self._starts, start) - 1
        return number >= 0 and self._ends[number] >= end

    def uncovered(self, size: int, step: int) -> Iterator[tuple[int, int]]:
        """Yield (start, end) for the data of the first `size` bytes, in order.

        The bytes are looked at in steps of `step` from the start of the file. A step that lies wholly in one
        hole is left out. The time is that of the holes, not of the steps.
        """
        at = 0
        for hole_start, hole_end in zip(self._starts, self._ends, strict=True):
            start = -(-min(hole_start, size) // step) * step
            # A hole that reaches the end of the file covers its last step, though that is shorter.
            end = hole_end // step * step if hole_end < size else size
            if start < end:
                if at < start:
                    yield at, start
                at = end
        if at < size:
            yield at, size

    def total(self, size: int) -> int:
        """Return the bytes of holes within the first `size` bytes."""
        pairs = zip(self._starts, self._ends, strict=True)
        return sum([min(end, size) - min(start, size) for start, end in pairs])

    def covered(self, start: int, length: int, count: int) -> int:
        """Count the chunks that lie wholly in holes, of `count` chunks of `length` bytes each that follow
        one another from `start`."""
        covered = 0
        for first, last in zip(self._starts, self._ends, strict=True):
            # Chunks inside this hole: from the first that begins in it to the last that ends in it.
            begin = max(0, -(-(first - start) // length))
            end = min(count, (last - start) // length)
            covered += max(0, end - begin)
        return covered

    def data(self, content: bytes, offset: int) -> bytes:
        """Return the parts of `content` outside of holes. `offset`: where `content` begins in the file."""
        end = offset + len(content)
        number = max(bisect_right(self._starts, offset) - 1, 0)
        parts, at = [], offset
        for hole in range(number, len(self._starts)):
            if self._starts[hole] >= end:
                break
            parts.append(content[at - offset : max(at, self._starts[hole]) - offset])
            at = max(at, self._ends[hole])
        if not parts:
            return content
        parts.append(content[at - offset :])
        return b"".join(parts)


NO_HOLES = Holes(())


# FixedBlocks: cuts blocks at fixed offsets, as block-based stores do, and hashes them with XXH3-128.

_HIGH = 64


class FixedBlocks:
    """Cuts one file from its start. Spans end at multiples of every block size or at the end of the file."""

    __slots__ = ("_at", "_columns", "sizes")

    def __init__(self, sizes: tuple[int, ...]) -> None:
        """`sizes`: bytes per block."""
        self.sizes = sizes
        self._at = 0
        self._columns = {size: (array("Q"), array("Q"), array("Q")) for size in sizes}

    def span(self, data: bytes) -> None:
        """Add the next bytes, which contain no hole."""
        self.cut(data, self._at)
        self._at += len(data)

    def cut(self, data: bytes, offset: int, holes: Holes = NO_HOLES) -> None:
        """Cut `data`, which lies at `offset`, a multiple of every size. Blocks in holes are left out."""
        view = memoryview(data)
        for size in self.sizes:
            keys, lengths, offsets = self._columns[size]
            for begin in range(0, len(view), size):
                block = view[begin : begin + size]
                if holes and holes.cover(offset + begin, offset + begin + len(block)):
                    continue
                keys.append(xxh3_128_intdigest(block) >> _HIGH)
                lengths.append(len(block))
                offsets.append(offset + begin)

    def take(self) -> Iterator[tuple[int, bytes, bytes, array[int]]]:
        """Yield the blocks since the last call, one item per size: the size, and their keys, lengths and
        offsets."""
        columns, self._columns = (
            self._columns,
            {size: (array("Q"), array("Q"), array("Q")) for size in self.sizes},
        )
        for size, (keys, lengths, offsets) in columns.items():
            yield size, keys.tobytes(), lengths.tobytes(), offsets


# Counters: everything that a scan counts, in bounded memory.

SEGMENT_BYTES = 128 << 10
"""Whole files are compressed in pieces of this size. It is one window of zstd's faster levels, so pieces
shrink nearly as much as their file would."""

_GOLDEN = 0x9E37_79B9_7F4A_7C15
_MASK = (1 << 64) - 1


def _unit(level: str) -> int:
    """Approximate bytes of one compressed piece."""
    return SEGMENT_BYTES if level == FILE_LEVEL else mean_of(level)


class CountedFile(Record):
    """A file whose chunks are few enough to be counted all at once."""

    tree: SignatureTree
    location: int
    read: Callable[[int, int], bytes | None]
    """Reads content of the file again, given offset and length in bytes; None if the file has changed or is
    gone."""


class Counters:
    """The counts so far. `levels` are in the order of the report."""

    def __init__(self, options: ScanOptions) -> None:
        shares = memory_shares(options.memory, options.fixed)
        self.levels = {
            level: ChunkCounter(share, STRATA if level == FILE_LEVEL else ())
            for level, share in shares.items()
        }
        self.compression = {
            level: CompressionSample(most=sample_size(_unit(level)))
            for level in (shares if options.compress else ())
        }
        self.locations = ChunkLocations()
        self.references = ChunkReferences()
        self.references.thin(options.shift)
        for counter in self.levels.values():
            for number, table in enumerate(counter.tables):
                # A file of the next stratum weighs up to 16 times as much, so its sample is as much denser.
                table.sample(max(0, options.shift - 4 * number))
        self.resembling = ResemblingFiles(self.locations.directories)
        self.identical = IdenticalFiles(self.locations.directories)
        if options.shift:
            # Parts are to be small. Names of small files would take more than all tables.
            self.identical.drop(STRATA[0])
        self.ages = Ages()
        self._folders = [Folder(FOLD_MIN, FOLD_MAX) for _ in FOLDED[1:]]
        self._waiting: list[CountedFile] = []
        self._waiting_chunks = 0

    def expect(self, total: int) -> None:
        """Announce `total` bytes, so that compression samples start at their final size."""
        for level, sample in self.compression.items():
            sample.thin(expected_shift(total, _unit(level)))

    def compression_of(self, total: int) -> dict[str, CompressionSample]:
        """Return the compression samples as after `expect(total)`. Parts that were counted apart and added up
        then have the samples that one scan of all files has."""
        return {
            level: sample.thinned(expected_shift(total, _unit(level)))
            for level, sample in self.compression.items()
        }

    # Files that come at once

    def add(self, file: CountedFile) -> None:
        """Queue a file without holes and without runs of equal chunks, to be counted with others."""
        self._waiting.append(file)
        self._waiting_chunks += file.tree.levels[0].records
        if self._waiting_chunks >= 4096 or len(self._waiting) >= 512:
            self.flush()

    def flush(self) -> None:
        """Count the queued files."""
        files, self._waiting, self._waiting_chunks = self._waiting, [], 0
        if not files:
            return
        levels = [file.tree.levels[0] for file in files]
        signatures = ShortSignatures(
            FINE_PARAMS,
            sizes=array("Q", [file.tree.size for file in files]),
            counts=array("I", [level.records for level in levels]),
            lengths=array("Q", b"".join([level.lengths for level in levels])),
            digests=b"".join([level.digests for level in levels]),
            traits=b"",
            roots=b"".join([file.tree.root for file in files]),
        )
        locations = [file.location for file in files]
        self.add_columns(signatures, locations, lambda file, offset, length: files[file].read(offset, length))

    def add_columns(
        self,
        files: ShortSignatures,
        locations: Sequence[int],
        read: Callable[[int, int, int], Buffer | None],
    ) -> None:
        """Count files without holes, given all their chunks and the location of each. `read`: reads content
        again, given the row of the file, offset and length in bytes; None if the file has changed or is
        gone."""
        keys, sizes = keys_of(files.digests), files.lengths.tobytes()
        ends = array("Q", accumulate(files.counts)).tobytes()
        for number, level in enumerate(FOLDED):
            if number:
                keys, sizes, ends = self._folders[number - 1].streams(keys, sizes, ends)
            self.levels[level].add(keys, sizes)
            if level in self.compression:
                self._compress_some(self.compression[level], keys, sizes, ends, read)
            if level == FOLLOWED:
                stops = memoryview(ends).cast("Q").tolist()
                counts = map(sub, stops, [0, *stops])
                where = array("I", chain.from_iterable(map(repeat, locations, counts)))
                self.references.add(keys, sizes, where)
        roots = keys_of(files.roots)
        self.levels[FILE_LEVEL].add(roots, files.sizes.tobytes())
        for location, size in zip(locations, files.sizes, strict=True):
            self.locations.count(location, size)
        self._compress_files(array("Q", roots), files.sizes, read)

    def _compress_some(
        self,
        sample: CompressionSample,
        keys: bytes,
        sizes: bytes,
        ends: bytes,
        read: Callable[[int, int, int], Buffer | None],
    ) -> None:
        rows = sample.wanted(keys)
        if not rows:
            return
        column, lengths = memoryview(keys).cast("Q"), memoryview(sizes).cast("Q")
        stops = array("Q", ends)
        for row in rows:
            if column[row] in sample.sizes:
                continue  # seen earlier in the same batch
            number = bisect_right(stops, row)
            first = stops[number - 1] if number else 0
            content = read(number, sum(lengths[first:row]), lengths[row])
            if content is not None:
                sample.take(column[row], content)

    def _compress_files(
        self, keys: array[int], sizes: array[int], read: Callable[[int, int, int], Buffer | None]
    ) -> None:
        """Sample whole files like compress_file. Files of one piece have the file's key and are selected in
        bulk."""
        sample = self.compression.get(FILE_LEVEL)
        if sample is None:
            return
        for row in sample.selected(keys.tobytes()):
            if 0 < sizes[row] <= SEGMENT_BYTES and not sample.has(keys[row], sizes[row]):
                content = read(row, 0, sizes[row])
                if content is not None:
                    sample.take(keys[row], content)
        for row, size in enumerate(sizes):
            if size > SEGMENT_BYTES:
                self.compress_file(keys[row], size, partial(read, row))

    def add_blocks(self, blocks: FixedBlocks, read: Callable[[int, int], bytes | None]) -> None:
        """Count the fixed blocks that were cut from a file since the last call."""
        for size, keys, sizes, offsets in blocks.take():
            level = f"fixed-{size}"
            self.levels[level].add(keys, sizes)
            sample = self.compression.get(level)
            if sample is not None:
                column, lengths = memoryview(keys).cast("Q"), memoryview(sizes).cast("Q")
                for row in sample.wanted(keys):
                    content = read(offsets[row], lengths[row])
                    if content is not None:
                        sample.take(column[row], content)

    def compress_file(
        self,
        key: int,
        size: int,
        read: Callable[[int, int], Buffer | None],
        holes: Holes = NO_HOLES,
    ) -> None:
        """Compress the selected pieces of a file, unless an identical file came before. `read`: content
        without `holes`, by offset and length. Pieces that lie wholly in a hole are none."""
        sample = self.compression.get(FILE_LEVEL)
        if sample is None or not size:
            return
        for start, end in holes.uncovered(size, SEGMENT_BYTES):
            for first in range(start, end, SEGMENT_BYTES << 12):
                offsets = range(first, min(end, first + (SEGMENT_BYTES << 12)), SEGMENT_BYTES)
                names = array("Q", [(key + offset * _GOLDEN) & _MASK for offset in offsets])
                for row in sample.selected(names.tobytes()):
                    length = min(SEGMENT_BYTES, size - offsets[row])
                    content = None if sample.has(names[row], length) else read(offsets[row], length)
                    if content is not None:
                        sample.take(names[row], content)


# Outcome: everything that a report is made from and that a part file stores.


class Outcome:
    """All counts of one scan or of merged parts. It grows while a scan runs."""

    def __init__(self, options: ScanOptions) -> None:
        self.options = options
        self.counters = Counters(options)
        self.paths: list[bytes] = []
        self.files = 0
        self.bytes = 0
        self.allocated_bytes = 0
        self.hardlinks = 0
        self.holes_bytes = 0
        self.already_shared_bytes = 0
        self.found_files = 0
        self.found_bytes = 0
        self.known_bytes = 0
        self.reason = ""
        """Why not everything was read, as in Coverage."""
        self.slices: SliceSet | None = None
        """The slices in it; None for a whole scan and for merged scans."""
        self.problems: list[ScanProblem] = []
        """The first SCAN_PROBLEMS in the order of paths and messages, in whatever order they were added."""
        self.more_problems = 0
        self.interrupted = False
        """True if this run was interrupted. A merged part's interruption is in `reason`."""
        self.code = ExitCode.OK

    @property
    def locations(self) -> ChunkLocations:
        return self.counters.locations

    def problem(self, problem: Problem) -> None:
        """Record a file that could not be read."""
        self.add_problem(ScanProblem(problem.path_bytes, problem.message, problem.code))

    def add_problem(self, problem: ScanProblem) -> None:
        self.code = worse(self.code, problem.code)
        insort(self.problems, problem, key=lambda one: (one.path_bytes, one.message))
        if len(self.problems) > SCAN_PROBLEMS:
            self.problems.pop()
            self.more_problems += 1


def shared_options(options: ScanOptions) -> str:
    """Return the options in which slices of one scan must agree."""
    return option_lines(
        options.rules,
        options.one_file_system,
        ("--time", options.seconds),
        ("--sample", options.sample),
        ("--seed", options.seed),
        ("--shift", options.shift),
    )
