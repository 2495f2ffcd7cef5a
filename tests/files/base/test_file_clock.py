"""What is read is read after the tick of the last change: only then does a later change show."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.files.base import metadata as clock_module
from rdc.files.base.metadata import FUTURE_NS, file_clock, outlast
from rdc.files.bulk.open_many import OpenedFiles, look
from rdc.files.bulk.small_files import read_small
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import run_sync

SECOND = 1_000_000_000


class Clock:
    """Stands still but for sleeping."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, now: int) -> None:
        self.now = now
        self.slept = 0
        monkeypatch.setattr(clock_module, "file_clock", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)
        self.slept += round(seconds * SECOND)


@pytest.mark.parametrize(
    ("behind", "slept"),
    [
        (1, 0),
        (SECOND, 0),
        (0, 1),
        (-3_000_000, 3_000_001),
        (-FUTURE_NS, FUTURE_NS + 1),
        (-FUTURE_NS - 1, 0),
        (-3600 * SECOND, 0),
    ],
)
def test_waits_until_the_clock_has_passed(behind: int, slept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = 1_700_000_000_123_456_789
    clock = Clock(monkeypatch, changed + behind)
    outlast(changed)
    assert clock.slept == slept


@pytest.mark.parametrize(
    ("behind", "slept"), [(0, SECOND), (SECOND // 2, SECOND // 2), (SECOND - 1, 1), (SECOND, 0)]
)
def test_whole_seconds_last_a_second(behind: int, slept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = 1_700_000_000 * SECOND
    clock = Clock(monkeypatch, changed + behind)
    outlast(changed)
    assert clock.slept == slept


def whole(root: Root) -> bytes:
    with root.open_read(b"f") as source:
        return source.whole()


def into_memory(root: Root) -> bytes:
    content = bytearray(4096)
    with root.open_read(b"f") as source:
        source.read_into(memoryview(content), 0)
    return bytes(content)


def as_one_of_many(root: Root) -> bytes:
    return read_small(root, b"", root.listed(b"").listing)[0]


def held_open(root: Root) -> bytes:
    with OpenedFiles(root, b"f\0") as opened:
        return opened.read([0])[0]


def snapshot(root: Root) -> bytes:
    return look(root, [b"f"]).content


@pytest.mark.parametrize("read", [whole, into_memory, as_one_of_many, held_open, snapshot])
def test_every_way_to_read_waits(read: Callable[[Root], bytes], tmp_path: Path) -> None:
    """A file that was written a moment ago, again and again: one of two writes falls into another tick than
    what follows by chance, hardly one of twenty."""
    root = Root.open(os.fsencode(tmp_path))
    for number in range(20):
        content = bytes([number]) * 4096
        (tmp_path / "f").write_bytes(content)
        changed = (tmp_path / "f").stat().st_ctime_ns
        assert read(root) == content
        assert file_clock() > changed


def test_changed_twice_in_a_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time after the sync opened the file, and so before it read anything of it: both changes have
    one mtime, which is to stand for the second."""
    source, destination = tmp_path / "source", tmp_path / "destination"
    for place in (source, destination):
        place.mkdir()
        (place / "f").write_bytes(b"as it was before " * 100)
    (source / "f").write_bytes(b"the first change " * 100)
    found = (source / "f").stat()
    rest = SourceFile.rest
    changes = 0

    def change_and_rest(file: SourceFile) -> None:
        """What a clock of ticks would leave: another content behind the stat of before."""
        nonlocal changes
        if file.identity.inode == found.st_ino and not changes:
            changes += 1
            (source / "f").write_bytes(b"the second change" * 100)
            os.utime(source / "f", ns=(found.st_atime_ns, found.st_mtime_ns))
            now = (source / "f").stat()
            file.identity = type(file.identity)(
                now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns
            )
        rest(file)

    monkeypatch.setattr(SourceFile, "rest", change_and_rest)
    run = run_sync(source, destination, SyncOptions(fsync=False))
    assert changes == 1
    assert run.problems == []
    assert (destination / "f").read_bytes() == b"the second change" * 100
