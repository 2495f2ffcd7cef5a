"""Signature trees against a slow implementation of FORMAT.md."""

from __future__ import annotations

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.chunking import SYNC_PARAMS, ChunkParams
from rdc.signature import tree as build
from rdc.signature.tree import FOLD_CHUNKS, NODE_KEY, ROOT_KEY, SignatureTree, TreeBuilder, sign
from tests.support.share import examples

Record = tuple[bytes, int, int]
PARAMS = ChunkParams(64, 256)


def runs(items: list[tuple[bytes, int]]) -> list[Record]:
    out: list[Record] = []
    for digest, length in items:
        if out and out[-1][0] == digest:
            out[-1] = (digest, length, out[-1][2] + 1)
        else:
            out.append((digest, length, 1))
    return out


def columns(records: list[Record]) -> bytes:
    return (
        b"".join(r[0] for r in records)
        + b"".join(r[1].to_bytes(8, "little") for r in records)
        + b"".join(r[2].to_bytes(8, "little") for r in records)
    )


def groups(records: list[Record]) -> list[list[Record]]:
    out, c, n = [], 0, len(records)
    while n - c > 26:
        window = range(c + 7, c + 27)
        end = min(window, key=lambda i: (records[i - 1][0][:8], -i))
        out.append(records[c:end])
        c = end
    return [*out, records[c:]]


def slow_root(items: list[tuple[bytes, int]], params: ChunkParams) -> tuple[bytes, list[list[Record]]]:
    size = sum(length for _, length in items)
    levels = [runs(items)]
    while len(levels[-1]) > 26:
        number = len(levels) - 1
        nodes = [
            (blake3(bytes([number]) + columns(g), key=NODE_KEY).digest(), sum(r[1] * r[2] for r in g))
            for g in groups(levels[-1])
        ]
        levels.append(runs(nodes))
    head = params.id + size.to_bytes(8, "little") + bytes([len(levels) - 1])
    return blake3(head + columns(levels[-1]), key=ROOT_KEY).digest(), levels


def records_of(tree: SignatureTree) -> list[list[Record]]:
    return [
        [(level.digest(i), level.lengths[i], level.counts[i]) for i in range(level.records)]
        for level in tree.levels
    ]


# Few different digests give runs of chunks and, in long periodic lists, runs of equal nodes.
names = st.integers(0, 3).map(lambda i: blake3(bytes([i])).digest())
fresh = st.integers(0, 10**6).map(lambda i: blake3(i.to_bytes(4, "big")).digest())
items = st.lists(st.one_of(names, fresh), max_size=400).map(lambda ds: [(d, 1 + d[0]) for d in ds])


@settings(max_examples=examples(60), deadline=None)
@given(
    items, st.lists(st.integers(1, 50), max_size=30), st.integers(1, 12), st.sampled_from([1, 7, FOLD_CHUNKS])
)
def test_any_batches_give_the_defined_tree(
    chunk_items: list[tuple[bytes, int]], batches: list[int], repeats: int, fold: int
) -> None:
    chunk_items = chunk_items * repeats
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "FOLD_CHUNKS", fold)
        builder = TreeBuilder(PARAMS)
        rest = chunk_items
        for batch in batches:
            builder.add([d for d, _ in rest[:batch]], [n for _, n in rest[:batch]])
            rest = rest[batch:]
        builder.add([d for d, _ in rest], [n for _, n in rest])
        tree = builder.finish()
    root, levels = slow_root(chunk_items, PARAMS)
    assert records_of(tree) == levels
    assert tree.root == root
    assert tree.size == sum(n for _, n in chunk_items)


@settings(max_examples=examples(40), deadline=None)
@given(items)
def test_children_lead_down_to_every_record(chunk_items: list[tuple[bytes, int]]) -> None:
    builder = TreeBuilder(PARAMS)
    builder.add([d for d, _ in chunk_items], [n for _, n in chunk_items])
    tree = builder.finish()
    for number, level in enumerate(tree.levels[1:], 1):
        below = tree.levels[number - 1]
        at = 0
        for record in range(level.records):
            rows = level.children(record)
            assert rows.start == at
            assert level.lengths[record] == sum(below.lengths[i] * below.counts[i] for i in rows)
            at += len(rows) * level.counts[record]
        assert at == below.records


@settings(max_examples=examples(60), deadline=None)
@given(items, st.integers(1, 12), st.integers(1, 80))
def test_a_low_level_that_describes_the_whole_file(
    chunk_items: list[tuple[bytes, int]], repeats: int, most: int
) -> None:
    builder = TreeBuilder(PARAMS)
    builder.add(*map(list, zip(*chunk_items * repeats, strict=True)) if chunk_items else ([], []))
    tree = builder.finish()

    def whole(number: int) -> bool:
        level = tree.levels[number]
        return tree.size == sum(level.lengths[i] * level.counts[i] for i in range(level.records))

    fitting = [n for n, level in enumerate(tree.levels) if level.records <= most and whole(n)]
    found = tree.described_by(most)
    assert whole(found)
    assert found == (fitting[0] if fitting else tree.height)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(fresh, st.integers(1, 5)), min_size=1, max_size=60))
def test_repeat_is_the_same_as_adding_one_by_one(spans: list[tuple[bytes, int]]) -> None:
    one, many = TreeBuilder(PARAMS), TreeBuilder(PARAMS)
    for digest, count in spans:
        one.repeat(digest, 100, count)
        many.add([digest] * count, [100] * count)
    assert one.finish().root == many.finish().root


def test_a_run_of_any_length_is_one_record() -> None:
    builder = TreeBuilder(PARAMS)
    builder.repeat(bytes(32), 256, 1 << 40)
    tree = builder.finish()
    assert (tree.height, tree.top.records, tree.size) == (0, 1, 256 << 40)


def test_empty_and_one_chunk_files_have_one_level() -> None:
    for data, records in ((b"", 0), (b"x", 1)):
        tree = sign(data, SYNC_PARAMS)
        assert (tree.height, tree.levels[0].records, tree.size) == (0, records, len(data))


def test_parameters_and_length_enter_the_root() -> None:
    assert sign(b"abc", SYNC_PARAMS).root != sign(b"abc", PARAMS).root
    assert len({sign(bytes(n), PARAMS).root for n in (0, 1, 2, 256, 257, 512)}) == 6


@settings(max_examples=examples(30), deadline=None)
@given(st.binary(max_size=6000), st.integers(1, 1000))
def test_sign_equals_chunks_of_any_spans(data: bytes, span: int) -> None:
    from rdc.chunking import chunks

    spans = [data[i : i + span] for i in range(0, len(data), span)]
    chunk_items = [(c.digest, c.length) for c in chunks(spans, PARAMS)]
    offset = 0
    for chunk in chunks(data, PARAMS):
        assert chunk.offset == offset
        assert chunk.digest == blake3(data[offset : offset + chunk.length]).digest()
        offset += chunk.length
    assert offset == len(data)
    assert sign(data, PARAMS).root == slow_root(chunk_items, PARAMS)[0]
