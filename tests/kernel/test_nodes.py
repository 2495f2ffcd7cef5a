"""What the digests of a manifest's nodes are over: C gathers what the definition in Python does, and both
what MANIFEST.md says.
"""

from __future__ import annotations

import random
from array import array
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from rdc.model.entries import Kind
from tests.reference import nodes as pure
from tests.support.share import examples
from tests.support.trees.manifests import Rows, build, entry, in_order, parent_of, randoms, trees

every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])


def named(rows: Rows) -> tuple[Any, ...]:
    manifest = build(rows)
    return manifest.text, manifest.texts, manifest.firsts, manifest.kinds, manifest.targets


def some_ends(rng: random.Random, count: int) -> array[int]:
    return array("Q", sorted(rng.sample(range(1, count + 1), rng.randrange(count + 1))) if count else [])


def expected_names(rows: Rows, ends: array[int]) -> list[bytes]:
    """Row by row."""
    wanted, nodes = in_order(rows), []
    for first, end in pairwise((0, *ends)):
        above = parent_of(wanted[first].path)
        text = b""
        for number, one in enumerate(wanted[first:end]):
            parent, _, name = one.path.rpartition(b"/")
            if number and parent != above:
                text += b"\0" + parent + b"\0"
            above = parent
            text += name + b"\0"
        text = (end - first).to_bytes(4, "little") + b"\0" + parent_of(wanted[first].path) + b"\0" + text
        text += b"\0" + bytes(one.kind for one in wanted[first:end])
        text += b"".join(one.target + b"\0" for one in wanted[first:end] if one.kind == Kind.SYMLINK)
        nodes.append(text)
    return nodes


@settings(deadline=None)
@given(trees(), randoms)
def test_names_of_nodes_are_the_rows(rows: Rows, rng: random.Random) -> None:
    columns, ends = named(rows), some_ends(rng, len(rows))
    cut = rng.randrange(len(ends) + 1)
    for module in (pure, _kernel):
        got: list[bytes] = []
        place = (0, 0, 0)
        # In two calls, the second of which begins where the first ended.
        for some in (ends[:cut], ends[cut:]):
            content, sizes, place = module.node_names(*columns, some, place)
            at = 0
            for size in array("Q", sizes):
                got.append(content[at : at + size])
                at += size
            assert at == len(content)
        assert got == expected_names(rows, ends)
        assert place[0] == (ends[-1] if ends else 0)


@settings(deadline=None)
@given(randoms, st.integers(0, 200), st.lists(st.integers(1, 8), max_size=8))
def test_columns_of_nodes_are_the_rows(rng: random.Random, count: int, widths: list[int]) -> None:
    columns = tuple((rng.randbytes(count * width), width) for width in widths)
    first = rng.randrange(count + 1)
    ends = array("Q", sorted(rng.choices(range(first, count + 1), k=rng.randrange(9))))
    expected = b"".join(
        column[width * start : width * end]
        for start, end in pairwise((first, *ends))
        for column, width in columns
    )
    for module in (pure, _kernel):
        assert module.node_columns(ends, first, columns) == expected


@settings(deadline=None, max_examples=examples(300))
@given(trees().filter(len), randoms)
def test_what_does_not_fit_is_refused_by_both_alike(rows: Rows, rng: random.Random) -> None:
    columns, ends = list(named(rows)), some_ends(rng, len(rows))
    place = [0, 0, 0]
    for _ in range(rng.randrange(1, 4)):
        what = rng.randrange(8)
        if what < 3:
            place[what] = rng.choice((1, len(rows), 1 << 40))
        elif what < 5 and len(columns[what - 2]):
            column = columns[what - 2] = columns[what - 2][:]
            column[rng.randrange(len(column))] = rng.choice((0, 1, 5, len(columns[0]), 1 << 63))
            columns[2] = array("Q", sorted(columns[2]))
        elif what == 5:
            columns[0] = columns[0][: rng.randrange(len(columns[0]) + 1)]
        elif what == 6:
            columns[4] = columns[4][: rng.randrange(len(columns[4]) + 1)]
        elif ends:
            ends[rng.randrange(len(ends))] = rng.choice((0, 1, len(rows) + 1, 1 << 63))

    def outcome(module: Any) -> object:
        try:
            return module.node_names(*columns, ends, tuple(place))
        except ValueError as error:
            return str(error)

    assert outcome(_kernel) == outcome(pure)


@every_kernel
def test_columns_that_end_early_are_refused(module: Any) -> None:
    columns = ((b"12", 1), (bytes(15), 8))
    assert module.node_columns(array("Q", [0, 1]), 0, columns) == b"1" + bytes(8)
    assert module.node_columns(array("Q"), 0, ()) == b""
    for ends, first, wrong in (
        ([2], 0, columns),
        ([1, 0], 0, columns),
        ([0], 1, columns),
        ([], 2, columns),
        ([1 << 63], 0, columns),
        ([1], 0, ((b"1" * 9, 9),)),
        ([1], 0, ((b"1", 0),)),
        ([1], 0, ((b"1", 1),) * 9),
    ):
        with pytest.raises(ValueError, match="do not fit together"):
            module.node_columns(array("Q", ends), first, wrong)


def test_a_link_at_the_end_of_all() -> None:
    rows = Rows({b"l": entry(b"l", Kind.SYMLINK, target=b"to")})
    for module in (pure, _kernel):
        content, _, place = module.node_names(*named(rows), array("Q", [1]), (0, 0, 0))
        assert content == b"\1\0\0\0" + b"\0\0" + b"l\0" + b"\0" + b"\2" + b"to\0"
        assert place == (1, 4, 3)
