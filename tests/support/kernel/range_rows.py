"""Byte ranges as pairs, as tests write them, and as rows, as rdc has them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import chain

__all__ = ["pairs_of", "rows_of"]


def rows_of(pairs: Iterable[tuple[int, int]]) -> array[int]:
    """(offset, length) of each as offset and length by turns."""
    return array("Q", chain.from_iterable(pairs))


def pairs_of(rows: array[int]) -> list[tuple[int, int]]:
    return list(zip(rows[0::2], rows[1::2], strict=True))
