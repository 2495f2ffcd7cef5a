"""Cells and claims: both sides name the same bytes, what is wrong is told, and nothing else."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.chunking import SYNC_PARAMS
from rdc.errors import ProtocolError
from rdc.kernel import LITERAL, block_fingerprints
from rdc.limits import CHECK_BLOCKS_PER_ANSWER, CHECK_BLOCKS_PER_MESSAGE, RANGES_PER_MESSAGE, SIZE_LIMIT
from rdc.plan.check_blocks import check_block_digests, divided, unverified_check_blocks
from rdc.plan.descent import ChunkRecipe, Copy, Fetch, Literal, Part, Patch, Repeat, Reuse, literal_rows
from rdc.plan.search import fingerprint_width
from rdc.protocol.messages import Correction, RangeRequest
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, CHECK_BLOCK_DIGEST_BYTES, Claims, rests
from rdc.session.source.range_answers import corrections
from rdc.session.transfer.range_requests import Corrections
from rdc.signature.tree import sign
from tests.support.kernel.range_rows import pairs_of, rows_of

SECRET = b"s" * 16


@st.composite
def ranges(draw: st.DrawFn, longest: int = 9_000) -> tuple[list[tuple[int, int]], int]:
    """Increasing, disjoint, and the size of a file that has them."""
    at, found = 0, []
    gaps = st.one_of(st.integers(0, 50), st.integers(0, longest))
    for gap, length in draw(st.lists(st.tuples(gaps, gaps.map(lambda n: n + 1)), min_size=1, max_size=8)):
        found.append((at + gap, length))
        at += gap + length
    return found, at + draw(gaps)


@given(ranges(), st.data())
def test_rests_are_what_is_in_a_check_block_and_in_no_range(
    drawn: tuple[list[tuple[int, int]], int], data: st.DataObject
) -> None:
    asked, size = drawn
    some = sorted(data.draw(st.sets(st.integers(0, (size - 1) // CHECK_BLOCK_BYTES))))
    wanted = {at for offset, length in asked for at in range(offset, offset + length)}
    expected = [
        at
        for check_block in some
        for at in range(check_block * CHECK_BLOCK_BYTES, min(size, (check_block + 1) * CHECK_BLOCK_BYTES))
        if at not in wanted
    ]
    found = list(rests(rows_of(asked), some, size))
    assert [at for _, offset, length in found for at in range(offset, offset + length)] == expected
    assert all(
        check_block == offset // CHECK_BLOCK_BYTES and length > 0 for check_block, offset, length in found
    )


@given(ranges(), st.data())
def test_requests_have_each_range_once_and_no_check_block_in_two(
    drawn: tuple[list[tuple[int, int]], int], data: st.DataObject
) -> None:
    asked, size = drawn
    some = sorted(data.draw(st.sets(st.integers(0, (size - 1) // CHECK_BLOCK_BYTES))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rdc.plan.check_blocks.RANGES_PER_MESSAGE", CHECK_BLOCK_BYTES)
        patch.setattr("rdc.plan.check_blocks.CHECK_BLOCKS_PER_MESSAGE", data.draw(st.integers(1, 4)))
        check_requests(requests_of(divided(rows_of(asked), some), some), asked, some)


def test_requests_of_many_short_ranges() -> None:
    asked = [(at, 3) for at in range(5, 40 * RANGES_PER_MESSAGE, 17)]
    some = range(asked[-1][0] // CHECK_BLOCK_BYTES + 1)
    requests = requests_of(divided(rows_of(asked), some), some)
    check_requests(requests, asked, some)
    assert [check_block for _, cells in requests for check_block in cells] == list(some)
    assert len(requests) == -(-len(asked) // RANGES_PER_MESSAGE)
    for found, cells in requests:
        gaps = RangeRequest.of(1, rows_of(found), claims=Claims(tuple(cells), bytes(2 * len(cells))))
        assert gaps.check() is None


Requests: TypeAlias = list[tuple[list[tuple[int, int]], Sequence[int]]]


def requests_of(found: Iterable[tuple[array[int], slice]], cells: Sequence[int]) -> Requests:
    """Pairs, and the cells themselves."""
    return [(pairs_of(rows), cells[some]) for rows, some in found]


def check_requests(
    requests: Requests,
    asked: Sequence[tuple[int, int]],
    some: Sequence[int],
) -> None:
    joined: list[tuple[int, int]] = []
    begins = {offset for offset, _ in asked}
    for offset, length in (one for found, _ in requests for one in found):
        assert length > 0
        if offset not in begins and joined and sum(joined[-1]) == offset:
            joined[-1] = (joined[-1][0], joined[-1][1] + length)
        else:
            joined.append((offset, length))
    assert joined == list(asked)
    assert {check_block for _, cells in requests for check_block in cells} <= set(some)
    for number, (found, cells) in enumerate(requests):
        assert found
        assert len(found) <= RANGES_PER_MESSAGE
        assert len(cells) <= CHECK_BLOCKS_PER_MESSAGE
        if cells:
            assert all(
                sum(one) <= cells[0] * CHECK_BLOCK_BYTES for more, _ in requests[:number] for one in more[-1:]
            )
            after = (cells[-1] + 1) * CHECK_BLOCK_BYTES
            assert all(one[0] >= after for more, _ in requests[number + 1 :] for one in more[:1])


def test_claims_without_ranges_fit_messages() -> None:
    some = range(2 * CHECK_BLOCKS_PER_MESSAGE + 5)
    requests = requests_of(divided(array("Q"), some), some)
    assert [len(cells) for _, cells in requests] == [CHECK_BLOCKS_PER_MESSAGE, CHECK_BLOCKS_PER_MESSAGE, 5]
    assert all(found == [] for found, _ in requests)


BASE = random.Random(1).randbytes(200_000)


@st.composite
def recipes(draw: st.DrawFn) -> tuple[list[Part], bytes]:
    """Parts over BASE, and the file that they are meant to make."""
    tree = sign(BASE, SYNC_PARAMS)
    lengths = tree.levels[0].lengths
    rng = random.Random(draw(st.integers(0, 99)))
    parts: list[Part] = []
    made = b""
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(("reuse", "fetch", "patch", "patch", "repeat")))
        if kind == "reuse":
            first = draw(st.integers(0, len(lengths) - 1))
            start, length = sum(lengths[:first]), lengths[first]
            parts.append(Reuse(0, first, first + 1, length, 1))
            made += BASE[start : start + length]
            continue
        instructions: list[Copy | Literal] = []
        content = b""
        for _ in range(draw(st.integers(1, 5))):
            length, offset = draw(st.integers(1, 6_000)), draw(st.integers(0, 190_000))
            after_copy = bool(instructions) and isinstance(instructions[-1], Copy)
            literal = kind == "fetch" or (after_copy and draw(st.booleans()))
            instructions.append(Literal(length) if literal else Copy(0, offset, length))
            content += rng.randbytes(length) if literal else BASE[offset : offset + length]
        if kind == "fetch":
            parts.append(Fetch(b"r", len(content), 1))
        elif kind == "patch" or draw(st.booleans()):
            count = 2 if kind == "repeat" else 1
            parts.append(Patch(b"r", len(content), count, ChunkRecipe.of(*instructions)))
            content *= count
        else:
            inner = Patch(b"r", len(content), 1, ChunkRecipe.of(*instructions))
            parts.append(Repeat((inner,), len(content), 2))
            content *= 2
        made += content
    return parts, made


def put_together(instructions: bytes) -> bytes:
    made = bytearray()
    numbers = iter(array("Q", instructions))
    for base, offset, length in zip(numbers, numbers, numbers, strict=True):
        assert base in (0, LITERAL)
        made += bytes(length) if base == LITERAL else BASE[offset : offset + length]
    return bytes(made)


@settings(deadline=None)
@given(recipes(), st.data())
def test_exactly_the_check_blocks_that_are_wrong_are_corrected(
    made: tuple[list[Part], bytes], data: st.DataObject
) -> None:
    """Bytes of the true file, other than the recipe has them, are those that come."""
    parts, content = made
    size, trees = len(content), [sign(BASE, SYNC_PARAMS)]
    asked = pairs_of(literal_rows(parts))
    found = list(unverified_check_blocks(parts, trees, size))
    cells = tuple(check_block for some, _ in found for check_block in some)
    assert cells == tuple(sorted(set(cells)))
    images = b"".join(put_together(instructions) for _, instructions in found)
    true = bytearray(content)
    for offset, length in asked:
        true[offset : offset + length] = bytes(length)
    assert images == b"".join(
        bytes(true[check_block * CHECK_BLOCK_BYTES : (check_block + 1) * CHECK_BLOCK_BYTES])
        for check_block in cells
    )
    claims = Claims(cells, check_block_digests(SECRET, images))
    if not claims.cells:
        return
    true = bytearray(content)
    inside = [
        at
        for check_block in claims.cells
        for at in (check_block * CHECK_BLOCK_BYTES, min(size, (check_block + 1) * CHECK_BLOCK_BYTES) - 1)
    ]
    for at in data.draw(st.lists(st.sampled_from(inside) | st.integers(0, size - 1), max_size=3)):
        true[at] ^= 1
    wanted = {at for offset, length in asked for at in range(offset, offset + length)}
    wrong = {
        at // CHECK_BLOCK_BYTES for at in range(size) if true[at] != content[at] and at not in wanted
    } & set(claims.cells)
    request = RangeRequest.of(7, rows_of(asked), claims=claims)
    answers = list(answered(bytes(true), request))
    # Two bytes deceive once in 65,536 times; the examples are always the same ones.
    assert [check_block for answer in answers for check_block in answer.cells] == sorted(wrong)
    held = Corrections(size)
    held.ask(request)
    for answer in answers:
        held.take(answer)
    for start in range(0, size, 5_000):
        part = bytes(content[start : start + 5_000])
        amended, count = held.amend(start, part)
        changeable = bytearray(part)
        assert held.amend(start, changeable) == (amended, count)
        assert changeable == amended
        for i in range(len(part)):
            corrected = (start + i) // CHECK_BLOCK_BYTES in wrong and start + i not in wanted
            assert amended[i] == (true if corrected else content)[start + i]
        assert count == sum(
            (start + i) // CHECK_BLOCK_BYTES in wrong and start + i not in wanted for i in range(len(part))
        )


class Held:
    """A file of the source."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = len(content)

    def pread(self, offset: int, length: int) -> bytes:
        assert offset + length <= self.size
        return self.content[offset : offset + length]

    def read_ranges(self, rows: array[int]) -> bytes:
        return b"".join(map(self.pread, rows[0::2], rows[1::2]))


def answered(content: bytes, request: RangeRequest) -> list[Correction]:
    held: Any = Held(content)  # it has all that is asked of a SourceFile
    found: list[Any] = list(corrections(held, request, SECRET))
    return found


def test_corrections_of_many_check_blocks_fit_messages() -> None:
    cells = tuple(range(2 * CHECK_BLOCKS_PER_ANSWER + 2))
    content = bytes(len(cells) * CHECK_BLOCK_BYTES - 5_000)
    request = RangeRequest.of(1, array("Q", (100, 50)), claims=Claims(cells, b"??" * len(cells)))
    answers = answered(content, request)
    assert [len(answer.cells) for answer in answers] == [CHECK_BLOCKS_PER_ANSWER, CHECK_BLOCKS_PER_ANSWER, 2]
    assert sum(len(answer.payload) for answer in answers) == len(content) - 50
    assert all(answer.check() is None for answer in answers)


def test_a_check_block_that_is_wholly_asked_for_claims_nothing() -> None:
    request = RangeRequest.of(1, array("Q", (0, 3 * CHECK_BLOCK_BYTES)), claims=Claims((0, 2, 3), b"??????"))
    answers = answered(b"x" * (3 * CHECK_BLOCK_BYTES + 1), request)
    assert [(answer.cells, bytes(answer.payload)) for answer in answers] == [((3,), b"x")]


@pytest.mark.parametrize("length", [0, 99, 101])
def test_a_correction_of_another_length_is_refused(length: int) -> None:
    held = Corrections(150)
    held.ask(RangeRequest.of(1, array("Q", (20, 50)), claims=Claims((0,), b"ab")))
    with pytest.raises(ProtocolError, match="expected 100"):
        held.take(Correction(1, (0,), bytes(length)))


def test_blocks_wait_for_the_verdict_on_their_check_blocks_and_no_longer() -> None:
    held = Corrections(100 * CHECK_BLOCK_BYTES)
    assert held.corrected_up_to == SIZE_LIMIT
    for first in (10, 40, 70):
        claims = Claims((first + 1, first + 2), b"abcd") if first != 40 else Claims((), b"")
        held.ask(RangeRequest.of(1, array("Q", (first * CHECK_BLOCK_BYTES, 10)), claims=claims))
    assert held.corrected_up_to == 11 * CHECK_BLOCK_BYTES
    held.take(Correction(1, (12,), bytes(CHECK_BLOCK_BYTES)))
    assert held.corrected_up_to == 11 * CHECK_BLOCK_BYTES
    held.mark_corrected()
    assert held.corrected_up_to == 71 * CHECK_BLOCK_BYTES
    held.end(13 * CHECK_BLOCK_BYTES - 1)
    assert held.amend(13 * CHECK_BLOCK_BYTES - 1, b"ab") == (b"\0b", 1)
    held.mark_corrected()
    held.end(13 * CHECK_BLOCK_BYTES)
    assert held.corrected_up_to == 71 * CHECK_BLOCK_BYTES
    assert held.amend(12 * CHECK_BLOCK_BYTES, b"ab") == (b"ab", 0)
    held.mark_corrected()
    assert held.corrected_up_to == SIZE_LIMIT
    held.end(80 * CHECK_BLOCK_BYTES)
    held.end(80 * CHECK_BLOCK_BYTES)  # of chunks that slipped through


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 16), st.integers(1, 1_000))
def test_no_other_width_costs_less(candidates: int, cost: int, blocks: int) -> None:
    """Bytes of fingerprints and of what is expected to come again; to a 256th, which another byte leaves."""

    def total(width: int) -> float:
        return blocks * width + blocks * candidates * cost / float(256**width)

    width = fingerprint_width(candidates, cost)
    assert 2 <= width <= 8
    for other in range(2, 9):
        assert total(width) <= total(other) + blocks / 256
    assert CHECK_BLOCK_DIGEST_BYTES == 2


def test_a_block_taken_for_another_shows_where_it_ends_a_check_block() -> None:
    """Its fingerprint is that of the other: so would the cell's be, were it made with the same key."""
    rng = random.Random(3)
    seen: dict[bytes, bytes] = {}
    for _ in range(20_000):
        block = rng.randbytes(64)
        fingerprint = block_fingerprints(SECRET, block, 64, 3)
        other = seen.setdefault(fingerprint, block)
        if other != block:
            break
    else:
        raise AssertionError("no two blocks with one fingerprint")
    rest = rng.randbytes(CHECK_BLOCK_BYTES - 64)
    assert check_block_digests(SECRET, rest + block) != check_block_digests(SECRET, rest + other)
    # As it would be.
    assert len({block_fingerprints(SECRET, rest + end, CHECK_BLOCK_BYTES, 2) for end in (block, other)}) == 1
