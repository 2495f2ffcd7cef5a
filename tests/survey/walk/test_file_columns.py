"""FileColumns against a list with one object per file."""

from __future__ import annotations

import os
from array import array
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rdc.model.entries import PackedInodes, little_endian
from rdc.survey.walk.file_columns import Directory, FileColumns, FileRows
from tests.support.trees.manifests import entry, listing

NAMES = [b"a", b"b", b"new\nline", b"\xff", b"x" * 255]

names = st.lists(st.sampled_from(NAMES), unique=True, max_size=4).map(sorted)
trees = st.lists(names | st.sampled_from([b"alone", b"name"]), max_size=6)


def directory(number: int) -> Directory:
    root: Any = number
    return Directory(root, b"%d/" % number, b"shown/%d/" % number)


def column(values: list[int]) -> bytes:
    return little_endian(array("Q", values))


def listed(drawn: list[Any]) -> tuple[FileColumns, list[tuple[int, bytes, int, int, int]]]:
    """The files, and for each: number of its directory, name, size, device and inode."""
    files, plain = FileColumns(), []
    for number, one in enumerate(drawn):
        if isinstance(one, bytes):
            columns = (0o100644, 10 + number, 7, 1, 0, 0, 100 + number, 0, 0, 0)
            found = os.stat_result(columns, {"st_blocks": number, "st_mtime_ns": 0, "st_ctime_ns": 0})
            files.add(directory(number), FileRows.of_file(one, found))
            plain.append((number, one, 100 + number, 7, 10 + number))
            continue
        rows = [(number, name, 9 * number + row, number, 70 + row) for row, name in enumerate(one)]
        packed = listing(entry(name, size=size) for _, name, size, _, _ in rows).packed()
        devices, inodes = column([row[3] for row in rows]), column([row[4] for row in rows])
        nothing = column([0] * len(rows))
        packed_inodes = PackedInodes(devices, inodes, nothing[::2], nothing, nothing)
        files.add(directory(number), FileRows.of_listing(packed, packed_inodes))
        plain += rows
    return files, plain


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
    files, plain = listed(drawn)
    assert shown(files) == [
        (b"shown/%d/" % number + name, b"%d/" % number + name, name, *rest) for number, name, *rest in plain
    ]
    assert list(files.sizes) == [size for _, _, size, _, _ in plain]
    rows = [row for row in range(len(plain)) if data.draw(st.booleans())]
    chosen = [plain[row] for row in rows]
    assert shown(files.chosen(rows)) == [
        (b"shown/%d/" % number + name, b"%d/" % number + name, name, *rest) for number, name, *rest in chosen
    ]
    backwards = list(reversed(rows))
    assert list(files.identities(backwards)) == [number for row in backwards for number in plain[row][3:]]
