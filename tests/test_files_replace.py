"""Replacement, CommitGroup and sweep: what they promise when nothing breaks, and when others interfere."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileError, OutOfSpaceError
from rdc.files import commit as commit_module
from rdc.files import durable as durable_module
from rdc.files import placing as placing_module
from rdc.files import replacement as replacement_module
from rdc.files.confined import Root
from rdc.files.descriptors import OTHER_DESCRIPTORS
from rdc.files.replace import ANYTHING, Anything, CommitGroup, Replacement, is_temporary, sweep
from rdc.files.temporary import temporary_name
from rdc.model.entries import Identity, Metadata

PLAIN = Metadata(0o640, 1_600_000_000_123_456_789, os.geteuid(), os.getegid())


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.open(os.fsencode(tmp_path))


def write(root: Root, path: bytes, data: bytes) -> Replacement:
    replacement = Replacement(root, path)
    replacement.write(data)
    return replacement


def read(root: Root, path: bytes) -> bytes:
    with root.open_read(path) as source:
        return b"".join(source.spans())


def commit(root: Root, path: bytes, data: bytes, expected: Identity | Anything | None) -> None:
    with CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(write(root, path, data), path, PLAIN, False, expected)


def temporaries(root: Root, path: bytes = b"") -> list[bytes]:
    found: list[bytes] = []
    root.list(path, on_temporary=found.append)
    return found


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
        failed[error.path] = error

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
    def missing(old: bytes, new: bytes, directory: int) -> None:
        raise OSError(number, "")

    monkeypatch.setattr(placing_module, "rename_no_replace", missing)
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
    assert caught.value.path == b"b"
    assert committed == [b"a", b"c"]
    group.flush()


def test_an_exception_abandons_what_is_staged(root: Root) -> None:
    with pytest.raises(KeyError), CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(write(root, b"f", b"new"), b"f", PLAIN, False, None)
        with Replacement(root, b"g"):
            raise KeyError
    assert root.list(b"", skip_temporaries=False).names == ()


@pytest.mark.parametrize("by_hand", [False, True])
def test_copying_and_reading_back(root: Root, by_hand: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    base = os.urandom((3 << 20) + 17)
    commit(root, b"base", base, None)
    if by_hand:

        def refuse(*arguments: object, **options: object) -> int:
            raise OSError(errno.EXDEV, "")

        monkeypatch.setattr(os, "copy_file_range", refuse)
    with root.open_read(b"base") as source, CommitGroup(root, on_commit=lambda _: None) as group:
        replacement = Replacement(root, b"f", expected_size=4 << 20)
        replacement.write(memoryview(b"head")[1:])
        assert replacement.copy_from(source.fileno(), 5, 1 << 20) == 1 << 20
        replacement.write(bytearray(b"middle"))
        assert replacement.copy_from(source.fileno(), len(base) - 10, 100) == 10
        assert replacement.copy_from(source.fileno(), 0, 0) == 0
        replacement.write(b"")
        expected = b"ead" + base[5 : 5 + (1 << 20)] + b"middle" + base[-10:]
        assert replacement.size == len(expected)
        assert replacement.pread(0, 2 << 20) == expected
        assert replacement.pread(len(expected) - 4, 9) == expected[-4:]
        assert replacement.pread(len(expected), 9) == b""
        assert os.fstat(replacement.fileno()).st_blocks * 512 >= 4 << 20, "space is reserved"
        group.add(replacement, b"f", PLAIN, False, None)
    assert read(root, b"f") == expected
    assert os.stat(os.path.join(root.label, b"f")).st_blocks * 512 < 2 << 20, "and given back"


def test_short_writes_and_copies_go_on(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite, copy = os.pwrite, os.copy_file_range
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, bytes(data)[:3], offset))
    monkeypatch.setattr(os, "copy_file_range", lambda a, b, n, **o: copy(a, b, min(n, 5), **o))
    commit(root, b"base", b"0123456789abcdef", None)
    with root.open_read(b"base") as source, Replacement(root, b"f") as replacement:
        assert replacement.copy_from(source.fileno(), 1, 14) == 14
        assert replacement.pread(0, 99) == b"123456789abcde"


def test_space_is_reserved_first(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, raised in {
        errno.ENOSPC: OutOfSpaceError,
        errno.EFBIG: FileError,
        errno.EOPNOTSUPP: None,
    }.items():

        def fail(fd: int, length: int, number: int = number) -> None:
            raise OSError(number, "")

        monkeypatch.setattr(replacement_module, "fallocate_keep_size", fail)
        Replacement(root, b"small", expected_size=1000).abandon()
        if raised is None:
            Replacement(root, b"big", expected_size=1 << 30).abandon()
        else:
            with pytest.raises(raised):
                Replacement(root, b"big", expected_size=1 << 30)
        assert temporaries(root) == []


def test_a_replacement_belongs_to_its_path(root: Root) -> None:
    group = CommitGroup(root, on_commit=lambda _: None)
    with Replacement(root, b"a") as replacement, pytest.raises(ValueError, match="was made for"):
        group.add(replacement, b"b", PLAIN, False, None)


# Sweeps


def test_a_sweep_takes_what_is_stale_and_nothing_else(root: Root, tmp_path: Path) -> None:
    live = Replacement(root, b"f")
    stale = [tmp_path / os.fsdecode(temporary_name(b"f")) for _ in range(5)]
    stale[0].write_bytes(b"left behind")
    stale[1].write_bytes(b"read-only")
    stale[1].chmod(0o400)
    stale[2].symlink_to("/etc")
    stale[3].mkdir()
    (stale[4] / "somebody's").mkdir(parents=True)
    (tmp_path / "file").touch()
    names = [os.fsencode(name) for name in os.listdir(tmp_path)]
    assert sweep(root, b"", names) == 4
    # What is in a directory is nobody's litter.
    assert sorted(os.listdir(tmp_path)) == sorted(["file", stale[4].name, os.fsdecode(live.temporary)])
    assert sweep(root, b"", names) == 0
    assert (stale[4] / "somebody's").is_dir()
    live.abandon()
    assert root.list(b"").names == (b"file",)


def test_a_temporary_is_never_swept_between_its_creation_and_its_lock(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep runs at the worst moments: before the lock, and, holding its own, while the writer locks."""
    flock = fcntl.flock
    swept: list[int] = []
    held: list[int] = []

    def racing(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        if len(swept) < 3:
            swept.append(sweep(root, b"", temporaries(root)))
            monkeypatch.setattr(fcntl, "flock", racing)
        elif len(held) < 3:
            held.append(os.open(os.path.join(root.label, temporaries(root)[0]), os.O_RDWR))
            flock(held[-1], fcntl.LOCK_EX)
            monkeypatch.setattr(fcntl, "flock", racing)
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", racing)
    replacement = write(root, b"f", b"new")
    assert swept == [1, 1, 1]
    assert len(held) == 3
    assert sweep(root, b"", temporaries(root)) == 0
    with CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(replacement, b"f", PLAIN, False, None)
    assert read(root, b"f") == b"new"
    for fd in held:
        os.close(fd)
    assert temporaries(root) == []


def test_a_finished_file_is_not_swept_under_its_old_name(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer renames and closes between the sweep's open and its lock."""
    replacement = write(root, b"f", b"new")
    name = replacement.temporary
    flock = fcntl.flock

    def racing(fd: int, operation: int) -> None:
        with CommitGroup(root, on_commit=lambda _: None) as group:
            group.add(replacement, b"f", PLAIN, False, None)
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", racing)
    assert sweep(root, b"", [name]) == 0
    assert read(root, b"f") == b"new"


def test_a_name_used_again_is_not_swept_for_what_had_it_before(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(root, b"f", b"first")
    name = first.temporary
    monkeypatch.setattr(replacement_module, "temporary_name", lambda target: name)
    flock = fcntl.flock
    second: list[Replacement] = []

    def racing(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        first.abandon()
        second.append(write(root, b"f", b"second"))
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", racing)
    assert sweep(root, b"", [name]) == 0
    with CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(second[0], b"f", PLAIN, False, None)
    assert read(root, b"f") == b"second"


def test_sweeping_all_the_time_loses_no_write(root: Root) -> None:
    stop = threading.Event()
    swept = 0

    def run() -> None:
        nonlocal swept
        other = Root.open(root.label)
        while not stop.is_set():
            swept += sweep(other, b"", temporaries(other))

    sweeper = threading.Thread(target=run)
    sweeper.start()
    committed: list[bytes] = []
    try:
        with CommitGroup(root, fsync=False, on_commit=committed.append, files=7) as group:
            for index in range(1500):
                path = b"%d" % (index % 50)
                group.add(write(root, path, b"%d" % index), path, PLAIN, False, ANYTHING)
                root.replace_symlink(b"link", b"%d" % index)
    finally:
        stop.set()
        sweeper.join()
    assert len(committed) == 1500
    assert [read(root, b"%d" % index) for index in range(50)] == [b"%d" % (1450 + i) for i in range(50)]
    assert os.readlink(os.path.join(root.label, b"link")) == b"1499"
    assert temporaries(root) == []


# The order of the steps, seen as system calls


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
