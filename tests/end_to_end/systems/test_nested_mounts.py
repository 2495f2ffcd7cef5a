"""A file system that is mounted inside the destination, full or read-only: its entries fail one by one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from rdc.errors import ExitCode, OutOfSpaceError
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import run_sync
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree

pytestmark = pytest.mark.needs("mount")

SMALL, LARGE = 700, 300_000
"""Sizes of files that are written in bulk, and one by one."""

Mounting = Callable[[Path], AbstractContextManager[None]]


@contextmanager
def mounted(point: Path, *words: str | Path) -> Iterator[None]:
    subprocess.run(["mount", *words, point], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", point], check=True)


@contextmanager
def read_only_bind(point: Path) -> Iterator[None]:
    """Of the same file system: only the mount is read-only."""
    with mounted(point, "--bind", point):
        subprocess.run(["mount", "-o", "remount,bind,ro", point], check=True)
        yield


@contextmanager
def full(point: Path) -> Iterator[None]:
    old = {path.name: path.read_bytes() for path in point.iterdir()}
    with mounted(point, "-t", "tmpfs", "-o", "size=1m", "tmpfs"):
        for name, content in old.items():
            (point / name).write_bytes(content)
            os.utime(point / name, ns=(1, 1))
        with (point / "filling").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while file.write(bytes(4096)):
                pass
        yield


@pytest.mark.parametrize("state", [full, read_only_bind])
@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("held", [False, True], ids=["new", "changed"])
@pytest.mark.parametrize("fsync", [False, True])
def test_its_entries_fail_and_all_others_arrive(
    state: Mounting, size: int, held: bool, fsync: bool, tmp_path: Path
) -> None:
    new = os.urandom(size)
    wanted = {f"{place}/{number}": new for place in ("a", "m", "z") for number in range(3)}
    source = write_tree(tmp_path / "src", tree(wanted))
    old = {name: File(b"old", 0o644, 1) for name in wanted} if held else {}
    destination = write_tree(tmp_path / "dst", tree(old))
    (destination / "m").mkdir(exist_ok=True)
    with state(destination / "m"):
        run = run_sync(source, destination, SyncOptions(fsync=fsync))
        failed = {os.fsdecode(problem.path_bytes) for problem in run.problems}
        assert {name for name in wanted if name.startswith("m/")} <= failed | {"m"}
        assert all(name == "m" or name.startswith("m/") for name in failed), failed
        assert {problem.code for problem in run.problems} == {ExitCode.PARTIAL}
        for place in ("a", "z"):
            assert describe(read_tree(source / place), read_tree(destination / place)) == []
        for number in range(3) if held else ():
            assert (destination / "m" / str(number)).read_bytes() == b"old"
    assert list(destination.rglob(".rdc-*")) == []


@pytest.mark.parametrize("state", [full, read_only_bind])
def test_the_destination_s_own_ends_the_run(state: Mounting, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", tree({"a/b": os.urandom(LARGE), "c": b"c"}))
    (tmp_path / "dst").mkdir()
    with state(tmp_path / "dst"), pytest.raises(OutOfSpaceError) as ended:
        run_sync(source, tmp_path / "dst")
    assert ended.value.code is ExitCode.FILE_IO


def test_a_deletion_below_fails_alone(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", tree({"m/stays": b"", "z": b"z"}))
    destination = write_tree(tmp_path / "dst", tree({"m/stays": b"", "m/goes": b"1", "goes": b"2"}))
    with read_only_bind(destination / "m"):
        run = run_sync(source, destination, SyncOptions(delete=True, fsync=False))
        assert {problem.code for problem in run.problems} == {ExitCode.PARTIAL}
        assert sorted(read_tree(destination)) == [b"", b"m", b"m/goes", b"m/stays", b"z"]
