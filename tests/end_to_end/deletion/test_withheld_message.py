"""What forbids deletions, what does not, and the one line that tells of it."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode, FileChangedError, FileError
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import CheckedRename, Replacement
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.model.entries import Listing
from rdc.model.sync import SyncOptions
from rdc.session.destination.own_tree import OwnTree
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.loop_images import memory_mounted
from tests.support.trees.trees import Directory, File, Link, Tree, read_tree, tree, write_tree
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

DELETE = SyncOptions(delete=True, fsync=False)
HELD = tree({"old": b"the only copy", "gone/a": b"1", "gone/b": b"2", "changed": File(b"before", 0o644, 1)})


LIMIT = 64 << 20


@pytest.fixture
def small_files_only() -> Iterator[None]:
    """No process of the tests writes a file beyond LIMIT bytes: neither this one nor its children."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    processes = [os.getpid(), *children_of(os.getpid())]
    for pid in processes:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    yield
    for pid in processes:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def children_of(pid: int) -> list[int]:
    """A server that forks the remote sides may run since an earlier test."""
    found = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [below for one in found for below in children_of(one)]


@pytest.mark.parametrize("way", Way)
def test_a_new_file_that_cannot_be_written_keeps_what_there_is(
    way: Way, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source, top = write_tree(tmp_path / "s", tree({"new": b"", "changed": b"after"})), tmp_path / "d"
    os.truncate(source / "new", LIMIT + 1)
    write_tree(top, HELD)
    request.getfixturevalue("small_files_only")
    run = run_sync(source, top, DELETE, way=way)
    assert run.done.exit == ExitCode.PARTIAL
    assert [(problem.path_bytes, problem.code) for problem in run.problems] == [
        (b"new", ExitCode.PARTIAL),
        (b"", ExitCode.PARTIAL),
    ]
    assert run.problems[1].message == (
        f"4 deletions were withheld: a new entry did not arrive, {top}/new; --ignore-errors deletes anyway"
    )
    assert read_tree(top).keys() == HELD.keys()
    assert (top / "changed").read_bytes() == b"after"
    run = run_sync(source, top, SyncOptions(delete=True, ignore_errors=True), way=way)
    assert [problem.path_bytes for problem in run.problems] == [b"new"]
    assert read_tree(top).keys() == {b"", b"changed"}


def test_a_new_file_that_cannot_be_read_keeps_what_there_is() -> None:
    with place_of_nobody() as place:

        def work() -> list[str]:
            wanted = tree({"new": File(b"the only copy", 0o000), "changed": b"after"})
            source, top = write_tree(place / "s", wanted), write_tree(place / "d", HELD)
            run = run_sync(source, top, DELETE)
            assert run.done.exit == ExitCode.PARTIAL
            assert read_tree(top).keys() == HELD.keys()
            return [problem.message for problem in run.problems]

        messages = as_nobody(work)
    assert "Permission denied" in messages[0]
    assert messages[1:] == [
        f"4 deletions were withheld: a new entry did not arrive, {place}/d/new;"
        " --ignore-errors deletes anyway"
    ]


def refuse(path: bytes) -> FileError:
    return FileError(path, f"{path.decode()}: refused")


def refusing(name: bytes, real: Callable[..., object]) -> Callable[..., object]:
    """`real`, a method with a path as its first argument, but for one path."""

    def method(self: object, path: bytes, *arguments: object, **options: object) -> object:
        if path == name:
            raise refuse(path)
        return real(self, path, *arguments, **options)

    return method


NEW: dict[str, tuple[Tree, type, str]] = {
    "a symbolic link": (tree({"new": Link(b"target")}), Root, "replace_symlink"),
    "a directory": (tree({"new": Directory()}), Root, "make_directory"),
    "a directory with a file": (tree({"new/file": b"the only copy"}), Root, "make_directory"),
    "a file that is renamed into place": (tree({"new": b"content"}), CheckedRename, "rename"),
    "a file that is verified": (tree({"new": b"n" * 100_000}), Root, "locate_to_write"),
    "a file in place of a link": (tree({"link": b"content"}), CheckedRename, "rename"),
    "a file in place of a directory": (tree({"gone": b"content"}), CheckedRename, "rename"),
}


@pytest.mark.parametrize("kind", NEW)
def test_whatever_cannot_be_made(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, owner, method = NEW[kind]
    held = HELD | tree({"link": Link(b"x")})
    source = write_tree(tmp_path / "s", wanted | tree({"changed": HELD[b"changed"]}))
    top = write_tree(tmp_path / "d", held)
    name = next(name for name in (b"new", b"link", b"gone") if name in wanted)
    monkeypatch.setattr("rdc.files.bulk.small_files._extension", None)
    monkeypatch.setattr(owner, method, refusing(name, getattr(owner, method)))
    run = run_sync(source, top, DELETE)
    assert run.done.exit == ExitCode.PARTIAL
    assert "were withheld: a new entry did not arrive, " in run.problems[-1].message
    kept = {
        path for path in held if kind != "a file in place of a directory" or not path.startswith(b"gone/")
    }
    assert kept <= read_tree(top).keys()


def test_a_hard_link_that_is_neither_linked_nor_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_tree(tmp_path / "s", tree({"changed": HELD[b"changed"]}))
    os.link(source / "changed", source / "new")
    top = write_tree(tmp_path / "d", HELD)
    monkeypatch.setattr("rdc.session.destination.finish.link_file", refusing_link)
    run = run_sync(source, top, SyncOptions(delete=True, hard_links=True, fsync=False))
    assert [problem.path_bytes for problem in run.problems] == [b"new", b""]
    assert HELD.keys() <= read_tree(top).keys()


def refusing_link(root: Root, old: bytes, new: bytes, found: object, **_: object) -> object:
    raise refuse(new)


@pytest.mark.parametrize("failing", ["changed", "vanished", "metadata"])
def test_what_withholds_nothing(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed file keeps its old version, one that vanished is no longer there to be copied, and one whose
    metadata failed is here."""
    source = write_tree(tmp_path / "s", tree({"changed": b"after", "new": b"new"}))
    top = write_tree(tmp_path / "d", HELD)
    pread = SourceFile.pread

    def fail(self: SourceFile, offset: int, length: int) -> bytes:
        if self.path == b"changed" and failing == "changed":
            raise refuse(self.path)
        if self.path == b"new" and failing == "vanished":
            raise FileChangedError(self.path, "vanished")
        return pread(self, offset, length)

    monkeypatch.setattr(SourceFile, "pread", fail)
    monkeypatch.setattr("rdc.session.source.file_sender.SMALL_FILE_BYTES", 0)
    if failing == "metadata":
        monkeypatch.setattr(Root, "set_metadata", refusing(b"", Root.set_metadata))
    run = run_sync(source, top, DELETE)
    assert run.done.exit == (ExitCode.VANISHED if failing == "vanished" else ExitCode.PARTIAL)
    assert len(run.problems) == 1
    assert read_tree(top).keys() == {b"", b"changed"} | ({b"new"} if failing != "vanished" else set())


def test_a_directory_here_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lacks is not known."""
    source = write_tree(tmp_path / "s", tree({"d/a": b"a", "d/new": b"new"}))
    top = write_tree(tmp_path / "d", tree({"d/a": b"a", "old": b"new"}))

    listing = OwnTree.listing

    def fail(self: OwnTree, path: bytes, on_borrowed: Callable[[bytes], None]) -> Listing | None:
        return None if path == b"d" else listing(self, path, on_borrowed)

    monkeypatch.setattr(OwnTree, "listing", fail)
    run = run_sync(source, top, DELETE)
    assert run.problems[-1].message == (
        f"1 deletion was withheld: what is new in {top}/d did not arrive; --ignore-errors deletes anyway"
    )
    assert (top / "old").exists()


def test_what_takes_the_place_of_a_directory_is_here_before_that_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_tree(tmp_path / "s", tree({"gone": b"new" * 10_000, "changed": b"after"}))
    top = write_tree(tmp_path / "d", HELD)
    (source / "gone").chmod(0o644)
    pread = SourceFile.pread

    def fail(self: SourceFile, offset: int, length: int) -> bytes:
        if self.path == b"gone":
            raise refuse(self.path)
        return pread(self, offset, length)

    with monkeypatch.context() as patched:
        patched.setattr(SourceFile, "pread", fail)
        patched.setattr("rdc.session.source.file_sender.SMALL_FILE_BYTES", 0)
        run = run_sync(source, top, DELETE)
        assert read_tree(top).keys() == HELD.keys()
        run_sync(source, top, SyncOptions(delete=True, ignore_errors=True))
        assert read_tree(top).keys() == HELD.keys() - {b"old"}
    assert [problem.path_bytes for problem in run.problems] == [b"gone", b""]
    run = run_sync(source, top, DELETE)
    assert (run.problems, (top / "gone").read_bytes()) == ([], b"new" * 10_000)
    assert not list(top.rglob(".rdc-*"))


def test_what_is_not_put_in_place_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_tree(tmp_path / "s", tree({"gone": b"new" * 10_000, "other": b"x" * 100_000}))
    top = write_tree(tmp_path / "d", HELD)
    add = CommitGroup.add

    def fail(self: CommitGroup, replacement: Replacement, path: bytes, *arguments: Any) -> None:
        if path == b"other":
            replacement.abandon()
            self._report(path, refuse(path))
        else:
            add(self, replacement, path, *arguments)

    monkeypatch.setattr(CommitGroup, "add", fail)
    run = run_sync(source, top, DELETE)
    assert [problem.path_bytes for problem in run.problems] == [b"other", b"gone", b""]
    assert read_tree(top).keys() == HELD.keys()


@pytest.mark.needs("mount")
@pytest.mark.parametrize("few", ["bytes", "inodes"])
@pytest.mark.parametrize("options", [(), ("-W",), ("-c",)], ids=["", "whole", "checksum"])
def test_a_full_destination(options: tuple[str, ...], few: str, tmp_path: Path) -> None:
    """What is complete is in place. Without --ignore-errors nothing is deleted; with it, the next run has
    room."""
    size = 3 << 20
    wanted: dict[str, bytes | Link] = {"a": b"small", "big": os.urandom(size), "link": Link(b"x")}
    held = {"old/1": os.urandom(size), "old/2": b"x", "old/3": b"x"}
    with memory_mounted(tmp_path / "d") as top:
        limit = "size=4m" if few == "bytes" else "nr_inodes=6"
        subprocess.run(["mount", "-o", f"remount,{limit}", top], check=True)
        source = write_tree(tmp_path / "s", tree(wanted))
        write_tree(top, tree(held))
        ended = command("sync", "--delete", *options, f"{source}/", top)
        assert ended.code == ExitCode.FILE_IO
        assert ended.complaints[0] == (
            "rdc: 4 deletions were withheld: not everything arrived before the run ended;"
            " --ignore-errors deletes anyway"
        )
        assert "ENOSPC" in ended.complaints[1]
        assert ("inodes" in ended.complaints[1]) == (few == "inodes")
        assert tree(held).keys() <= read_tree(top).keys()
        ended = command("sync", "--delete", "--ignore-errors", *options, f"{source}/", top)
        assert ended.code == ExitCode.FILE_IO
        assert not (top / "old").exists()
        assert command("sync", "--delete", *options, f"{source}/", top).code == ExitCode.OK
        assert read_tree(top).keys() == tree(wanted).keys()


def test_a_file_that_somebody_puts_in_the_place_of_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays, and so the new one did not arrive."""
    source = write_tree(tmp_path / "s", tree({"new": b"the only copy", "changed": b"after"}))
    top = write_tree(tmp_path / "d", HELD)
    flush = CommitGroup.flush

    def put(self: CommitGroup) -> None:
        (top / "new").write_bytes(b"somebody's")
        flush(self)

    monkeypatch.setattr(CommitGroup, "flush", put)
    run = run_sync(source, top, DELETE)
    assert [problem.path_bytes for problem in run.problems] == [b"new", b""]
    assert (top / "new").read_bytes() == b"somebody's"
    assert HELD.keys() <= read_tree(top).keys()
