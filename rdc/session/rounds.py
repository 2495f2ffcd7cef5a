"""How many more round trips a comparison may take: each finds more, and each makes the user wait."""

from __future__ import annotations

__all__ = ["FEW_BYTES", "FEW_FILES", "rounds_left", "rounds_left_for_few"]

ROUND_TRIPS = 10
"""Round trips that a session should take at most, whatever it has to do."""

ROUND_TRIPS_FOR_FEW = 8
FEW_FILES = 4
FEW_BYTES = 64 << 10
"""With so many files, and unknown bytes in one of them, there is little that a round trip could save."""


def rounds_left(round_: int, trips: int = ROUND_TRIPS) -> int:
    """How many questions there may be from this round on, before the literals."""
    # A message and its answer are two rounds; the literals take two more, and Done the last.
    return max(0, (2 * trips - 2 - round_) // 2)


def rounds_left_for_few(round_: int) -> int:
    """The same where there are FEW_FILES at most, and FEW_BYTES are unknown."""
    return rounds_left(round_, ROUND_TRIPS_FOR_FEW)
