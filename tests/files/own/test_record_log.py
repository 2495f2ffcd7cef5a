"""A log of records: what `append` has returned from is on disk, and nothing of anybody else's is touched."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.errors import FileError, RdcError
from rdc.files.own.record_log import (
    RecordError,
    RecordLog,
    absolute_path_of,
    attributes_of,
    bytes_of,
    metadata_of,
    number_of,
    path_of,
    read_log,
    relative_path_of,
    signed,
    size_of,
    time_of,
)


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
    log = RecordLog.make(os.fsencode(path))
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
    log = RecordLog.make(os.fsencode(tmp_path / "log"))
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
        RecordLog.make(os.fsencode(path))
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


def decode(value: object) -> object:
    if value == "bad":
        raise RecordError("a good one")
    return value


LINES = [signed(b'"one"'), signed(b"[2]"), signed(b'{"three":3}')]


@pytest.mark.parametrize(
    "torn", [b"", b"\n", b'"torn', b"\n\n", bytes(4096), signed(b'"bad"'), signed(b'"x"')[1:]]
)
def test_a_torn_end_is_left_out(torn: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    whole = b"".join(LINES)
    path.write_bytes(whole + torn)
    log = RecordLog(os.open(path, os.O_RDWR | os.O_APPEND))
    assert list(log.backwards(decode)) == [{"three": 3}, [2], "one"]
    assert log.whole_size(decode) == len(whole)
    assert log.first(decode) == "one"
    log.cut(decode)
    log.close()
    assert path.read_bytes() == whole


def test_an_empty_log(tmp_path: Path) -> None:
    log = RecordLog(os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT))
    assert (list(log.backwards(decode)), log.first(decode), log.whole_size(decode)) == ([], None, 0)
    log.cut(decode)
    log.close()


@pytest.mark.parametrize(
    "bad", [b"\n", signed(b'"bad"'), b'"x" 00000000\n', signed(b"no JSON"), signed(b"[" * 10**5)]
)
def test_any_other_line_is_refused(bad: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(LINES[0] + bad + LINES[1])
    log = RecordLog(os.open(path, os.O_RDWR))
    with pytest.raises(RecordError):
        list(log.backwards(decode))
    log.close()


def test_a_length_is_of_what_is_on_disk(tmp_path: Path) -> None:
    for lasting, noted in ((True, 6), (False, 12)):
        paths = tmp_path / f"log{lasting}", tmp_path / f"length{lasting}"
        log = RecordLog(*(os.open(path, os.O_RDWR | os.O_CREAT) for path in paths), lasting=lasting)
        assert log.noted_length() is None
        log.append(b"line1\n")
        log.append(b"line2\n", fsync=False)
        assert log.noted_length() == noted
        log.end()
        for content, found in ((bytes(21), None), (b"x" * 21, -1)):
            paths[1].write_bytes(content)
            assert log.noted_length() == found
        log.close()


@pytest.mark.parametrize(
    ("read", "bad"),
    [
        *((bytes_of, value) for value in (None, 7, "a", "a===", "\u00e9", "YQ==x", b"YQ==")),
        *((path_of, value) for value in ("", "AA==", base64.b64encode(b"x" * 16_385).decode())),
        (absolute_path_of, "YQ=="),
        *(
            (relative_path_of, base64.b64encode(path).decode())
            for path in (b"/a", b"..", b"a/../b", b"a//b", b"")
        ),
        *((number_of, value) for value in (True, 1.0, "1", None)),
        *((size_of, value) for value in (-1, 1 << 63)),
        *((time_of, value) for value in ((1 << 63) * 10**9, -(1 << 63) * 10**9 - 1)),
        *((attributes_of, parts) for parts in (None, "", ["YQ=="], [1, 2])),
        *((lambda mode: metadata_of(mode, 0, 0, 0), value) for value in (-1, 0o10000, True)),
        *((lambda user: metadata_of(0, 0, user, 0), value) for value in (-1, 1 << 32)),
    ],
)
def test_no_value_is_trusted(read: Callable[[object], object], bad: object) -> None:
    with pytest.raises(RecordError):
        read(bad)
