"""Many ranges of an open file at once are what each of them is alone, errors included."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import FileChangedError, FileError
from rdc.files import _files
from rdc.files.bulk.open_many import MemoryFile
from rdc.files.root import source_file
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile

CONTENT = os.urandom(100_000)

ranges = st.lists(
    st.integers(0, len(CONTENT)).flatmap(
        lambda offset: st.tuples(st.just(offset), st.integers(0, min(3_000, len(CONTENT) - offset)))
    ),
    max_size=20,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    top = tmp_path_factory.mktemp("ranges")
    (top / "f").write_bytes(CONTENT)
    opened = Root.open(os.fsencode(top))
    yield opened
    opened.close()


def in_memory(root: Root) -> MemoryFile:
    return MemoryFile(root, b"f", root.identity(b"f"), CONTENT)


@given(rows=ranges)
def test_they_come_one_behind_another(root: Root, rows: list[tuple[int, int]]) -> None:
    expected = b"".join(CONTENT[offset : offset + length] for offset, length in rows)
    asked = array("Q", (number for row in rows for number in row))
    with root.open_read(b"f") as source:
        for file in (source, in_memory(root)):
            assert file.read_ranges(asked) == expected
            memory = memoryview(bytearray(len(expected)))
            file.read_ranges_into(memory, asked)
            assert memory == expected


def both(file: SourceFile, *numbers: int) -> None:
    rows = array("Q", numbers)
    with pytest.raises(FileChangedError, match=r"f: .*expected.*found"):
        file.read_ranges(rows)
    with pytest.raises(FileChangedError, match=r"f: .*expected.*found"):
        file.read_ranges_into(memoryview(bytearray(sum(rows[1::2]))), rows)


def test_a_file_that_ends_before_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(CONTENT)
    root = Root.open(os.fsencode(tmp_path))
    with root.open_read(b"f") as source:
        both(source, 0, 10, len(CONTENT) - 1, 2)
        both(in_memory(root), 0, 10, len(CONTENT) - 1, 2)
        os.truncate(tmp_path / "f", 500)
        assert source.read_ranges(array("Q", (0, 100, 499, 1, 500, 0))) == CONTENT[:100] + CONTENT[499:500]
        both(source, 0, 100, 490, 11)
    root.close()


def test_what_fails_in_c_is_read_one_by_one(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been a hiccup of a network; if not, pread says what is wrong."""
    monkeypatch.setattr(_files, "read_ranges", lambda *_: None)
    monkeypatch.setattr(_files, "read_ranges_into", lambda *_: False)
    rows, memory = array("Q", (7, 3, 1, 2)), memoryview(bytearray(5))
    with root.open_read(b"f") as source:
        assert source.read_ranges(rows) == CONTENT[7:10] + CONTENT[1:3]
        source.read_ranges_into(memory, rows)
        assert memory == CONTENT[7:10] + CONTENT[1:3]


def test_an_error_of_reading_is_told(root: Root) -> None:
    with root.open_read(b"f") as source:
        fd, source._fd = source._fd, -1
        try:
            with pytest.raises(FileError, match="Bad file descriptor"):
                source.read_ranges(array("Q", (0, 1)))
        finally:
            source._fd = fd


@pytest.mark.parametrize(
    "rows",
    [
        bytes(15),
        array("Q", (0, (1 << 30) + 1)),
        array("Q", (0, 1 << 29, 0, 1 << 29, 0, 1)),
        array("Q", (1 << 63, 1)),
        array("Q", ((1 << 63) - 1, 1)),
        array("Q", (0, (1 << 64) - 1, 0, 2)),
    ],
)
def test_rows_that_cannot_be_are_refused(root: Root, rows: bytes) -> None:
    with pytest.raises(ValueError, match="ranges: rows"):
        _files.read_ranges(root.fileno(), rows)
    with pytest.raises(ValueError, match="ranges: "):
        _files.read_ranges_into(root.fileno(), rows, bytearray(2))


def test_memory_is_of_just_their_size(root: Root) -> None:
    for size in (2, 4):
        with pytest.raises(ValueError, match=f"ranges: of {size} bytes"):
            _files.read_ranges_into(root.fileno(), array("Q", (0, 3)), bytearray(size))


def test_where_the_call_fails_they_are_read_one_by_one(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = SimpleNamespace(read_ranges=lambda *_: None, read_ranges_into=lambda *_: False)
    monkeypatch.setattr(source_file, "_files", failing)
    rows, memory = array("Q", (7, 3, 1, 2)), memoryview(bytearray(5))
    with root.open_read(b"f") as source:
        assert source.read_ranges(rows) == CONTENT[7:10] + CONTENT[1:3]
        source.read_ranges_into(memory, rows)
        assert memory == CONTENT[7:10] + CONTENT[1:3]
        both(source, 0, 10, len(CONTENT) - 1, 2)
