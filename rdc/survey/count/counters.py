"""Counters: everything that a scan counts, in bounded memory."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import partial
from itertools import accumulate, chain, repeat
from operator import sub

from rdc.kernel import Folder
from rdc.signature.codec import ShortSignatures
from rdc.survey.count.chunk_counter import STRATA, ChunkCounter
from rdc.survey.count.chunk_locations import ChunkLocations
from rdc.survey.count.chunk_references import ChunkReferences
from rdc.survey.count.compression_estimate import CompressionSample, expected_shift, sample_size
from rdc.survey.count.granularities import (
    FILE_LEVEL,
    FINE_PARAMS,
    FOLD_MAX,
    FOLD_MIN,
    FOLDED,
    FOLLOWED,
    keys_of,
    mean_of,
    memory_shares,
)
from rdc.survey.count.holes import NO_HOLES
from rdc.survey.count.resembling_files import ResemblingFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Buffer

    from rdc.model.scan import ScanOptions
    from rdc.signature.tree import SignatureTree
    from rdc.survey.count.fixed_blocks import FixedBlocks
    from rdc.survey.count.holes import Holes

SEGMENT_BYTES = 128 << 10
"""Whole files are compressed in pieces of this size. It is one window of zstd's faster levels, so pieces
shrink nearly as much as their file would."""

_GOLDEN = 0x9E37_79B9_7F4A_7C15
_MASK = (1 << 64) - 1


def _unit(level: str) -> int:
    """Approximate bytes of one compressed piece."""
    return SEGMENT_BYTES if level == FILE_LEVEL else mean_of(level)


class CountedFile:
    """A file whose chunks are few enough to be counted all at once."""

    __slots__ = ("location", "read", "tree")

    def __init__(self, tree: SignatureTree, location: int, read: Callable[[int, int], bytes | None]) -> None:
        """`read`: reads content of the file again, given offset and length in bytes; None if the file has
        changed or is gone."""
        self.tree = tree
        self.location = location
        self.read = read


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
        self._folders = [Folder(FOLD_MIN, FOLD_MAX) for _ in FOLDED[1:]]
        self._waiting: list[CountedFile] = []
        self._waiting_chunks = 0

    def expect(self, total: int) -> None:
        """Announces `total` bytes, so that compression samples start at their final size."""
        for level, sample in self.compression.items():
            sample.thin(expected_shift(total, _unit(level)))

    def compression_of(self, total: int) -> dict[str, CompressionSample]:
        """The compression samples as after `expect(total)`. Parts that were counted apart and added up then
        have the samples that one scan of all files has."""
        return {
            level: sample.thinned(expected_shift(total, _unit(level)))
            for level, sample in self.compression.items()
        }

    # Files that come at once

    def add(self, file: CountedFile) -> None:
        """Queues a file without holes and without runs of equal chunks, to be counted with others."""
        self._waiting.append(file)
        self._waiting_chunks += file.tree.levels[0].records
        if self._waiting_chunks >= 4096 or len(self._waiting) >= 512:
            self.flush()

    def flush(self) -> None:
        """Counts the queued files."""
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
        """Counts files without holes, given all their chunks and the location of each. `read`: reads content
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
        """Samples whole files like compress_file. Files of one piece have the file's key and are selected in
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
        """Counts the fixed blocks that were cut from a file since the last call."""
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
        """Compresses the selected pieces of a file, unless an identical file came before. `read`: content
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
