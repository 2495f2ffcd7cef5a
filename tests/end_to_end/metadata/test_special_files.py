"""Fifos, sockets and devices: made as rsync makes them, where both sides know them and may."""

from __future__ import annotations

import os
import stat
import struct
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.daemon.access import Access, granted_options
from rdc.errors import ExitCode
from rdc.files.names.entry_names import Linked
from rdc.lean.records import replace
from rdc.limits import SMALL_MANIFEST
from rdc.model.entries import (
    DEVICE_LIMIT,
    EMPTY_LISTING,
    NODES,
    Kind,
    Listing,
    device_number,
    major_and_minor,
)
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from rdc.protocol.messages import Open, Role
from rdc.protocol.messages.field_types import ListingColumns
from tests.support.running.beside_rsync import rsync
from tests.support.running.compared_trees import linked, view
from tests.support.running.syncing import Run, Way, command, run_sync
from tests.support.trees.trees import tree, write_tree

TIME = 10**18
OPTIONS = SyncOptions(fsync=False)

FIFO, SOCKET = (stat.S_IFIFO, 0), (stat.S_IFSOCK, 0)
NULL, ZERO = (stat.S_IFCHR, os.makedev(1, 3)), (stat.S_IFCHR, os.makedev(1, 5))
LOOP = (stat.S_IFBLK, os.makedev(7, 300))
DEEP = {"deep/zero": ZERO, "deep/loop": LOOP, "deep/er/socket": SOCKET}
ALL = {"fifo": FIFO, "socket": SOCKET, "null": NULL, **DEEP}


def make(top: Path, nodes: dict[str, tuple[int, int]], mode: int = 0o640) -> Path:
    for name, (kind, device) in nodes.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        os.mknod(top / name, kind | 0o600, device)
        os.chmod(top / name, mode)
        os.utime(top / name, ns=(TIME, TIME))
    return top


def found(top: Path) -> dict[str, tuple[int, int]]:
    paths = (path for path in top.rglob("*") if not path.is_dir())
    stats = {str(path.relative_to(top)): path.lstat() for path in paths}
    return {
        name: (stat.S_IFMT(each.st_mode), each.st_rdev)
        for name, each in stats.items()
        if not stat.S_ISREG(each.st_mode)
    }


def notes(run: Run) -> list[str]:
    return [os.fsdecode(event.path_bytes) for event in run.events if isinstance(event, Problem)]


@pytest.mark.parametrize("many", [False, True], ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", Way)
def test_all_kinds_on_every_way(way: Way, many: bool, tmp_path: Path) -> None:
    files = tree({f"files/{number}": b"x" for number in range(SMALL_MANIFEST if many else 1)})
    source, copy = make(write_tree(tmp_path / "s", files), ALL), write_tree(tmp_path / "d", files)
    os.chown(source / "null", 12, 34)
    first = run_sync(source, copy, OPTIONS, way=way)
    assert (first.problems, notes(first)) == ([], [])
    assert found(copy) == ALL
    made = (copy / "null").lstat()
    assert (made.st_mode & 0o7777, made.st_mtime_ns, made.st_uid, made.st_gid) == (0o640, TIME, 12, 34)
    assert first.done.total_bytes == len(files) - 2  # a device number is no size
    again = run_sync(source, copy, OPTIONS, way=way)
    assert (again.items, again.done.changed, notes(again)) == ([], 0, [])
    os.utime(copy / "fifo", ns=(1, 1))
    os.chmod(copy / "null", 0o600)
    (copy / "deep/zero").unlink()
    assert sorted(run_sync(source, copy, OPTIONS, way=way).items)[:3] == [
        ".D...p..... null", ".S..t...... fifo", ".d..t...... deep/",
    ]  # fmt: skip
    assert found(copy) == ALL
    for name in ALL:
        (source / name).unlink()
    gone = run_sync(source, copy, SyncOptions(delete=True, fsync=False), way=way)
    assert (gone.problems, gone.done.deleted, found(copy)) == ([], len(ALL), {})


WORDS = ("", "--delete", "-n", "--no-D", "--no-devices", "--no-specials", "-b", "-u", "--existing")
KINDS = {"fifo": FIFO, "socket": SOCKET, "null": NULL, "zero": ZERO, "loop": LOOP}


@pytest.mark.needs("rsync")
@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from(sorted(KINDS))),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from([*sorted(KINDS), "file", "link", "directory"])),
    st.sampled_from(
        ("", "--delete", "-n", "--no-D", "--no-devices", "--no-specials", "-b", "-u", "--existing")
    ),
    st.sampled_from((0o640, 0o600)),
)
def test_any_kind_in_place_of_any_as_rsync_does(
    tmp_path_factory: pytest.TempPathFactory,
    wanted: dict[str, str],
    held: dict[str, str],
    word: str,
    mode: int,
) -> None:
    top = tmp_path_factory.mktemp("kinds")
    (top / "s").mkdir()
    source = make(top / "s", {name: KINDS[kind] for name, kind in wanted.items()})
    said = []
    for program, name in ((rsync, "theirs"), (_rdc, "ours")):
        copy = top / name
        copy.mkdir()
        make(copy, {name: KINDS[kind] for name, kind in held.items() if kind in KINDS}, mode)
        for entry, kind in held.items():
            if kind == "file":
                (copy / entry).write_bytes(b"content")
            elif kind == "link":
                (copy / entry).symlink_to("nowhere")
            elif kind == "directory":
                (copy / entry).mkdir()
        os.utime(copy, ns=(TIME, TIME))
        os.utime(source, ns=(TIME, TIME))
        words = [word] if word else []
        code, lines = program("-i", *words, f"{source}/", f"{copy}/")
        lines = [line for line in lines if not line.startswith("skipping non-regular")]
        seen = {
            path: (each.kind, each.mode, each.said)
            for path, each in view(os.fsencode(copy)).items()
            if not _same_number(wanted, held, os.fsdecode(path))
        }
        said.append((code, [line for line in lines if not _same_number(wanted, held, line[12:])], seen))
    assert said[0] == said[1]


def _rdc(*words: str | Path) -> tuple[int, list[str]]:
    ended = command("sync", "--force-empty", "--no-fsync", "--no-catalog", *words)
    return ended.code, sorted(ended.out.splitlines())


def _same_number(wanted: dict[str, str], held: dict[str, str], name: str) -> bool:
    """Of a block device rsync leaves a character device in its place if that has its number; none has here.
    The backups of special files are of files that rsync does not keep."""
    return name.endswith("~") or {wanted.get(name), held.get(name)} == {None}


def test_without_root_no_device_is_made_and_each_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, copy = make(tmp_path / "s", ALL), make(tmp_path / "d", {"null": ZERO})
    monkeypatch.setattr("rdc.session.trees.destination_root.os.geteuid", lambda: 1000)
    for _ in range(2):
        run = run_sync(source, copy, SyncOptions(delete=True, fsync=False))
        assert run.done.exit == ExitCode.OK
        assert sorted(notes(run)) == ["deep/loop", "deep/zero", "null"]
        assert found(copy) == {"fifo": FIFO, "socket": SOCKET, "deep/er/socket": SOCKET, "null": ZERO}


def test_a_module_that_keeps_no_owners_makes_no_devices() -> None:
    for owners in (False, True):
        for role in Role:
            asked = Open.asking(role, b"x", bytes(16), SyncOptions())
            granted = granted_options(asked, Access("a module", owners=owners))
            assert granted.devices is (owners or role is Role.SOURCE)
            assert granted.specials


# Peers


def test_an_option_that_a_session_can_do_without_is_not_needed() -> None:
    asked = Open.asking(Role.SOURCE, b"x", bytes(16), SyncOptions(devices=False, mkpath=True))
    assert asked.needs == "mkpath"
    assert asked.asked == SyncOptions(devices=False, mkpath=True)
    assert Open.asking(Role.SOURCE, b"x", bytes(16), SyncOptions(specials=False)).needs is None


def _tupled(columns: object) -> object:
    """Return columns as they are unpacked from a message."""
    assert isinstance(columns, list)
    return tuple(columns)


def one(kind: int, size: int) -> Listing:
    return replace(
        EMPTY_LISTING,
        names=(b"x",),
        kinds=bytes([kind]),
        modes=array("H", [0]),
        sizes=array("Q", [size]),
        mtimes=array("q", [0]),
        uids=array("I", [0]),
        gids=array("I", [0]),
    )


@pytest.mark.parametrize("kind", sorted(Kind))
def test_a_peer_announces_no_number_that_no_device_has(kind: Kind) -> None:
    columns = ListingColumns()
    for size in (1, DEVICE_LIMIT - 1, DEVICE_LIMIT, 1 << 60):
        if kind is Kind.SYMLINK:
            continue
        packed = _tupled(columns.pack(one(kind, size)))
        device = kind in {Kind.CHARACTER_DEVICE, Kind.BLOCK_DEVICE}
        if kind is Kind.FILE or (device and size < DEVICE_LIMIT):
            assert columns.unpack(packed) == one(kind, size)
        else:
            with pytest.raises(ValueError, match="size"):
                columns.unpack(packed)
    assert one(kind, 7).total_size == one(kind, 7).packed().total_size == (0 if kind in NODES - {4, 5} else 7)


@given(st.integers(0, (1 << 12) - 1), st.integers(0, (1 << 20) - 1))
def test_numbers(major: int, minor: int) -> None:
    assert device_number(major, minor) < DEVICE_LIMIT
    assert major_and_minor(device_number(major, minor)) == (major, minor)


def test_what_mknod_refuses_is_one_error_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make(write_tree(tmp_path / "s", tree({"f": b"content"})), ALL)

    def refuse(*given: object, **named: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("rdc.files.root.root.os.mknod", refuse)
    run = run_sync(source, tmp_path / "d", OPTIONS)
    assert run.done.exit == ExitCode.PARTIAL
    assert sorted(os.fsdecode(problem.path_bytes) for problem in run.problems) == sorted(ALL)
    assert all("cannot make the special file" in problem.message for problem in run.problems)
    assert (tmp_path / "d/f").read_bytes() == b"content"
    assert not [name for name in os.listdir(tmp_path / "d") if name.startswith(".")]


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("way", Way)
def test_attributes_of_special_files_are_kept(way: Way, tmp_path: Path) -> None:
    source, copy = make(tmp_path / "s", ALL), tmp_path / "d"
    acl = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", *entry)
        for entry in ((1, 6, 2**32 - 1), (2, 4, 9), (4, 4, 2**32 - 1), (16, 4, 2**32 - 1), (32, 0, 2**32 - 1))
    )
    for name in ("fifo", "null", "deep/loop"):
        os.setxattr(source / name, "system.posix_acl_access", acl)
        os.setxattr(source / name, "trusted.note", b"1")
    both = replace(OPTIONS, acls=True, xattrs=True)
    assert run_sync(source, copy, both, way=way).problems == []
    assert view(os.fsencode(copy))[b"fifo"].access == (("system.posix_acl_access", acl),)
    assert rsync("-AXni", f"{source}/", f"{copy}/")[1] == []
    assert run_sync(source, copy, both, way=way).items == []
    os.removexattr(copy / "null", "trusted.note")
    assert run_sync(source, copy, both, way=way).items == [".D........x null"]
    assert run_sync(source, tmp_path / "plain", OPTIONS, way=way).problems == []
    assert os.listxattr(tmp_path / "plain/fifo") == []


LINKED = {"fifo": ("fifo2", "deep/er/fifo3"), "null": ("deep/null2",), "deep/er/socket": ("socket2",)}


def linked_at(top: Path) -> Path:
    """`make` of all kinds, some of them with further names."""
    make(top, ALL)
    for name, others in LINKED.items():
        for other in others:
            os.link(top / name, top / other)
    return top


def groups(top: Path) -> set[frozenset[bytes]]:
    return linked(view(os.fsencode(top)))


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("many", [False, True], ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", Way)
def test_names_of_one_special_file_stay_names_of_one(way: Way, many: bool, tmp_path: Path) -> None:
    files = tree({f"files/{number}": b"x" for number in range(SMALL_MANIFEST if many else 1)})
    source, copy = linked_at(write_tree(tmp_path / "s", files)), write_tree(tmp_path / "d", files)
    options = replace(OPTIONS, hard_links=True)
    first = run_sync(source, copy, options, way=way)
    assert (first.problems, notes(first)) == ([], [])
    assert groups(copy) == groups(source) and len(groups(copy)) == len(LINKED)
    assert found(copy) == found(source)
    assert rsync("-Hni", f"{source}/", f"{copy}/")[1] == []
    assert run_sync(source, copy, options, way=way).items == []
    (copy / "fifo2").unlink()
    os.mkfifo(copy / "fifo2", 0o640)
    os.utime(copy / "fifo2", ns=(TIME, TIME))
    (copy / "deep/null2").unlink()
    (copy / "deep/null2").write_text("a file")
    rehearsed = run_sync(source, copy, replace(options, dry_run=True), way=way)
    again = run_sync(source, copy, options, way=way)
    lines = [line for line in again.items if not line.startswith(".d..t")]
    assert lines == [line for line in rehearsed.items if not line.startswith(".d..t")]
    assert [line.partition(" ")[0] for line in lines] == ["hS", "hD+++++++++"]
    assert groups(copy) == groups(source)
    plain = run_sync(source, tmp_path / "p", OPTIONS, way=way)
    assert plain.problems == [] and groups(tmp_path / "p") == set()


def test_a_name_that_cannot_be_linked_is_a_special_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rdc.session.destination.finish.link_file", lambda *_, **__: Linked.IMPOSSIBLE)
    source, copy = linked_at(tmp_path / "s"), tmp_path / "d"
    options = replace(OPTIONS, hard_links=True)
    assert run_sync(source, copy, options).problems == []
    assert (groups(copy), found(copy)) == (set(), found(source))
    (copy / "fifo2").chmod(0o600)
    (copy / "deep/null2").unlink()
    os.mknod(copy / "deep/null2", 0o640 | stat.S_IFCHR, os.makedev(1, 5))
    again = run_sync(source, copy, options)
    assert sorted(line for line in again.items if line[1] != "d") == [
        ".S...p..... fifo2",
        "cD+++++++++ deep/null2",
    ]
    assert found(copy) == found(source)


def test_what_may_not_be_made_is_not_linked(tmp_path: Path) -> None:
    source, copy = linked_at(tmp_path / "s"), tmp_path / "d"
    run = run_sync(source, copy, replace(OPTIONS, hard_links=True, devices=False))
    assert run.problems == []
    assert sorted(found(copy)) == ["deep/er/fifo3", "deep/er/socket", "fifo", "fifo2", "socket", "socket2"]
    assert len(groups(copy)) == 2


def test_what_stands_for_special_files_is_linked_too(tmp_path: Path) -> None:
    source, copy, back = linked_at(tmp_path / "s"), tmp_path / "d", tmp_path / "b"
    options = replace(OPTIONS, hard_links=True, fake_super=True)
    assert run_sync(source, copy, options, way=Way.PULL).problems == []
    assert groups(copy) == groups(source)
    assert run_sync(source, copy, options, way=Way.PULL).items == []
    assert run_sync(copy, back, options, way=Way.PUSH).problems == []
    assert (groups(back), found(back)) == (groups(source), found(source))
