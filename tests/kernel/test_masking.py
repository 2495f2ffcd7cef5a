"""Machine code without its targets: the definition beside one written out, C beside the definition."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel import _kernel
from rdc.session.binaries import LOOK_AHEAD, LOOK_BACK
from tests.reference import masking as pure
from tests.reference.branches import NAMES_DATA
from tests.support.kernel.masked_code import (
    ENTRY,
    LONGER,
    absolute_bytes,
    bits_of,
    codes,
    fields_in,
    hidden,
    number,
    taken_from,
)

every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])

offsets = st.integers(0, (1 << 64) - 1)


def shown(marks: bytes) -> str:
    return "".join("x" if byte else "." for byte in marks)


@every_kernel
@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("e8 ffffff03", ".xxxx"),
        ("e8 00000004", "....."),
        ("e8 000000fc", ".xxxx"),
        ("e8 fffffffb", "....."),
        ("e8 000000", "...."),
        ("e9 00000000", ".xxxx"),
        ("0f 84 00000000", "......"),
        ("48 8b 05 00000000", "...xxxx"),
        ("48 8b 05 000000", "......"),
        ("48 8b 45 00000000", "......."),
        ("48 8a 05 00000000", "......."),
        ("89 e8 00000000", "..xxxx"),
        # One that begins in another's field is none, even if that is none for the same reason.
        ("e8 00e80000 000000 00", ".xxxx...."),
        ("e8 0000e800 e800000000 00", ".xxxx......"),
        ("e8 0000e800 000000 e8 00000000", ".xxxx....xxxx"),
        # What seems to be one but for its highest byte keeps nothing from being one.
        ("e8 00e80005 000000", "...xxxx."),
        ("8b 3d e8 00000000 00", "..xxxx.."),
        ("8b 3d e8 000004 00 00", "...xxxx."),
        (ENTRY.hex(), "....xxxxxxxx........"),
        (LONGER.hex(), "....xxxxxxxx.....xxxx.."),
        (LONGER[:20].hex(), "." * 20),
        (ENTRY[:17].hex(), "....xxxxxxxx....."),
        (ENTRY[:16].hex(), "." * 16),
        # Of 12 bytes, 4,096 or 18; what is shared, or the function, is too far, odd, too long or nowhere.
        ("0c000000 1c000000 00f0ffff 10000000 00", "." * 17),
        ("00100000 1c000000 00f0ffff 10000000 00", "." * 17),
        ("12000000 1c000000 00f0ffff 10000000 00", "." * 17),
        ("1c000000 00000001 00f0ffff 10000000 00", "." * 17),
        ("1c000000 00000000 00f0ffff 10000000 00", "." * 17),
        ("1c000000 1e000000 00f0ffff 10000000 00", "." * 17),
        ("1c000000 1c000000 00f0fffb 10000000 00", "." * 17),
        ("1c000000 1c000000 00f0ffff 00001000 00", "." * 17),
        ("1c000000 1c000000 00f0ffff 00000000 00", "." * 17),
        ("1c000000 1c000000 00f0ffff 10000000 01", "." * 17),
        ("1c000000 1c000000 00f0ffff 10000000 04 00000004", "." * 21),
        # Calls in an entry are none, and an entry in a call is none.
        ("1c000000 e8000000 e9e9ffff e8000000 00 00000000", "....xxxxxxxx........."),
        ("1c000000 e8000000 00000000 e8000000 00", "....xxxxxxxx....."),
        ("e8 e8000000 1c000000 00f0ffff 10000000 00", ".xxxx............."),
        ("e8 000000 1c000000 1c000000 00f0ffff 10000000 00", "........xxxxxxxx....."),
    ],
)
def test_what_counts_as_a_field(module: Any, code: str, fields: str) -> None:
    content = bytes.fromhex(code)
    assert shown(fields_in(module, content)) == fields
    filler = bytearray(content)
    assert module.mask_displacements(filler, 0x80) == fields.count("x") // 4
    assert filler == hidden(content, bytes(mark == "x" for mark in fields), 0x80)


def is_near(code: bytes, at: int) -> bool:
    """Four bytes there are a distance of at most 64 MiB, forwards or back."""
    return at + 4 <= len(code) and (number(code, at) + (1 << 26)) % (1 << 32) < 1 << 27


def seeming_at(code: bytes, at: int) -> tuple[list[int], int] | None:
    """Where the fields of what begins there are, and where it ends; None where nothing seems to begin."""
    length, shared, function = (number(code, at + more) for more in (0, 4, 12))
    if (
        (16 <= length < 4096 and length % 4 == 0)
        and (0 < shared < 1 << 24 and shared % 4 == 0)
        and (is_near(code, at + 8) and 0 < function < 1 << 20)
    ):
        if code[at + 16 : at + 17] == b"\x00":
            return [at + 4, at + 8], at + 17
        if code[at + 16 : at + 17] == b"\x04" and is_near(code, at + 17):
            return [at + 4, at + 8, at + 17], at + 21
    if code[at] in (0xE8, 0xE9) and is_near(code, at + 1):
        return [at + 1], at + 5
    if code[at] in NAMES_DATA and is_near(code, at + 2) and code[at + 1] & ~0x38 == 5:
        return [at + 2], at + 6
    return None


def fields_of(code: bytes) -> list[int]:
    """Those of everything that begins outside of whatever began before it."""
    found = {at: seeming for at in range(len(code)) if (seeming := seeming_at(code, at)) is not None}
    return [
        field
        for at, (fields, _) in found.items()
        if not any(before < at < end for before, (_, end) in found.items())
        for field in fields
    ]


@given(codes)
def test_fields_are_those_of_what_begins_in_no_other(code: bytes) -> None:
    mask = bytearray(len(code))
    for field in fields_of(code):
        mask[field : field + 4] = b"\xff" * 4
    assert shown(fields_in(pure, code)) == shown(bytes(mask))


@given(codes, st.integers(0, 255))
def test_both_find_the_same(code: bytes, filler: int) -> None:
    marks = fields_in(pure, code)
    assert fields_in(_kernel, code) == marks
    slow, fast = bytearray(code), bytearray(code)
    assert pure.mask_displacements(slow, filler) == _kernel.mask_displacements(memoryview(fast), filler)
    assert slow == fast == hidden(code, marks, filler)


@given(st.lists(codes, max_size=5), st.integers(0, 255))
def test_parts_are_looked_at_by_themselves(parts: list[bytes], filler: int) -> None:
    code, lengths = b"".join(parts), array("Q", map(len, parts))
    marks = b"".join([fields_in(pure, part) for part in parts])
    assert fields_in(_kernel, code, lengths) == fields_in(pure, code, lengths) == marks
    slow, fast = bytearray(code), bytearray(code)
    assert pure.mask_displacements(slow, filler, lengths) == _kernel.mask_displacements(fast, filler, lengths)
    assert slow == fast == hidden(code, marks, filler)


@given(codes, st.data())
def test_what_is_further_away_does_not_matter(code: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(code)))
    stop = data.draw(st.integers(start, len(code)))
    first = max(0, start - LOOK_BACK)
    part = fields_in(_kernel, code[first : stop + LOOK_AHEAD])[start - first : stop - first]
    assert shown(part) == shown(fields_in(_kernel, code)[start:stop])


def masks_of(code: bytes, data: st.DataObject) -> tuple[bytes, ...]:
    """Whatever the mask: not all of it is fields."""
    marks = data.draw(st.lists(st.sampled_from([0, 0, 1]), min_size=len(code), max_size=len(code)))
    return bytes(marks), fields_in(_kernel, code), b"\x01" * len(code)


@given(codes, st.data())
def test_displacements_are_taken_part_by_part(code: bytes, data: st.DataObject) -> None:
    size = 8 * data.draw(st.integers(1, len(code) // 8 + 1))
    starts = range(0, len(code), size)
    where = array("Q", data.draw(st.lists(offsets, min_size=len(starts), max_size=len(starts))))
    for marks in masks_of(code, data):
        expected = [
            absolute_bytes(code[at : at + size], marks[at : at + size], where[row])
            for row, at in enumerate(starts)
        ]
        for module in (pure, _kernel):
            taken, counts = taken_from(module, code, marks, size, where)
            assert taken == b"".join(expected)
            assert counts == [len(one) for one in expected]


@given(codes, st.integers(0, 255), st.data())
def test_whatever_the_bits_select_is_hidden(code: bytes, filler: int, data: st.DataObject) -> None:
    """Bits of no byte, behind those of the last one, select nothing."""
    behind = data.draw(st.integers(0, 0xFF)) & -(1 << (len(code) - 1) % 8 + 1) if code else 0
    for marks in masks_of(code, data):
        bits = bytearray(bits_of(marks))
        if bits:
            bits[-1] |= behind & 0xFF
        for module in (pure, _kernel):
            content = bytearray(code)
            module.overwrite_marked(content, bits, filler)
            assert content == hidden(code, marks, filler)
            content[:] = code
            taken, _ = module.take_displacements(
                content, bits, 8 * len(code) + 8, array("Q", [0] if code else []), filler
            )
            assert len(taken) == sum(marks)
            assert content == hidden(code, marks, filler)


@given(codes, st.data())
def test_displacements_go_back_where_they_were(code: bytes, data: st.DataObject) -> None:
    """Whatever part of the file they are put into, and however far from each other its pieces are."""
    size = 8 * data.draw(st.integers(1, len(code) // 8 + 1))
    lengths = [min(size, len(code) - at) for at in range(0, len(code), size)]
    where, end = array("Q"), data.draw(st.integers(0, (1 << 62) + 9))
    for length in lengths:
        where.append(end + data.draw(st.sampled_from([0, 0, 1, 30])))
        end = where[-1] + length
    first = where[0] if where else end
    start = max(0, first + data.draw(st.integers(-20, end - first + 20)))
    length = data.draw(st.integers(0, end - first + 40))
    for mask in masks_of(code, data):
        taken, _ = taken_from(pure, code, mask, size, where)
        belong = {
            offset + i - start: code[row * size + i]
            for row, offset in enumerate(where)
            for i in range(lengths[row])
            if mask[row * size + i] and 0 <= offset + i - start < length
        }
        for module in (pure, _kernel):
            content = bytearray(b"\x55" * length)
            put = module.put_displacements(content, start, bits_of(mask), taken, size, where)
            assert content == bytes(belong.get(position, 0x55) for position in range(length))
            assert put == len(belong)


@given(st.binary(max_size=60))
def test_bits_are_counted_part_by_part(bits: bytes) -> None:
    for module in (pure, _kernel):
        for size in (1, 7, 8, 20, 99):
            assert list(array("Q", module.bit_counts(bits, size))) == [
                sum(byte.bit_count() for byte in bits[at : at + size]) for at in range(0, len(bits), size)
            ]


@every_kernel
def test_distances_become_absolute_offsets(module: Any) -> None:
    """Two calls of the function at 0x100: the same four bytes. What is cut off stays as it is."""
    code = bytes.fromhex("90 e8 fa000000 55 e8 f4000000 c3")
    marks = fields_in(module, code)

    def taken(start: int, size: int, *offsets: int) -> bytes:
        return taken_from(module, code[start:], marks[start:], size, array("Q", offsets))[0]

    assert taken(0, 96, 0) == bytes.fromhex("00010000 00010000")
    assert taken(0, 96, 0xFFFF_FFF0) == bytes.fromhex("f0000000 f0000000")
    assert taken(3, 96, 0) == bytes.fromhex("000000 fd000000")
    assert taken(0, 8, 0, 0x1000) == bytes.fromhex("00010000 f8100000")
    assert taken(1, 8, 0x1001, 0) == bytes.fromhex("00110000 f4 000000")


@every_kernel
def test_what_does_not_fit_is_refused(module: Any) -> None:
    refusals: list[Callable[[], object]] = [
        lambda: module.take_displacements(bytearray(3), b"\x01\0", 8, bytes(8), 1),
        lambda: module.take_displacements(bytearray(3), b"", 8, bytes(8), 1),
        lambda: module.take_displacements(bytearray(3), b"\x01", 3, bytes(8), 1),
        lambda: module.take_displacements(bytearray(9), b"\x01\0", 8, bytes(8), 1),
        lambda: module.take_displacements(bytearray(3), b"\x01", 8, bytes(7), 1),
        lambda: module.take_displacements(bytearray(3), b"\x01", 8, bytes(16), 1),
        lambda: module.take_displacements(bytearray(3), b"\x01", 0, bytes(8), 1),
        lambda: module.take_displacements(bytearray(3), b"\x01", -8, bytes(8), 1),
        lambda: module.take_displacements(bytearray(3), b"\x01", 8, bytes(8), 256),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05", b"abc", 8, bytes(8)),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05", b"a", 8, bytes(8)),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05\0", b"ab", 8, bytes(8)),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05", b"ab", 8, bytes(16)),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05", b"ab", 8, bytes(7)),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05", b"ab", 4, bytes(8)),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05", b"ab", 0, bytes(8)),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05", b"ab", -8, bytes(8)),
        lambda: module.put_displacements(bytearray(9), -1, b"\x05", b"ab", 8, bytes(8)),
        lambda: module.put_displacements(bytearray(9), (1 << 63) - 9, b"\x05", b"ab", 8, bytes(8)),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05", b"ab", 8, array("Q", [(1 << 63) - 8])),
        lambda: module.put_displacements(bytearray(9), 0, b"\x05", b"ab", 8, b"\xff" * 8),
        lambda: module.bit_counts(b"a", 0),
        lambda: module.bit_counts(b"", -1),
        lambda: module.overwrite_marked(bytearray(2), b"\0\0", 1),
        lambda: module.overwrite_marked(bytearray(9), b"\0", 1),
        lambda: module.overwrite_marked(bytearray(2), b"\0", 256),
        lambda: module.overwrite_marked(bytearray(2), b"\0", -1),
        lambda: module.mask_displacements(bytearray(3), 256),
        lambda: module.mask_displacements(bytearray(3), -1),
        *[
            partial(take, lengths)
            for take in (
                partial(module.displacement_bits, b"abc"),
                partial(module.mask_displacements, bytearray(3), 1),
            )
            for lengths in (
                b"",
                bytes(7),
                bytes(8),
                *(array("Q", rows) for rows in ((2,), (4,), (1, 3), (4, (1 << 64) - 1))),
            )
        ],
    ]
    for refused in refusals:
        with pytest.raises(ValueError, match="masking"):
            refused()
    code = b"\xe8\0\0\0\0"
    with pytest.raises((TypeError, BufferError)):
        module.mask_displacements(code, 1)
    with pytest.raises((TypeError, BufferError)):
        module.put_displacements(b"abcdefgh", 0, b"\x05", b"ab", 8, bytes(8))
    for refused in (
        lambda: module.overwrite_marked(code, b"\0", 1),
        lambda: module.take_displacements(code, b"\0", 8, bytes(8), 1),
    ):
        with pytest.raises((TypeError, BufferError)):
            refused()
    assert module.take_displacements(bytearray(), b"", 8, b"", 1) == (b"", b"")
    assert module.put_displacements(bytearray(), 0, b"", b"", 8, b"") == 0
    assert module.bit_counts(b"", 1) == b""
    assert (
        module.displacement_bits(b"")
        == module.displacement_bits(b"", b"")
        == module.displacement_bits(b"", bytes(16))
        == b""
    )
