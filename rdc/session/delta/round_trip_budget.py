"""The round trips that a comparison may still take: each one finds more matches and makes the user wait."""

from __future__ import annotations

__all__ = ["FEW_BYTES", "FEW_FILES", "rounds_left", "rounds_left_for_few"]

ROUND_TRIPS = 10
"""Round trips that a session should take at most."""

ROUND_TRIPS_FOR_FEW = 8
FEW_FILES = 4
FEW_BYTES = 64 << 10
"""A file with at most FEW_BYTES unmatched, in a session that has at most FEW_FILES in work, takes at most
ROUND_TRIPS_FOR_FEW: a further round trip could save little."""


def rounds_left(round_: int, trips: int = ROUND_TRIPS) -> int:
    """Returns how many requests may follow, from this round on, before the literals are requested."""
    # A message and its answer are two rounds; the literals take two more, and Done the last.
    return max(0, (2 * trips - 2 - round_) // 2)


def rounds_left_for_few(round_: int) -> int:
    """Does what `rounds_left` does for few files and few unmatched bytes."""
    return rounds_left(round_, ROUND_TRIPS_FOR_FEW)
