"""Files that change, vanish or cannot be read while a put reads them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rdc
from rdc.errors import ExitCode, FileChangedError
from rdc.files.root.source_file import SourceFile
from rdc.store.records import StoreOptions
from rdc.store.writer import StoreWriter
from tests.support.store.stores import Problems, put_tree, read_alone

LARGE = b"large " * 1_000_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    top.mkdir()
    (top / "large").write_bytes(LARGE)
    (top / "other").write_bytes(b"other")
    return top


CHECK = SourceFile.check_unchanged


def changing(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the next reads of a large file find that it changed."""
    check, left = CHECK, [times]

    def fail(self: SourceFile) -> None:
        if left[0]:
            left[0] -= 1
            raise FileChangedError(self.path, f"{self.path.decode()}: changed while it was read")
        check(self)

    monkeypatch.setattr(SourceFile, "check_unchanged", fail)


def test_a_file_that_changes_once_is_read_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing(monkeypatch, 1)
    report = put_tree(source, tmp_path / "st")
    assert report.exit is ExitCode.OK
    read_alone(tmp_path / "st", 1, tmp_path / "out")
    assert (tmp_path / "out" / "large").read_bytes() == LARGE


def test_a_file_that_keeps_changing_is_left_out_and_said(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = Problems()
    changing(monkeypatch, 99)
    report = put_tree(source, tmp_path / "st", problems=problems)
    assert (report.exit, report.errors) == (ExitCode.VANISHED, 1)
    assert problems.texts == ["large: changed while it was read; it is not in the snapshot"]
    read_alone(tmp_path / "st", 1, tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["other"]


def test_a_file_that_keeps_changing_keeps_the_last_snapshots_row(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = Problems()
    put_tree(source, tmp_path / "st")
    before = (source / "large").stat()
    (source / "large").write_bytes(LARGE[::-1] + b"longer")
    changing(monkeypatch, 99)
    report = put_tree(source, tmp_path / "st", problems=problems)
    assert report.exit is ExitCode.VANISHED
    assert problems.texts == ["large: changed while it was read; the snapshot has it as the last one does"]
    read_alone(tmp_path / "st", 2, tmp_path / "out")
    assert (tmp_path / "out" / "large").read_bytes() == LARGE
    assert (tmp_path / "out" / "large").stat().st_mtime_ns == before.st_mtime_ns


def test_a_file_that_keeps_changing_does_not_take_the_row_of_another_series(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = Problems()
    put_tree(source, tmp_path / "st", StoreOptions(name="another"))
    (source / "large").write_bytes(LARGE[::-1] + b"longer")
    changing(monkeypatch, 99)
    report = put_tree(source, tmp_path / "st", problems=problems)
    assert report.exit is ExitCode.VANISHED
    assert problems.texts == ["large: changed while it was read; it is not in the snapshot"]
    read_alone(tmp_path / "st", 2, tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["other"]


def after_listing(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Make a change once the tree is listed and its first file is read."""
    add, left = StoreWriter.put_stream, [change]

    def put(self: StoreWriter, *arguments: Any) -> object:
        while left:
            left.pop()()
        return add(self, *arguments)

    monkeypatch.setattr(StoreWriter, "put_stream", put)


def test_a_file_that_vanishes_is_left_out(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the last snapshot has it: it is no longer there."""
    problems = Problems()
    put_tree(source, tmp_path / "st")
    after_listing(monkeypatch, (source / "other").unlink)
    report = put_tree(source, tmp_path / "st", problems=problems)
    assert (report.exit, report.entries) == (ExitCode.VANISHED, 1)
    assert problems.texts[0].endswith("it is not in the snapshot")
    read_alone(tmp_path / "st", 2, tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["large"]


def test_a_file_has_the_size_and_times_with_which_it_was_read(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_listing(monkeypatch, lambda: (source / "other").write_bytes(b"another size"))
    assert put_tree(source, tmp_path / "st").exit is ExitCode.OK
    read_alone(tmp_path / "st", 1, tmp_path / "out")
    found, now = tmp_path / "out" / "other", (source / "other").stat()
    assert found.read_bytes() == b"another size"
    assert found.stat().st_mtime_ns == now.st_mtime_ns


def test_content_that_changes_between_the_two_reads_is_stored_under_no_wrong_key(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where no time shows it: the chunks that are stored are hashed again."""
    pread = SourceFile.pread
    seen: set[int] = set()

    def other(self: SourceFile, offset: int, length: int) -> bytes:
        content = pread(self, offset, length)
        if self.size == len(LARGE) and offset in seen:
            return bytes(reversed(content))
        seen.add(offset)
        return content

    monkeypatch.setattr(SourceFile, "pread", other)
    problems = Problems()
    report = put_tree(source, tmp_path / "st", problems=problems)
    assert (report.exit, report.files) == (ExitCode.VANISHED, 1)
    assert "expected the content that was cut, found another" in problems.texts[0]
    monkeypatch.undo()
    assert rdc.verify_store(tmp_path / "st", 1.0).damaged == 0
    assert put_tree(source, tmp_path / "st").exit is ExitCode.OK
    read_alone(tmp_path / "st", 2, tmp_path / "out")
    assert (tmp_path / "out" / "large").read_bytes() == LARGE


def test_a_directory_that_cannot_be_read_is_said(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rdc.errors import FileError
    from rdc.files.root.root import Root

    (source / "closed").mkdir()
    problems, listed = Problems(), Root.list_unviewed

    def refuse(self: Root, path: bytes, **rest: Any) -> object:
        if path == b"closed":
            raise FileError(path, "closed: Permission denied")
        return listed(self, path, **rest)

    monkeypatch.setattr(Root, "list_unviewed", refuse)
    report = put_tree(source, tmp_path / "st", problems=problems)
    assert (report.exit, report.errors) == (ExitCode.PARTIAL, 1)


def test_a_snapshot_that_lacks_something_takes_the_place_of_no_whole_one(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "st"
    put_tree(source, store)
    (source / "large").write_bytes(LARGE + b"!")
    changing(monkeypatch, 99)
    put_tree(source, store)
    assert [one.problems for one in rdc.snapshots(store)] == [0, 1]
    assert rdc.forget_snapshots(store, rdc.ForgetOptions(retain="1d", apply=True)).forgotten == ()
    changing(monkeypatch, 0)
    put_tree(source, store)
    assert [one.problems for one in rdc.snapshots(store)] == [0, 1, 0]
    assert rdc.forget_snapshots(store, rdc.ForgetOptions(retain="1d", apply=True)).forgotten == (1, 2)
    read_alone(store, 3, tmp_path / "out")
    assert (tmp_path / "out" / "large").read_bytes() == LARGE + b"!"
