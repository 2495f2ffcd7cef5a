"""A log of records: what `append` has returned from is on disk, and nothing of anybody else's is touched."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rdc.errors import FileError, RdcError
from rdc.files.own.append_log import AppendLog, read_log


class Disk:
    """Which files were made durable, and how long they were then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[tuple[str, int]] = []
        fsync = os.fsync

        def noted(fd: int) -> None:
            self.synced.append((os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd).st_size))
            fsync(fd)

        monkeypatch.setattr(os, "fsync", noted)


def test_what_was_appended_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    path = tmp_path / "new" / "directory" / "log"
    log = AppendLog(os.fsencode(path))
    # A log whose name a power cut takes away is no log.
    assert [name for name, _ in disk.synced] == [str(path.parent)]
    log.append(b"one\n")
    log.append(b"two\n")
    assert disk.synced[1:] == [(str(path), 4), (str(path), 8)]
    log.close()
    log.close()
    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_short_writes_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    log = AppendLog(os.fsencode(tmp_path / "log"))
    log.append(b"a record of some length\n")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"a record of some length\n"


@pytest.mark.parametrize("link", [False, True])
def test_nothing_that_is_there_is_written_over(tmp_path: Path, link: bool) -> None:
    path = tmp_path / "log"
    if link:
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_bytes(b"an old log")
    with pytest.raises(RdcError, match="make the journal"):
        AppendLog(os.fsencode(path))
    assert not (tmp_path / "elsewhere").exists()
    assert link or path.read_bytes() == b"an old log"


def test_reading_has_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100)
    assert read_log(os.fsencode(path), 100) == b"x" * 100
    with pytest.raises(FileError, match="at most 99 bytes"):
        read_log(os.fsencode(path), 99)
    with pytest.raises(FileError):
        read_log(os.fsencode(tmp_path / "missing"), 99)
    # One without a writer would hold up whoever opens it.
    os.mkfifo(tmp_path / "fifo")
    assert read_log(os.fsencode(tmp_path / "fifo"), 99) == b""
