"""Machine code for the masking of displacements, and plain definitions of that."""

from __future__ import annotations

from array import array
from itertools import groupby
from typing import Any, cast

from hypothesis import strategies as st

from rdc.files.root.source_file import SourceFile
from tests.reference.branches import NAMES_DATA

ENTRY = bytes.fromhex("1c000000 1c000000 00f0ffff 10000000 00 410e10")
LONGER = bytes.fromhex("24000000 40010000 04f0ffff 17000100 04 10200000 410e")
TELLING = b"\xe8\xe8\xe9\x05\x0d\x3d\0\0\0\xff\x03\xfc\x04\xfb" + NAMES_DATA
MOSTLY_TELLING = bytes(byte if byte < 40 else TELLING[byte % len(TELLING)] for byte in range(256))
codes = st.lists(
    st.binary(max_size=40).map(lambda drawn: drawn.translate(MOSTLY_TELLING))
    | st.sampled_from([ENTRY, LONGER, ENTRY[:13], ENTRY[3:], LONGER[:19], LONGER[9:]]),
    max_size=5,
).map(b"".join)


def marks_of(bits: bytes, size: int) -> bytes:
    """01 for each of `size` bytes whose bit is set; those behind them are not."""
    marks = bytes(bits[position // 8] >> position % 8 & 1 for position in range(8 * len(bits)))
    assert len(bits) == (size + 7) // 8
    assert not any(marks[size:])
    return marks[:size]


def bits_of(marks: bytes | bytearray) -> bytes:
    number = sum(1 << position for position, mark in enumerate(marks) if mark)
    return number.to_bytes((len(marks) + 7) // 8, "little")


def fields_in(module: Any, code: bytes, *lengths: array[int]) -> bytes:
    return marks_of(module.displacement_bits(code, *lengths), len(code))


def hidden(code: bytes | bytearray, marks: bytes | bytearray, filler: int) -> bytes:
    return bytes(filler if mark else byte for mark, byte in zip(marks, code, strict=True))


def number(code: bytes, at: int) -> int:
    return int.from_bytes(code[at : at + 4], "little")


def absolute_bytes(code: bytes, mask: bytes, offset: int) -> bytes:
    """Return what take_displacements() should make of one piece, computed run by run."""
    parts, at = [], 0
    for marked, marks in groupby(mask, bool):
        start, at = at, at + len(list(marks))
        part = code[start:at]
        if marked and len(part) == 4:
            part = ((number(part, 0) + offset + at) % (1 << 32)).to_bytes(4, "little")
        elif marked and len(part) == 8:
            back, there = offset + start - number(part, 0), number(part, 4) + offset + at
            part = b"".join((value % (1 << 32)).to_bytes(4, "little") for value in (back, there))
        if marked:
            parts.append(part)
    return b"".join(parts)


def taken_from(
    module: Any, code: bytes, marks: bytes, size: int, where: array[int]
) -> tuple[bytes, list[int]]:
    """Take the marked displacements out, and check that blanks are in their places."""
    content = bytearray(code)
    taken, counts = module.take_displacements(content, bits_of(marks), size, where, 0x7F)
    assert content == hidden(code, marks, 0x7F)
    return taken, list(array("Q", counts))


class Held:
    """The part of a SourceFile that a look at its bytes needs."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = len(content)

    def pread(self, offset: int, length: int) -> bytes:
        assert 0 <= offset <= offset + length <= self.size
        return self.content[offset : offset + length]

    peek = pread

    def read_into(self, buffer: memoryview, offset: int) -> None:
        buffer[:] = self.pread(offset, len(buffer))

    def read_ranges(self, rows: array[int]) -> bytes:
        return b"".join(map(self.pread, rows[0::2], rows[1::2]))

    def read_ranges_into(self, buffer: memoryview, rows: array[int]) -> None:
        buffer[:] = self.read_ranges(rows)

    def check_unchanged(self) -> None:
        pass


def held(content: bytes) -> SourceFile:
    return cast(SourceFile, Held(content))
