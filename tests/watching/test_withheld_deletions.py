"""Deletions of a turn in which something failed wait for a comparison of the whole trees; special files."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from rdc.errors import FileError
from rdc.files.root.source_file import SourceFile
from rdc.watching.follower import EARLY_SECONDS
from rdc.watching.records import InStep
from tests.support.running.followed import Followed
from tests.support.trees.trees import describe, read_tree, tree, write_tree


def test_deletions_wait_for_what_did_not_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, top = (
        write_tree(tmp_path / "s", tree({"x": b"the only copy", "z": b"z", "keep": b"k"})),
        tmp_path / "d",
    )
    with Followed(source, top) as followed:
        followed.rest()
        assert describe(read_tree(source), read_tree(top)) == []
        pread = SourceFile.pread

        def fail(self: SourceFile, offset: int, length: int) -> bytes:
            if self.path == b"y":
                raise FileError(self.path, "y: refused")
            return pread(self, offset, length)

        with monkeypatch.context() as patched:
            patched.setattr(SourceFile, "pread", fail)
            patched.setattr("rdc.session.source.file_sender.SMALL_FILE_BYTES", 0)
            write_tree(source, tree({"y": b"the only copy, moved"}))
            (source / "x").unlink()
            told = followed.change(b"")[0]
            assert isinstance(told, InStep)
            assert (told.deleted, (top / "x").exists()) == (0, True)
            # The turn after it deletes nothing either, though all in it arrives.
            (source / "z").unlink()
            told = followed.change(b"")[0]
            assert isinstance(told, InStep)
            assert (told.deleted, (top / "z").exists()) == (0, True)
        messages = [problem.message for problem in followed.problems]
        assert f"1 deletion was withheld: a new entry did not arrive, {top}/y; " in messages[1]
        assert "an earlier turn was incomplete: " in messages[2]
        assert all("the next comparison of the whole trees may delete" in message for message in messages[1:])
        followed.pass_by(EARLY_SECONDS + 1)
        assert describe(read_tree(source), read_tree(top)) == []


def test_special_files_come_with_a_turn_and_with_a_comparison(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree({"f": b"f"})), tmp_path / "d"
    os.mkfifo(source / "first")
    with Followed(source, top) as followed:
        followed.rest()
        assert stat.S_ISFIFO((top / "first").stat().st_mode)
        os.mkfifo(source / "fifo")
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(source / "socket"))
        if os.geteuid() == 0:
            os.mknod(source / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        followed.change(b"")
        for path in source.iterdir():
            there = (top / path.name).stat()
            assert (stat.S_IFMT(there.st_mode), there.st_rdev) == (
                stat.S_IFMT(path.stat().st_mode),
                path.stat().st_rdev,
            )
        (source / "fifo").unlink()
        (source / "socket").unlink()
        followed.change(b"")
        assert not (top / "fifo").exists()
        assert not (top / "socket").exists()
        assert followed.problems == []
