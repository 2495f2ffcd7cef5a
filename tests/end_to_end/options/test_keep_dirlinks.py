"""-K: files go through the symlinks to directories that DST has, beside rsync's."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from tests.support.running.beside_rsync import rdc, rsync
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import Directory, File, Link, Tree, describe, read_tree, tree, write_tree

SOURCE = tree(
    {
        "kept/new": b"new",
        "kept/same": b"same",
        "kept/changed": b"another content",
        "kept/deep/er/file": b"far down",
        "plain/file": b"plain",
        "file": b"no directory",
        "link": Link(b"kept"),
    }
)
OUTSIDE = tree(
    {
        "same": b"same",
        "changed": File(b"before", 0o644, 5),
        "extra": b"e",
        "deep": Link(b"elsewhere"),
        "elsewhere/old": b"o",
    }
)
OPTIONS = SyncOptions(keep_dirlinks=True, fsync=False)


def place(top: Path) -> Path:
    """DST, with links to directories within it."""
    destination = write_tree(top, tree({"plain/file": b"plain"}))
    write_tree(top / "outside", OUTSIDE)
    (destination / "kept").symlink_to("outside")
    (destination / "link").symlink_to("plain")
    for path in (destination / "kept", destination / "link", destination):
        os.utime(path, (5, 5), follow_symlinks=False)
    return destination


def apart_from_times(top: Path) -> Tree:
    """Without times of the links and directories that take part: rsync sets that of the link."""
    found = read_tree(top)
    for path, node in found.items():
        if isinstance(node, (Directory, Link)):
            found[path] = replace(node, mtime_ns=0)
    return found


@pytest.mark.needs("rsync")
@pytest.mark.parametrize(
    "words", [[], ["--delete", "--exclude=/outside", "--exclude=elsewhere"], ["-c"], ["-W"]], ids=" ".join
)
def test_a_run_does_what_rsync_does(words: list[str], tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", SOURCE)
    theirs, ours = place(tmp_path / "theirs"), place(tmp_path / "ours")
    for more in (["-n"], []):
        found = rsync("-i", "-K", *more, *words, f"{source}/", f"{theirs}/")
        assert rdc("-i", "-K", *more, *words, f"{source}/", f"{ours}/") == found
    assert describe(apart_from_times(theirs), apart_from_times(ours)) == []
    assert (ours / "kept").is_symlink() and (ours / "outside/new").read_bytes() == b"new"
    assert rdc("-i", "-K", *words, f"{source}/", f"{ours}/") == (0, [])


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
def test_through_a_remote_shell(way: Way, tmp_path: Path) -> None:
    source, destination = write_tree(tmp_path / "s", SOURCE), place(tmp_path / "t")
    run = run_sync(source, destination, OPTIONS, way=way)
    assert run.problems == []
    assert (destination / "outside/deep").is_symlink()
    assert (destination / "outside/elsewhere/er/file").read_bytes() == b"far down"
    assert run_sync(source, destination, OPTIONS, way=way).items == []


def test_without_it_links_are_replaced(tmp_path: Path) -> None:
    source, destination = write_tree(tmp_path / "s", SOURCE), place(tmp_path / "t")
    run_sync(source, destination, SyncOptions(fsync=False))
    assert not (destination / "kept").is_symlink()
    assert not (destination / "outside/new").exists()


def test_a_link_to_nothing_is_replaced(tmp_path: Path) -> None:
    source, destination = write_tree(tmp_path / "s", SOURCE), write_tree(tmp_path / "t", tree({}))
    (destination / "kept").symlink_to("nothing")
    assert run_sync(source, destination, OPTIONS).problems == []
    assert (destination / "kept/deep").is_dir() and not (destination / "kept").is_symlink()


@pytest.mark.parametrize("target", ["../beside", ".", "kept/..", "/"])
def test_a_link_out_of_the_tree_stays_and_is_named(target: str, tmp_path: Path) -> None:
    """Nothing is written through it, and the rest is copied, as rsync does."""
    source, destination = write_tree(tmp_path / "s", SOURCE), write_tree(tmp_path / "t", tree({}))
    beside = write_tree(tmp_path / "beside", OUTSIDE)
    (destination / "kept").symlink_to(target)
    before = read_tree(beside)
    ended = command("sync", "-K", "--delete", "--no-fsync", f"{source}/", f"{destination}/")
    if target.startswith("kept"):
        assert ended.code == 0  # a link to itself leads to nothing
        return
    assert ended.code == ExitCode.PARTIAL
    assert any("kept" in line for line in ended.complaints)
    assert os.readlink(destination / "kept") == target
    assert describe(before, read_tree(beside)) == []
    assert (destination / "file").read_bytes() == b"no directory"
    assert not (tmp_path / "new").exists() and not (destination / "new").exists()


def test_a_link_that_a_run_makes_is_not_followed_by_it(tmp_path: Path) -> None:
    """The next one follows it, but not out of the tree."""
    top = place(tmp_path / "t")
    first = write_tree(tmp_path / "s", tree({"new": Link(b"outside"), "out": Link(b"..")}))
    run_sync(first, top, OPTIONS)
    second = write_tree(tmp_path / "s2", tree({"new/file": b"content", "out/stolen": b"x"}))
    assert run_sync(second, top, OPTIONS).done.exit == ExitCode.PARTIAL
    assert os.path.islink(top / "new") and (top / "outside/file").read_bytes() == b"content"
    assert not (tmp_path / "stolen").exists()


@pytest.mark.parametrize("word", ["-b", "--backup-dir=old", "--keep-undo=1d", "--link-dest=../x"])
def test_what_cannot_be_combined_is_refused(word: str, tmp_path: Path) -> None:
    ended = command("sync", "-K", word, f"{tmp_path}/", tmp_path.parent / "none")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)
    assert not (tmp_path.parent / "none").exists()
