"""ChunkParams: the chunk sizes, and the id that names them together with every algorithm they imply."""

from __future__ import annotations

from functools import cached_property

from blake3 import blake3

from rdc.errors import UsageError
from rdc.lean.checks import check_argument, check_fields
from rdc.lean.records import dataclass
from rdc.limits.chunks import (
    CHUNK_MAX_LIMIT,
    CHUNK_MIN_LIMIT,
    CHUNK_RATIO_LIMIT,
    NODE_RECORDS_MAX,
    NODE_RECORDS_MIN,
)

__all__ = ["SYNC_PARAMS", "ChunkParams"]

WINDOW_RATIO = 4
"""max_size / min_size of `for_mean`. Of 2 to 7, it is the best or nearly the best ratio at equal mean
(signature/FORMAT.md)."""

MEAN_IN_MINIMA = 2.63
"""Mean chunk length divided by min_size, if max_size is 4 * min_size. Measured on random data. It is more
than 2.5, the middle of (min, max], because positions that a window shares with the window before lost
there."""

MEAN_MIN = 168
MEAN_MAX = 10 << 20
"""Limits of `for_mean`: the means of the smallest min_size, 64, and of nearly the largest max_size, 16
MiB."""

FORMAT_VERSION = 1


@dataclass(frozen=True)
class ChunkParams:
    """Chunk sizes in bytes. Every chunk but a stream's last is longer than `min_size`; none is longer than
    `max_size`.

    Raises UsageError unless 64 <= min_size < max_size <= 8 * min_size and max_size <= 16 MiB.

        >>> import rdc
        >>> params = rdc.ChunkParams.for_mean(16384)
        >>> params.min_size, params.max_size
        (6230, 24920)
    """

    min_size: int
    max_size: int
    version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        check_fields(self)
        if self.version != FORMAT_VERSION:
            raise UsageError(f"chunk parameters of version {self.version}: this rdc knows {FORMAT_VERSION}")
        if not (
            CHUNK_MIN_LIMIT <= self.min_size < self.max_size <= CHUNK_RATIO_LIMIT * self.min_size
            and self.max_size <= CHUNK_MAX_LIMIT
        ):
            raise UsageError(
                f"chunk sizes {self.min_size} to {self.max_size}: expected {CHUNK_MIN_LIMIT} <= min < max"
                f" <= {CHUNK_RATIO_LIMIT} * min and max <= {CHUNK_MAX_LIMIT}"
            )

    @classmethod
    def for_mean(cls, size: int) -> ChunkParams:
        """Parameters for chunks of `size` bytes on average, on data without repetition. Raises UsageError
        unless `size` is 168 bytes to 10 MiB."""
        check_argument("ChunkParams.for_mean", "size", size, int)
        if not MEAN_MIN <= size <= MEAN_MAX:
            raise UsageError(f"chunks of {size} bytes on average: expected {MEAN_MIN} to {MEAN_MAX}")
        min_size = round(size / MEAN_IN_MINIMA)
        return cls(min_size, min_size * WINDOW_RATIO)

    @property
    def mean(self) -> float:
        """Expected chunk length in bytes on data without repetition, for max_size = 4 * min_size."""
        return self.min_size * MEAN_IN_MINIMA

    @cached_property
    def id(self) -> bytes:
        """32 bytes that two sides compare before they compare digests (FORMAT.md, "Parameter id")."""
        text = (
            f"rdc signature {self.version}; cuts winnow rabin lead 8/16 low 64/64"
            f" min {self.min_size} max {self.max_size}; chunks blake3-256;"
            f" nodes winnow be64 min {NODE_RECORDS_MIN} max {NODE_RECORDS_MAX} blake3-256 keyed;"
            " traits 12x6"
        )
        return blake3(text.encode()).digest()


SYNC_PARAMS = ChunkParams.for_mean(16 << 10)
"""The parameters of `rdc sync`: about 16 KiB per chunk. Both sides must agree, so there is no option for
them."""
