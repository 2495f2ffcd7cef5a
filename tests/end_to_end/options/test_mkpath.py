"""--mkpath: the directories above the destination are made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.errors import ExitCode, RdcError
from rdc.model.sync import SyncOptions
from tests.support.running.beside_rsync import rdc, rsync
from tests.support.running.forced_command import forced
from tests.support.running.syncing import Way, command, contents_of, run_sync
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree

MKPATH = SyncOptions(mkpath=True, fsync=False)
WANTED = tree({"f": b"content", "d/g": b"deep"})


def scene(top: Path) -> Path:
    top.mkdir(exist_ok=True)
    write_tree(top / "s", WANTED)
    write_tree(top / "held", tree({"b": File(b"another of this name", 0o600, 1)}))
    (top / "d").mkdir()
    return top


def timeless(top: Path) -> Path:
    """`top`, all of whose directories have one time: rsync and rdc make those above DST at any time."""
    for directory, _, _ in os.walk(top, topdown=False):
        os.utime(directory, ns=(1, 1))
    return top


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("source", ["s/", "s", "s/f"])
@pytest.mark.parametrize(
    "place", ["d/", "d", "new/", "new", "new/a/b/", "new/a/b", "held/new/b", "held/b/no/x"]
)
@pytest.mark.parametrize("more", [[], ["--existing"]], ids=["", "existing"])
def test_the_tree_and_the_plan_are_rsync_s(more: list[str], place: str, source: str, tmp_path: Path) -> None:
    ours, theirs = scene(tmp_path / "ours"), scene(tmp_path / "theirs")
    words = ["-i", "--mkpath", *more]
    before = read_tree(ours)
    rehearsed = rdc("-n", *words, f"{ours}/{source}", f"{ours}/{place}")
    assert describe(before, read_tree(ours)) == []
    made = rdc(*words, f"{ours}/{source}", f"{ours}/{place}")
    planned = rsync("-n", *words, f"{theirs}/{source}", f"{theirs}/{place}")
    code, _ = rsync(*words, f"{theirs}/{source}", f"{theirs}/{place}")
    assert made[0] == code
    if code == 0:
        assert rehearsed == made
    # A file with another name is shown by that name. With --existing, rdc alone names the new DST itself.
    if code == 0 and source != "s/f" and not more:
        assert rehearsed[1] == [line for line in planned[1] if not line.startswith("created ")]
    assert describe(read_tree(timeless(theirs)), read_tree(timeless(ours))) == []


@pytest.mark.parametrize("way", Way)
def test_each_side_makes_them(way: Way, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), os.fsencode(tmp_path) + b"/new/./a//b/"
    rehearsed = run_sync(source, top, SyncOptions(mkpath=True, dry_run=True), way=way)
    assert not (tmp_path / "new").exists()
    run = run_sync(source, top, MKPATH, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert rehearsed.items == run.items
    assert describe(WANTED, read_tree(tmp_path / "new/a/b")) == []
    assert run_sync(source, top, MKPATH, way=way).done.changed == 0


@pytest.mark.parametrize("way", Way)
def test_without_it_only_the_last_directory_is_made(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    with pytest.raises(RdcError):
        run_sync(source, tmp_path / "new/a", SyncOptions(), way=way)
    assert not (tmp_path / "new").exists()


def test_a_file_is_never_compared_with_one_higher_up(tmp_path: Path) -> None:
    """A dry run opens the nearest directory that exists. An entry of the same name there is another one."""
    scene(tmp_path)
    words = ["-n", "-i", "--mkpath", "--ignore-existing", f"{tmp_path}/s/f"]
    assert rdc(*words, f"{tmp_path}/held/new/b") == (0, [">f+++++++++ b"])


@pytest.mark.parametrize(
    ("key", "destination", "code", "made"),
    [
        ("", "a/b/c/", 0, "a/b/c/f"),
        ("--append-only", "a/b/c/", 0, "a/b/c/f"),
        ("", "/a/b/", 0, "a/b/f"),
        ("", "../out/b/", 23, None),
        ("", "link/a/b/", 11, None),
        ("--read-only", "a/b/c/", 5, None),
    ],
)
def test_a_confined_peer_makes_them_below_its_root_alone(
    key: str, destination: str, code: int, made: str | None, tmp_path: Path
) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    for name in ("outside", "root"):
        (tmp_path / name).mkdir()
    os.symlink("../outside", tmp_path / "root/link")
    served = forced(tmp_path, f"--root={tmp_path}/root", *key.split())
    ended = command(
        "sync", "--no-catalog", "--mkpath", "-e", served, contents_of(source).decode(), f"h:{destination}"
    )
    assert ended.code == code, ended.err
    assert not (tmp_path / "out").exists()
    assert list((tmp_path / "outside").iterdir()) == []
    if made is None:
        assert os.listdir(tmp_path / "root") == ["link"]
    else:
        assert (tmp_path / "root" / made).read_bytes() == b"content"
