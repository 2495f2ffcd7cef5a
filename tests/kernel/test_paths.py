"""Paths of a manifest's rows: C puts together what the definition in Python does."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import paths as pure

every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])

Columns = tuple[bytes, "array[int]", "array[int]"]


def columns(tree: dict[bytes, list[bytes]]) -> Columns:
    """Text, texts and firsts of these directories, in this order."""
    text, texts = b"", array("Q")
    for path, names in tree.items():
        text += b"\0" + path + b"\0"
        texts.append(len(text))
        text += b"".join(name + b"\0" for name in names)
    return text, texts, array("Q", [0, *accumulate(map(len, tree.values()))][:-1])


TREE: dict[bytes, list[bytes]] = {
    b"": [b"a", b"b", b"c"],
    b"b": [b"one"],
    b"b/c": [b"x", b"yy"],
    b"d" * 300: [b"z"],
}
PATHS = [b"a", b"b", b"c", b"b/one", b"b/c/x", b"b/c/yy", b"d" * 300 + b"/z"]


@every_kernel
def test_any_rows_of_a_tree(module: Any) -> None:
    for chosen in range(1 << len(PATHS)):
        rows = [row for row in range(len(PATHS)) if chosen >> row & 1]
        found, _ = module.row_paths(*columns(TREE), array("Q", rows), (0, 0))
        assert found == b"".join(PATHS[row] + b"\0" for row in rows)


@every_kernel
def test_what_does_not_fit_is_refused(module: Any) -> None:
    text, texts, firsts = columns(TREE)
    rows = array("Q", [1, 4])
    assert module.row_paths(text, texts, firsts, rows, (0, 0))[0] == b"b\0b/c/x\0"
    for wrong in (
        (text, texts[1:], firsts, rows),
        (text, array("Q"), array("Q"), rows),
        (text, texts, array("Q", [1, *firsts[1:]]), rows),
        (text, texts, firsts, array("Q", [4, 1])),
        (text, texts, firsts, array("Q", [4, 4])),
        (text, texts, firsts, array("Q", [7])),
        (text, texts, firsts, bytes(9)),
        (text, array("Q", [1 << 63] * 4), firsts, rows),
        (text, array("Q", [0] * 4), firsts, rows),
        (text, array("Q", [3] * 4), firsts, rows),
        (text[:-1], texts, firsts, array("Q", [6])),
        (b"", texts, firsts, rows),
    ):
        with pytest.raises(ValueError, match="increasing rows that it has"):
            module.row_paths(*wrong, (0, 0))


names = st.binary(min_size=1, max_size=4).map(lambda name: name.replace(b"\0", b"n"))


@given(st.dictionaries(names, st.lists(names, min_size=1, max_size=9), min_size=1, max_size=9), st.data())
def test_both_agree(tree: dict[bytes, list[bytes]], data: st.DataObject) -> None:
    of_tree = columns(tree)
    rows = array("Q", sorted(data.draw(st.sets(st.integers(0, sum(map(len, tree.values())) - 1)))))
    assert _kernel.row_paths(*of_tree, rows, (0, 0)) == pure.row_paths(*of_tree, rows, (0, 0))


@given(
    st.binary(max_size=30), st.lists(st.tuples(st.integers(0, 32), st.integers(0, 9)), max_size=4), st.data()
)
def test_both_agree_on_what_is_no_manifest(
    text: bytes, places: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Numbers that increase, as a manifest's do; the rest is anything."""
    texts = array("Q", sorted(at for at, _ in places))
    firsts = array("Q", sorted(row for _, row in places))
    rows = array("Q", sorted(data.draw(st.sets(st.integers(0, 12), max_size=4))))
    reached = data.draw(st.tuples(st.integers(0, 12), st.integers(0, 40)))

    def outcome(module: Any) -> tuple[bytes, tuple[int, int]] | None:
        try:
            found: tuple[bytes, tuple[int, int]] = module.row_paths(text, texts, firsts, rows, reached)
        except ValueError:
            return None
        return found

    assert outcome(_kernel) == outcome(pure)


@every_kernel
@given(st.dictionaries(names, st.lists(names, min_size=1, max_size=30), min_size=1, max_size=5), st.data())
def test_what_was_reached_changes_nothing(
    module: Any, tree: dict[bytes, list[bytes]], data: st.DataObject
) -> None:
    """Rows asked for in parts, in order or not, have the paths that they have at once."""
    of_tree, count = columns(tree), sum(map(len, tree.values()))
    paths = pure.row_paths(*of_tree, array("Q", range(count)), (0, 0))[0].split(b"\0")
    reached = (0, 0)
    for chosen in data.draw(st.lists(st.sets(st.integers(0, count - 1), min_size=1), max_size=6)):
        rows = sorted(chosen)
        found, reached = module.row_paths(*of_tree, array("Q", rows), reached)
        assert found == b"".join(paths[row] + b"\0" for row in rows)
        assert reached[0] == rows[-1] + 1


def test_a_large_directory_is_passed_over_once() -> None:
    """By what is reached: without the names before it the rest has the same paths."""
    text, texts, firsts = columns({b"d": [b"%04d" % row for row in range(1000)]})
    for module in (pure, _kernel):
        _, reached = module.row_paths(text, texts, firsts, array("Q", [499]), (0, 0))
        assert reached == (500, texts[0] + 2500)
        hidden = text[: texts[0]] + b"x" * 2499 + b"\0" + text[texts[0] + 2500 :]
        found, _ = module.row_paths(hidden, texts, firsts, array("Q", [500, 999]), reached)
        assert found == b"d/0500\0d/0999\0"
