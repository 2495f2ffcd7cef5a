"""Targets in machine code: C rewrites what the definition in Python does, and back, whatever the bytes."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import kernel as pure
from tests.reference.branches import NAMES_DATA, NO_CALL_BEHIND, REACH

every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])


def ranges_of(*code_parts: tuple[int, int]) -> array[int]:
    return array("Q", [number for part in code_parts for number in part])


def absolute(module: Any, code: bytes, offset: int = 0) -> tuple[int, bytes]:
    content = bytearray(code)
    moved = module.absolute_displacements(content, ranges_of((offset, len(code))))
    return moved, bytes(content)


@every_kernel
def test_calls_and_data_are_named_by_their_offset(module: Any) -> None:
    """Two calls of the function at 0x100, a mov and an SSE instruction that read the number at 0x2000."""
    code = bytes.fromhex("90 e8 fa000000 55 e8 f4000000 48 8b 05 ed1f0000 f2 0f 10 0d e51f0000 c3")
    named = bytes.fromhex("90 e8 00010000 55 e8 00010000 48 8b 05 00200000 f2 0f 10 0d 00200000 c3")
    assert absolute(module, code) == (4, named)
    assert absolute(module, code, 0x40) == (
        4,
        bytes.fromhex("90 e8 40010000 55 e8 40010000 48 8b 05 40200000 f2 0f 10 0d 40200000 c3"),
    )


@every_kernel
@pytest.mark.parametrize(
    ("code", "moved"),
    [
        ("e8 ffffff03", 1),
        ("e8 00000004", 0),
        ("e8 000000fc", 1),
        ("e8 fffffffb", 0),
        ("e8 000000", 0),
        ("8b 05 000000", 0),
        ("8b 05 00000000", 1),
        ("8b 38 00000000 3d", 0),
        ("8b 45 00000000", 0),
        ("8a 05 00000000", 0),
        ("e9 00000000", 0),
        ("89 e8 00000000", 0),
        ("8b e8 00000000", 1),
        # Behind a field that is left alone as behind one that is not.
        ("e8 00000040 e8 00000000", 1),
        ("e8 00e80040 000000 00", 0),
    ],
)
def test_what_counts_as_a_displacement(module: Any, code: str, moved: int) -> None:
    found, content = absolute(module, bytes.fromhex(code), 0x1000)
    assert found == moved
    assert (content != bytes.fromhex(code)) == bool(moved)


@every_kernel
def test_sums_stay_within_reach(module: Any) -> None:
    """At any offset, those past four gigabytes included."""
    for offset in (0, REACH - 5, 2 * REACH - 6, (1 << 32) - 7, (1 << 63) - 5):
        for value in (-REACH, -1, 0, REACH - 1):
            code = b"\xe8" + value.to_bytes(4, "little", signed=True)
            moved, content = absolute(module, code, offset)
            assert moved == 1
            sum_ = int.from_bytes(content[1:], "little", signed=True)
            assert -REACH <= sum_ < REACH
            assert (sum_ - value - offset - 5) % (2 * REACH) == 0


@every_kernel
def test_parts_that_do_not_add_up_are_refused(module: Any) -> None:
    for wrong in (
        ranges_of((0, 9)),
        ranges_of((0, 11)),
        ranges_of((0, 5), (9, 4)),
        ranges_of((0, 11), (9, (1 << 64) - 1)),
        ranges_of((0, 5), (9, 5))[:3],
        ranges_of(),
        b"x",
    ):
        for direction in (module.absolute_displacements, module.relative_displacements):
            with pytest.raises(ValueError, match="displacements"):
                direction(bytearray(10), wrong)
    assert module.absolute_displacements(bytearray(), ranges_of()) == 0
    with pytest.raises((TypeError, BufferError)):
        module.absolute_displacements(b"\xe8\0\0\0\0", ranges_of((0, 5)))


TELLING = b"\xe8\xe8\x05\x0d\0\xff\x03\xfc\x04" + NAMES_DATA + NO_CALL_BEHIND
MOSTLY_TELLING = bytes(byte if byte < 99 else TELLING[byte % len(TELLING)] for byte in range(256))
code_bytes = st.binary(max_size=99).map(lambda drawn: drawn.translate(MOSTLY_TELLING))
code_parts = st.lists(st.tuples(code_bytes, st.integers(0, (1 << 63) - 1)), max_size=5)


@given(code_parts)
def test_both_agree_and_undo_what_they_did(drawn: list[tuple[bytes, int]]) -> None:
    """Not only code: fields within fields, at the ends of pieces, everywhere."""
    plain = b"".join(part for part, _ in drawn)
    where = ranges_of(*((offset, len(part)) for part, offset in drawn))
    slow, fast = bytearray(plain), bytearray(plain)
    moved = pure.absolute_displacements(slow, where)
    assert _kernel.absolute_displacements(fast, where) == moved
    assert slow == fast
    assert pure.relative_displacements(slow, where) == moved
    assert _kernel.relative_displacements(memoryview(fast), where) == moved
    assert slow == fast == plain


@given(code_parts)
def test_the_other_order_undoes_too(drawn: list[tuple[bytes, int]]) -> None:
    """Each direction takes any bytes to any bytes: nothing a peer sends stands for two contents."""
    plain = b"".join(part for part, _ in drawn)
    where = ranges_of(*((offset, len(part)) for part, offset in drawn))
    content = bytearray(plain)
    _kernel.relative_displacements(content, where)
    _kernel.absolute_displacements(content, where)
    assert content == plain


@pytest.mark.parametrize("size", range(5, 30))
def test_a_field_anywhere_in_a_part_of_any_length(size: int) -> None:
    """Among bytes that tell nothing, where C looks at eight at a time."""
    for at in range(size - 4):
        for before in (b"\xe8", b"\x8b\x05"):
            code = (b"\x11" * at + before + b"\x05\0\0\0").ljust(size, b"\x12")[:size]
            found = absolute(_kernel, code, 77)
            assert found == absolute(pure, code, 77)
            assert found[0] == (at + len(before) + 4 <= size)


def test_a_megabyte_of_noise_and_of_calls() -> None:
    rng = random.Random(1)
    calls = b"".join(
        b"\x48\x89\xdf\xe8" + rng.randrange(1 << 20).to_bytes(4, "little") for _ in range(1 << 17)
    )
    for plain in (rng.randbytes(1 << 20), calls):
        where = ranges_of(*((at * 3, 1024) for at in range(0, 1 << 20, 1024)))
        content = bytearray(plain)
        moved = _kernel.absolute_displacements(content, where)
        assert moved == pure.absolute_displacements(bytearray(plain), where)
        assert _kernel.relative_displacements(content, where) == moved
        assert content == plain
