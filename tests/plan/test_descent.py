"""The descent over signature trees: its recipe makes the wanted file and asks little; lying gains nothing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.chunking import ChunkParams
from rdc.errors import ProtocolError
from rdc.plan.descent import Descent, Fetch, Part, Repeat, Reuse, ReuseChunk, literal_rows
from rdc.signature.codec import NodeRecords, decode_records, encode_records
from rdc.signature.tree import SignatureTree, TreeBuilder, sign
from tests.support.kernel.range_rows import pairs_of
from tests.support.share import examples

PARAMS = ChunkParams(64, 256)
KEY = bytes(range(16))


def drive(wanted: SignatureTree, bases: list[SignatureTree], width: int = 8) -> tuple[tuple[Part, ...], int]:
    """The recipe, and how many node records it took: a source answers from `wanted`."""
    descent = Descent(bases, KEY, width, wanted.size)
    top = encode_records(wanted.top, range(wanted.top.records), KEY, width)
    descent.start(wanted.height, decode_records(top, width))
    records = wanted.top.records
    while descent.asking:
        level, nodes = descent.level, descent.asking
        rows = [wanted.levels[level + 1].children(node) for node in nodes]
        answers = [
            decode_records(encode_records(wanted.levels[level], row, KEY, width), width) for row in rows
        ]
        records += sum(map(len, rows))
        half = len(nodes) // 2
        if half:
            assert not descent.answer(level, nodes[:half], answers[:half])
        assert descent.answer(level, nodes[half:], answers[half:])
    return descent.recipe(), records


def make(parts: tuple[Part, ...], bases: list[bytes], trees: list[SignatureTree], wanted: bytes) -> bytes:
    """The file as the recipe says, literals taken from `wanted` where literal_rows says they lie."""
    literals = b"".join(wanted[at : at + length] for at, length in pairs_of(literal_rows(parts)))
    taken = 0

    def offset(base: int, row: int) -> int:
        level = trees[base].levels[0]
        return sum(level.lengths[i] * level.counts[i] for i in range(row))

    def write(parts: tuple[Part, ...]) -> bytes:
        nonlocal taken
        out = []
        for part in parts:
            if isinstance(part, Fetch):
                piece = literals[taken : taken + part.length]
                taken += part.length
            elif isinstance(part, Repeat):
                piece = write(part.parts)
            else:
                assert isinstance(part, Reuse | ReuseChunk), "patches are made below the descent"
                row = part.first if isinstance(part, Reuse) else part.row
                at = offset(part.base, row)
                piece = bases[part.base][at : at + part.length]
            assert len(piece) == part.length
            out.append(piece * part.count)
        return b"".join(out)

    made = write(parts)
    assert taken == len(literals)
    return made


def pieces(seed: int, count: int) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(1, 700)) for _ in range(count)]


# Files put together from the same few pieces share chunks in any order; long repetitions make runs of chunks
# and of nodes; a zero run is one record.
BLOCKS = [*pieces(1, 12), bytes(5000), b"ab" * 900, b"".join(pieces(2, 40))]
files = st.lists(
    st.tuples(st.integers(0, len(BLOCKS) - 1), st.sampled_from([1, 1, 1, 2, 60])), max_size=30
).map(lambda spans: b"".join(BLOCKS[i] * n for i, n in spans)[:200_000])


@settings(max_examples=examples(60), deadline=None)
@given(files, st.lists(files, max_size=3), st.sampled_from([4, 8, 32]))
def test_the_recipe_makes_the_wanted_file(wanted: bytes, bases: list[bytes], width: int) -> None:
    trees = [sign(base, PARAMS) for base in bases]
    parts, _ = drive(sign(wanted, PARAMS), trees, width)
    assert sum(part.length * part.count for part in parts) == len(wanted)
    assert make(parts, bases, trees, wanted) == wanted


def test_an_unchanged_file_is_one_copy_and_asks_for_nothing() -> None:
    data = random.Random(3).randbytes(300_000)
    tree = sign(data, PARAMS)
    parts, records = drive(tree, [tree])
    assert parts == (Reuse(0, 0, tree.levels[0].records, len(data), 1),)
    assert records == tree.top.records


def test_an_edit_costs_the_nodes_above_it() -> None:
    data = random.Random(4).randbytes(1 << 20)
    edited = data[:600_000] + b"edit" + data[600_000:]
    old, new = sign(data, PARAMS), sign(edited, PARAMS)
    parts, records = drive(new, [old])
    assert sum(literal_rows(parts)[1::2]) <= 4 * PARAMS.max_size
    assert records <= 2 * 26 * (new.height + 1), "two nodes a level at the most"
    assert make(parts, [data], [old], edited) == edited


def test_a_later_base_fills_what_an_earlier_lacks() -> None:
    rng = random.Random(5)
    head, tail = rng.randbytes(100_000), rng.randbytes(100_000)
    trees = [sign(head, PARAMS), sign(tail, PARAMS)]
    parts, _ = drive(sign(head + tail, PARAMS), trees)
    assert sum(literal_rows(parts)[1::2]) <= 3 * PARAMS.max_size
    assert {part.base for part in parts if isinstance(part, Reuse)} == {0, 1}


def test_a_long_level_is_looked_up_only_where_nodes_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdc.plan.descent.DESCENT_MAP_RECORDS", 60)
    data = random.Random(6).randbytes(1 << 20)
    edited = data[:500_000] + b"!" + data[500_001:]
    old = sign(data, PARAMS)
    parts, _ = drive(sign(edited, PARAMS), [old])
    assert make(parts, [data], [old], edited) == edited
    assert sum(literal_rows(parts)[1::2]) <= 26 * PARAMS.max_size, "about one node"


def test_a_run_of_nodes_is_fetched_once() -> None:
    builder = TreeBuilder(PARAMS)
    digests = [bytes([i]) * 32 for i in range(40)]
    for _ in range(50):
        builder.add(digests, [100] * 40)
    tree = builder.finish()
    parts, _ = drive(tree, [])
    assert sum(part.length * part.count for part in parts) == 50 * 40 * 100
    assert sum(literal_rows(parts)[1::2]) < 50 * 40 * 100 / 2


def records(*rows: tuple[int, int], first: int = 0) -> NodeRecords:
    names = tuple(bytes([i]) * 8 for i in range(len(rows)))
    return NodeRecords(first, names, tuple(r[0] for r in rows), tuple(r[1] for r in rows))


@pytest.mark.parametrize("rows", [((999, 1),), ((500, 1), (501, 1)), ((1000, 2),), ((1 << 62, 1 << 62),), ()])
def test_records_that_do_not_add_up_are_refused(rows: tuple[tuple[int, int], ...]) -> None:
    descent = Descent([], KEY, 8, 1000)
    with pytest.raises(ProtocolError):
        descent.start(0, records(*rows))


def test_answers_out_of_turn_are_refused() -> None:
    descent = Descent([], KEY, 8, 1000)
    descent.start(1, records((400, 1), (600, 1)))
    assert (descent.level, descent.asking) == (0, [0, 1])
    with pytest.raises(ProtocolError):
        descent.answer(1, [0], [records((400, 1))])
    with pytest.raises(ProtocolError):
        descent.answer(0, [2], [records((400, 1))])
    with pytest.raises(ProtocolError):
        descent.answer(0, [0], [records((399, 1))])
