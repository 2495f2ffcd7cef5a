"""--timeout in a local run: it ends if one half hangs in a system call, not if it works without a message."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from rdc.errors import ExitCode, RdcError
from rdc.files.root.source_file import SourceFile
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import run_sync
from tests.support.trees.trees import describe, read_tree, tree, write_tree

WANTED = tree({"a": b"1" * 100_000, "b": b"2"})


def test_a_source_that_hangs_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, awake = write_tree(tmp_path / "s", WANTED), threading.Event()

    def hang(self: SourceFile, offset: int, length: int) -> bytes:
        awake.wait()
        return b""

    with monkeypatch.context() as patched:
        patched.setattr(SourceFile, "pread", hang)
        patched.setattr("rdc.session.source.file_sender.SMALL_FILE_BYTES", 0)
        with pytest.raises(RdcError, match="did nothing for 1 seconds") as caught:
            run_sync(source, tmp_path / "d", SyncOptions(timeout=1))
        awake.set()
    assert caught.value.code is ExitCode.TIMEOUT
    assert run_sync(source, tmp_path / "d", SyncOptions(timeout=1)).problems == []
    assert describe(WANTED, read_tree(tmp_path / "d")) == []


def test_a_source_that_works_for_long_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No message passes meanwhile, for longer than the limit."""
    source = write_tree(tmp_path / "s", WANTED)
    pread, looks = SourceFile.pread, threading.Event()

    def work(self: SourceFile, offset: int, length: int) -> bytes:
        end = time.thread_time() + 1.5
        while not looks.is_set() and time.thread_time() < end:
            pass
        looks.set()
        return pread(self, offset, length)

    monkeypatch.setattr(SourceFile, "pread", work)
    monkeypatch.setattr("rdc.session.source.file_sender.SMALL_FILE_BYTES", 0)
    assert run_sync(source, tmp_path / "d", SyncOptions(timeout=1)).problems == []
    assert looks.is_set()
    assert describe(WANTED, read_tree(tmp_path / "d")) == []
