"""Result files: replaced whole or not at all, while pipes, devices and links are what they were."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from rdc.errors import ExitCode, FileError, RdcError
from rdc.files.own.output_file import check_output, write_output


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_bytes(b"before")
    before = target.stat().st_ino
    write_output(os.fsencode(target), [b"a", b"", b"bc"])
    assert target.read_bytes() == b"abc" and target.stat().st_ino != before
    assert os.listdir(tmp_path) == ["result"]


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_bytes(b"before")

    def broken() -> object:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(RdcError, match="No space"):
        write_output(os.fsencode(target), broken())  # type: ignore[arg-type]
    assert target.read_bytes() == b"before" and os.listdir(tmp_path) == ["result"]


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/result")
    for content in (b"new", b"newer"):
        write_output(os.fsencode(tmp_path / "link"), [content])
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "result").read_bytes() == content


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_output(os.fsencode(pipe), [b"through ", b"it"])
    reader.join()
    assert read == [b"through it"]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    device = tmp_path / "full"
    os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 7))
    with pytest.raises(RdcError, match="No space") as caught:
        write_output(os.fsencode(device), [b"x"])
    assert caught.value.code is ExitCode.FILE_IO
    assert stat.S_ISCHR(device.lstat().st_mode)


def test_standard_output_by_its_name(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        write_output(b"/proc/self/fd/%d" % writing, [b"shown"])
        assert os.read(reading, 10) == b"shown"
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("name", ["", "none/result", "nul\0"])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    with pytest.raises(FileError, match="cannot write it"):
        write_output(path, [b"x"])
    assert os.listdir(tmp_path) == []


def test_a_place_for_a_result_is_checked_without_making_anything(tmp_path: Path) -> None:
    check_output(os.fsencode(tmp_path / "new"))
    check_output(b"/dev/null")
    assert os.listdir(tmp_path) == []
    for name, reason in ((".", "found a directory"), ("none/x", "is not there")):
        with pytest.raises(FileError, match=reason) as caught:
            check_output(os.fsencode(tmp_path / name))
        assert caught.value.code is ExitCode.FILE_IO
