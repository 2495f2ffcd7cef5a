"""Everything that a survey counts, in bounded memory; two of them can be added up."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from rdc.kernel.survey import Folder
from rdc.survey.compression import CompressionSample, expected_shift, sample_size
from rdc.survey.levels import (
    FILE_LEVEL,
    FOLD_MAX,
    FOLD_MIN,
    FOLDED,
    FOLLOWED,
    keys_of,
    mean_of,
    memory_shares,
    root_key,
)
from rdc.survey.likeness import Likeness
from rdc.survey.places import Places
from rdc.survey.references import References
from rdc.survey.tally import STRATA, Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.scan import ScanOptions
    from rdc.signature.tree import SignatureTree
    from rdc.survey.fixed import FixedBlocks

__all__ = ["Census", "SmallFile"]

SEGMENT_BYTES = 128 << 10
"""Whole files are compressed in pieces of this size: one window of zstd's smaller levels, so that pieces
shrink nearly as their file would."""

_GOLDEN = 0x9E37_79B9_7F4A_7C15
_MASK = (1 << 64) - 1


def _unit(level: str) -> int:
    """Bytes of what is compressed at a time, roughly."""
    return SEGMENT_BYTES if level == FILE_LEVEL else mean_of(level)


class SmallFile:
    """A file whose chunks were few enough to come all at once."""

    __slots__ = ("place", "read", "tree")

    def __init__(self, tree: SignatureTree, place: int, read: Callable[[int, int], bytes | None]) -> None:
        """`read`: content of the file again, by offset and length in bytes; None where it is gone."""
        self.tree = tree
        self.place = place
        self.read = read


class Census:
    """What was counted so far. `levels` are in the order of the report."""

    def __init__(self, options: ScanOptions) -> None:
        shares = memory_shares(options.memory, options.fixed)
        self.levels = {
            level: Tally(share, STRATA if level == FILE_LEVEL else ()) for level, share in shares.items()
        }
        self.compression = {
            level: CompressionSample(most=sample_size(_unit(level)))
            for level in (shares if options.compress else ())
        }
        self.places = Places()
        self.references = References()
        self.likeness = Likeness()
        self._folders = [Folder(FOLD_MIN, FOLD_MAX) for _ in FOLDED[1:]]
        self._waiting: list[SmallFile] = []
        self._waiting_chunks = 0

    def expect(self, total: int) -> None:
        """About so many bytes will come: the samples for compression then start as small as they will be."""
        for level, sample in self.compression.items():
            sample.thin(expected_shift(total, _unit(level)))

    # Files that come at once

    def add(self, file: SmallFile) -> None:
        """Counts a file without runs of chunks and without holes, together with others, some time later."""
        self._waiting.append(file)
        self._waiting_chunks += file.tree.levels[0].records
        if self._waiting_chunks >= 4096 or len(self._waiting) >= 512:
            self.flush()

    def flush(self) -> None:
        """Counts the files that wait."""
        files, self._waiting, self._waiting_chunks = self._waiting, [], 0
        if not files:
            return
        chunks = [file.tree.levels[0] for file in files]
        keys = keys_of(b"".join([level.digests for level in chunks]))
        sizes = b"".join([level.lengths for level in chunks])
        ends = array("Q", accumulate([level.records for level in chunks])).tobytes()
        for number, level in enumerate(FOLDED):
            if number:
                keys, sizes, ends = self._folders[number - 1].streams(keys, sizes, ends)
            self.levels[level].add(keys, sizes)
            if level in self.compression:
                self._compress_some(self.compression[level], files, keys, sizes, ends)
            if level == FOLLOWED:
                places = array("I")
                begin = 0
                for file, end in zip(files, memoryview(ends).cast("Q").tolist(), strict=True):
                    places.extend(array("I", (file.place,)) * (end - begin))
                    begin = end
                self.references.add(keys, sizes, places)
        roots = array("Q", [root_key(file.tree.root) for file in files])
        lengths = array("Q", [file.tree.size for file in files])
        self.levels[FILE_LEVEL].add(roots.tobytes(), lengths.tobytes())
        for file, key in zip(files, roots, strict=True):
            self.places.count(file.place, file.tree.size)
            self.compress_file(key, file.tree.size, file.read)

    def _compress_some(
        self, sample: CompressionSample, files: list[SmallFile], keys: bytes, sizes: bytes, ends: bytes
    ) -> None:
        rows = sample.wanted(keys)
        if not rows:
            return
        column, lengths = memoryview(keys).cast("Q"), memoryview(sizes).cast("Q")
        stops = array("Q", ends)
        for row in rows:
            number = bisect_right(stops, row)
            first = stops[number - 1] if number else 0
            content = files[number].read(sum(lengths[first:row]), lengths[row])
            if content is not None and column[row] not in sample.sizes:
                sample.take(column[row], content)

    def add_blocks(self, blocks: FixedBlocks, read: Callable[[int, int], bytes | None]) -> None:
        """Counts the fixed blocks that were taken of a file since the last call."""
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

    def compress_file(self, key: int, size: int, read: Callable[[int, int], bytes | None]) -> None:
        """Compresses the chosen pieces of a file, unless an identical one came before."""
        sample = self.compression.get(FILE_LEVEL)
        if sample is None or not size:
            return
        for first in range(0, size, SEGMENT_BYTES << 12):
            offsets = range(first, min(size, first + (SEGMENT_BYTES << 12)), SEGMENT_BYTES)
            names = array("Q", [(key + offset * _GOLDEN) & _MASK for offset in offsets])
            for row in sample.wanted(names.tobytes()):
                content = read(offsets[row], min(SEGMENT_BYTES, size - offsets[row]))
                if content is not None:
                    sample.take(names[row], content)
