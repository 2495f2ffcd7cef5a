"""`rdc sync --keep-undo` and `rdc undo`: the tree is as before, and newer work stays."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, RdcError, UsageError
from rdc.files.base.paths import UNDO_NAME
from rdc.model.options import Backup, KeepUndo
from rdc.model.sync import SyncOptions
from rdc.undoing.undo import list_syncs
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.backed_up_trees import HELD, WANTED
from tests.support.trees.tree_strategies import pairs, plain_trees
from tests.support.trees.trees import File, Tree, describe, read_tree, tree, write_tree
from tests.support.undo.undo_runs import read_beside, undone
from tests.support.undo.undone_sync import UndoneSyncs, census, unlike

KEEP = KeepUndo(days=30)
KEEPING = SyncOptions(delete=True, fsync=False, keep_undo=KEEP)
STORE = os.fsdecode(UNDO_NAME)


def keeping(source: Path, top: Path, options: SyncOptions = KEEPING, way: Way = Way.HERE) -> None:
    run = run_sync(source, top, options, way=way)
    assert run.problems == []


@pytest.mark.parametrize("fsync", [False, True])
@pytest.mark.parametrize("way", Way)
def test_everything_comes_back(way: Way, fsync: bool, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    before = census(top)
    options = SyncOptions(delete=True, keep_undo=KEEP, fsync=fsync)
    keeping(source, top, options, way)
    assert describe(read_tree(source), read_beside(top)) == []
    again = run_sync(source, top, options, way=way)
    assert (again.done.changed, again.done.deleted, again.problems) == (0, 0, [])
    rehearsed = undone(top, dry_run=True)
    assert describe(read_tree(source), read_beside(top)) == []
    done = undone(top)
    assert (done.report, done.events) == (rehearsed.report, rehearsed.events)
    assert (done.report.exit, done.report.number, done.report.older) == (ExitCode.OK, 1, 0)
    assert unlike(before, census(top)) == []
    assert undone(top).report.number is None


@given(pairs(plain_trees()), st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_pair_of_trees(
    tmp_path_factory: pytest.TempPathFactory, trees: tuple[Tree, Tree], delete: bool, checksum: bool
) -> None:
    place = tmp_path_factory.mktemp("any")
    source, top = write_tree(place / "s", trees[0]), write_tree(place / "d", trees[1])
    before = census(top)
    options = SyncOptions(delete=delete, checksum=checksum, fsync=False, keep_undo=KEEP)
    changed = run_sync(source, top, options).done
    if list_syncs(os.fsencode(top)):
        assert undone(top).left_alone == []
    else:
        assert (changed.changed, changed.deleted) == (0, 0)
    assert unlike(before, census(top)) == []


def test_a_sample_of_syncs_and_undos_with_kills(tmp_path: Path) -> None:
    """scripts/soak undo does the same for as long as wanted."""
    for seed in (3, 14, 15, 92):
        place = tmp_path / str(seed)
        place.mkdir()
        UndoneSyncs(place, seed).case()


def test_syncs_are_undone_one_after_the_other(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree({"f": b"0"})), tmp_path / "d"
    top.mkdir()
    for number in range(3):
        (source / "f").write_bytes(b"%d" % number * (number + 1))
        keeping(source, top)
    for content in (b"11", b"0"):
        assert undone(top).left_alone == []
        assert (top / "f").read_bytes() == content
    assert undone(top).left_alone == []
    assert os.listdir(top) == [STORE]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EIO, errno.EOPNOTSUPP])
def test_where_no_link_can_be_made_the_run_says_so_before_it_changes_anything(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def link(*_names: object, **_where: object) -> None:
        raise OSError(number, os.strerror(number))

    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    monkeypatch.setattr(os, "link", link)
    with pytest.raises(RdcError, match="expected hard links, found that the file system has none"):
        run_sync(source, top, KEEPING)
    found = {path: node for path, node in read_tree(top).items() if not path.startswith(UNDO_NAME)}
    assert describe(HELD, {path: node for path, node in found.items() if path in HELD}) == []


def test_a_run_without_changes_leaves_no_record(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", WANTED)
    keeping(source, top)
    keeping(source, top, SyncOptions(dry_run=True, delete=True, keep_undo=KEEP))
    assert describe(WANTED, read_tree(top)) == []


def test_newer_work_stays_and_is_named(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    keeping(source, top)
    with open(top / "f", "ab") as file:
        file.write(b", edited")
    (top / "new").write_bytes(b"replaced since")
    (top / "was" / "newer").write_bytes(b"made since")
    os.chmod(top / "mode", 0o640)
    done = undone(top)
    assert done.report.exit is ExitCode.PARTIAL
    assert sorted(done.left_alone) == [b"f", b"mode", b"new", b"was"]
    newer = tree({
        **{os.fsdecode(path): node for path, node in HELD.items() if path},
        "f": File(b"the new content, edited", 0o644, os.stat(top / "f").st_mtime_ns),
        "new": File(b"replaced since", 0o644, os.stat(top / "new").st_mtime_ns),
        "mode": File(b"its mode alone", 0o640, os.stat(top / "mode").st_mtime_ns),
    })  # fmt: skip
    del newer[b"was"]
    found = {path: node for path, node in read_beside(top).items() if path.split(b"/")[0] != b"was"}
    assert describe(newer, found) == []
    assert (top / "was" / "newer").read_bytes() == b"made since"
    (held,) = list_syncs(os.fsencode(top))
    assert held.left_alone == 4
    store = top / STORE / "1" / "kept"
    assert sorted((store / name).read_bytes() for name in os.listdir(store)) == [
        b"a directory now",
        b"the old content",
    ]
    assert undone(top).report.number is None


def test_a_moved_file_is_moved_back(tmp_path: Path) -> None:
    content = bytes(range(256)) * 400
    source = write_tree(tmp_path / "s", tree({"to/here": content}))
    top = write_tree(tmp_path / "d", tree({"from": File(content, 0o600)}))
    before, inode = census(top), os.stat(top / "from").st_ino
    run = run_sync(source, top, KEEPING)
    assert (run.done.moved, run.done.literal_bytes) == (1, 0)
    assert [item.action for item in undone(top).items if item.path_bytes == b"from"] == ["moved"]
    assert os.stat(top / "from").st_ino == inode
    assert unlike(before, census(top)) == []


def test_hard_links_come_back(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"a": b"one", "b": b"two", "c": b"three"}))
    os.link(source / "c", source / "d")
    top = write_tree(tmp_path / "d", tree({"a": File(b"shared", 0o644, 1), "d": b"alone"}))
    for name in ("b", "c"):
        os.link(top / "a", top / name)
    before = census(top)
    keeping(source, top, SyncOptions(delete=True, hard_links=True, fsync=False, keep_undo=KEEP))
    assert os.stat(top / "c").st_ino == os.stat(top / "d").st_ino
    assert undone(top).left_alone == []
    assert unlike(before, census(top)) == []


def test_the_store_is_closed_and_no_listing_shows_it(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    keeping(source, top)
    inside = [top / STORE, *(top / STORE).rglob("*")]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in inside if path.is_dir())
    assert all(stat.S_IMODE((top / STORE / name).stat().st_mode) == 0o600 for name in ("lock", "1/journal"))
    keeping(top, tmp_path / "copy", SyncOptions(fsync=False))
    assert describe(read_tree(source), read_tree(tmp_path / "copy")) == []
    run = run_sync(tmp_path / "copy", top, SyncOptions(delete=True, fsync=False))
    assert (run.done.changed, run.done.deleted, run.events[1:]) == (0, 0, [])
    assert undone(top).left_alone == []


def test_a_source_cannot_write_into_the_store(tmp_path: Path) -> None:
    source, top = tmp_path / "s", tmp_path / "d"
    (source / "below" / STORE).mkdir(parents=True)
    (source / "below" / STORE / "f").write_bytes(b"planted")
    (source / STORE).mkdir()
    (source / STORE / "f").write_bytes(b"planted")
    keeping(source, top)
    assert not (top / "below" / STORE).exists()
    assert not (top / STORE / "f").exists()


def test_a_store_of_others_is_refused(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    keeping(source, top)
    os.chmod(top / STORE, 0o720)
    (source / "f").write_bytes(b"newer")
    for work in (lambda: keeping(source, top), lambda: undone(top)):
        with pytest.raises(RdcError, match="only you can write") as refused:
            work()
        assert refused.value.code is ExitCode.FILE_IO


def test_a_copy_of_the_destination_is_not_undone(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    keeping(source, top)
    (tmp_path / "copy").mkdir()
    os.rename(top / STORE, tmp_path / "copy" / STORE)
    with pytest.raises(RdcError, match="another one, such as a copy"):
        undone(tmp_path / "copy")


@pytest.mark.parametrize("damage", [b"x", b"[", b"\n"])
def test_a_damaged_journal_undoes_nothing(damage: bytes, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    keeping(source, top)
    journal = top / STORE / "1" / "journal"
    data = journal.read_bytes()
    at = len(data) // 2
    journal.write_bytes(data[:at] + damage + data[at + 1 :])
    before = read_beside(top)
    with pytest.raises(RdcError, match="expected a journal of rdc undo"):
        undone(top)
    assert describe(before, read_beside(top)) == []


def test_what_a_power_cut_left_of_a_last_line_does_not_count(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    before = census(top)
    keeping(source, top)
    with open(top / STORE / "1" / "journal", "ab") as journal:
        journal.write(b'["make","bm90IHRoZXJl",[32768,1,\0\0\0')
    assert undone(top).left_alone == []
    assert unlike(before, census(top)) == []


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    from rdc.files.root.root import Root
    from rdc.undoing.store import UndoStore

    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    with UndoStore.make(Root.open(os.fsencode(top)), fsync=False):
        for work in (lambda: keeping(source, top), lambda: undone(top)):
            with pytest.raises(RdcError, match="works here now"):
                work()
    assert describe(HELD, read_beside(top)) == []


def test_backups_exclude_it(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    with pytest.raises(UsageError, match="both keep the old versions"):
        run_sync(source, tmp_path / "d", SyncOptions(backup=Backup(b"~"), keep_undo=KEEP))
