"""Rows of pieces: the C form against plain Python, and that against what can be said of every byte."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import LITERAL, _kernel
from tests.reference import recipe as pure_recipe

VARIANTS = [_kernel, pure_recipe]
UNPLACED = LITERAL
END = (1 << 63) - 1

# Around everything that is compared, and around all that could overflow.
numbers = st.one_of(
    st.integers(0, 40),
    st.integers(0, 5000),
    *(
        st.integers(max(0, limit - 3), min(LITERAL, limit + 3))
        for limit in (1 << 60, END // 4, END // 2, 1 << 62, END, LITERAL)
    ),
)


def packed(rows: list[Any]) -> bytes:
    return array("Q", [number for row in rows for number in row]).tobytes()


def rows_of(data: bytes, width: int) -> list[tuple[int, ...]]:
    found = array("Q", data)
    return [tuple(found[i : i + width]) for i in range(0, len(found), width)]


def hostile(width: int, most: int = 12) -> st.SearchStrategy[bytes]:
    """Rows of any numbers, now and then no whole ones."""
    row = st.tuples(*[numbers] * width)
    rows = st.lists(row, max_size=most).map(packed)
    return st.one_of(rows, rows, rows, st.binary(max_size=70))


@st.composite
def pieces(draw: st.DrawFn, most: int = 12) -> list[tuple[int, int, int]]:
    """In order; some go on where the one before ends, in the base as well."""
    made: list[tuple[int, int, int]] = []
    at = draw(st.integers(0, 50))
    for _ in range(draw(st.integers(0, most))):
        length = draw(st.integers(1, 60))
        on = bool(made) and draw(st.booleans())
        gap = 0 if on else draw(st.integers(0, 90))
        place = made[-1][1] + made[-1][2] if on and draw(st.booleans()) else draw(st.integers(0, 3000))
        made.append((at + gap, place, length))
        at += gap + length
    return made


def outcome(call: Callable[[], object]) -> object:
    """What it returns, or that it refuses; any other error is one of the test."""
    try:
        return call()
    except ValueError:
        return ValueError


def both(name: str, *args: Any) -> Any:
    """The same from both forms."""
    fast, plain = (outcome(partial(getattr(variant, name), *args)) for variant in VARIANTS)
    assert fast == plain
    return fast


@settings(deadline=None)
@given(numbers, numbers, st.lists(numbers, max_size=12).map(lambda drawn: array("Q", drawn)))
def test_placed_blocks(offset: int, size: int, places: array[int]) -> None:
    found = both("block_matches", offset, size, places)
    if found is not ValueError:
        known = [(offset + row * size, place, size) for row, place in enumerate(places) if place != UNPLACED]
        assert sum(length for *_, length in rows_of(found, 3)) == size * len(known)
        # Each block lies in the one piece that begins last before it, as far on in the base.
        for at, place, _ in known:
            begin, there, length = max(row for row in rows_of(found, 3) if row[0] <= at)
            assert (there + at - begin, at + size <= begin + length) == (place, True)


@settings(deadline=None)
@given(*[st.lists(st.one_of(st.just(UNPLACED), numbers), max_size=9)] * 2, numbers)
def test_filled_offsets(places: list[int], more: list[int], shift: int) -> None:
    size = min(len(places), len(more))
    if places[size:] or more[size:]:
        assert both("fill_offsets", array("Q", places), array("Q", more), shift) is ValueError
    found = both("fill_offsets", array("Q", places[:size]), array("Q", more[:size]), shift)
    if found is not ValueError:
        for old, new, filled in zip(places, more, array("Q", found), strict=False):
            assert filled == (new + shift if old == UNPLACED != new else old)


@settings(deadline=None)
@given(pieces(), st.data())
def test_joined_matches_cover_the_same_bytes(drawn: list[tuple[int, int, int]], data: st.DataObject) -> None:
    first = [row for row in drawn if data.draw(st.booleans())]
    second = [row for row in drawn if row not in first]
    joined = rows_of(both("join_matches", packed(first), packed(second)), 3)

    def at_bytes(rows: list[Any]) -> dict[int, int]:
        return {offset + i: place + i for offset, place, length in rows for i in range(length)}

    assert at_bytes(joined) == at_bytes(drawn)
    assert both("join_matches", packed(joined), b"") == packed(joined)


@settings(deadline=None)
@given(hostile(3, 4), hostile(3, 4))
def test_rows_to_join_from_anywhere(first: bytes, second: bytes) -> None:
    both("join_matches", first, second)


lengths = st.one_of(st.integers(1, 70), numbers)
neighbours = st.one_of(st.just(UNPLACED), st.integers(0, 4000), numbers)


@settings(deadline=None)
@given(
    st.one_of(pieces().map(packed), hostile(3, 4)),
    st.tuples(st.one_of(st.integers(0, 50), numbers), st.one_of(st.integers(1000, 3000), numbers)),
    st.tuples(neighbours, neighbours),
    st.tuples(lengths, lengths, st.one_of(st.integers(0, 2000), numbers), lengths),
    st.one_of(st.integers(0, 40), numbers),
)
def test_runs_between_matches(
    rows: bytes, ends: tuple[int, int], about: tuple[int, int], opening: tuple[int, int, int, int], most: int
) -> None:
    """What they are is said where regions are tested."""
    found = both("unmatched_runs", rows, *ends, *about, *opening, most)
    if found is not ValueError:
        assert len(rows_of(found, 4)) <= most + 1


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.integers(0, 3000),
            st.one_of(st.just(UNPLACED), st.integers(0, 90_000)),
            st.integers(0, 90_000),
        ),
        max_size=20,
    ),
    st.integers(1, 600),
    st.integers(0, 300),
    st.integers(0, 9000),
    st.integers(0, 30_000),
)
def test_spans_hold_all_their_runs(
    runs: list[tuple[int, int, int, int]], size: int, reach: int, close: int, most: int
) -> None:
    spans = rows_of(both("run_spans", packed(runs), size, reach, close, most), 4)
    assert sum(count for count, *_ in spans) == len(runs)
    row = 0
    for count, start, stop, blocks in spans:
        some = runs[row : row + count]
        row += count
        assert blocks == sum(-(-length // size) for _, length, _, _ in some)
        assert count == 1 or stop - start <= most
        for _, length, before, behind in some:
            if before != UNPLACED:
                assert start <= max(0, before - reach)
                assert before + length + reach + size <= stop
            assert start <= max(0, behind - length - reach)
            assert behind + reach + size <= stop


@settings(deadline=None)
@given(hostile(4, 4), numbers, numbers, numbers, numbers)
def test_spans_of_any_rows(runs: bytes, size: int, reach: int, close: int, most: int) -> None:
    both("run_spans", runs, size, reach, close, most)


@settings(deadline=None)
@given(pieces(20), st.integers(0, 400), st.integers(0, 400), st.integers(0, 40), st.data())
def test_a_chunk_is_put_together_again(
    drawn: list[tuple[int, int, int]], offset: int, length: int, close: int, data: st.DataObject
) -> None:
    """From file to tiles to reads and back, each byte where it is said to be."""
    end = max([0, *(place + size for _, place, size in drawn)])
    bases = [bytes((number * 89 + i * i) % 256 for i in range(end)) for number in range(2)]
    copies = [
        (at, data.draw(st.integers(0, 1)), place, size)
        for at, place, size in drawn
        if data.draw(st.booleans())
    ]
    wanted = bytearray(b"." * (offset + length))
    for at, base, place, size in copies:
        wanted[at : at + size] = bases[base][place : place + size]
    del wanted[offset + length :]
    instructions = both("instructions_of_range", packed(copies), offset, length)
    assert sum(size for *_, size in rows_of(instructions, 3)) == length
    others = [(offset, length), *((at, size) for at, _, size in drawn)]
    alone = [both("instructions_of_range", packed(copies), *one) for one in others]
    all_instructions, tiled = both("instructions_of_ranges", packed(copies), packed(others))
    assert all_instructions == b"".join(alone)
    assert rows_of(tiled, 2) == [
        (len(one) // 24, sum(size for base, _, size in rows_of(one, 3) if base == LITERAL)) for one in alone
    ]
    found = both("copies_of_instructions", instructions, offset)
    assert both("instructions_of_range", found, offset, length) == instructions
    ranges = rows_of(both("fetched_ranges", instructions, offset), 2)
    covered = sorted([*ranges, *((at, size) for at, _, _, size in rows_of(found, 4))])
    assert sum(size for _, size in covered) == length
    literals = b"".join(wanted[at : at + size] for at, size in ranges)
    assert literals == b"." * len(literals)
    assert all(first + size < at for (first, size), (at, _) in pairwise(ranges))
    back, ahead = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    sizes = array("Q", [end] * data.draw(st.integers(0, 2)))
    fetched, reads, sources = both("plan_reads", instructions, close)
    assert fetched == len(literals)
    held = b"".join(bases[base][at : at + size] for base, at, size in rows_of(reads, 3))
    _, wider, moved = both("plan_reads", instructions, close, back, ahead, sizes)
    for (base, at, size), (there, start, more) in zip(rows_of(reads, 3), rows_of(wider, 3), strict=True):
        assert there == base
        assert start == max(0, at - back)
        assert start + more == (min(end, at + size + ahead) if base < len(sizes) else at + size)
    seen = b"".join(bases[base][at : at + size] for base, at, size in rows_of(wider, 3))
    assert both("assemble", moved, seen, literals) == wanted[offset:]
    # Nothing is read that no copy needs, but for what lies close between two.
    copied = [row for row in rows_of(instructions, 3) if row[0] != LITERAL]
    assert len(held) <= sum(size for *_, size in copied) + close * max(0, len(copied) - 1)
    assert both("assemble", sources, held, literals) == wanted[offset:]
    assert both("assemble", sources, held, literals + b"?") is ValueError
    if held:
        assert both("assemble", sources, held[:-1], literals) is ValueError
    marks = data.draw(st.binary(min_size=(len(seen) + 7) // 8, max_size=(len(seen) + 7) // 8))
    images, bits = both("assemble_with_bits", moved, seen, marks)
    assert images == wanted[offset:].replace(b".", b"\0") == both("assemble", moved, seen, bytes(fetched))
    marked = bytes(marks[place // 8] >> place % 8 & 1 for place in range(len(seen)))
    expected = both("assemble", moved, marked, bytes(fetched))
    number = sum(mark << place for place, mark in enumerate(expected))
    assert bits == number.to_bytes((len(expected) + 7) // 8, "little")
    assert both("assemble_with_bits", moved, seen, marks + b"?") is ValueError
    if marks:
        assert both("assemble_with_bits", moved, seen, marks[:-1]) is ValueError


@settings(deadline=None)
@given(hostile(4), numbers, numbers, hostile(2, most=4))
def test_instructions_of_any_rows(copies: bytes, offset: int, length: int, ranges: bytes) -> None:
    assert outcome(lambda: _kernel.instructions_of_range(copies, offset, length)) is not None
    assert outcome(lambda: _kernel.instructions_of_ranges(copies, ranges)) is not None
    rows = rows_of(copies, 4) if len(copies) % 32 == 0 else []
    if rows == sorted(rows, key=lambda row: row[0]):
        both("instructions_of_range", copies, offset, length)
        both("instructions_of_ranges", copies, ranges)


@settings(deadline=None)
@given(hostile(3), numbers, numbers, numbers, hostile(1, most=3))
def test_reads_of_any_rows(instructions: bytes, number: int, back: int, ahead: int, sizes: bytes) -> None:
    both("fetched_ranges", instructions, number)
    both("copies_of_instructions", instructions, number)
    both("plan_reads", instructions, number)
    both("plan_reads", instructions, number, back, ahead, sizes)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 50)), max_size=12),
    st.integers(0, 60),
    st.integers(0, 300),
)
def test_ranges_that_are_read_together(drawn: list[tuple[int, int]], close: int, most: int) -> None:
    ranges: list[tuple[int, int]] = []
    for gap, length in drawn:
        ranges.append(((sum(ranges[-1]) if ranges else 0) + gap, length))
    content = bytes(i % 251 for i in range(1200))
    reads = rows_of(both("range_reads", packed(ranges), close, most), 3)
    assert sum(count for count, *_ in reads) == len(ranges)
    for count, start, length in reads:
        some, ranges = ranges[:count], ranges[count:]
        assert (start, start + length) == (some[0][0], sum(some[-1]))
        assert count == 1 or (length <= most and max(b - sum(a) for a, (b, _) in pairwise(some)) <= close)
        data = content[start : start + length]
        taken = both("take_ranges", packed(some), start, data)
        assert taken == b"".join(content[at : at + size] for at, size in some)
        assert both("take_ranges", packed(some), start, data[:-1]) is ValueError
        assert both("take_ranges", packed([*some, some[-1]]), start, data) is ValueError


@settings(deadline=None)
@given(hostile(2), numbers, numbers, st.binary(max_size=60))
def test_reads_of_any_ranges(ranges: bytes, first: int, second: int, data: bytes) -> None:
    both("range_reads", ranges, first, second)
    both("take_ranges", ranges, first, data)
    both("around_ranges", ranges, first, second)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 50)), max_size=12),
    st.integers(0, 60),
    st.integers(0, 50),
)
def test_what_lies_around_ranges(drawn: list[tuple[int, int]], reach: int, behind: int) -> None:
    ranges: list[tuple[int, int]] = []
    for gap, length in drawn:
        ranges.append(((sum(ranges[-1]) if ranges else 0) + gap, length))
    size = (sum(ranges[-1]) if ranges else 0) + behind
    inside = {at for offset, length in ranges for at in range(offset, offset + length)}
    near = {at for offset, length in ranges for at in range(max(0, offset - reach), offset + length + reach)}
    found = rows_of(both("around_ranges", packed(ranges), reach, size), 2)
    covered = [at for offset, length in found for at in range(offset, offset + length)]
    assert covered == sorted((near - inside) & set(range(size)))
    assert all(length for _, length in found)


@settings(deadline=None)
@given(hostile(2), st.binary(max_size=60), st.binary(max_size=60))
def test_chunks_of_any_rows(sources: bytes, held: bytes, literals: bytes) -> None:
    made = both("assemble", sources, held, literals)
    if made is not ValueError:
        assert len(made) == sum(length for _, length in rows_of(sources, 2))
    if len(sources) % 16 or all(length < 1_000 for _, length in rows_of(sources, 2)):
        images = both("assemble_with_bits", sources, held, bytes((len(held) + 7) // 8))
        assert images is ValueError or len(images[0]) == sum(length for _, length in rows_of(sources, 2))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("number", [-1, 1 << 64])
def test_numbers_do_not_wrap(variant: Any, number: int) -> None:
    with pytest.raises(ValueError):
        variant.block_matches(number, 1, b"")
    with pytest.raises(ValueError):
        variant.plan_reads(b"", number)


def test_rows_are_aligned() -> None:
    """A slice of bytes may begin anywhere; what it is read as may not."""
    with pytest.raises(ValueError, match="aligned"):
        _kernel.plan_reads(memoryview(bytes(25))[1:], 0)
