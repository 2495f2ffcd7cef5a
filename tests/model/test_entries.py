"""Listings in both forms: columns of Python values, and packed bytes."""

from __future__ import annotations

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.model.entries import Kind, Listing, PackedListing
from tests.support.wire.wire_strategies import listings


@given(listings())
def test_packing_loses_nothing(listing: Listing) -> None:
    packed = listing.packed()
    assert packed.unpacked() == listing
    assert packed.unpacked().packed() == packed
    assert len(packed) == len(listing) == packed.count


@given(listings(min_size=1))
def test_columns_are_little_endian_rows(listing: Listing) -> None:
    packed = listing.packed()
    count = len(listing)
    assert packed.names.split(b"\0") == [*listing.names, b""]
    assert packed.targets.split(b"\0") == [*listing.targets, b""]
    for row in range(count):
        assert struct.unpack_from("<H", packed.modes, 2 * row)[0] == listing.modes[row]
        assert struct.unpack_from("<Q", packed.sizes, 8 * row)[0] == listing.sizes[row]
        assert struct.unpack_from("<q", packed.mtimes, 8 * row)[0] == listing.mtimes[row]
        assert struct.unpack_from("<I", packed.uids, 4 * row)[0] == listing.uids[row]
        assert struct.unpack_from("<I", packed.gids, 4 * row)[0] == listing.gids[row]
    lengths = [len(packed.kinds), len(packed.modes), len(packed.sizes), len(packed.mtimes)]
    assert [*lengths, len(packed.uids), len(packed.gids)] == [count * size for size in (1, 2, 8, 8, 4, 4)]


@given(listings(), st.data())
def test_rows_of_a_packed_listing(listing: Listing, data: st.DataObject) -> None:
    rows = sorted(data.draw(st.sets(st.integers(0, len(listing) - 1)))) if len(listing) else []
    chosen = listing.packed().rows(rows)
    assert chosen.unpacked() == listing.rows(rows)
    assert chosen.kinds.count(Kind.SYMLINK) == chosen.targets.count(b"\0")


def test_a_big_endian_machine_packs_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the byte order of its integers exchanged, this machine is one of the other kind."""
    monkeypatch.setattr(sys, "byteorder", "big" if sys.byteorder == "little" else "little")
    packed = PackedListing(1, b"n\0", b"\0", b"\1\2", bytes(range(8)), bytes(8), bytes(4), b"\0\0\1\0", b"")
    listing = packed.unpacked()
    assert (listing.modes[0], listing.gids[0]) == (0x0102, 0x0000_0100)
    assert listing.sizes[0] == 0x0001_0203_0405_0607
    assert listing.packed() == packed
