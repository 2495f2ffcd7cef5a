"""Literals compressed with their context: both sides find the same context, and lies are detected."""

from __future__ import annotations

import contextlib
import itertools
import random
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import rdc.session.source.range_answers
from rdc.chunking import ChunkParams
from rdc.limits import BUNDLE_FILES_LEAST, PACKED_BYTES, PACKED_CONTEXT_BYTES
from rdc.model.sync import SyncOptions
from rdc.plan.check_blocks import context_rows, known_matches
from rdc.plan.descent import ChunkRecipe, Copy, Descent, Fetch, Literal, Patch, Repeat, literal_rows
from rdc.plan.search import BlockSearch
from rdc.protocol.messages import Literals
from rdc.protocol.wire.stream import pack_literals, unpack_literals
from rdc.signature.codec import decode_records, encode_records
from rdc.signature.tree import sign
from tests.support.kernel.range_rows import pairs_of, rows_of
from tests.support.running.paired_sync import kinds, sync_in_turns
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree

KEY = b"k" * 16
PARAMS = ChunkParams(64, 256)


def words(seed: int, size: int) -> bytes:
    rng = random.Random(seed)
    return b" ".join(rng.choices([b"%x" % rng.getrandbits(30) for _ in range(99)], k=size // 7))[:size]


@given(st.binary(min_size=1, max_size=2000), st.binary(max_size=2000))
def test_what_is_packed_comes_out_again(literals: bytes, context: bytes) -> None:
    assert unpack_literals(pack_literals(literals, context), context, len(literals)) == literals


def test_context_helps_and_the_largest_fits() -> None:
    context, rng = words(1, PACKED_CONTEXT_BYTES), random.Random(2)
    literals = b"".join(context[at : at + 50] for at in rng.sample(range(200_000), 400))
    assert len(pack_literals(literals, context)) < len(pack_literals(literals, b"")) * 3 / 4
    noise = rng.randbytes(PACKED_BYTES)
    assert unpack_literals(pack_literals(noise, context), context, len(noise)) == noise
    assert Literals(0, pack_literals(noise, context)).packed


def magicless(content: bytes, window_log: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        19, window_log=window_log, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=0
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(content)


@pytest.mark.parametrize("size", [0, 1, 100, PACKED_BYTES])
def test_a_bomb_is_unpacked_as_far_as_was_asked_for(size: int) -> None:
    """A few KB of 64 MiB: what is made in memory is what was asked for, and a byte more."""
    packed = magicless(bytes(64 << 20), 18)
    assert len(packed) < 16 << 10
    tracemalloc.start()
    with pytest.raises(ValueError, match=f"{size + 1} packed literals, expected {size}"):
        unpack_literals(packed, b"context", size)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * size + (64 << 10)


def test_a_window_beyond_the_context_is_refused() -> None:
    with pytest.raises(ValueError, match="zstd cannot decode"):
        unpack_literals(magicless(words(1, 4 << 20), 22), b"context", 4 << 20)


@pytest.mark.parametrize("size", [99, 101, 0, 1 << 16])
def test_another_size_or_context_is_refused_or_shows(size: int) -> None:
    literals = words(3, 100)
    with pytest.raises(ValueError, match="packed literals"):
        unpack_literals(pack_literals(literals, b"context"), b"context", size)
    with contextlib.suppress(ValueError):
        assert unpack_literals(pack_literals(literals, literals), bytes(len(literals)), 100) != literals


@given(st.binary(max_size=200))
def test_any_bytes_are_literals_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert len(unpack_literals(data, b"context" * 9, 77)) == 77


@st.composite
def ranges(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int]:
    at, found = 0, []
    for gap, length in draw(st.lists(st.tuples(st.integers(0, 90_000), st.integers(1, 9_000)), min_size=1)):
        found.append((at + gap, length))
        at += gap + length
    return found, at + draw(st.integers(0, 90_000))


@given(ranges())
def test_context_is_near_the_ranges_in_none_of_them_and_bounded(
    drawn: tuple[list[tuple[int, int]], int],
) -> None:
    wanted, size = drawn
    context = pairs_of(context_rows(rows_of(wanted), size))
    pieces = sorted([*wanted, *context])
    assert all(at + length <= after for (at, length), (after, _) in itertools.pairwise(pieces))
    assert pieces[-1][0] + pieces[-1][1] <= size
    assert all(length > 0 for _, length in context)
    assert sum(length for _, length in context) <= PACKED_CONTEXT_BYTES
    if size <= PACKED_CONTEXT_BYTES // (2 * len(wanted)):
        assert sum(length for _, length in context) + sum(length for _, length in wanted) == size


@settings(deadline=None)
@given(st.integers(0, 1 << 30), st.lists(st.integers(0, 8_000), min_size=1, max_size=5))
def test_both_sides_find_the_same_context(seed: int, edits: list[int]) -> None:
    """The source in its file, the destination in its old version, by the recipe and what the blocks gave."""
    old = words(seed, 8_000)
    new = old
    for number, at in enumerate(edits):
        new = new[:at] + b"<%d>" % number + new[at + 3 :]
    held, wanted = sign(old, PARAMS), sign(new, PARAMS)
    descent = Descent([held], KEY, 8, len(new))
    descent.start(
        wanted.height, decode_records(encode_records(wanted.top, range(wanted.top.records), KEY, 8), 8)
    )
    while descent.asking:
        above, level = wanted.levels[descent.level + 1], wanted.levels[descent.level]
        nodes = descent.asking
        records = [decode_records(encode_records(level, above.children(n), KEY, 8), 8) for n in nodes]
        descent.answer(descent.level, nodes, records)
    parts = descent.recipe()
    fetched = literal_rows(parts)
    if not fetched:
        return
    context = context_rows(fetched, len(new))
    pieces = known_matches(parts, [held], context)
    if pieces is None:
        return
    assert b"".join(old[at : at + length] for _, _, at, length in pieces) == b"".join(
        new[at : at + length] for at, length in pairs_of(context)
    )
    assert BlockSearch(parts, [held]).parts() == parts


def test_pieces_of_chunks_are_context_and_runs_are_not_simple() -> None:
    tree_ = sign(b"abcdefgh" * 10, PARAMS)
    patch = Patch(b"r", 30, 1, ChunkRecipe.of(Copy(0, 5, 10), Literal(10), Copy(0, 40, 10)))
    wanted = context_rows(rows_of([(10, 10)]), 30)
    assert list(known_matches([patch], [tree_], wanted) or ()) == [(0, 0, 5, 10), (20, 0, 40, 10)]
    assert known_matches([Repeat((Fetch(b"r", 3, 1),), 3, 2)], [tree_], wanted) is None
    assert known_matches([Fetch(b"r", 3, 2)], [tree_], wanted) is None


OLD = words(5, 20_000)
NEW = OLD[:7_000] + words(6, 900) + OLD[7_500:]


def places(top: Path) -> tuple[Path, Path]:
    source = write_tree(top / "source", tree({"f": NEW}))
    return source, write_tree(top / "destination", tree({"f": File(OLD, 0o644, 1)}))


@pytest.mark.parametrize("compress", [None, False])
def test_literals_of_a_changed_file_come_packed_where_compression_is_allowed(
    compress: bool | None, tmp_path: Path
) -> None:
    source, destination = places(tmp_path)
    run = sync_in_turns(source, destination, SyncOptions(compress=compress, fsync=False))
    assert ("Literals" in kinds(run)) == (compress is None)
    assert ("Data" in kinds(run)) == (compress is False)
    assert describe(read_tree(source), read_tree(destination)) == []
    assert run.done.literal_bytes + run.done.reused_bytes == len(NEW)


@pytest.mark.parametrize(
    "garbage", [b"\0", b"garbage" * 30, pack_literals(bytes(950), b""), pack_literals(b"x" * 9, b"")]
)
def test_literals_that_are_not_those_asked_for_are_fetched_again(
    garbage: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice, since the second attempt is lied to as well; then the whole file."""
    monkeypatch.setattr(rdc.session.source.range_answers, "pack_literals", lambda literals, context: garbage)
    source, destination = places(tmp_path)
    run = sync_in_turns(source, destination)
    assert describe(read_tree(source), read_tree(destination)) == []
    assert run.done.literal_bytes == len(NEW)


def test_literals_with_little_known_around_them_come_in_the_stream(tmp_path: Path) -> None:
    """There those of other files help them: files of which hardly anything is left may be alike."""
    lines = [b"    line %d of it\n" % i for i in range(400)]
    files = {f"f{i}": b"".join(random.Random(i).sample(lines, 300)) for i in range(BUNDLE_FILES_LEAST - 1)}
    source = write_tree(tmp_path / "source", tree({k: v.replace(b"    ", b"\t") for k, v in files.items()}))
    before = tree({name: File(content, 0o644, 1) for name, content in files.items()})
    destination = write_tree(tmp_path / "destination", before)
    run = sync_in_turns(source, destination, SyncOptions(fsync=False))
    assert describe(read_tree(source), read_tree(destination)) == []
    found = {cost.name: cost.count for cost in run.done.by_kind}
    assert found["FileEnd"] == len(files)
    assert "Literals" not in found
