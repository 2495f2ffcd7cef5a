"""A column of traits: nine bytes per stream (FORMAT.md, "Traits")."""

from __future__ import annotations

from rdc.kernel.constants import TRAIT_COUNT

__all__ = ["NO_TRAITS", "TRAITS_BYTES", "TRAIT_BITS", "traits_at"]

TRAIT_BITS = 6
TRAITS_BYTES = TRAIT_COUNT * TRAIT_BITS // 8

NO_TRAITS = bytes(TRAITS_BYTES)
"""Marks a stream without features. By chance, one of 2^72 streams with features has the same bytes, and is
then similar to nothing."""


def traits_at(column: bytes | bytearray, row: int) -> bytes:
    """The traits of one row; b'' for a stream without features."""
    traits = bytes(column[row * TRAITS_BYTES : (row + 1) * TRAITS_BYTES])
    return b"" if traits == NO_TRAITS else traits
