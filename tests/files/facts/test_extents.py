"""Holes and shared extents, as the file system tells them and as a stand-in does."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.files.facts import extents
from rdc.files.facts.extents import holes, shared_bytes
from tests.support.running.expected_counts import holes_of

HEAD, EXTENT = struct.Struct("=QQLLLL"), struct.Struct("=QQQQQLLLL")
LAST, SHARED = 1, 0x2000


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


class FakeMap:
    """FIEMAP over extents (offset, length, flags), however many fit an answer."""

    def __init__(self, rows: list[tuple[int, int, int]]) -> None:
        self.rows = rows
        self.calls = 0

    def __call__(self, _fd: int, _request: int, buffer: bytearray, _mutate: bool = True) -> int:
        self.calls += 1
        start, _, _, _, room, _ = HEAD.unpack_from(buffer)
        rows = [row for row in self.rows if row[0] + row[1] > start][:room]
        for number, (offset, length, flags) in enumerate(rows):
            EXTENT.pack_into(
                buffer, HEAD.size + number * EXTENT.size, offset, 7, length, 0, 0, flags, 0, 0, 0
            )
        HEAD.pack_into(buffer, 0, start, 0, 0, len(rows), room, 0)
        return 0


def answer_with(monkeypatch: pytest.MonkeyPatch, ioctl: Callable[..., int]) -> None:
    """Stands in for the system call, by whichever name the module knows it."""
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    monkeypatch.setattr(extents, "ioctl", ioctl, raising=False)


def test_shared_bytes_of_many_extents(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(i * 8192, 4096, SHARED if i % 3 == 0 else 0) for i in range(1000)]
    rows[-1] = (*rows[-1][:2], SHARED | LAST)
    fake = FakeMap(rows)
    answer_with(monkeypatch, fake)
    assert shared_bytes(3) == 334 * 4096
    assert 1 < fake.calls < 10
    for rows in ([], [(0, 4096, LAST)], [(0, 4096, 0)]):
        answer_with(monkeypatch, FakeMap(rows))
        assert shared_bytes(3) == 0


def test_answers_that_lead_nowhere_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that answers the same extent for ever."""

    def stuck(_fd: int, _request: int, buffer: bytearray, _mutate: bool = True) -> int:
        room = HEAD.unpack_from(buffer)[4]
        EXTENT.pack_into(buffer, HEAD.size, 0, 7, 4096, 0, 0, SHARED, 0, 0, 0)
        HEAD.pack_into(buffer, 0, 0, 0, 0, 1, room, 0)
        return 0

    answer_with(monkeypatch, stuck)
    assert shared_bytes(3) <= 8192


def test_where_it_cannot_be_asked(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 10_000)
    with (tmp_path / "f").open("rb") as file:
        assert shared_bytes(file.fileno()) == 0
