"""The granularities of a survey: their names, what they are made of, and their share of the memory."""

from __future__ import annotations

from array import array
from sys import byteorder

from rdc.chunking.params import ChunkParams
from rdc.errors import UsageError
from rdc.model.scan import FIXED_LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "FILE_LEVEL",
    "FINE_PARAMS",
    "FOLDED",
    "FOLD_MAX",
    "FOLD_MIN",
    "FOLLOWED",
    "keys_of",
    "mean_of",
    "memory_shares",
    "root_key",
]

FINE_PARAMS = ChunkParams.for_mean(4096)
"""What a scan cuts and hashes with: min 1,557, max 6,228 (rdc/signature/FORMAT.md)."""

FILE_LEVEL = "file"
FINE_LEVEL = "cdc-4096"
FOLDED = (FINE_LEVEL, "cdc-16384", "cdc-65536")
"""Each folded from the one before it."""

FOLD_MIN, FOLD_MAX = 1, 6
"""Items in a folded chunk lie in (1, 6], about 4: the step from one level to the next."""

FOLLOWED = "cdc-16384"
"""The level whose chunks tell which directories hold duplicates: the headline's."""

_FILE_MEAN = 32 << 10
"""Bytes of a file, as a guess for the share of memory: that of source trees."""


def mean_of(level: str) -> int:
    """Bytes a chunk of this level has on average, roughly."""
    return _FILE_MEAN if level == FILE_LEVEL else int(level.partition("-")[2])


def memory_shares(memory: int, fixed: tuple[str, ...]) -> dict[str, int]:
    """`memory` bytes divided among the levels as their chunks will be. Raises UsageError for a level that
    does not exist."""
    for level in fixed:
        if level not in FIXED_LEVELS:
            raise UsageError(f"--level {level}: unknown; there are {', '.join(FIXED_LEVELS)}")
    levels = (FILE_LEVEL, *FOLDED, *fixed)
    weights = {level: 1 / mean_of(level) for level in levels}
    return {level: int(memory * weight / sum(weights.values())) for level, weight in weights.items()}


def keys_of(digests: Buffer) -> bytes:
    """Keys of chunks from their 32-byte digests: the first 8 bytes as a big-endian number, as the rank of a
    record is."""
    keys = array("Q", bytes(digests))[::4]
    if byteorder == "little":
        keys.byteswap()
    return keys.tobytes()


def root_key(root: bytes) -> int:
    """Key of a whole file."""
    return int.from_bytes(root[:8], "big")
