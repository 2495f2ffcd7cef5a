"""What the rows of a large tree take in memory while nothing about them changed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.uniting.ancestor_file import Head, StoredAncestor, encode, encode_table
from rdc.uniting.columns import SharedRow, digests_of, next_digests, replaced, table_of
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
    ancestor = StoredAncestor(encode(HEAD, paths, rows, stamps))
    table, held, peak = taken(lambda: ancestor.table)
    print(f"{column_bytes:.0f} bytes a row in columns, {held:.0f} held, {peak:.0f} at the peak")
    assert held < 1.2 * column_bytes
    assert peak < 2 * column_bytes
    before = ancestor.listed() or {}
    added = table_of([b"directory050/new"], [rows[1]], [stamps[1]])
    spliced = replaced(table, [5], added)
    digests = next_digests(spliced, digests_of(added), before)
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
