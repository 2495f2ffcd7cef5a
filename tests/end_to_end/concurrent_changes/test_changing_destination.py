"""Somebody writes to files of the destination while a sync is at work there: none of that may stay hidden.

A later run compares sizes and mtimes. So a file may get the mtime of the source's only while it has the
content that this goes with.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode, FileError
from rdc.files.base import taking_names
from rdc.files.base import taking_names as exchange_module
from rdc.files.base.syscalls import rename_exchange, rename_no_replace_between, take_lease
from rdc.files.replace import set_metadata_if_unchanged as settle_module
from rdc.files.replace.set_metadata_if_unchanged import set_metadata_if_unchanged
from rdc.files.root.root import Root
from rdc.model.entries import Identity, Metadata
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import run_sync
from tests.support.trees.trees import File, Link, describe, read_tree, tree, write_tree

SOURCE_TIME, HELD_TIME = 1_700_000_000_000_000_000, 1_600_000_000_000_000_000
WANTED = b"as it is to be, " * 400
WRITTEN = b"somebody's own! " * 400


def write_over(path: Path) -> None:
    """In place: size, inode and names stay."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(written(size))


def save_by_rename(path: Path) -> None:
    beside = path.with_name("beside")
    beside.write_bytes(written(path.stat().st_size))
    beside.rename(path)


def written(size: int) -> bytes:
    return (WRITTEN * (size // len(WRITTEN) + 1))[:size]


WRITERS = [write_over, save_by_rename]


def write_before_it_is_settled(
    monkeypatch: pytest.MonkeyPatch, path: Path, write: Callable[[Path], None]
) -> list[Path]:
    """The writer comes after the file was looked at, as late as he can. Lists that he came."""
    came: list[Path] = []

    def settle(*arguments: Any, **named: Any) -> None:
        if not came:
            came.append(path)
            write(path)
        set_metadata_if_unchanged(*arguments, **named)

    monkeypatch.setattr(settle_module, "set_metadata_if_unchanged", settle)
    return came


def check_not_hidden(source: Path, destination: Path, name: str) -> None:
    """What was written is still there, with another mtime than the source's; the next run sees it."""
    found = (destination / name).stat()
    assert (destination / name).read_bytes() == written(found.st_size)
    assert found.st_mtime_ns > SOURCE_TIME
    assert run_sync(source, destination, SyncOptions(fsync=False, delete=True)).done.exit == ExitCode.OK
    assert describe(read_tree(source), read_tree(destination)) == []


@pytest.mark.parametrize("write", WRITERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("others", [0, 60], ids=["alone", "among many"])
@pytest.mark.parametrize("checksum", [False, True], ids=["by time", "by checksum"])
def test_equal_content_with_another_mtime(
    checksum: bool,
    others: int,
    write: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the mtime is to be set, once the contents were found equal. (Those above 1 MiB go singly.)"""
    wanted = {"f": WANTED * 200, **{f"g{number}": b"%d" % number for number in range(others)}}
    source, destination = (
        write_tree(
            tmp_path / place, tree({name: File(content, mtime_ns=time) for name, content in wanted.items()})
        )
        for place, time in (("source", SOURCE_TIME), ("destination", HELD_TIME))
    )
    came = write_before_it_is_settled(monkeypatch, destination / "f", write)
    run = run_sync(source, destination, SyncOptions(fsync=False, checksum=checksum))
    monkeypatch.undo()
    assert came
    assert [(problem.path_bytes, problem.code) for problem in run.problems] == [(b"f", ExitCode.PARTIAL)]
    assert "the existing entry was kept" in run.problems[0].message
    check_not_hidden(source, destination, "f")


@pytest.mark.parametrize("write", WRITERS, ids=lambda f: f.__name__)
def test_another_mode(write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size and mtime were equal when the directory was listed: contents are not even read."""
    source = write_tree(tmp_path / "source", tree({"d/f": File(WANTED, 0o600, SOURCE_TIME)}))
    destination = write_tree(tmp_path / "destination", tree({"d/f": File(WANTED, 0o640, SOURCE_TIME)}))
    assert write_before_it_is_settled(monkeypatch, destination / "d/f", write) == []
    run = run_sync(source, destination, SyncOptions(fsync=False))
    monkeypatch.undo()
    assert [(problem.path_bytes, problem.code) for problem in run.problems] == [(b"d/f", ExitCode.PARTIAL)]
    check_not_hidden(source, destination, "d/f")


def test_only_sizes_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--size-only sets mtimes without a look into any file."""
    source = write_tree(tmp_path / "source", tree({"a": b"", "f": File(WANTED, mtime_ns=SOURCE_TIME)}))
    destination = write_tree(tmp_path / "destination", tree({"f": File(WANTED, mtime_ns=HELD_TIME)}))
    came = write_before_it_is_settled(monkeypatch, destination / "f", write_over)
    run = run_sync(source, destination, SyncOptions(fsync=False, size_only=True))
    monkeypatch.undo()
    assert came
    assert [problem.path_bytes for problem in run.problems] == [b"f"]
    check_not_hidden(source, destination, "f")


@pytest.mark.parametrize("write", WRITERS, ids=lambda f: f.__name__)
def test_a_moved_file(write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is renamed, and then its metadata are set: in between somebody writes to it."""
    source = write_tree(tmp_path / "source", tree({"new": File(WANTED, 0o600, SOURCE_TIME)}))
    destination = write_tree(tmp_path / "destination", tree({"old": File(WANTED, 0o640, SOURCE_TIME)}))
    came = write_before_it_is_settled(monkeypatch, destination / "new", write)
    run = run_sync(source, destination, SyncOptions(fsync=False, delete=True))
    monkeypatch.undo()
    assert came
    assert run.items == ["*renaming   old"]
    assert [problem.path_bytes for problem in run.problems] == [b"new"]
    check_not_hidden(source, destination, "new")


def test_names_of_one_file_that_only_the_destination_has_as_such(tmp_path: Path) -> None:
    """What is set under the first name is no change that somebody else made to the second, and the third may
    still become another file."""
    wanted = {name: File(WANTED * 30, mtime_ns=SOURCE_TIME) for name in ("a", "b")}
    source = write_tree(tmp_path / "source", tree({**wanted, "c": File(WRITTEN * 30, mtime_ns=SOURCE_TIME)}))
    destination = write_tree(tmp_path / "destination", tree({"a": File(WANTED * 30, mtime_ns=HELD_TIME)}))
    for name in ("b", "c"):
        (destination / name).hardlink_to(destination / "a")
    os.utime(destination, ns=(0, 0))
    run = run_sync(source, destination, SyncOptions(fsync=False))
    assert run.problems == []
    assert describe(read_tree(source), read_tree(destination)) == []


def test_a_directory_that_somebody_makes_where_one_is_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file was there when the directories were compared. What is in his directory must not go out of
    sight with it."""
    source = write_tree(tmp_path / "source", tree({"d/f": WANTED}))
    destination = write_tree(tmp_path / "destination", tree({"d": b"a file"}))
    calls = 0

    def make_and_exchange(one: bytes, other: bytes, directory: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            (destination / "d").unlink()
            write_tree(destination / "d", tree({"own": WRITTEN}))
        rename_exchange(one, other, directory)

    monkeypatch.setattr(exchange_module, "rename_exchange", make_and_exchange)
    run = run_sync(source, destination, SyncOptions(fsync=False))
    monkeypatch.undo()
    assert calls == 2
    assert run.problems == []
    found = read_tree(destination)
    assert set(found) == {b"", b"d", b"d/f", b"d/own"}
    assert isinstance(found[b"d/own"], File) and found[b"d/own"].content == WRITTEN
    assert [name for name in os.listdir(destination) if name.startswith(".rdc-")] == []


@pytest.mark.parametrize("promised", [True, False], ids=["in one step", "where the kernel cannot"])
def test_what_somebody_puts_where_a_link_is_to_be(
    promised: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was there when the directories were compared: as for a file that is new, it stays, and is
    named."""
    source = write_tree(tmp_path / "source", tree({"link": Link(b"elsewhere"), "other": Link(b"there")}))
    destination = write_tree(tmp_path / "destination", tree())

    def write_and_rename(old: bytes, directory: int, new: bytes, into: int) -> None:
        if new == b"link":
            (destination / "link").write_bytes(WRITTEN)
        if not promised:
            raise OSError(errno.EINVAL, "")
        rename_no_replace_between(old, directory, new, into)

    monkeypatch.setattr(taking_names, "rename_no_replace_between", write_and_rename)
    run = run_sync(source, destination, SyncOptions(fsync=False))
    monkeypatch.undo()
    assert [(problem.path_bytes, problem.code) for problem in run.problems] == [(b"link", ExitCode.PARTIAL)]
    assert (destination / "link").read_bytes() == WRITTEN
    assert os.readlink(destination / "other") == "there"
    assert sorted(os.listdir(destination)) == ["link", "other"]
    assert run_sync(source, destination, SyncOptions(fsync=False)).done.exit == ExitCode.OK
    assert describe(read_tree(source), read_tree(destination)) == []


METADATA = Metadata(0o600, SOURCE_TIME, os.getuid(), os.getgid())


def settle(root: Root, path: bytes, found: Identity) -> None:
    set_metadata_if_unchanged(root, path, METADATA, owner=False, expected=found)


def test_nobody_writes_between_the_look_and_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer who opens the file when it has been looked at waits, and his mtime is the later one."""
    path = tmp_path / "f"
    path.write_bytes(WANTED)
    root = Root.open(os.fsencode(tmp_path))
    wrote = threading.Event()

    def write() -> None:
        write_over(path)
        wrote.set()

    writer = threading.Thread(target=write)

    def is_still(_: Identity, __: Identity) -> bool:
        writer.start()
        assert not wrote.wait(0.1)
        return True

    monkeypatch.setattr(root.check, "is_still", is_still)
    set_metadata_if_unchanged(root, b"f", METADATA, owner=False, expected=root.identity(b"f"))
    writer.join()
    found = path.stat()
    assert path.read_bytes() == WRITTEN
    assert found.st_mtime_ns > SOURCE_TIME
    assert found.st_mode & 0o777 == 0o600


def test_who_wrote_before_the_lease_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(WANTED)
    root = Root.open(os.fsencode(tmp_path))
    found = root.identity(b"f")

    def write_and_take_lease(fd: int) -> None:
        write_over(path)
        take_lease(fd)

    monkeypatch.setattr(settle_module, "take_lease", write_and_take_lease)
    with pytest.raises(FileError, match="the existing entry was kept"):
        settle(root, b"f", found)
    assert path.stat().st_mtime_ns > SOURCE_TIME


def test_a_file_that_is_open_for_writing_is_settled(tmp_path: Path) -> None:
    """No lease is to be had: what is known is that it is as it was a moment ago."""
    path = tmp_path / "f"
    path.write_bytes(WANTED)
    root = Root.open(os.fsencode(tmp_path))
    with path.open("r+b"):
        settle(root, b"f", root.identity(b"f"))
    assert path.stat().st_mtime_ns == SOURCE_TIME
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("there", ["nothing", "a directory", "a link"])
def test_what_is_no_file_any_more(there: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(WANTED)
    root = Root.open(os.fsencode(tmp_path))
    found = root.identity(b"f")
    path.unlink()
    if there == "a directory":
        path.mkdir()
    elif there == "a link":
        path.symlink_to("elsewhere")
    with pytest.raises(FileError) as raised:
        settle(root, b"f", found)
    assert raised.value.code is ExitCode.PARTIAL
