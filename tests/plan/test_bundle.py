"""What a bundle is, and what is found of it: in order, inside its files' old versions, and true."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import block_fingerprints, match_blocks, search_gaps
from rdc.plan import search as blocks
from rdc.plan.bundle import BundleLayout
from rdc.plan.search import BundleSearch, Step, Window
from tests.support.share import examples

KEY = bytes(range(16))
BLOCK, WIDTH = 1024, 8
LONG = 65_536

sizes = st.integers(1, 5_000) | st.integers(LONG - 2, LONG + 2) | st.integers(1, 190_000)


@given(st.lists(sizes, max_size=20))
def test_every_file_is_in_it_once_and_among_its_like(lengths: list[int]) -> None:
    files = [7 * row for row in range(len(lengths))]
    layout = BundleLayout.of(files, lengths, BLOCK)
    size_of = dict(zip(files, lengths, strict=True))
    assert sorted(layout.order) == files
    assert list(layout.sizes) == [size_of[file] for file in layout.order]
    assert list(layout.starts) == list(accumulate(layout.sizes, initial=0))
    assert layout.size == sum(lengths)
    at = 0
    for like in layout.likes:
        assert like.first == at < like.stop
        at = like.stop
        some = layout.order[like.first : like.stop]
        assert list(some) == sorted(some)
        for file in some:
            size = size_of[file]
            assert like.block == (4 * BLOCK if size > LONG else BLOCK if size >= 2 * BLOCK else BLOCK // 4)
    assert at == len(files)
    assert [like.block for like in layout.likes] == sorted(
        {like.block for like in layout.likes}, reverse=True
    )


class Ends:
    """Both ends of a bundle's search, in memory."""

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        self.layout = BundleLayout.of(range(len(new)), list(map(len, new)), BLOCK)
        self.old = [old[row] for row in self.layout.order]
        self.base = b"".join(self.old)
        self.target = b"".join(new[row] for row in self.layout.order)
        self.borders = list(accumulate(map(len, self.old), initial=0))
        self.asked: list[tuple[int, int]] = []

    def run(self, rounds: int) -> array[int]:
        """All copies, in order."""
        layout = self.layout
        search = BundleSearch(layout, list(map(len, self.old)), WIDTH, rounds)
        for first, stop, size in layout.likes:
            some = self.target[layout.starts[first] : layout.starts[stop]]
            prints = block_fingerprints(KEY, some, size, WIDTH, layout.sizes[first:stop])
            search.take(prints, self.search, self.find, self.near)
        trips = 0
        while questions := search.questions():
            trips += 1
            for ask in questions:
                self.asked += ask.pairs
                prints = b"".join(
                    block_fingerprints(KEY, self.target[offset : offset + length], ask.size, ask.width)
                    for offset, length in ask.pairs
                )
                search.take(prints, self.search, self.find, self.near)
        assert trips <= min(rounds, 1)
        return search.copies()

    def inside(self, offset: int, length: int) -> None:
        """A window is in one old version."""
        assert any(
            start <= offset and offset + length <= stop
            for start, stop in zip(self.borders, self.borders[1:], strict=False)
        )

    def search(
        self,
        base: int,
        size: int,
        width: int,
        smaller: int,
        gaps: array[int],
        ranges: array[int],
        matches: array[int],
        prints: bytes,
    ) -> tuple[bytes, bytes, bytes]:
        assert base == 0
        spans = list(zip(gaps[0::4], gaps[1::4], strict=True))
        for offset, length in spans:
            self.inside(offset, length)
        windows = b"".join(self.base[at : at + length] for at, length in spans)
        return search_gaps(KEY, windows, size, width, smaller, gaps, ranges, matches, prints)

    def find(self, window: Window, size: int, width: int, prints: bytes) -> Sequence[int]:
        self.inside(window.offset, window.length)
        part = self.base[window.offset : window.offset + window.length]
        base_offsets = array("Q", match_blocks(KEY, part, size, width, prints))
        return [
            base_offset if base_offset == blocks.NOWHERE else window.offset + base_offset
            for base_offset in base_offsets
        ]

    def near(self, base: int, step: Step, width: int, runs: array[int], prints: bytes) -> array[int]:
        raise AssertionError("a bundle has no regions")


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


@st.composite
def versions(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Old and new ones of some files, with edits, pieces of other files, and ends cut off."""
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    old, new = [], []
    for row in range(draw(st.integers(1, 9))):
        before = noise(row % 5, rng.choice((1, 300, 1_500, 2_100, 9_000, 70_000, 140_000)))
        after = before
        for _ in range(draw(st.integers(0, 3))):
            at = rng.randrange(len(after) + 1)
            after = after[:at] + noise(99, rng.randrange(60)) + after[at + rng.randrange(200) :]
        old.append(before[rng.randrange(len(before)) :] if rng.random() < 0.2 else before)
        new.append((after or b"x")[:190_000])
    return old, new


@settings(deadline=None, max_examples=examples(40))
@given(versions(), st.integers(0, 4))
def test_what_is_found_is_true(pair: tuple[list[bytes], list[bytes]], rounds: int) -> None:
    ends = Ends(*pair)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "fingerprint_width", lambda candidates, cost: WIDTH)
        copies = ends.run(rounds)
    rows = sorted(tuple(copies[at : at + 4]) for at in range(0, len(copies), 4))
    end = 0
    for offset, base, base_offset, length in rows:
        assert (base, offset >= end) == (0, True)
        end = offset + length
        # Fingerprints of eight bytes do not deceive.
        assert ends.target[offset:end] == ends.base[base_offset : base_offset + length]
    assert end <= len(ends.target)
    for offset, length in ends.asked:
        assert offset >= 0
        assert offset + length <= len(ends.target)


def test_edits_leave_little_to_fetch() -> None:
    old = [noise(row, size) for row, size in enumerate((1_500, 3_000, 16_000, 64_000, 100_000, 190_000))]
    new = [content[:700] + b"edit" + content[705:] for content in old]
    for rounds, most in ((2, 300), (1, 300), (0, 5_000)):
        ends = Ends(old, new)
        copies = ends.run(rounds)
        unknown = len(ends.target) - sum(copies[3::4])
        assert unknown <= most * len(new), (rounds, unknown)
