"""Equal keys of a column, found in bounded memory."""

from __future__ import annotations

from array import array
from operator import itemgetter

from rdc.limits.searches import RANGE_ROWS
from rdc.survey.walk.equal_groups import equal_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.survey.walk.equal_groups import Groups

__all__ = ["equal_key_groups", "equal_positions"]


def equal_positions(keys: array[int]) -> Iterator[array[int]]:
    """Yields the positions of each key that occurs more than once, in increasing order. `keys`: as for
    equal_key_groups()."""
    for groups in equal_key_groups(keys):
        yield from groups


def equal_key_groups(keys: array[int]) -> Iterator[Groups]:
    """Yields groups of the positions of equal keys, in increasing order each.

    `keys`: typecode 'Q', hashes. They are sorted a range of values at a time.
    """
    ranges = -(-len(keys) // RANGE_ROWS)
    if ranges <= 1:
        yield equal_groups(keys, 8)
        return
    for number in range(ranges):
        low, high = (number << 64) // ranges, (number + 1 << 64) // ranges
        rows = array("I", [row for row, key in enumerate(keys) if low <= key < high])
        if len(rows) > 1:
            chosen = array("Q", itemgetter(*rows)(keys))
            yield equal_groups(chosen, 8).of(rows)
