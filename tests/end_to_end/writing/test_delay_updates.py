"""--delay-updates: no file changes before all content is there, and each is old or new at every moment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.files.replace.delayed_group import DelayedGroup
from rdc.model.options import Backup
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import File, Tree, describe, read_tree, tree, write_tree

LARGE = bytes(range(256)) * 2000
EQUAL = os.urandom(1 << 20)
WANTED = tree(
    {
        "f": File(b"the new content", 0o4755),
        "closed": File(b"closed", 0o400),
        "large": LARGE + b"edit" + LARGE,
        "d/e/deep": b"deep",
        "d/f": File(b"another of that name", 0o666),
        "same/1": EQUAL,
        "same/2": EQUAL,
        "same/3": EQUAL,
        **{f"many/{number}": b"%d" % number for number in range(300)},
    }
)
HELD = tree(
    {
        "f": File(b"old", 0o600, 1),
        "large": LARGE * 2,
        "d/f": File(b"old, too", 0o644, 1),
        "gone": b"goes at the end",
        "many/7": File(b"old seven", 0o644, 1),
    }
)
OPTIONS = SyncOptions(delay_updates=True, delete=True, fsync=False)


def files(top: Path) -> Tree:
    return {path: node for path, node in read_tree(top).items() if isinstance(node, File)}


HELD_FILES: Tree = {path: node for path, node in HELD.items() if isinstance(node, File)}


@pytest.mark.parametrize("options", [OPTIONS, SyncOptions(delay_updates=True, delete=True, whole_file=True)])
@pytest.mark.parametrize("way", [Way.HERE, Way.PUSH])
def test_all_is_in_place_in_the_end(way: Way, options: SyncOptions, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    run = run_sync(source, top, options, way=way)
    assert not run.problems
    assert describe(WANTED, read_tree(top)) == []
    assert not list(top.rglob(".rdc-*"))
    again = run_sync(source, top, options, way=way)
    assert (again.items, again.problems) == ([], [])


@pytest.mark.parametrize("word", ["", "../t"])
def test_nothing_is_in_place_before(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    (tmp_path / "t").mkdir()
    land, seen = DelayedGroup.land, []

    def looked_at(group: DelayedGroup) -> None:
        found = {path: node for path, node in files(top).items() if b".rdc-" not in path}
        seen.append((describe(HELD_FILES, found), len(os.listdir("/proc/self/fd"))))
        land(group)

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(DelayedGroup, "land", looked_at)
    options = SyncOptions(delay_updates=True, delete=True, fsync=False, temp_dir=word.encode())
    run = run_sync(source, top, options)
    assert not run.problems
    assert [differences for differences, _ in seen] == [[]]
    assert seen[0][1] < before + 100
    assert describe(WANTED, read_tree(top)) == []
    assert not list((tmp_path / "t").iterdir())


def test_an_interrupted_run_changes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)

    def interrupted(group: DelayedGroup) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(DelayedGroup, "land", interrupted)
        run_sync(source, top, OPTIONS)
    assert describe(HELD_FILES, {p: n for p, n in files(top).items() if b".rdc-" not in p}) == []
    left = [path.stat().st_size for path in top.rglob(".rdc-*")]
    assert left and min(left) >= 1 << 16
    run = run_sync(source, top, OPTIONS)
    assert not run.problems
    assert run.done.reused_bytes > len(EQUAL)
    assert describe(WANTED, read_tree(top)) == []
    assert not list(top.rglob(".rdc-*"))


def test_what_another_run_took_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    land = DelayedGroup.land

    def swept(group: DelayedGroup) -> None:
        group.flush()
        for path in top.glob(".rdc-*"):
            content = path.read_bytes()
            path.unlink()
            if len(content) > 100:
                path.write_bytes(content)
        land(group)

    monkeypatch.setattr(DelayedGroup, "land", swept)
    run = run_sync(source, top, OPTIONS)
    # The last tells of the deletion that is withheld, since one of these is new.
    assert [problem.path_bytes for problem in run.problems] == [b"closed", b"f", b"large", b""]
    assert run.done.exit == ExitCode.PARTIAL
    assert (top / "f").read_bytes() == b"old" and (top / "large").read_bytes() == LARGE * 2
    assert (top / "d" / "f").read_bytes() == b"another of that name"


def test_backups_and_links_come_last(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    os.link(source / "f", source / "second")
    options = SyncOptions(delay_updates=True, backup=Backup(b"~"), hard_links=True, fsync=False)
    run = run_sync(source, top, options)
    assert not run.problems
    assert (top / "f~").read_bytes() == b"old"
    assert (top / "second").stat().st_ino == (top / "f").stat().st_ino


@pytest.mark.parametrize("word", ["--inplace", "--append", "--copy-dest=../x"])
def test_what_cannot_be_combined_is_refused(word: str, tmp_path: Path) -> None:
    ended = command("sync", "--delay-updates", word, f"{tmp_path}/", tmp_path.parent / "none")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)


def test_a_dry_run_holds_nothing_back(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    rehearsed = run_sync(source, top, SyncOptions(delay_updates=True, delete=True, dry_run=True))
    assert describe(HELD, read_tree(top)) == []
    assert sorted(rehearsed.items) == sorted(run_sync(source, top, OPTIONS).items)
