"""--fake-super, beside rsync's: each reads what the other wrote, and the trees are alike to the attribute."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.files.root.listing_view import FAKED_NAME
from rdc.model.options import Backup
from rdc.model.sync import SyncOptions
from tests.end_to_end.metadata.fake_super import OLD, ROOT, rsync, seen
from tests.support.running.syncing import FAR, PSEUDO_SSH, Way, command, run_sync
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

OPTIONS = SyncOptions(fake_super=True, fsync=False)


def made(top: Path) -> Path:
    """A tree with all that a plain file can stand for."""
    top.mkdir()
    for name, mode in {"suid": 0o4755, "closed": 0o400, "plain": 0o644, "open": 0o666}.items():
        (top / name).write_text(name)
        (top / name).chmod(mode)
    (top / "link").symlink_to("plain")
    os.mkfifo(top / "fifo", 0o640)
    (top / "sub").mkdir()
    (top / "sub" / "socket").touch()
    (top / "sub" / "file").write_text("f" * 5000)
    if ROOT:
        os.mknod(top / "null", stat.S_IFCHR | 0o644, os.makedev(1, 3))
        os.mknod(top / "loop", stat.S_IFBLK | 0o600, os.makedev(7, 70000))
        os.chown(top / "closed", 1234, 555)
        os.chown(top / "link", 77, 88, follow_symlinks=False)
        os.chown(top / "sub", 9, 10)
    (top / "sub").chmod(0o2500 if ROOT else 0o500)
    for path in (*top.rglob("*"), top):
        os.utime(path, ns=(OLD, OLD), follow_symlinks=False)
    return top


@pytest.mark.needs("rsync")
@pytest.mark.skipif(not ROOT, reason="real owners and devices need root")
def test_each_reads_what_the_other_wrote(tmp_path: Path) -> None:
    source, top, peer = made(tmp_path / "s"), tmp_path / "d", tmp_path / "p"
    rsync("-M--fake-super", f"{source}/", peer)
    run_sync(source, top, OPTIONS, way=Way.PULL)
    assert seen(top) == seen(peer)
    assert os.getxattr(top / "closed", FAKED_NAME) == b"100400 0,0 1234:555"
    assert not rsync("-ni", "-M--fake-super", f"{source}/", top)
    again = run_sync(source, top, OPTIONS, way=Way.PULL)
    assert (again.items, again.problems) == ([], [])
    back, copy = tmp_path / "b", tmp_path / "c"
    run_sync(peer, back, OPTIONS, way=Way.PUSH)
    assert seen(back) == seen(source)
    run_sync(peer, copy, OPTIONS)
    assert seen(copy) == seen(peer)


def test_what_changes_is_kept_too(tmp_path: Path) -> None:
    source, top = made(tmp_path / "s"), tmp_path / "d"
    run_sync(source, top, OPTIONS, way=Way.PULL)
    (source / "suid").chmod(0o640)
    (source / "plain").chmod(0o6755)
    (source / "open").unlink()
    (source / "open").symlink_to("elsewhere")
    (source / "link").unlink()
    (source / "link").write_text("no link any more")
    (source / "fifo").chmod(0o600)
    for _ in range(2):
        run = run_sync(source, top, SyncOptions(fake_super=True, fsync=False, delete=True), way=Way.PULL)
        assert not run.problems
    assert not run.items
    kept = {path.name: os.listxattr(path) for path in top.iterdir()}
    assert [name for name in sorted(kept) if not kept[name] and not name.startswith(("closed", "l"))] == [
        "suid"
    ]
    assert os.getxattr(top / "open", FAKED_NAME).startswith(b"120777 ")
    assert (top / "open").read_text() == "elsewhere"
    assert (top / "link").read_text() == "no link any more" and not os.listxattr(top / "link")
    assert stat.S_IMODE((top / "plain").stat().st_mode) == 0o755


def test_who_may_set_nothing_keeps_all_the_same() -> None:
    with place_of_nobody() as place:
        place.chmod(0o755)
        source, top, back = made(place / "s"), place / "d", place / "b"
        (source / "closed").chmod(0o404)
        (source / "sub").chmod(0o2505)

        def keeps() -> list[object]:
            found: list[object] = []
            for step in range(3):
                run = run_sync(source, top, SyncOptions(fake_super=True, delete=True, fsync=False))
                found.append((bool(run.items), run.problems))
                if step == 1:
                    (top / "sub" / "extra").touch()
            return found

        changes = as_nobody(keeps)
        assert changes == [(True, []), (False, []), (True, [])]
        assert (top / "sub" / "file").read_text() == "f" * 5000
        assert not (top / "sub" / "extra").exists()
        assert os.getxattr(top / "sub", FAKED_NAME).startswith(b"42505 ")
        run_sync(top, back, OPTIONS, way=Way.PUSH)
        if ROOT:
            assert seen(back) == seen(source)


def test_the_attribute_itself_never_travels(tmp_path: Path) -> None:
    source, top, plain = made(tmp_path / "s"), tmp_path / "d", tmp_path / "p"
    os.setxattr(source / "plain", "user.note", b"kept")
    run_sync(source, top, SyncOptions(fake_super=True, xattrs=True, fsync=False), way=Way.PULL)
    assert os.getxattr(top / "plain", "user.note") == b"kept"
    assert os.getxattr(top / "suid", FAKED_NAME)
    run_sync(top, plain, SyncOptions(xattrs=True, fsync=False))
    assert not any(FAKED_NAME in os.listxattr(path) for path in plain.rglob("*"))
    again = run_sync(source, top, SyncOptions(fake_super=True, xattrs=True, fsync=False), way=Way.PULL)
    assert not again.items
    assert os.getxattr(top / "suid", FAKED_NAME)


def test_a_backup_of_what_stands_for_a_fifo(tmp_path: Path) -> None:
    source, top = tmp_path / "s", tmp_path / "d"
    source.mkdir()
    os.mkfifo(source / "p", 0o640)
    run_sync(source, top, OPTIONS, way=Way.PULL)
    (source / "p").unlink()
    (source / "p").write_text("a file now")
    backups = SyncOptions(fake_super=True, backup=Backup(b"~"), fsync=False)
    run = run_sync(source, top, backups, way=Way.PULL)
    assert not run.problems
    assert (top / "p").read_text() == "a file now" and not os.listxattr(top / "p")
    assert (top / "p~").stat().st_size == 0
    assert os.getxattr(top / "p~", FAKED_NAME).startswith(b"10640 ")


def test_one_entry_is_what_it_stands_for(tmp_path: Path) -> None:
    source, top, back = made(tmp_path / "s"), tmp_path / "d", tmp_path / "b"
    run_sync(source, top, OPTIONS, way=Way.PULL)
    back.mkdir()
    for name in ("link", "fifo", "suid", "sub"):
        assert (
            command(
                "sync",
                "--fake-super",
                "-e",
                str(PSEUDO_SSH),
                f"--remote-path={FAR}",
                top / name,
                f"h:{back}/",
            ).code
            == 0
        )
        assert seen(back)[name] == seen(source)[name]


def test_links_on_the_way_lead_nowhere(tmp_path: Path) -> None:
    source, top, outside = tmp_path / "s", tmp_path / "d", tmp_path / "o"
    for path in (source, source / "sub", top, outside):
        path.mkdir()
    os.mkfifo(source / "sub" / "p")
    (source / "sub" / "l").symlink_to("x")
    (outside / "p").write_text("mine")
    (top / "sub").symlink_to(outside)
    run = run_sync(source, top, OPTIONS, way=Way.PULL)
    assert not run.problems
    assert (outside / "p").read_text() == "mine" and not os.listxattr(outside / "p")
    assert sorted(path.name for path in outside.iterdir()) == ["p"]
    assert (top / "sub" / "p").is_file()


@pytest.mark.parametrize(
    "value", [b"", b"garbage", b"100644 0,0 0:99999999999", b"40755 0,0 0:0", b"9" * 300]
)
def test_a_wrong_attribute_is_named(value: bytes, tmp_path: Path) -> None:
    source, top = tmp_path / "s", tmp_path / "d"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "f").touch()
    os.setxattr(source / "sub" / "f", FAKED_NAME, value)
    run = run_sync(source, top, OPTIONS, way=Way.PUSH)
    (problem,) = run.problems
    assert (problem.code, FAKED_NAME in problem.message) == (ExitCode.PARTIAL, True)


@pytest.mark.parametrize("word", ["--inplace", "--link-dest=x", "--keep-undo=1d", "-K", "-L"])
def test_what_cannot_be_combined_is_refused(word: str, tmp_path: Path) -> None:
    ended = command("sync", "--fake-super", word, f"{tmp_path}/", tmp_path.parent / "none")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)


def test_super_keeps_owners(tmp_path: Path) -> None:
    source, top = made(tmp_path / "s"), tmp_path / "d"
    assert command("sync", "--super", f"{source}/", f"{top}/").code == 0
    assert seen(top) == seen(source)
