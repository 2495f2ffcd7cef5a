"""Rows of a directory: what is encoded is decoded, and a hostile record is refused."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rdc.lean.records import replace
from rdc.model import preserved
from rdc.model.entries import DEVICE_LIMIT, DEVICES, Kind, Listing, little_endian
from rdc.model.preserved import END_NS, FIRST_NS, STAMPED_BYTES, pack_attributes, packed_time, real_time
from rdc.store.tree_rows import (
    LENGTH,
    STREAM_BYTES,
    STREAM_LEVELS,
    DirectoryRows,
    FileRef,
    StoredFiles,
    StreamRef,
    decode_rows,
    decode_traits,
    distant_times,
    encode_rows,
)

TIMES = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-(10**27), 10**27)

KINDS = [kind for kind in Kind if kind is not Kind.SPECIAL]


@st.composite
def rows_of_directories(draw: st.DrawFn) -> DirectoryRows:
    name = st.binary(min_size=1, max_size=12).filter(
        lambda one: b"/" not in one and b"\0" not in one and one not in (b".", b"..")
    )
    names = tuple(sorted(draw(st.sets(name, max_size=6))))
    count = len(names)
    kinds = [draw(st.sampled_from(KINDS)) for _ in names]
    limits = [
        STREAM_BYTES + 1 if kind is Kind.FILE else DEVICE_LIMIT if kind in DEVICES else 1 for kind in kinds
    ]
    sizes = [draw(st.integers(0, limit - 1)) for limit in limits]
    targets = tuple(b"target" for kind in kinds if kind is Kind.SYMLINK)
    u32 = st.integers(0, (1 << 32) - 1)
    listing = Listing(
        names,
        bytes(kinds),
        array("H", [draw(st.integers(0, 0o7777)) for _ in names]),
        array("Q", sizes),
        array("q", [packed_time(draw(TIMES)) for _ in names]),
        array("I", [draw(u32) for _ in names]),
        array("I", [draw(u32) for _ in names]),
        targets,
    )
    sets = (pack_attributes(((b"user.a", b"value"),)), pack_attributes(((b"user.b", b""),)))
    has_sets, has_groups = draw(st.booleans()), draw(st.booleans())
    numbers = array("I", [draw(st.integers(0, 2)) for _ in names])
    files = []
    for kind, size in zip(kinds, sizes, strict=True):
        if kind is Kind.FILE and size:
            keys = bytes(16 * draw(st.integers(1, 3)))
            root, traits = draw(st.binary(min_size=32, max_size=32)), draw(st.binary(min_size=9, max_size=9))
            files.append(FileRef(root, traits, StreamRef(size, draw(st.integers(0, 3)), keys)))
    return DirectoryRows(
        draw(st.sampled_from([b"", b"a", b"a/b"])),
        listing.packed(),
        little_endian(array("I", range(count))) if has_groups else b"",
        sets if has_sets else (),
        little_endian(numbers) if has_sets else b"",
        StoredFiles.of(files),
    )


@given(rows_of_directories())
def test_a_directory_is_decoded_as_it_was_encoded(rows: DirectoryRows) -> None:
    traits = decode_traits(encode_rows(rows)[LENGTH.size :])
    assert list(traits.sizes) == [one.content.size for one in rows.files]
    assert list(traits.traits) == [one.traits if any(one.traits) else b"" for one in rows.files]
    record = encode_rows(rows)
    assert LENGTH.unpack_from(record)[0] == len(record) - LENGTH.size
    found = decode_rows(record[LENGTH.size :])
    if not rows.listing.count:
        rows = replace(rows, groups=b"", attribute_numbers=b"")
    assert found == rows


@given(rows_of_directories(), st.integers(0), st.integers(1, 255))
def test_a_changed_record_is_refused_or_sound(rows: DirectoryRows, place: int, change: int) -> None:
    record = bytearray(encode_rows(rows)[LENGTH.size :])
    record[place % len(record)] ^= change
    try:
        found = decode_rows(bytes(record))
    except ValueError:
        return
    listing = found.listing.unpacked()
    assert list(listing.names) == sorted(set(listing.names))
    assert not any(b"/" in name or name in (b"", b".", b"..") for name in listing.names)
    assert all(kind in KINDS for kind in listing.kinds)
    assert len(listing.targets) == listing.kinds.count(Kind.SYMLINK)
    assert [file.content.size for file in found.files] == [
        size for kind, size in zip(listing.kinds, listing.sizes, strict=True) if kind == Kind.FILE and size
    ]
    for row in range(listing.kinds.count(Kind.FILE)):
        found.attributes_of(row)


@given(rows_of_directories(), st.integers(0))
def test_a_short_record_is_refused(rows: DirectoryRows, length: int) -> None:
    record = encode_rows(rows)[LENGTH.size :]
    kept = length % len(record)
    # Without any of its distant times, a record is one of an older version.
    assume(kept != len(record) - len(distant_times(rows.listing.mtimes)))
    with pytest.raises(ValueError, match=r"expected|distant"):
        decode_rows(record[:kept])


def of_one_time(time: int) -> DirectoryRows:
    none = array("I", [0])
    listing = Listing((b"f",), b"\1", array("H", none), array("Q", none), array("q", [time]), none, none, ())
    return DirectoryRows(b"", listing.packed(), b"", (), b"", StoredFiles.of(()))


@pytest.mark.parametrize("time", [FIRST_NS - 1, END_NS, -(10**27), 10**27])
def test_distant_times_are_known_to_another_process(time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    record = encode_rows(of_one_time(packed_time(time)))[LENGTH.size :]
    monkeypatch.setattr(preserved, "_times", {})
    (found,) = decode_rows(record).listing.unpacked().mtimes
    assert real_time(found) == time
    monkeypatch.setattr(preserved, "_times", {})
    # A record of an older version has no time for the stamp.
    (near,) = decode_rows(record[:-STAMPED_BYTES]).listing.unpacked().mtimes
    assert near == (FIRST_NS if time < 0 else END_NS - 1)
    with pytest.raises(ValueError, match="distant time"):
        decode_rows(record[:-STAMPED_BYTES] + bytes(8) + b"\1" + bytes(3))


@pytest.mark.parametrize("name", [b"..", b".", b"a/b", b""])
def test_a_name_that_leads_elsewhere_is_refused(name: bytes) -> None:
    one = array("I", [0])
    listing = Listing((name,), b"\1", array("H", [0o755]), array("Q", [0]), array("q", [0]), one, one, ())
    with pytest.raises(ValueError, match="names"):
        decode_rows(
            encode_rows(DirectoryRows(b"", listing.packed(), b"", (), b"", StoredFiles.of(())))[LENGTH.size :]
        )


@pytest.mark.parametrize(
    ("size", "level", "count"), [(STREAM_BYTES + 1, 0, 1), (1, STREAM_LEVELS, 1), (1, 0, 0)]
)
def test_a_place_that_no_stream_has_is_refused(size: int, level: int, count: int) -> None:
    one = array("I", [0])
    listing = Listing(
        (b"f",), bytes([Kind.FILE]), array("H", [0o644]), array("Q", [size]), array("q", [0]), one, one, ()
    )
    files = StoredFiles.of([FileRef(bytes(32), bytes(9), StreamRef(1, 0, bytes(16)))])
    record = bytearray(encode_rows(DirectoryRows(b"", listing.packed(), b"", (), b"", files))[LENGTH.size :])
    at = len(record) - 48 - 5
    assert record[at : at + 5] == b"\0\1\0\0\0"
    record[at : at + 2] = level, count
    with pytest.raises(ValueError, match="expected"):
        decode_rows(bytes(record[: len(record) - 16 * (1 - count)]))
