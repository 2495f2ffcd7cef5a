"""A CommitGroup makes files durable, then visible, each wholly old or wholly new."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileError
from rdc.files.base import taking_names as durable_module
from rdc.files.base import taking_names as rename_module
from rdc.files.base.metadata import ANYTHING
from rdc.files.base.paths import is_temporary, temporary_name
from rdc.files.base.syscalls import OTHER_DESCRIPTORS
from rdc.files.replace import commit_group as commit_module
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.model.entries import Identity
from tests.files.replace.written_files import PLAIN, commit, read, temporaries, write


@given(st.binary(max_size=30))
def test_only_our_own_names_are_temporaries(name: bytes) -> None:
    assert is_temporary(temporary_name(b"f"))
    assert not is_temporary(name)
    assert not is_temporary(temporary_name(b"f") + name[:1] + b"~")
    assert not is_temporary(temporary_name(b"f") + b"\n")
    assert not is_temporary(temporary_name(b"f").upper())


def test_nothing_shows_before_the_flush_and_everything_after(root: Root) -> None:
    committed: list[bytes] = []
    identities: dict[bytes, Identity] = {}
    group = CommitGroup(root, on_commit=committed.append, on_identity=identities.__setitem__)
    commit(root, b"old", b"old", None)
    for path in (b"old", b"new"):
        group.add(write(root, path, b"later"), path, PLAIN, False, ANYTHING)
    assert (root.list(b"").names, read(root, b"old"), committed) == ((b"old",), b"old", [])
    group.flush()
    assert root.list(b"").names == (b"new", b"old")
    assert committed == [b"old", b"new"]
    for path in committed:
        assert read(root, path) == b"later"
        assert root.metadata(path) == PLAIN
        assert identities[path] == root.identity(path)
    assert temporaries(root) == []
    group.flush()
    assert len(committed) == 2


def test_the_mtime_is_set_also_where_the_temporary_had_it_by_chance(root: Root) -> None:
    """A source written in the tick of the clock in which its copy was begun."""
    replacement = Replacement(root, b"f")
    wanted = replace(PLAIN, mtime_ns=os.fstat(replacement.fileno()).st_mtime_ns)
    time.sleep(0.02)
    replacement.write(b"x")
    with CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(replacement, b"f", wanted, False, None)
    assert root.metadata(b"f") == wanted


def test_a_group_flushes_when_it_is_full(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    committed: list[bytes] = []
    group = CommitGroup(root, on_commit=committed.append, files=3, size=1000)
    sizes = []
    for index in range(7):
        path = b"%d" % index
        group.add(write(root, path, b"x"), path, PLAIN, False, None)
        sizes.append(len(committed))
    assert sizes == [0, 0, 3, 3, 3, 6, 6]
    group.add(write(root, b"big", bytes(1000)), b"big", PLAIN, False, None)
    assert len(committed) == 8
    monkeypatch.setattr(os, "sysconf", lambda _: OTHER_DESCRIPTORS)
    frugal = CommitGroup(root, on_commit=committed.append)
    frugal.add(write(root, b"one", b""), b"one", PLAIN, False, None)
    assert committed[-1] == b"one"


def test_what_was_not_expected_is_kept(root: Root, tmp_path: Path) -> None:
    for name in ("changed", "appeared", "replaced", "same", "linked"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "directory").mkdir()
    (tmp_path / "emptied").mkdir()
    seen = {name: root.identity(name) for name in (b"changed", b"replaced", b"same", b"linked")}
    seen[b"vanished"] = seen[b"same"]
    (tmp_path / "changed").write_bytes(b"changed")
    os.replace(tmp_path / "appeared", tmp_path / "replaced")
    (tmp_path / "appeared").write_bytes(b"appeared")
    os.unlink(tmp_path / "linked")
    os.symlink("same", tmp_path / "linked")
    failed: dict[bytes, FileError] = {}
    committed: list[bytes] = []
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file() and p.name != "same"}

    def fail(error: FileError) -> None:
        failed[error.path_bytes] = error

    with CommitGroup(root, on_commit=committed.append, on_error=fail) as group:
        for path, expected in {
            b"changed": seen[b"changed"],
            b"appeared": None,
            b"replaced": seen[b"replaced"],
            b"linked": seen[b"linked"],
            b"vanished": seen[b"vanished"],
            b"directory": ANYTHING,
            b"emptied": None,
            b"same": seen[b"same"],
            b"new": None,
        }.items():
            group.add(write(root, path, b"new"), path, PLAIN, False, expected)
    assert sorted(committed) == [b"new", b"same"]
    assert sorted(failed) == sorted(
        [b"changed", b"appeared", b"replaced", b"linked", b"vanished", b"directory", b"emptied"]
    )
    for path, error in failed.items():
        assert type(error) is FileError
        assert error.code == ExitCode.PARTIAL
        assert str(error).startswith(f"{os.fsdecode(root.shown(path))}: cannot replace it: expected ")
    assert read(root, b"same") == read(root, b"new") == b"new"
    before.pop("linked")
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert os.readlink(tmp_path / "linked") == "same"
    assert temporaries(root) == []


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
def test_new_files_without_the_kernels_promise(
    root: Root, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(old: bytes, directory: int, new: bytes, into: int) -> None:
        raise OSError(number, "")

    monkeypatch.setattr(rename_module, "rename_no_replace_between", missing)
    commit(root, b"f", b"new", None)
    with pytest.raises(FileError, match="expected nothing there, found a file"):
        commit(root, b"f", b"newer", None)
    assert read(root, b"f") == b"new"


def test_without_a_taker_the_first_error_is_raised_after_the_rest(root: Root) -> None:
    committed: list[bytes] = []
    group = CommitGroup(root, on_commit=committed.append)
    commit(root, b"b", b"old", None)
    for path in (b"a", b"b", b"c"):
        group.add(write(root, path, b"new"), path, PLAIN, False, None)
    with pytest.raises(FileError) as caught:
        group.flush()
    assert caught.value.path_bytes == b"b"
    assert committed == [b"a", b"c"]
    group.flush()


def test_an_exception_abandons_what_is_staged(root: Root) -> None:
    with pytest.raises(KeyError), CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(write(root, b"f", b"new"), b"f", PLAIN, False, None)
        with Replacement(root, b"g"):
            raise KeyError
    assert root.listed(b"").is_empty
    assert root.listed(b"").reserved == ()


@pytest.mark.parametrize("files", [3, commit_module.SYNCFS_FILES])
def test_content_is_synced_before_any_rename_and_directories_after(
    root: Root, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def watch(module: object, name: str) -> None:
        real: Callable[..., object] = getattr(module, name)

        def watched(*arguments: object, **options: object) -> object:
            calls.append(name)
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, watched)

    def committed(path: bytes) -> None:
        calls.append("committed")

    for name in ("fsync", "rename", "chmod", "utime"):
        watch(os, name)
    watch(durable_module, "syncfs")
    for fsync in (True, False):
        calls.clear()
        with CommitGroup(root, fsync=fsync, on_commit=committed) as group:
            for index in range(files):
                path = b"%d" % index
                group.add(write(root, path, b"x"), path, PLAIN, False, ANYTHING)
        contents = ["fsync"] * files if files < commit_module.SYNCFS_FILES else ["syncfs"]
        assert calls == [
            *(["chmod", "utime"] * files),
            *(contents if fsync else []),
            *(["rename"] * files),
            *(["fsync"] if fsync else []),
            *(["committed"] * files),
        ]
