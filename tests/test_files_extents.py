"""Holes, as the file system tells them; tests/test_files_sharing.py has shared extents."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rdc.files.extents import holes, shared_bytes
from tests.plain_census import holes_of


def found(path: Path) -> list[tuple[int, int]]:
    with path.open("rb") as file:
        return list(holes(file.fileno(), path.stat().st_size))


@pytest.mark.parametrize(
    "parts",
    [[], [(0, 4096)], [(8192, 4096)], [(0, 100_000), (1 << 20, 1), (3 << 20, 70_000)], [((4 << 20) - 1, 1)]],
)
def test_holes_are_what_is_not_data(tmp_path: Path, parts: list[tuple[int, int]]) -> None:
    path = tmp_path / "f"
    with path.open("wb") as file:
        for offset, size in parts:
            file.seek(offset)
            file.write(b"x" * size)
        file.truncate(4 << 20)
    assert found(path) == holes_of(path)
    content = path.read_bytes()
    assert all(not any(content[start:end]) for start, end in found(path))
    assert found(path)


def test_a_file_that_shrinks_ends_the_search(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    with path.open("rb") as file:
        assert list(holes(file.fileno(), 1 << 40)) in ([], [(1, 1 << 40)])


def test_no_holes_where_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.truncate(1 << 20)

    def refuse(*_: int) -> int:
        raise OSError(errno.EINVAL, "")

    monkeypatch.setattr(os, "lseek", refuse)
    assert found(path) == []


def test_where_it_cannot_be_asked(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 10_000)
    with (tmp_path / "f").open("rb") as file:
        assert shared_bytes(file.fileno()) == 0
