"""What the rows of a large tree take in memory while nothing about them changed."""

from __future__ import annotations

import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.files.root.root import Root
from rdc.tree import filter_list
from rdc.uniting import columns
from rdc.uniting.ancestor_file import Head, StoredAncestor, encode, encode_table
from rdc.uniting.columns import SharedRow, digests_of, next_digests, replaced, table_of
from rdc.uniting.describe import Listing, encode_next
from rdc.uniting.path_texts import Paths
from rdc.uniting.rows import DIRECTORY, FILE, Stamp
from tests.support.share import examples

T = TypeVar("T")

HEAD = Head(bytes(8), bytes(16), bytes(16), 2, 0, b"/there", 0)
DIRECTORIES, FILES = 100, 200
ROWS = DIRECTORIES * (FILES + 1)


def row(number: int) -> tuple[bytes, SharedRow, Stamp]:
    directory, name = divmod(number, FILES + 1)
    path = b"directory%03d" % directory
    if not name:
        return path, SharedRow(DIRECTORY, None, b"", 0o755, 0), Stamp(0, 0o755, 0, 1 + number, 0)
    stamp = Stamp(number, 0o644, number << 20, 1 + number, number << 20)
    return path + b"/file%03d" % name, SharedRow(FILE, None, b"", 0o644, number << 20), stamp


def taken(call: Callable[[], T]) -> tuple[T, float, float]:
    """Return what a call returns, the bytes a row that are held after it, and those at its peak."""
    tracemalloc.start()
    try:
        found = call()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return found, held / ROWS, peak / ROWS


def test_rows_are_held_as_their_columns_and_written_one_column_at_a_time() -> None:
    paths, rows, stamps = zip(*map(row, range(ROWS)), strict=True)
    column_bytes = sum(map(len, paths)) / ROWS + 1 + 1 + 1 + 2 + 8 + 8 + 2 + 8 + 8 + 8
    data = encode(HEAD, paths, rows, stamps)
    ancestor = StoredAncestor(data)
    table, held, peak = taken(lambda: ancestor.table)
    assert sys.getrefcount(data) == 2, "the bytes of the file are held beside the rows"
    print(f"{column_bytes:.0f} bytes a row in columns, {held:.0f} held, {peak:.0f} at the peak")
    assert held < 1.2 * column_bytes
    assert peak < 2 * column_bytes
    before = dict(ancestor.listed() or ())
    added = table_of([b"directory050/new"], [rows[1]], [stamps[1]])
    spliced = replaced(table, [5], added)
    digests = b"".join(next_digests(spliced, digests_of(added), before))
    found, _, peak = taken(lambda: encode_table(HEAD, spliced, digests))
    print(f"{peak:.0f} to write it")
    assert peak < 0.3 * column_bytes
    assert StoredAncestor(found.joined()).count == ROWS


@given(
    st.lists(st.integers(0, 70_000).map(lambda size: b"x" * size) | st.binary(max_size=3), max_size=9),
    st.data(),
)
@settings(max_examples=examples(100), deadline=None)
def test_paths_of_one_text_are_those_of_a_list(texts: list[bytes], data: st.DataObject) -> None:
    expected = [text.replace(b"\0", b"-") for text in texts]
    paths = Paths.of(expected)
    start = data.draw(st.integers(0, len(expected)))
    end = data.draw(st.integers(start, len(expected)))
    assert list(paths) == expected
    assert [paths[number] for number in range(len(paths))] == expected
    assert [path for chunk in paths.chunks(start, end) for path in chunk] == expected[start:end]
    assert paths.part(start, end) == b"".join(path + b"\0" for path in expected[start:end])


def test_short_pieces_of_a_column_are_joined_and_long_ones_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_BLOCK_BYTES", 4)
    pieces: list[bytes | memoryview] = [b"a", b"bc", b"long one", b"d", b"ef", b"g", b"hi"]
    found = list(columns._blocks(pieces))
    assert found == [b"abc", b"long one", b"defg", b"hi"]
    assert found[1] is pieces[2]


@pytest.mark.parametrize("has_ancestor", [True, False])
def test_a_side_lets_its_columns_go_before_what_is_agreed_is_written(
    tmp_path: Path, has_ancestor: bool
) -> None:
    """Both would take most of the memory of a run."""
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "file").write_bytes(b"content")
    root = Root.open(os.fsencode(tmp_path))
    side = Listing(root, filter_list(()), lambda _: None)
    paths = [b"directory", b"directory/file"]
    side.load([b"", b"directory"])
    rows = [
        SharedRow(each.kind, None, b"", each.mode, each.mtime_ns)
        for each in map(side.rows.get, paths)
        if each
    ]
    added = table_of(paths, rows, [side.rows[path].stamp for path in paths])
    ancestor = StoredAncestor(encode(HEAD, [], [], [])) if has_ancestor else None
    found = encode_next(HEAD, added, {b"", b"directory"}, ancestor, {}, side)
    assert StoredAncestor(found.joined()).read().paths == paths
    assert not side.directories
    assert list(side.rows) == paths
