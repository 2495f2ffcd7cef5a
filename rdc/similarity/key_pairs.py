"""Pairs of sets that agree in several of their keys: Broder, Glassman, Manasse, Zweig (1997).

Sets that agree in two of six supershingles agree in the keys of one of 15 tables, one table for each pair of
groups. Four of six need 15 tables as well, and one of eight needs 8.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

from rdc.lean.checks import check_argument, checked_count
from rdc.lean.typed import NamedTuple
from rdc.similarity.arguments import SAMPLES_MOST, Items, check_column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

__all__ = ["KeyPair", "agreeing_pairs"]


TABLES_MOST = 1 << 16
"""Combinations of groups. Each is a table of all sets."""


class KeyPair(NamedTuple):
    """Two sets by their rows, the smaller row first."""

    first: int
    second: int


def agreeing_pairs(
    keys: array[int], groups: int, needed: int, *, spanning: bool = False
) -> Iterator[KeyPair]:
    """Yields each pair of sets that agree in at least `needed` of `groups` keys once, in no order to rely on.

    `keys`: `groups` a set, as supershingles() and Banding.keys() give them. One table at a time is in memory.
    A thousand equal sets make half a million pairs. With `spanning` each set of equal keys comes in a pair
    with the first one only: the clusters stay the same, and pairs may come twice. Raises ValueError if the
    keys are no whole sets.

    >>> from array import array
    >>> from rdc.similarity import agreeing_pairs
    >>> keys = array("Q", [1, 2, 3,  1, 2, 9,  7, 2, 9])
    >>> sorted(agreeing_pairs(keys, groups=3, needed=2))
    [KeyPair(first=0, second=1), KeyPair(first=1, second=2)]
    """
    check_column("agreeing_pairs", "keys", keys, Items.UNSIGNED)
    check_argument("agreeing_pairs", "spanning", spanning, bool)
    groups = checked_count("agreeing_pairs", "groups", groups, 1, SAMPLES_MOST)
    needed = checked_count("agreeing_pairs", "needed", needed, 1, groups)
    if isinstance(keys, (bytes, bytearray)) or len(keys) % groups:
        raise ValueError(f"agreeing_pairs.keys: expected {groups} keys for each set, found {len(keys)} keys")
    tables = comb(groups, needed)
    if tables > TABLES_MOST:
        raise ValueError(
            f"agreeing_pairs.needed: expected at most {TABLES_MOST} tables, found {tables} for {needed} of"
            f" {groups} keys"
        )
    return _pairs(keys, groups, needed, spanning)


def _pairs(keys: array[int], groups: int, needed: int, spanning: bool) -> Iterator[KeyPair]:
    for table in combinations(range(groups), needed):
        for rows in _buckets(keys, groups, table):
            if spanning:
                yield from [KeyPair(rows[0], row) for row in rows[1:]]
                continue
            for first, second in combinations(rows, 2):
                # A pair that several tables hold comes from the first of them.
                if _first_agreeing(keys, groups, needed, first, second) == table:
                    yield KeyPair(first, second)


def _buckets(keys: array[int], groups: int, table: Sequence[int]) -> Iterator[list[int]]:
    """The rows that are equal in all columns of the table, where there are two or more."""
    columns = [keys[group::groups] for group in table]
    found: dict[tuple[int, ...], int | list[int]] = {}
    for row, key in enumerate(zip(*columns, strict=True)):
        there = found.setdefault(key, row)
        if isinstance(there, list):
            there.append(row)
        elif there != row:
            found[key] = [there, row]
    return (rows for rows in found.values() if isinstance(rows, list))


def _first_agreeing(keys: array[int], groups: int, needed: int, first: int, second: int) -> tuple[int, ...]:
    one, other = keys[first * groups : (first + 1) * groups], keys[second * groups : (second + 1) * groups]
    agreeing = [group for group in range(groups) if one[group] == other[group]]
    return tuple(agreeing[:needed])
