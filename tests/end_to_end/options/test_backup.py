"""--backup, --backup-dir and --suffix: what a sync replaces or deletes keeps a name."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, RdcError
from rdc.model.options import Backup
from rdc.model.sync import SyncOptions
from tests.support.running.beside_rsync import rdc, rsync
from tests.support.running.forced_command import forced
from tests.support.running.syncing import Way, command, run_sync
from tests.support.share import examples
from tests.support.trees.backed_up_trees import HELD, WANTED
from tests.support.trees.tree_strategies import pairs, plain_trees
from tests.support.trees.trees import (
    Directory,
    File,
    Link,
    Node,
    Tree,
    describe,
    litter,
    read_tree,
    tree,
    write_tree,
)

REPLACED = (b"f", b"large", b"l", b"gone/deep/g", b"gone-link", b"was", b"d/f")


def kept(found: Tree, place: bytes, suffix: bytes) -> Tree:
    """The backups, by the paths of what they were."""
    return {
        path.removeprefix(place).removesuffix(suffix): node
        for path, node in found.items()
        if path.startswith(place) and path.endswith(suffix) and not isinstance(node, Directory)
    }


@pytest.mark.parametrize("fsync", [False, True])
@pytest.mark.parametrize(
    "backup", [Backup(b"~"), Backup(b".old"), Backup(b"", b"old"), Backup(b".1", b"old/than/this")]
)
@pytest.mark.parametrize("way", Way)
def test_what_goes_keeps_a_name(way: Way, backup: Backup, fsync: bool, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    options = SyncOptions(delete=True, backup=backup, fsync=fsync)
    run = run_sync(source, top, options, way=way)
    assert run.done.exit == ExitCode.OK, run.problems
    found = read_tree(top)
    place = b"" if backup.directory is None else backup.directory + b"/"
    assert describe({path: HELD[path] for path in REPLACED}, kept(found, place, backup.suffix)) == []
    again = run_sync(source, top, options, way=way)
    assert (again.done.changed, again.done.deleted, again.problems) == (0, 0, [])
    assert describe(found, read_tree(top)) == []
    rehearsed = run_sync(source, top, SyncOptions(delete=True, backup=backup, dry_run=True), way=way)
    assert (rehearsed.done.changed, rehearsed.done.deleted) == (0, 0)


@pytest.mark.parametrize("fsync", [False, True])
def test_another_file_system_gets_copies(fsync: bool, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    os.mkfifo(top / "fifo", 0o640)
    with tempfile.TemporaryDirectory(prefix="rdc-test-", dir="/dev/shm") as elsewhere:
        backups = Path(elsewhere, "b")
        assert Path(elsewhere).stat().st_dev != top.stat().st_dev
        options = SyncOptions(delete=True, backup=Backup(b".o", os.fsencode(backups)), fsync=fsync)
        run = run_sync(source, top, options)
        assert run.done.exit == ExitCode.OK, run.problems
        (backups / "fifo.o").unlink()
        found = kept(read_tree(backups), b"", b".o")
        assert describe({path: HELD[path] for path in REPLACED}, found) == []
        (source / "f").write_bytes(b"newer still")
        assert not run_sync(source, top, options).problems
        assert (backups / "f.o").read_bytes() == b"the new content"
        assert not list(backups.rglob(".rdc-*"))
        mixed = SyncOptions(backup=Backup(b"", os.fsencode(backups)), inplace=True, fsync=fsync)
        (source / "f").write_bytes(b"newest")
        assert not run_sync(source, top, mixed).problems
        assert (backups / "f").read_bytes() == b"newer still"


@pytest.mark.parametrize("number", [errno.EPERM, errno.EIO, errno.EMLINK, errno.EOPNOTSUPP])
@pytest.mark.parametrize("backup", [Backup(b"~"), Backup(b".1", b"old/than/this")])
def test_where_no_link_can_be_made_a_backup_is_a_copy(
    backup: Backup, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """FAT is like this, and so are mounts of rclone, which answer EIO."""

    def link(*_names: object, **_where: object) -> None:
        raise OSError(number, os.strerror(number))

    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    monkeypatch.setattr(os, "link", link)
    run = run_sync(source, top, SyncOptions(delete=True, backup=backup, fsync=False))
    assert run.done.exit == ExitCode.OK, run.problems
    found = read_tree(top)
    place = b"" if backup.directory is None else backup.directory + b"/"
    assert describe({path: HELD[path] for path in REPLACED}, kept(found, place, backup.suffix)) == []
    assert litter(found) == []


def test_a_copy_that_cannot_be_finished_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, top = (
        write_tree(tmp_path / "s", tree({"f": b"new"})),
        write_tree(tmp_path / "d", tree({"f": b"older"})),
    )

    def fail(*_given: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("rdc.files.names.backups.flush", fail)
    with pytest.raises(RdcError, match="keep a backup of it: No space"):
        run_sync(source, top, SyncOptions(backup=Backup(b"~"), inplace=True, fsync=False))
    assert {path.name: path.read_bytes() for path in top.iterdir()} == {"f": b"older"}


def test_a_backup_replaces_an_earlier_one(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree({"f": b"0"})), tmp_path / "d"
    for number in range(4):
        (source / "f").write_bytes(b"%d" % number * (number + 1))
        assert run_sync(source, top, SyncOptions(backup=Backup(b"~"))).problems == []
    assert (top / "f").read_bytes() == b"3333"
    assert (top / "f~").read_bytes() == b"222"


def test_a_dry_run_makes_nothing(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    run_sync(source, top, SyncOptions(delete=True, dry_run=True, backup=Backup(b"", b"old")))
    assert describe(HELD, read_tree(top)) == []


def test_a_moved_file_keeps_its_old_name_as_a_backup(tmp_path: Path) -> None:
    content = bytes(range(256)) * 400
    source = write_tree(tmp_path / "s", tree({"to": content}))
    top = write_tree(tmp_path / "d", tree({"from": content}))
    run = run_sync(source, top, SyncOptions(delete=True, backup=Backup(b"", b"old")))
    assert (top / "to").read_bytes() == (top / "old/from").read_bytes() == content
    assert run.done.literal_bytes == 0


def test_directories_of_backups_are_no_wider_than_the_tree_s(tmp_path: Path) -> None:
    wanted = tree({"d": Directory(0o710), "d/e": Directory(0o700), "d/e/f": b"new"})
    held = tree({"d": Directory(0o710), "d/e": Directory(0o700), "d/e/f": File(b"older", 0o600, 1)})
    source, top = write_tree(tmp_path / "s", wanted), write_tree(tmp_path / "d", held)
    run_sync(source, top, SyncOptions(backup=Backup(b"", b"old")))
    modes = [(top / name).stat().st_mode & 0o7777 for name in ("old", "old/d", "old/d/e", "old/d/e/f")]
    assert modes == [0o700, 0o710, 0o700, 0o600]


def test_hard_links_of_a_replaced_file_stay_one_file_among_the_backups(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"a": b"new content", "b": b"another one"}))
    top = write_tree(tmp_path / "d", tree({"a": File(b"old", 0o644, 1)}))
    os.link(top / "a", top / "b")
    run = run_sync(source, top, SyncOptions(backup=Backup(b"~"), hard_links=True))
    assert run.problems == []
    assert (top / "a").read_bytes() == b"new content"
    assert (top / "b").read_bytes() == b"another one"
    assert (top / "a~").read_bytes() == b"old"
    assert (top / "a~").samefile(top / "b~")


@pytest.mark.parametrize("way", Way)
def test_a_name_that_the_source_has_is_no_backup_s(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"f": b"new", "f~": b"wanted"}))
    top = write_tree(tmp_path / "d", tree({"f": File(b"older", 0o644, 1), "f~": b"wanted"}))
    run = run_sync(source, top, SyncOptions(backup=Backup(b"~")), way=way)
    assert (top / "f").read_bytes() == b"older"
    assert (top / "f~").read_bytes() == b"wanted"
    assert run.done.exit == ExitCode.PARTIAL
    assert "choose another --suffix" in run.problems[0].message


def test_a_directory_in_a_backup_s_place_stays(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"f": b"new", "g": b"new"}))
    top = write_tree(tmp_path / "d", tree({"f": File(b"older", 0o644, 1), "f~/in": b"mine"}))
    run = run_sync(source, top, SyncOptions(backup=Backup(b"~")))
    assert (top / "f").read_bytes() == b"older"
    assert (top / "g").read_bytes() == b"new"
    assert run.done.exit == ExitCode.PARTIAL


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--suffix=.old"], 1, "--suffix needs --backup or --backup-dir"),
        (["-b", "--suffix=a/b"], 1, "the end of a name is expected"),
        (["-b", "--suffix="], 1, "the end of a name is expected"),
        (["--backup-dir="], 1, "--backup-dir needs a directory"),
        (["--backup-dir=."], 11, "found the destination itself"),
    ],
)
def test_what_cannot_be_is_refused_by_name(words: list[str], code: int, said: str, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    ended = command("sync", *words, f"{source}/", f"{top}/")
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert describe(HELD, read_tree(top)) == []


@pytest.mark.needs("rsync")
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    pairs(plain_trees()),
    st.sampled_from([(b"", b"~"), (b"", b".o"), (b"kept/", b""), (b"kept/x/", b"~")]),
    st.sampled_from(([], ["--delete"], ["-c"])),
)
def test_rsync_keeps_the_same(pair: tuple[Tree, Tree], backup: tuple[bytes, bytes], more: list[str]) -> None:
    """But for files whose time alone differs. rsync sends them again and keeps what was there; rdc finds that
    the content is equal. Where a directory's backups keep it in the way of another entry, both end with 23;
    rdc then withholds the run's deletions, so what rsync renames may stay under its name."""
    wanted, held = pair
    place, suffix = map(os.fsdecode, backup)
    words = ["-b", f"--suffix={suffix}", *([f"--backup-dir={place}"] if place else []), *more]
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        source = write_tree(Path(top, "source"), wanted)
        theirs, ours = (write_tree(Path(top, name), held) for name in ("theirs", "ours"))
        code, _ = rsync(*words, f"{source}/", f"{theirs}/")
        assert rdc(*words, f"{source}/", f"{ours}/")[0] == code
        expected, found = map(files, (read_tree(theirs), read_tree(ours)))
        if code:
            assert {content(node) for node in files(held).values()} <= {*map(content, found.values())}
            return
        for path in expected.keys() - found.keys():
            was = path.removeprefix(backup[0]).removesuffix(suffix.encode())
            if (before := held.get(was)) is not None and content(before) == content(wanted.get(was)):
                del expected[path]
        assert describe(expected, found) == []


def files(found: Tree) -> Tree:
    return {path: node for path, node in found.items() if not isinstance(node, Directory)}


def content(node: Node | None) -> bytes | None:
    return node.content if isinstance(node, File) else node.target if isinstance(node, Link) else None


@pytest.mark.parametrize(
    ("key", "directory", "code"),
    [("", "../../out", 11), ("", "/out/old", 0), ("", "link/old", 23), ("--append-only", "old", 5)],
)
def test_a_confined_peer_keeps_backups_below_its_root_alone(
    key: str, directory: str, code: int, tmp_path: Path
) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    (tmp_path / "outside").mkdir()
    root = write_tree(
        tmp_path / "root", tree({"d/f": File(b"old", 0o644, 1), "d/link": Link(b"../../outside")})
    )
    served = forced(tmp_path, f"--root={root}", *key.split())
    ended = command("sync", "--no-catalog", "-e", served, f"--backup-dir={directory}", f"{source}/", "h:d/")
    assert ended.code == code, ended.err
    assert not (tmp_path / "out").exists()
    assert list((tmp_path / "outside").iterdir()) == []
    assert (root / "d/f").read_bytes() == (b"the new content" if code == 0 else b"old")
    if code == 0:
        assert (root / "out/old/f").read_bytes() == b"old"
