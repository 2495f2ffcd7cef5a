"""Masking of x86 displacements: every variant against the definition, in real lengths."""

from __future__ import annotations

import random
from array import array

import pytest

from rdc.kernel import _kernel
from tests.reference import masking as pure
from tests.support.kernel.masked_code import (
    ENTRY,
    LONGER,
    MOSTLY_TELLING,
    absolute_bytes,
    bits_of,
    hidden,
    marks_of,
    taken_from,
)


@pytest.mark.parametrize("variant", ["c", *_kernel.usable()])
def test_every_variant_finds_the_same_in_real_lengths(variant: str) -> None:
    """Long enough for vectors, at every place of one."""
    rng = random.Random(11)
    parts = [ENTRY, LONGER, b"\xe8\0\0\xe8\0", b"\x8b\x05\0\0\0\0", bytes(20), LONGER[:19]]
    code = b"".join(
        rng.choice(parts) if rng.random() < 0.5 else rng.randbytes(rng.randrange(9)).translate(MOSTLY_TELLING)
        for _ in range(3_000)
    )
    before = _kernel.kernel_name()
    _kernel.choose(variant)
    try:
        for start in range(0, 130, 7):
            some = code[start : len(code) - 3 * start]
            bits = pure.displacement_bits(some)
            assert _kernel.displacement_bits(some) == bits
            marks = marks_of(bits, len(some))
            filler = bytearray(some)
            assert _kernel.mask_displacements(filler, 0x80) * 4 == sum(marks) > 1_000
            assert filler == hidden(some, marks, 0x80)
            filler[:] = some
            _kernel.overwrite_marked(filler, bits, 0x80)
            assert filler == hidden(some, marks, 0x80)
            assert sum(array("Q", _kernel.bit_counts(bits, 1_000))) == sum(marks)
            lengths = array("Q", [start, 1000 - start, len(some) - 1000])
            assert _kernel.displacement_bits(some, lengths) == pure.displacement_bits(some, lengths)
    finally:
        _kernel.choose(before)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("variant", ["c", *_kernel.usable()])
@pytest.mark.parametrize("lengths", [[4], [4] * 30 + [8], [4] * 9 + [1, 3, 5, 8, 12, 64, 70]])
def test_every_variant_takes_and_puts_the_same(variant: str, lengths: list[int]) -> None:
    """More fields than are listed at a time, at every place of a word, and other runs between them."""
    rng = random.Random(len(lengths))
    marks = bytearray()
    while len(marks) < 12_000:
        marks += bytes(rng.choice([1, 1, 2, 5, 40, 64, 150])) + b"\x01" * rng.choice(lengths)
    code = rng.randbytes(len(marks))
    before = _kernel.kernel_name()
    _kernel.choose(variant)
    try:
        for start, size in (*((start, 1 << 20) for start in range(66)), (0, 8192), (5, 64), (0, 8)):
            some, selected = code[start:], bytes(marks[start:])
            where = array("Q", range(start, len(code), size))
            taken, counts = taken_from(_kernel, some, selected, size, where)
            parts = [
                absolute_bytes(some[at : at + size], selected[at : at + size], start + at)
                for at in range(0, len(some), size)
            ]
            assert taken == b"".join(parts)
            assert counts == [len(part) for part in parts]
            content = bytearray(hidden(some, selected, 0x7F))
            assert _kernel.put_displacements(content, start, bits_of(selected), taken, size, where) == sum(
                selected
            )
            assert content == some
            part = slice(1_001, 1_001 + 40 * start)
            content[part] = hidden(some[part], selected[part], 0x7F)
            put = content[part]
            _kernel.put_displacements(put, start + 1_001, bits_of(selected), taken, size, where)
            assert put == some[part]
    finally:
        _kernel.choose(before)
