"""--inplace: files keep their inodes, and all names and copies of their blocks."""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.model.options import Backup
from rdc.model.sync import SyncOptions
from tests.support.running.beside_rsync import rsync
from tests.support.running.forced_command import forced
from tests.support.running.syncing import Way, command, run_sync
from tests.support.share import examples
from tests.support.trees.tree_strategies import pairs, plain_trees
from tests.support.trees.trees import File, Link, Tree, describe, litter, read_tree, tree, write_tree

INPLACE = SyncOptions(inplace=True, fsync=False)
LONG = random.Random(1).randbytes(600_000)
HELD = tree(
    {
        "small": File(b"old", 0o600, 1),
        "long": File(LONG, 0o640, 1),
        "shorter": File(LONG, 0o644, 1),
        "longer": File(LONG[:300_000], 0o644, 1),
        "turned": File(LONG, 0o644, 1),
        "time": File(b"its time alone", 0o644, 1),
        "was-link": Link(b"long"),
        **{f"many/{number}": File(LONG[number : 2000 + number], 0o644, 1) for number in range(12)},
    }
)
WANTED = tree(
    {
        "small": b"new, and of another length",
        "long": LONG[:200_000] + b"edit" + LONG[200_004:],
        "shorter": LONG[:100_001],
        "longer": LONG + b"more",
        "turned": LONG[300_000:] + LONG[:300_000],
        "time": b"its time alone",
        "was-link": b"a file now",
        "new": LONG[:70_000],
        **{f"many/{number}": LONG[number : 1900 + number] + b"edit" for number in range(12)},
    }
)


def inodes(top: Path) -> dict[bytes, int]:
    return {
        path: os.lstat(os.fsencode(top) + b"/" + path).st_ino
        for path, node in read_tree(top).items()
        if isinstance(node, File)
    }


@pytest.mark.parametrize("fsync", [False, True])
@pytest.mark.parametrize("way", Way)
def test_files_keep_their_inodes_and_other_names(way: Way, fsync: bool, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    os.link(top / "long", tmp_path / "other name")
    before = inodes(top)
    options = SyncOptions(inplace=True, fsync=fsync)
    run = run_sync(source, top, options, way=way)
    assert run.problems == []
    assert describe(WANTED, read_tree(top)) == []
    assert inodes(top).items() >= before.items()
    assert (tmp_path / "other name").read_bytes() == (source / "long").read_bytes()
    again = run_sync(source, top, options, way=way)
    assert (again.done.changed, again.problems) == (0, [])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs(plain_trees()))
@example((HELD, WANTED))
@example((HELD, tree()))
def test_any_tree_becomes_the_same_as_without(versions: tuple[Tree, Tree]) -> None:
    held, wanted = versions
    with tempfile.TemporaryDirectory() as place:
        source = write_tree(Path(place, "s"), wanted)
        found = []
        for inplace in (False, True):
            top = write_tree(Path(place, f"inplace {inplace}"), held)
            options = SyncOptions(delete=True, force_empty=True, fsync=False, inplace=inplace)
            run = run_sync(source, top, options)
            assert run.problems == []
            found.append(read_tree(top))
        assert describe(*found) == []


ranges = st.lists(st.tuples(st.integers(0, 19), st.integers(1, 8)), min_size=1, max_size=8)


@settings(max_examples=examples(30), deadline=None)
@given(ranges, st.sampled_from((16 << 10, 10_007)))
@example([(10, 8), (10, 8), (0, 8), (0, 8)], 16 << 10)
def test_ranges_that_move_within_a_file(order: list[tuple[int, int]], unit: int) -> None:
    """Backwards, forwards, in circles, twice: as a plain rebuild has them."""
    old = random.Random(2).randbytes(20 * unit)
    new = b"".join(old[at * unit : (at + count) * unit] for at, count in order)
    with tempfile.TemporaryDirectory() as place:
        source = write_tree(Path(place, "s"), tree({"f": new}))
        top = write_tree(Path(place, "d"), tree({"f": File(old, 0o644, 1)}))
        inode = (top / "f").stat().st_ino
        run = run_sync(source, top, INPLACE)
        assert run.problems == []
        assert (top / "f").read_bytes() == new
        assert (top / "f").stat().st_ino == inode
        assert run.done.literal_bytes <= 6 * (32 << 10) * len(order)


def test_two_names_of_one_file_with_one_content(tmp_path: Path) -> None:
    """The command dedupe leaves such files; at the source they are two."""
    source = write_tree(tmp_path / "s", tree({"a": LONG + b"new", "b": LONG + b"new"}))
    top = write_tree(tmp_path / "d", tree({"a": File(LONG, 0o644, 1)}))
    os.link(top / "a", top / "b")
    run = run_sync(source, top, INPLACE)
    assert run.problems == []
    assert describe(read_tree(source), read_tree(top)) == []
    assert (top / "a").stat().st_ino == (top / "b").stat().st_ino


@pytest.mark.parametrize("backup", [Backup(b"~"), Backup(b"", b"old")])
def test_a_backup_is_a_copy(backup: Backup, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    os.setxattr(top / "long", b"user.note", b"kept")
    options = SyncOptions(inplace=True, fsync=False, backup=backup)
    before = inodes(top)
    for _ in range(2):
        assert run_sync(source, top, options).problems == []
        for name in (b"small", b"long", b"turned"):
            path = b"old/" + name if backup.directory else name + b"~"
            assert read_tree(top)[path] == HELD[name]
            assert inodes(top)[path] != before[name]
    assert os.getxattr(top / ("old/long" if backup.directory else "long~"), b"user.note") == b"kept"
    assert {path: node for path, node in read_tree(top).items() if path in WANTED} == WANTED


@pytest.mark.parametrize("word", ["{top}/out/deep", "../out/x", "{top}/link/y"])
def test_a_backup_directory_that_the_user_names(word: str, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    before = inodes(top)
    named = word.format(top=tmp_path)
    ended = command("sync", "--inplace", "-b", f"--backup-dir={named}", f"{source}/", f"{top}/")
    assert (ended.code, ended.complaints) == (0, [])
    kept = tmp_path / "out" / named.rpartition("/")[2]
    for name in (b"small", b"long", b"turned"):
        assert read_tree(kept)[name] == HELD[name]
        assert inodes(top)[name] == before[name]
    assert not [path for path in read_tree(top) if path.startswith(b"out")]


def test_a_directory_in_the_way_of_a_backup(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"f": b"new"}))
    top = write_tree(tmp_path / "d", tree({"f": File(b"old", 0o644, 1), "f~/x": b""}))
    run = run_sync(source, top, SyncOptions(inplace=True, fsync=False, backup=Backup(b"~")))
    assert [problem.code for problem in run.problems] == [ExitCode.PARTIAL]
    assert (top / "f").read_bytes() == b"old"


def test_holes(tmp_path: Path) -> None:
    old, new = LONG, LONG[:100_000] + bytes(400_000) + LONG[500_000:] + bytes(300_000)
    source = write_tree(tmp_path / "s", tree({"f": new}))
    top = write_tree(tmp_path / "d", tree({"f": File(old, 0o644, 1)}))
    run_sync(source, top, SyncOptions(inplace=True, sparse=True))
    assert (top / "f").read_bytes() == new
    assert (top / "f").stat().st_blocks * 512 <= 220_000


@pytest.mark.needs("rsync")
def test_beside_rsync(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    found = []
    for name in ("rsync", "rdc"):
        top = write_tree(tmp_path / name, HELD)
        os.link(top / "long", top / "name")
        before = inodes(top)
        if name == "rsync":
            rsync("-a", "--inplace", f"{source}/", f"{top}/")
        else:
            assert command("sync", "--inplace", f"{source}/", f"{top}/").code == 0
        assert inodes(top).items() >= before.items()
        found.append(read_tree(top))
    assert describe(*found) == []


# Kills

STEPS = ("pwrite", "ftruncate", "copy_file_range", "chmod", "utime", "rename", "unlink", "fsync")


def synced_until(source: Path, top: Path, stop_at: int) -> bool:
    """A run that is killed before its step `stop_at`. False: it came to its end before."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    made = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            nonlocal made
            if made == stop_at:
                os.kill(os.getpid(), signal.SIGKILL)
            made += 1
            return call(*arguments, **named)

        return step

    try:
        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        run_sync(source, top, SyncOptions(inplace=True, fsync=True))
    finally:
        os._exit(0)


def test_a_kill_leaves_what_the_next_run_repairs(tmp_path: Path) -> None:
    edited = LONG[:99] + b"edit" + LONG[103:300_000] + b"edit" + LONG[300_004:]
    wanted = tree({"edited": edited, "shorter": edited[:-9999]})
    held = tree({"edited": File(LONG, 0o644, 1), "shorter": File(LONG, 0o644, 1)})
    source, mixtures, at = write_tree(tmp_path / "s", wanted), 0, 0
    while True:
        top = write_tree(tmp_path / f"d{at}", held)
        before = inodes(top)
        if not synced_until(source, top, at):
            break
        for path, node in read_tree(top).items():
            old, new = held.get(path), wanted.get(path)
            if isinstance(node, File) and isinstance(old, File) and isinstance(new, File):
                mixed = node.content not in (old.content, new.content)
                mixtures += mixed
                assert not mixed or node.mtime_ns not in (old.mtime_ns, new.mtime_ns)
        run = run_sync(source, top, INPLACE)
        assert run.problems == []
        assert describe(wanted, read_tree(top)) == []
        assert inodes(top) == before
        at += 1
    assert at > 12
    assert mixtures > 1
    assert litter(read_tree(top)) == []


# What is refused


@pytest.mark.parametrize("other", ["--update", "--size-only"])
def test_what_would_pass_over_a_mixture_is_refused(other: str, tmp_path: Path) -> None:
    ended = command("sync", "--inplace", other, f"{tmp_path}/", f"{tmp_path}/d/")
    assert ended.code == ExitCode.USAGE
    assert "exclude each other" in ended.err
    assert not (tmp_path / "d").exists()


def test_a_file_that_may_not_be_written(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"f": b"new", "g": b"new"}))
    top = write_tree(tmp_path / "d", tree({"f": File(b"old", 0o444, 1), "g": File(b"old", 0o644, 1)}))
    import subprocess

    subprocess.run(["chattr", "+i", top / "f"], check=True)
    try:
        run = run_sync(source, top, INPLACE)
    finally:
        subprocess.run(["chattr", "-i", top / "f"], check=True)
    assert [problem.code for problem in run.problems] == [ExitCode.PARTIAL]
    assert ((top / "f").read_bytes(), (top / "g").read_bytes()) == (b"old", b"new")


def test_an_append_only_root_refuses_it(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    (tmp_path / "outside").mkdir()
    served = forced(tmp_path, f"--root={top}", "--append-only")
    ended = command("sync", "--no-catalog", "--inplace", "-e", served, f"{source}/", "h:")
    assert ended.code == ExitCode.REFUSED
    assert "append-only" in ended.err
    assert "leave out --inplace" in ended.err
    assert describe(HELD, read_tree(top)) == []
