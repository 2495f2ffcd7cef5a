"""ListedTree against a list with one object per entry."""

from __future__ import annotations

import os
from array import array
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rdc.model.entries import Kind, PackedInodes, little_endian
from rdc.survey.walk.file_columns import FileColumns, ListedDirectory
from rdc.survey.walk.listed_tree import ListedTree
from tests.support.trees.manifests import entry, listing

NAMES = [b"a", b"b", b"new\nline", b"\xff", b"x" * 255]

names = st.lists(st.sampled_from(NAMES), unique=True, max_size=4).map(sorted)
trees = st.lists(names | st.sampled_from([b"alone", b"name"]), max_size=6)


def directory(number: int) -> ListedDirectory:
    root: Any = number
    return ListedDirectory(root, b"%d/" % number, b"shown/%d/" % number)


def column(values: list[int]) -> bytes:
    return little_endian(array("Q", values))


def listed(drawn: list[Any]) -> tuple[ListedTree, list[tuple[int, bytes, int, int, int]]]:
    """The tree, and for each entry: number of its directory, name, size, device and inode."""
    tree, plain = ListedTree(), []
    for number, one in enumerate(drawn):
        if isinstance(one, bytes):
            columns = (0o100644, 10 + number, 7, 1, 0, 0, 100 + number, 0, 0, 0)
            found = os.stat_result(columns, {"st_blocks": number})
            tree.add_file(directory(number), one, found)
            plain.append((number, one, 100 + number, 7, 10 + number))
            continue
        rows = [(number, name, 9 * number + row, number, 70 + row) for row, name in enumerate(one)]
        packed = listing(entry(name, size=size) for _, name, size, _, _ in rows).packed()
        devices, inodes = column([row[3] for row in rows]), column([row[4] for row in rows])
        allocated = column([0] * len(rows))
        tree.add(directory(number), packed, PackedInodes(devices, inodes, b"", allocated, b""))
        plain += rows
    return tree, plain


def shown(columns: FileColumns) -> list[tuple[bytes, bytes, bytes, int, int, int]]:
    return [
        (
            columns.shown(row),
            columns.path(row),
            columns.name(row),
            columns.sizes[row],
            columns.devices[row],
            columns.inodes[row],
        )
        for row in range(len(columns))
    ]


@given(trees, st.data())
def test_chosen_files_are_those_that_were_walked_over(drawn: list[Any], data: st.DataObject) -> None:
    """Any selection of files; directories without entries may lie between them."""
    tree, plain = listed(drawn)
    assert len(tree) == len(plain)
    assert list(tree.sizes) == [size for _, _, size, _, _ in plain]
    rows = [row for row in range(len(plain)) if data.draw(st.booleans())]
    chosen = [plain[row] for row in rows]
    assert shown(tree.files(rows)) == [
        (b"shown/%d/" % number + name, b"%d/" % number + name, name, *rest) for number, name, *rest in chosen
    ]
    backwards = list(reversed(rows))
    assert list(tree.identities(backwards)) == [number for row in backwards for number in plain[row][3:]]


def test_what_is_taken_out_is_no_file_any_more() -> None:
    tree, _ = listed([[b"a", b"b"], b"c"])
    tree.take_out(1)
    assert list(tree.kinds) == [Kind.FILE, Kind.SPECIAL, Kind.FILE]
    assert list(tree.sizes) == [0, 0, 101]
