"""Masking of x86 displacements: parts are masked as the whole is, and corrections restore the file."""

from __future__ import annotations

from array import array
from itertools import chain
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc import kernel
from rdc.kernel import assemble_with_bits, block_fingerprints, displacement_bits, overwrite_marked, plan_reads
from rdc.limits import RANGES_PER_MESSAGE
from rdc.plan import check_blocks as cells_module
from rdc.plan.check_blocks import divided_wholly
from rdc.plan.descent import Fetch, Patch, Repeat
from rdc.plan.search import BlockSearch
from rdc.protocol.messages import BlockRequest, RangeRequest, Targets
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, Claims
from rdc.session.binaries import (
    CHECK_FILLER,
    LOOK_AHEAD,
    LOOK_BACK,
    SEARCH_FILLER,
    mask,
    mask_ranges,
    mask_ranges_into,
    masked_reader,
)
from rdc.session.source import range_answers as range_answers_module
from rdc.session.source.range_answers import cached_fingerprints, corrections, read_fingerprints
from rdc.session.transfer.range_requests import Corrections
from tests.support.kernel.masked_code import bits_of, codes, fields_in, held, hidden
from tests.support.kernel.range_rows import pairs_of, rows_of
from tests.support.running.programs import functions, linked

SECRET = b"sixteen bytes of"

PROGRAM = list(enumerate(functions(1, 3_000)))
MORE = [(number + len(PROGRAM), function) for number, function in enumerate(functions(2, 40))]
OLD = linked(PROGRAM)
NEW = linked(PROGRAM[:300] + MORE[:20] + PROGRAM[300:1500] + PROGRAM[1510:] + MORE[20:])
"""Some functions are new, some are gone: most others call and read at other distances."""


def seen(code: bytes, rows: array[int]) -> tuple[bytes, bytes]:
    """Ranges of the code and a bit for each byte, as both sides of a claim come to see them."""
    instructions = array("Q", [number for at, length in pairs_of(rows) for number in (0, at, length)])
    sizes = array("Q", (len(code),))
    _, reads, sources = plan_reads(instructions, 0, LOOK_BACK, LOOK_AHEAD, sizes)
    wider = array("Q", reads)
    del wider[0::3]
    content = held(code).read_ranges(wider)
    images, bits = assemble_with_bits(sources, content, displacement_bits(content, wider[1::2]))
    return bytes(images), bits


@given(codes, st.data())
def test_a_part_is_masked_as_the_whole_is(code: bytes, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(code)))
    length = data.draw(st.integers(0, len(code) - offset))
    whole = bytearray(code)
    mask(whole)
    read = masked_reader(held(code))
    for start in (0, offset, 0):
        assert read(start, length) == whole[start : start + length]
    bits = bits_of(fields_in(kernel, code)[offset : offset + length])
    part = bytearray(code[offset : offset + length])
    assert seen(code, array("Q", (offset, length))) == (bytes(part), bits)
    overwrite_marked(part, bits, SEARCH_FILLER)
    assert part == whole[offset : offset + length]


@given(codes, st.lists(st.integers(0, 40), max_size=5))
def test_many_parts_are_masked_as_the_whole_is(code: bytes, lengths: list[int]) -> None:
    rows, at = array("Q"), 0
    for length in lengths:
        start = min(len(code), at + length // 3)
        at = min(len(code), start + length)
        rows.extend((start, at - start))
    whole, marks = bytearray(code), fields_in(kernel, code)
    mask(whole)
    ranges = [slice(start, start + length) for start, length in zip(rows[0::2], rows[1::2], strict=True)]
    marked = b"".join(marks[part] for part in ranges)
    assert seen(code, rows) == (b"".join(code[part] for part in ranges), bits_of(marked))
    memory = memoryview(bytearray(1_000))
    places = mask_ranges_into(memory, held(code), rows)
    assert [memory[at : at + length] for at, length in zip(places, rows[1::2], strict=True)] == [
        whole[part] for part in ranges
    ]
    assert mask_ranges(held(code), rows) == b"".join(whole[part] for part in ranges)
    backwards = array("Q", [number for at, length in reversed(pairs_of(rows)) for number in (at, length)])
    expected = b"".join(whole[part] for part in reversed(ranges))
    assert mask_ranges(held(code), backwards) == expected


@pytest.mark.parametrize(("most", "at_once"), [(1 << 19, 2_048), (1_024, 2_048), (128, 2), (64, 1)])
def test_fingerprints_are_of_the_masked_file(
    most: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are so if the content is at hand or read, wherever a range begins, and however many are read."""
    monkeypatch.setattr(range_answers_module, "DATA_BYTES", most)
    monkeypatch.setattr(range_answers_module, "RANGES_AT_ONCE", at_once)
    parts = ((3, 900), (1_000, 64), (5_000, 200_000), (OLD.find(b"\xe8", 300_000) + 3, 100))
    ranges = sorted(parts)
    whole = bytearray(OLD)
    mask(whole)
    sought = b"".join(whole[at : at + length] for at, length in ranges)
    expected = block_fingerprints(SECRET, sought, 64, 4, array("Q", [length for _, length in ranges]))
    rows = array("Q", chain.from_iterable(ranges))
    request = BlockRequest.of(1, rows, 64, 4, blank=True)
    assert cached_fingerprints(OLD, request, SECRET) == expected
    assert read_fingerprints(held(OLD), request, SECRET) == expected
    assert read_fingerprints(held(OLD), BlockRequest.of(1, rows, 64, 4), SECRET) != expected


@settings(deadline=None)
@given(st.integers(0, 3 * CHECK_BLOCK_BYTES), st.integers(1, 2 * CHECK_BLOCK_BYTES), st.integers(0, 3))
def test_what_is_told_makes_the_file(offset: int, length: int, wrong: int) -> None:
    """Of a version with other targets, a range that is missing, and a cell that is wrong."""
    true = NEW[: 5 * CHECK_BLOCK_BYTES - 9]
    marks = bytearray(fields_in(kernel, true))
    length = min(length, len(true) - offset)
    ranges = [(offset, length)]
    old = bytearray(byte ^ 3 if mark else byte for mark, byte in zip(marks, true, strict=True))
    old[offset : offset + length] = bytes(length)
    marks[offset : offset + length] = bytes(length)
    wrong_at = wrong * CHECK_BLOCK_BYTES + 77
    told = bytearray(hidden(old, marks, CHECK_FILLER))
    inside = offset <= wrong_at < offset + length
    if not inside:
        told[wrong_at] ^= 1
        old[wrong_at] ^= 1
    cells = range(5)
    parts = [slice(cell * CHECK_BLOCK_BYTES, (cell + 1) * CHECK_BLOCK_BYTES) for cell in cells]
    images = [bytes(told[part]) for part in parts]
    digests = cells_module.check_block_digests(SECRET, b"".join(images))
    request = RangeRequest.of(1, rows_of(ranges), claims=Claims(tuple(cells), digests), blank=True)
    taken = Corrections(
        len(true),
        iter(
            [
                ((0, 1), bits_of(marks[: 2 * CHECK_BLOCK_BYTES])),
                ((2, 3, 4), bits_of(marks[2 * CHECK_BLOCK_BYTES :])),
            ]
        ),
    )
    taken.ask(request)
    corrected: list[int] = []
    for answer in corrections(held(true), request, SECRET):
        if isinstance(answer, Targets):
            taken.take_displacements(answer)
        else:
            corrected += answer.cells
            taken.take(answer)
    assert corrected == ([] if inside else [wrong])
    taken.mark_corrected()
    for start in range(0, len(true), 3_000):
        content, _ = taken.amend(start, bytes(old[start : start + 3_000]))
        for at, (found, wanted) in enumerate(zip(content, true[start : start + 3_000], strict=True), start):
            assert found == wanted or offset <= at < offset + length
    taken.end(len(true))
    assert taken.amend(0, b"as it is") == (b"as it is", 0)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 3 * CHECK_BLOCK_BYTES), st.integers(1, 2 * CHECK_BLOCK_BYTES)), max_size=12
    ),
    st.sets(st.integers(0, 60)),
)
def test_every_range_and_every_cell_is_in_a_request(drawn: list[tuple[int, int]], chosen: set[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "CHECK_BLOCKS_PER_MESSAGE", 5)
        patch.setattr(cells_module, "RANGES_PER_MESSAGE", CHECK_BLOCK_BYTES // 2 + 1)
        ranges, at = [], 0
        for gap, length in drawn:
            ranges.append((at + gap, length))
            at += gap + length
        cells = sorted(chosen)
        requests = [(pairs_of(some), cells[rows]) for some, rows in divided_wholly(rows_of(ranges), cells)]
    assert [cell for _, some in requests for cell in some] == cells
    asked = [at for some, _ in requests for offset, length in some for at in (offset, offset + length)]
    assert asked == sorted(asked)
    bytes_of = [(offset, offset + length) for some, _ in requests for offset, length in some]
    assert sum(stop - start for start, stop in bytes_of) == sum(length for _, length in ranges)
    for number, (some, here) in enumerate(requests):
        assert some or here
        assert len(here) <= 5
        others = [one for row, (more, _) in enumerate(requests) if row != number for one in more]
        for offset, length in others:
            touched = range(offset // CHECK_BLOCK_BYTES, (offset + length - 1) // CHECK_BLOCK_BYTES + 1)
            assert set(touched).isdisjoint(here)


def test_many_short_ranges_are_in_several_requests() -> None:
    """More than a request may have, in fewer cells than it may have."""
    ranges = [(at, 1) for at in range(0, 40_000 * 3, 3)]
    cells = list(range(16))
    requests = [(pairs_of(some), cells[rows]) for some, rows in divided_wholly(rows_of(ranges), cells)]
    assert [one for some, _ in requests for one in some] == ranges
    assert [cell for _, some in requests for cell in some] == cells
    assert all(len(some) <= RANGES_PER_MESSAGE for some, _ in requests)
    assert len(requests) == 3


def test_chunks_that_repeat_are_fetched() -> None:
    """What came of their targets would be told for the first of them alone."""
    search = BlockSearch((), ())
    once = Fetch(b"r", 100, 1)
    parts = (once, Fetch(b"r", 100, 3), Repeat((once,), 100, 2))
    search._parts = parts
    copies = array("Q", (0, 0, 500, 800))

    class Found:
        base = 0
        matches = array("Q", (0, 500, 800))
        large_gaps = ()

    search._gaps = cast(Any, [Found()])
    assert len(copies) == 4
    found = search.parts(single=True)
    assert isinstance(found[0], Patch)
    assert found[1:] == parts[1:]
    assert isinstance(search.parts()[1], Patch)
