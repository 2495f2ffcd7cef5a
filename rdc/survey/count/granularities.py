"""The levels of a scan: their names, how they are made, and their shares of the memory."""

from __future__ import annotations

from array import array
from sys import byteorder

from rdc.chunking import ChunkParams
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
    """Divides `memory` bytes among the levels by the number of chunks expected. Raises UsageError for a level
    that does not exist."""
    for level in fixed:
        if level not in FIXED_LEVELS:
            raise UsageError(f"--level {level}: unknown; there are {', '.join(FIXED_LEVELS)}")
    levels = (FILE_LEVEL, *FOLDED, *fixed)
    weights = {level: 1 / mean_of(level) for level in levels}
    return {level: int(memory * weight / sum(weights.values())) for level, weight in weights.items()}


def keys_of(digests: Buffer) -> bytes:
    """Keys of chunks from their 32-byte digests: the first 8 bytes as a big-endian number, which is also a
    record's rank."""
    keys = array("Q", bytes(digests))[::4]
    if byteorder == "little":
        keys.byteswap()
    return keys.tobytes()


def root_key(root: bytes) -> int:
    """The key of a whole file."""
    return int.from_bytes(root[:8], "big")
