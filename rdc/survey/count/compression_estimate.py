"""CompressionSample: estimates how far zstd would shrink unique chunks, from a random thousand of them."""

from __future__ import annotations

import math
from array import array
from functools import cached_property

from rdc.kernel import select_chunks
from rdc.lean.records import dataclass
from rdc.survey.count.chunk_counter import Z95

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer
    from zstandard import ZstdCompressor

    from rdc.survey.count.chunk_counter import Figures

__all__ = ["CompressedFigures", "CompressionSample", "expected_shift", "sample_size"]

SAMPLE_CHUNKS = 1024
"""Most chunks in the sample; at least half as many are used if there are enough. zstd shrinks chunks by very
different factors; a thousand chunks give the mean to about one per cent."""

SAMPLE_BYTES = 16 << 20
"""Bytes above which fewer chunks are sampled, though not fewer than a quarter. zstd takes 50 ms for them."""


def sample_size(mean: int) -> int:
    """The number of chunks sampled if they have `mean` bytes on average."""
    return max(SAMPLE_CHUNKS // 4, min(SAMPLE_CHUNKS, SAMPLE_BYTES // mean))


ZSTD_LEVEL = 3
"""The default of zstd and of stores that deduplicate."""

SALT = 0x7A73_7464_0000_0001
"""Makes this selection independent of the sample of the tables."""


@dataclass(frozen=True, slots=True)
class CompressedFigures:
    bytes: int
    low: int
    high: int
    """95 % bounds."""


def expected_shift(total: int, mean: int) -> int:
    """The shift at which one chunk in 2^shift gives about sample_size(mean) of the chunks of `total`
    bytes."""
    return max(0, (total // mean // sample_size(mean)).bit_length() - 1)


class CompressionSample:
    """A sample of the unique chunks of one level. Keys decide: it is the same in whatever order chunks come.

    The sample is halved whenever it grows beyond its limit. Holes are no content: of what the files of one
    content have at a key, the copy with the most bytes counts, and of several such the one that shrinks less.
    """

    def __init__(self, shift: int = 0, most: int = SAMPLE_CHUNKS) -> None:
        """`most`: the largest number of chunks in the sample."""
        self.shift = shift
        self._most = most
        self.sizes: dict[int, tuple[int, int]] = {}
        """By key: bytes before and after zstd."""

    def selected(self, keys: bytes) -> list[int]:
        """Rows of the chunks that belong to the sample."""
        return array("Q", select_chunks(keys, SALT, self.shift)).tolist()

    def wanted(self, keys: bytes) -> list[int]:
        """Rows of the chunks whose content `take` needs, if content has no holes."""
        rows = self.selected(keys)
        if not rows:
            return rows
        column = memoryview(keys).cast("Q")
        return [row for row in rows if column[row] not in self.sizes]

    def has(self, key: int, size: int) -> bool:
        """Whether `size` bytes of a chunk, or more, are in the sample."""
        known = self.sizes.get(key)
        return known is not None and known[0] >= size

    def take(self, key: int, content: Buffer) -> None:
        """Compresses a chunk that was selected, unless the sample was halved meanwhile and excludes
        it."""
        if not select_chunks(array("Q", [key]), SALT, self.shift):
            return
        with memoryview(content) as view:
            compressed = len(self._compressor.compress(view))
            # A store keeps a chunk as it is if it does not shrink.
            self.put_many([(key, view.nbytes, min(compressed, view.nbytes))])

    @cached_property
    def _compressor(self) -> ZstdCompressor:
        # Cached: making a compressor costs as much as compressing a small chunk.
        import zstandard

        return zstandard.ZstdCompressor(level=ZSTD_LEVEL)

    def put_many(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Adds chunks that were selected: key, bytes before and after zstd."""
        for key, before, after in rows:
            self.sizes[key] = max(self.sizes.get(key, (0, 0)), (before, after))
        # Only now: a halving between two rows would not see the later ones.
        while len(self.sizes) > self._most and self.shift < 63:
            self.thin(self.shift + 1)

    def thin(self, shift: int) -> None:
        """Reduces the sample to one chunk in 2^shift."""
        if shift <= self.shift:
            return
        self.shift = shift
        keys = list(self.sizes)
        selected = array("Q", select_chunks(array("Q", keys), SALT, shift))
        self.sizes = {keys[row]: self.sizes[keys[row]] for row in selected}

    def thinned(self, shift: int) -> CompressionSample:
        """A copy of one chunk in 2^shift."""
        copy = CompressionSample(self.shift, self._most)
        copy.sizes = dict(self.sizes)
        copy.thin(shift)
        return copy

    def figures(self, unique: Figures) -> CompressedFigures | None:
        """The ratio estimator R = sum(compressed) / sum(size), multiplied by the unique bytes.

        Var(R) = (1 - f) / n * sum((c - R s)^2) / (n - 1) / mean(s)^2, where f is the share of the unique
        bytes that was compressed. If the unique bytes are an estimate, their relative variance is added. None
        if the sample is empty. Source: W. G. Cochran, Sampling Techniques, 1977, section 6.4.
        """
        pairs = list(self.sizes.values())
        size = sum(pair[0] for pair in pairs)
        if not size or not unique.unique_bytes:
            return None if unique.unique_bytes else CompressedFigures(0, 0, 0)
        ratio = sum(pair[1] for pair in pairs) / size
        number, mean = len(pairs), size / len(pairs)
        left = max(0.0, 1 - size / unique.unique_bytes)
        if number > 1:
            spread = sum((after - ratio * before) ** 2 for before, after in pairs) / (number - 1)
            variance = left * spread / number / mean**2
        else:
            variance = left
        relative = unique.deviation / unique.unique_bytes
        deviation = unique.unique_bytes * math.sqrt(variance + (ratio * relative) ** 2)
        estimate = round(unique.unique_bytes * ratio)
        return CompressedFigures(
            estimate,
            max(0, math.floor(estimate - Z95 * deviation)),
            min(unique.high, math.ceil(estimate + Z95 * deviation)),
        )
