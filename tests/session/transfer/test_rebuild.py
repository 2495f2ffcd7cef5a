"""What a rebuild takes of a base, chunk by chunk, and the tree of a file of which some chunks were mended."""

from __future__ import annotations

import os
import random
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.chunking import SYNC_PARAMS
from rdc.files.root.root import Root
from rdc.session.transfer import bases as open_base_module
from rdc.session.transfer.bases import Chunks, OpenBase
from rdc.session.transfer.rebuild import ChunkRepair
from rdc.session.trees.sites import MismatchError
from rdc.signature.tree import MemoryColumn, SignatureTree, TreeBuilder, sign
from tests.support.kernel.range_rows import pairs_of

SLOW = settings(deadline=None)


def digest_of(number: int, length: int) -> bytes:
    """Of one of the contents that have this length."""
    return (number << 64 | length).to_bytes(32, "little")


def tree_of(chunks: list[tuple[int, int]]) -> SignatureTree:
    """`chunks`: a number for the content of each, and its length."""
    builder = TreeBuilder(SYNC_PARAMS)
    for number, length in chunks:
        builder.repeat(digest_of(number, length), length, 1)
    return builder.finish()


@SLOW
@given(st.data())
def test_the_mended_tree_is_that_of_the_right_chunks(data: st.DataObject) -> None:
    """Whatever is wrong: in runs, at their ends, all of it; right bytes may make runs of their own."""
    few = st.integers(1, 3)
    runs = data.draw(st.lists(st.tuples(few, st.sampled_from((100, 700)), st.integers(1, 5)), min_size=1))
    chunks = [(number, length) for number, length, count in runs for _ in range(count)]
    wrong = sorted(data.draw(st.sets(st.integers(0, len(chunks) - 1))))
    offsets = list(accumulate((length for _, length in chunks), initial=0))
    right = list(chunks)
    mending = ChunkRepair([], {})
    for row in wrong:
        mending.add(offsets[row], chunks[row][1], b"")
    assert pairs_of(mending.ranges()) == [(offsets[row], chunks[row][1]) for row in wrong]
    for row, found in zip(wrong, mending.wrong, strict=True):
        number = data.draw(st.integers(1, 4))
        right[row] = (number, chunks[row][1])
        mending.put(found, digest_of(number, found.length))
    mended = mending.repaired_tree(tree_of(chunks), SYNC_PARAMS, MemoryColumn)
    assert (mended.root, mended.size) == (tree_of(right).root, offsets[-1])


RUNS = random.Random(1).randbytes(300_000) + bytes(400_000) + random.Random(2).randbytes(300_000)
"""With a run of equal chunks in the middle."""


@pytest.fixture
def base(tmp_path: Path) -> OpenBase:
    (tmp_path / "old").write_bytes(RUNS)
    root = Root.open(os.fsencode(tmp_path))
    return OpenBase(root.open_read(b"old"), sign(RUNS, SYNC_PARAMS))


def content(chunks: Chunks) -> bytes:
    assert sum(chunks.lengths) == len(chunks.content)
    assert len(chunks.digests) == 32 * len(chunks.lengths)
    return chunks.content * chunks.times


@pytest.mark.parametrize("most", [1, 100_000, 1 << 20])
def test_any_records_of_a_base(base: OpenBase, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(open_base_module, "READ_BYTES", most)
    level = base.tree.levels[0]
    lengths = [length * count for length, count in zip(level.lengths, level.counts, strict=True)]
    starts = list(accumulate(lengths, initial=0))
    assert max(level.counts) > 1
    rng = random.Random(3)
    for _ in range(50):
        first, stop = sorted(rng.choices(range(level.records + 1), k=2))
        found = list(base.chunks(first, stop))
        assert b"".join(map(content, found)) == RUNS[starts[first] : starts[stop]]
        assert max((len(some.content) for some in found), default=0) <= most + SYNC_PARAMS.max_size
        assert sum(length * count for length, count in base.runs(first, stop)) == starts[stop] - starts[first]
        assert all(some.times == 1 or len(some.lengths) == 1 for some in found)
    for row in range(level.records):
        length = level.lengths[row]
        assert content(base.chunk(row, length)) == RUNS[starts[row] : starts[row] + length]


@pytest.mark.parametrize("at", [0, 250_000, len(RUNS) - 1])
def test_a_base_that_changed_is_found_out_before_anything_of_it_is_used(
    base: OpenBase, tmp_path: Path, at: int
) -> None:
    with (tmp_path / "old").open("r+b") as file:
        file.seek(at)
        file.write(bytes([RUNS[at] ^ 1]))
    level = base.tree.levels[0]
    given_: list[bytes] = []
    with pytest.raises(MismatchError, match="the old file changed while it was used"):
        given_ += map(content, base.chunks(0, level.records))
    assert RUNS.startswith(b"".join(given_))


def test_of_a_run_that_is_no_more_one_only_the_first_chunk_is_read(base: OpenBase, tmp_path: Path) -> None:
    """Its other chunks are written from that one, so that what they became does not matter."""
    level = base.tree.levels[0]
    row = next(row for row, count in enumerate(level.counts) if count > 2)
    start = sum(level.lengths[at] * level.counts[at] for at in range(row))
    with (tmp_path / "old").open("r+b") as file:
        file.seek(start + level.lengths[row] + 1)
        file.write(b"other")
    (run,) = base.chunks(row, row + 1)
    assert content(run) == RUNS[start : start + level.lengths[row] * level.counts[row]]
