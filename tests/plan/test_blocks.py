"""The search below the chunk: whatever is found, the pieces tile the chunks; the truth puts them together."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.chunking import ChunkParams
from rdc.kernel import short_references
from rdc.plan import search as blocks
from rdc.plan import search as questions
from rdc.plan import search as regions
from rdc.plan.descent import (
    Copy,
    Fetch,
    Literal,
    Part,
    Patch,
    Repeat,
    Reuse,
    ReuseChunk,
    literal_rows,
)
from rdc.plan.search import NOWHERE, BlockSearch, Window
from rdc.signature.tree import SignatureTree, sign
from tests.plan.block_answers import KEY, WIDTH, Finding, Honest, Lying, recipe, searched
from tests.support.kernel.range_rows import pairs_of


def instructions(before: Iterable[Part], after: Iterable[Part]) -> None:
    """`after` differs from `before` in chunks to be put together, whose pieces fill them."""
    for one, other in zip(before, after, strict=True):
        if isinstance(other, Patch):
            assert isinstance(one, Fetch)
            assert (one.reference, one.length, one.count) == (other.reference, other.length, other.count)
            assert sum(piece.length for piece in other.chunk_recipe) == other.length
            assert all(piece.length > 0 for piece in other.chunk_recipe)
            assert any(isinstance(piece, Copy) for piece in other.chunk_recipe)
        elif isinstance(other, Repeat):
            assert isinstance(one, Repeat) and (one.length, one.count) == (other.length, other.count)
            instructions(one.parts, other.parts)
        else:
            assert one == other


def rebuilt(parts: Iterable[Part], target: bytes, bases: list[bytes], trees: list[SignatureTree]) -> bytes:
    """The file as the recipe makes it, literals taken from the target in the order they are asked for."""
    asked = list(parts)
    ranges = pairs_of(literal_rows(tuple(asked)))
    literals = iter(b"".join(target[at : at + length] for at, length in ranges))

    def literal(length: int) -> bytes:
        return bytes(next(literals) for _ in range(length))

    def offset(base: int, row: int) -> int:
        level = trees[base].levels[0]
        return sum(level.lengths[i] * level.counts[i] for i in range(row))

    def chunk_recipe(found: Iterable[Part]) -> Iterator[bytes]:
        for part in found:
            if isinstance(part, Fetch):
                yield literal(part.length) * part.count
            elif isinstance(part, Patch):
                chunk = [
                    bases[piece.base][piece.offset : piece.offset + piece.length]
                    if isinstance(piece, Copy)
                    else literal(piece.length)
                    for piece in part.chunk_recipe
                ]
                yield b"".join(chunk) * part.count
            elif isinstance(part, Repeat):
                yield b"".join(chunk_recipe(part.parts)) * part.count
            elif isinstance(part, ReuseChunk):
                at = offset(part.base, part.row)
                yield bases[part.base][at : at + part.length] * part.count
            else:
                at = offset(part.base, part.first)
                assert isinstance(part, Reuse)
                yield bases[part.base][at : at + part.length] * part.count

    made = b"".join(chunk_recipe(asked))
    assert next(literals, None) is None
    return made


@st.composite
def versions(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A file and one or two bases that it was edited from."""
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    letters = draw(st.sampled_from([2, 30, 256]))
    size = draw(st.sampled_from([0, 10, 300, 3_000, 12_000, 40_000]))
    base = bytes(rng.randrange(letters) for _ in range(size))
    if draw(st.booleans()):
        base += bytes(draw(st.sampled_from([600, 5_000]))) + base[: size // 2]
    target = bytearray(base)
    for _ in range(draw(st.integers(0, 6))):
        at, gone = rng.randint(0, len(target)), draw(st.sampled_from([0, 1, 50, 3_000]))
        target[at : at + gone] = rng.randbytes(draw(st.sampled_from([0, 1, 7, 90, 5_000])))
    bases = [base]
    if draw(st.booleans()):
        bases.append(bytes(target[: len(target) // 2]) + rng.randbytes(99))
    return bytes(target), bases


parameters = st.sampled_from([ChunkParams(64, 256), ChunkParams(1024, 8192), ChunkParams.for_mean(16384)])


LARGE_GAP_BYTES = regions.LARGE_GAP_BYTES


@pytest.fixture(params=[LARGE_GAP_BYTES, 1], ids=["gaps", "regions"], scope="module", autouse=True)
def kind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every gap is searched as a short one is, then as a region is, unless it is that long anyway."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "LARGE_GAP_BYTES", request.param)
        yield


@settings(deadline=None)
@given(versions(), parameters)
def test_what_is_found_puts_the_file_together(pair: tuple[bytes, list[bytes]], params: ChunkParams) -> None:
    target, bases = pair
    trees = [sign(base, params) for base in bases]
    before = recipe(sign(target, params), trees)
    ends = Honest(target, bases)
    with pytest.MonkeyPatch.context() as patch:
        # Short fingerprints deceive once in some thousand files, which their chunks' references notice.
        patch.setattr(questions, "LEAST_WIDTH", 8)
        after = ends.run(BlockSearch(before, trees))
    instructions(before, after)
    assert rebuilt(after, target, bases, trees) == target
    assert ends.rounds <= 3


@settings(deadline=None)
@given(versions(), parameters, st.integers(0, 1000))
def test_whatever_is_found_the_instructions_fill_the_chunks(
    pair: tuple[bytes, list[bytes]], params: ChunkParams, seed: int
) -> None:
    target, bases = pair
    trees = [sign(base, params) for base in bases]
    before = recipe(sign(target, params), trees)
    after = Lying(target, bases, seed).run(BlockSearch(before, trees))
    instructions(before, after)
    assert len(rebuilt(after, target, bases, trees)) == len(target)


def test_an_edit_costs_its_own_bytes_and_a_few_fingerprints() -> None:
    rng = random.Random(7)
    for size in (1_500, 6_000, 200_000):
        base = rng.randbytes(size)
        at = size // 3
        target = base[:at] + b"a few bytes" + base[at + 5 :]
        ends, literals = searched(target, base)
        assert literals <= 64 + 64, size
        assert ends.fingerprint_bytes <= max(250, size * 4 // 200 + 100), size


def test_content_that_is_all_new_is_not_described_in_small_blocks() -> None:
    rng = random.Random(8)
    base, target = rng.randbytes(1 << 20), rng.randbytes(1 << 20)
    ends, literals = searched(target, base)
    assert literals == len(target)
    assert ends.fingerprint_bytes <= len(target) // 512 * 6 + 200


class Unlucky(Finding):
    """One block that is nowhere has the fingerprint of some place in its window."""

    def __init__(self, target: bytes, bases: list[bytes], rng: random.Random) -> None:
        super().__init__(target, bases)
        self.rng = rng
        self.happened = False

    def find(self, window: Window, size: int, width: int, fingerprints: bytes) -> list[int]:
        places = super().find(window, size, width, fingerprints)
        lost = [row for row, place in enumerate(places) if place == NOWHERE]
        if lost and not self.happened and window.length > 20_000:
            self.happened = True
            last = window.offset + window.length - size
            places[self.rng.choice(lost)] = self.rng.randint(window.offset, last)
        return places


def test_chance_is_seldom_taken_for_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong chunk costs a repair: what nothing confirms has to be where its neighbours expect it."""
    monkeypatch.setattr(blocks, "LARGE_GAP_BYTES", LARGE_GAP_BYTES)
    params = ChunkParams.for_mean(16384)
    right = 0
    for seed in range(60):
        rng = random.Random(seed)
        base = rng.randbytes(40_000)
        target = bytearray(base)
        for at in range(3_000, 39_000, 6_000):
            target[at : at + 1_500] = rng.randbytes(1_400)
        trees = [sign(base, params)]
        before = recipe(sign(bytes(target), params), trees)
        ends = Unlucky(bytes(target), [base], rng)
        after = ends.run(BlockSearch(before, trees))
        assert ends.happened
        right += rebuilt(after, bytes(target), [base], trees) == target
    assert right >= 54


def test_what_repeats_is_found_where_its_neighbours_are() -> None:
    """The first place that has a block is a wrong one to go on from, but not for what it says."""
    rng = random.Random(11)
    common = rng.randbytes(1_024)
    base = b"".join(rng.randbytes(3_000) + common + rng.randbytes(3_000) for _ in range(6))
    news = rng.randbytes(600)
    target = bytearray(base)
    for at in (3_000 - 600, 7_024 + 3_000 - 600, 2 * 7_024 + 3_000 - 600, 3 * 7_024 + 4_024):
        target[at : at + 600] = news[:590]
    _, literals = searched(bytes(target), base)
    # On either side of what is new, some of a block of the last size.
    assert literals <= 4 * (590 + 2 * 128)


def test_the_windows_of_a_file_are_linear_in_its_size() -> None:
    """Known chunks far apart and out of order make no search of the whole base for each gap."""
    rng = random.Random(9)
    base = rng.randbytes(1 << 20)
    # Pieces of the base, last first, with news between them.
    chunk_recipe = [base[i : i + (60 << 10)] for i in range(0, len(base), 60 << 10)]
    target = b"".join(piece + rng.randbytes(20_000) for piece in reversed(chunk_recipe))
    params = ChunkParams.for_mean(16384)
    trees = [sign(base, params)]
    looked_at = []

    class Counting(Finding):
        def find(self, window: Window, size: int, width: int, fingerprints: bytes) -> list[int]:
            looked_at.append(window.length)
            return super().find(window, size, width, fingerprints)

    Counting(target, [base]).run(BlockSearch(recipe(sign(target, params), trees), trees))
    assert sum(looked_at) <= 3 * 8 * (len(target) + len(base))


def test_references_of_chunks_are_not_touched() -> None:
    base = random.Random(10).randbytes(5_000)
    target = base[:2_000] + b"-" + base[2_000:]
    params = ChunkParams.for_mean(16384)
    trees = [sign(base, params)]
    (part,) = Honest(target, [base]).run(BlockSearch(recipe(sign(target, params), trees), trees))
    assert isinstance(part, Patch)
    assert part.reference == short_references(KEY, bytes(sign(target, params).levels[0].digests), 32, WIDTH)
    assert sum(piece.length for piece in part.chunk_recipe if isinstance(piece, Literal)) <= 128
