"""Messages: every one survives the wire, and garbage is refused for little."""

from __future__ import annotations

import tracemalloc
from array import array
from dataclasses import replace
from typing import Any

import msgpack
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rdc.errors import ExitCode, ProtocolError
from rdc.limits import DATA_BYTES, FRAME_BYTES, MESSAGE_BYTES, PATH_BYTES
from rdc.model.entries import Kind, Listing
from rdc.model.preserved import END_NS, FIRST_NS
from rdc.protocol.messages import (
    Data,
    Done,
    FileBatch,
    FileRequest,
    Hello,
    ListingPart,
    Message,
    NodeAnswer,
    Open,
    RangeRequest,
    Refused,
    RootAnswer,
    decode,
    encode,
    field_types,
    message_kinds,
)
from rdc.protocol.messages.field_types import slice_listing
from tests.protocol.message_strategies import BY_KIND, any_message
from tests.support.wire.wire_payloads import joined, parted
from tests.support.wire.wire_strategies import listings


def test_every_kind_of_message_has_a_strategy() -> None:
    assert set(message_kinds().values()) == set(BY_KIND)


@given(any_message)
def test_a_message_survives_the_wire(message: Message) -> None:
    assert decode(message.kind, encode(message)) == message


def parses_or_is_refused(kind: int, payload: bytes) -> None:
    try:
        message = decode(kind, payload)
    except ProtocolError:
        return
    # What was accepted is a message like any other.
    assert decode(kind, encode(message)) == message


@given(any_message, st.data())
def test_one_changed_byte_parses_or_is_refused(message: Message, data: st.DataObject) -> None:
    payload = bytearray(encode(message))
    position = data.draw(st.integers(0, min(len(payload), 400) - 1))
    payload[position] = data.draw(st.integers(0, 255))
    parses_or_is_refused(message.kind, bytes(payload))


@given(st.integers(0, 255), st.binary(max_size=200))
def test_garbage_parses_or_is_refused(kind: int, payload: bytes) -> None:
    parses_or_is_refused(kind, payload)


# Any msgpack value in any place: the types that a field does not expect.
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.binary(max_size=20)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("field", "lowest", "highest", "optional"),
    [
        (field_types.Ordinal, 0, (1 << 32) - 1, False),
        (field_types.Size, 0, (1 << 63) - 1, False),
        (field_types.Count, 0, (1 << 63) - 1, False),
        (field_types.GroupSet, 1, 7, False),
        (field_types.Width, 4, 32, False),
        (field_types.Level, 0, 24, False),
        (field_types.Mtime, FIRST_NS, END_NS - 1, True),
    ],
)
def test_numbers_end_where_the_protocol_says(field: Any, lowest: int, highest: int, optional: bool) -> None:
    codec = field  # that is all that is left of it when rdc runs
    for value in (lowest, highest):
        assert codec.unpack(value) == value
    for wrong in (lowest - 1, highest + 1, True, 1.0, b"1", *([] if optional else [None])):
        with pytest.raises(ValueError, match=r"expected|is not in"):
            codec.unpack(wrong)


@given(any_message, values, st.data())
def test_any_value_in_any_field_parses_or_is_refused(
    message: Message, value: object, data: st.DataObject
) -> None:
    fields, content = parted(message)
    assume(fields)
    where = data.draw(
        st.sampled_from(sorted(fields)) if isinstance(fields, dict) else st.integers(0, len(fields) - 1)
    )
    fields[where] = value
    try:
        decode(message.kind, joined(fields, content))
    except ProtocolError as error:
        assert type(message).__name__ in str(error)


@given(any_message)
def test_a_missing_or_extra_field_is_refused(message: Message) -> None:
    assume(not isinstance(message, (Open, Done)))  # they grow: test_versions_and_features.py
    fields, content = parted(message)
    if isinstance(fields, list):
        # Of no fields there is none to be missing.
        for wrong in (fields[:-1], [*fields, 0], fields[1:]) if fields else ([0],):
            with pytest.raises(ProtocolError, match="expected"):
                decode(message.kind, joined(wrong, content))


def test_hello_ignores_keys_it_does_not_know() -> None:
    hello = Hello(8, "rdc 1", b"p" * 32)
    fields = msgpack.unpackb(encode(hello)) | {"zstd": [1, 2], "later": {"x": None}}
    assert decode(Hello.kind, msgpack.packb(fields)) == hello
    with pytest.raises(ProtocolError, match=r"Hello\.params"):
        decode(Hello.kind, msgpack.packb({"v": 1, "s": "rdc"}))


def test_unknown_types_are_refused_by_number() -> None:
    with pytest.raises(ProtocolError, match="unknown type 200"):
        decode(200, b"\x90")


def test_text_is_printable_and_short_when_it_arrives() -> None:
    sent = Refused(ExitCode.STREAM, "\x1b[2J" + "\u00e9" * MESSAGE_BYTES + "\udcff")
    message = decode(Refused.kind, encode(sent))
    assert isinstance(message, Refused)
    assert message.message.startswith("\\x1b[2J\u00e9")
    assert message.message.isprintable()
    assert MESSAGE_BYTES - 4 < len(message.message.encode()) <= MESSAGE_BYTES
    raw = msgpack.packb([12, "line\nforged \x1b[0m"])
    assert decode(Refused.kind, raw) == Refused(ExitCode.STREAM, "line\\x0aforged \\x1b[0m")


@pytest.mark.parametrize(
    "message",
    [
        FileRequest(tuple(range(16_385))),
        FileRequest((2, 1)),
        FileRequest((1, 1)),
        Data(0, bytes(DATA_BYTES + 1)),
        FileBatch((0,), (2,), bytes(32), b"abc"),
        NodeAnswer(0, 0, tuple(range(20)), (bytes(65_536),) * 20),
    ],
)
def test_the_sender_is_told_what_it_broke(message: Message) -> None:
    with pytest.raises(ValueError):
        encode(message)


@pytest.mark.parametrize(
    "payload",
    [b"\x91" * FRAME_BYTES, b"\xdc\x00\x10" * 300_000, b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"],
)
@pytest.mark.parametrize("kind", [Hello, RootAnswer])
def test_hostile_msgpack_costs_little_memory(kind: type[Message], payload: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(ProtocolError):
        decode(kind.kind, payload[:FRAME_BYTES])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_the_densest_msgpack_is_bounded() -> None:
    # Sixteen one-item arrays an array: the most Python memory a byte of payload can buy.
    dense = (b"\xdc\x00\x10" + b"\x91\x90" * 16) * ((FRAME_BYTES - 8) // 35)
    while len(dense) > 16:
        try:
            tracemalloc.start()
            with pytest.raises(ProtocolError):
                decode(RootAnswer.kind, b"\xdc\x00\x10" + dense)
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()
        dense = dense[: len(dense) // 16]


@given(listings(max_size=30))
def test_slices_of_a_listing_are_the_listing(listing: Listing) -> None:
    assert list(slice_listing(listing)) == [listing]


def test_a_large_listing_is_cut_into_parts_that_fit() -> None:
    count = 30_000
    names = tuple(b"%05d" % row + b"n" * 200 for row in range(count))
    kinds = bytes(Kind.SYMLINK if row % 1000 == 0 else Kind.FILE for row in range(count))
    listing = Listing(
        names,
        kinds,
        array("H", [0o644]) * count,
        array("Q", [0]) * count,
        array("q", range(count)),
        array("I", [0]) * count,
        array("I", [0]) * count,
        tuple(b"%d" % row + b"t" * 16_000 for row in range(30)),
    )
    parts = list(slice_listing(listing))
    assert len(parts) > 10
    first = 0
    seen: list[bytes] = []
    targets: list[bytes] = []
    for part in parts:
        message = ListingPart(0, b"p" * PATH_BYTES, first, part is parts[-1], part)
        assert decode(ListingPart.kind, encode(message)) == message
        assert list(part.mtimes) == list(range(first, first + len(part)))
        first += len(part)
        seen += part.names
        targets += part.targets
    assert (tuple(seen), tuple(targets)) == (listing.names, listing.targets)


def test_ranges_and_gaps_agree() -> None:
    request = RangeRequest.of(3, array("Q", (5, 10, 15, 1, 100, 7)))
    assert request.gaps == (5, 0, 84)
    assert list(request.rows) == [5, 10, 15, 1, 100, 7]
    with pytest.raises(ValueError):
        encode(replace(request, gaps=()))
