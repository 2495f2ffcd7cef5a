"""Who can be held, and what a held file is compared by."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

import pytest

from rdc.errors import ExitCode, FileChangedError, FileError
from rdc.files.base.syscalls import take_lease
from rdc.files.names.leased_files import LeasedFile, difference, same_bytes
from rdc.files.root.root import Root
from tests.support.trees.saved_files import CONTENT, TIME, unlink_copy


def test_open_files_are_refused(linking: Path) -> None:
    path = linking / "file"
    path.write_bytes(CONTENT)
    root = Root.open(os.fsencode(linking))
    with path.open("r+b") as file:
        with pytest.raises(FileError, match="found that it is open for writing"):
            LeasedFile(root, b"file")
        mapping = mmap.mmap(file.fileno(), 0)
    # Closed, and still mapped: its bytes can change without a trace in any time stamp.
    with pytest.raises(FileError, match="found that it is open for writing"):
        LeasedFile(root, b"file")
    mapping.close()
    with path.open("rb"), LeasedFile(root, b"file") as held:
        held.check()


def test_links_and_special_files_are_not_held(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    root = Root.open(os.fsencode(tmp_path))
    for name in (b"link", b"fifo", b"directory", b"none"):
        with pytest.raises(FileChangedError):
            LeasedFile(root, name)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOLCK, errno.EACCES])
def test_file_systems_without_leases(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "file").write_bytes(b"x")
    monkeypatch.setattr("rdc.files.names.leased_files.take_lease", refuse)
    with pytest.raises(FileError) as caught:
        LeasedFile(Root.open(os.fsencode(tmp_path)), b"file")
    assert caught.value.code is ExitCode.PARTIAL
    assert f"{tmp_path}/file: cannot hold it still: expected a file at rest" in str(caught.value)


def append_before_the_lease(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that opens, appends and closes after a file was opened to be held and before it is."""

    def late(fd: int) -> None:
        if os.fstat(fd).st_ino == path.stat().st_ino:
            with path.open("ab") as file:
                file.write(b"and more")
        take_lease(fd)

    monkeypatch.setattr("rdc.files.names.leased_files.take_lease", late)


def test_a_writer_between_opening_and_holding_is_seen(linking: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kept", "old"):
        (linking / name).write_bytes(CONTENT)
        os.utime(linking / name, ns=(TIME, TIME))
    append_before_the_lease(linking / "old", monkeypatch)
    root = Root.open(os.fsencode(linking))
    with LeasedFile(root, b"kept") as kept, LeasedFile(root, b"old") as old:
        assert old.identity.size == len(CONTENT) + len(b"and more")
        assert old.metadata.mtime_ns != TIME
        assert difference(kept, old) == "mtime"
        assert not same_bytes(kept, old)
    root.close()


def test_a_separated_file_has_what_was_written_before_it_was_held(
    linking: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (linking / "one").write_bytes(CONTENT)
    (linking / "other").hardlink_to(linking / "one")
    append_before_the_lease(linking / "one", monkeypatch)
    root = Root.open(os.fsencode(linking))
    unlink_copy(root, b"other", (linking / "one").stat().st_ino)
    root.close()
    assert (linking / "other").stat().st_ino != (linking / "one").stat().st_ino
    assert (linking / "other").read_bytes() == CONTENT + b"and more"
