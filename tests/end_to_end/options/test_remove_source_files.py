"""--remove-source-files: what DST has for certain leaves SRC, beside rsync's; nothing is ever in neither."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rdc.daemon.access import Access, granted_options
from rdc.errors import ExitCode, ProtocolError, RdcError, TrustError
from rdc.model.entries import Kind
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from rdc.protocol.messages import Landed, Open, Role
from rdc.session.destination import finish
from rdc.session.destination.finish import ConfirmedFiles
from rdc.session.runtime.commands import Conversation, EventRelay
from rdc.session.trees.source_options import SourceRemoval
from rdc.session.trees.source_tree import SourceTree
from rdc.tree.manifest import Manifest
from tests.support.running.beside_rsync import rdc, rsync
from tests.support.running.forced_command import forced
from tests.support.running.killed_sync import steps_of
from tests.support.running.syncing import Way, command, contents_of, run_sync
from tests.support.trees.trees import File, Link, describe, read_tree, tree, write_tree

OPTIONS = SyncOptions(remove_source_files=True, fsync=False)
SOURCE = tree(
    {
        "new": b"new",
        "same": b"same",
        "changed": b"another content",
        "newer-there": File(b"old", 0o644, 5),
        "large": bytes(90_000),
        "d/deep/file": b"deep",
        "d/left.o": b"excluded",
        "link": Link(b"new"),
        "same-link": Link(b"same"),
        "empty": b"",
    }
)
HELD = tree(
    {
        "same": b"same",
        "changed": File(b"before", 0o644, 5),
        "newer-there": File(b"newer", 0o644, 10**18),
        "same-link": Link(b"same"),
        "extra": b"extra",
    }
)
FILES = {path for path, node in SOURCE.items() if isinstance(node, (File, Link))}


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of the tests is busy with others. tests/end_to_end/failures/test_power_cut.py waits for it."""
    monkeypatch.setattr(finish, "sync_file_systems", lambda fds: True)


def both(top: Path) -> tuple[Path, Path]:
    top.mkdir(exist_ok=True)
    return write_tree(top / "source", SOURCE), write_tree(top / "destination", HELD)


def leaves(top: Path) -> set[bytes]:
    return {path for path, node in read_tree(top).items() if isinstance(node, (File, Link))}


@pytest.mark.needs("rsync")
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("-u",),
        ("--existing",),
        ("--ignore-existing",),
        ("--max-size=50k", "--exclude=*.o"),
        ("-c", "--delete"),
        ("-R", "-H"),
        ("-n",),
        ("--size-only",),
    ],
    ids=lambda words: " ".join(words) or "alone",
)
def test_what_leaves_is_what_rsync_removes(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = {}
    for tool in (rsync, rdc):
        source, destination = both(tmp_path / tool.__name__)
        os.link(source / "new", source / "new-too")
        os.utime(source, (5, 5))
        monkeypatch.chdir(tmp_path / tool.__name__)
        code, lines = tool("-i", "--remove-source-files", *words, "source/", "destination/")
        assert code == 0
        if "-H" in words:
            lines = []  # which of several names a file comes under is not defined
        left[tool.__name__] = leaves(source), sorted(read_tree(source)), lines, read_tree(destination)
    theirs, ours = left["rsync"], left["rdc"]
    assert ours[:3] == theirs[:3]
    for found in (theirs[3], ours[3]):
        del found[b""]  # its time is not kept with -R, for one
    assert describe(theirs[3], ours[3]) == []


@pytest.mark.parametrize("way", list(Way))
def test_files_leave_and_directories_stay(way: Way, tmp_path: Path) -> None:
    source, destination = both(tmp_path)
    os.mkfifo(source / "fifo")
    run = run_sync(source, destination, OPTIONS, way=way)
    (destination / "fifo").unlink()
    assert (run.done.exit, run.problems, leaves(source)) == (ExitCode.OK, [], set())
    assert (source / "d/deep").is_dir()
    assert leaves(destination) == {*FILES, b"extra"}
    # All of it was here: a second source that is equal goes as well.
    again = write_tree(tmp_path / "again", SOURCE)
    assert run_sync(again, destination, OPTIONS, way=way).done.literal_bytes == 0
    assert leaves(tmp_path / "again") == set()


@pytest.mark.parametrize("way", [Way.HERE, Way.PULL])
def test_nothing_leaves_where_both_are_one_place(way: Way, tmp_path: Path) -> None:
    source, _ = both(tmp_path)
    (tmp_path / "other").symlink_to("source")
    run = run_sync(source, contents_of(tmp_path / "other"), OPTIONS, way=way)
    assert run.done.exit == ExitCode.PARTIAL
    assert {problem.path_bytes for problem in run.problems} == leaves(source)
    assert describe(SOURCE, read_tree(source)) == []


def test_symlinks_leave_whose_times_are_not_kept(tmp_path: Path) -> None:
    source, destination = both(tmp_path)
    run = run_sync(source, destination, replace(OPTIONS, omit_link_times=True))
    assert (run.problems, leaves(source)) == ([], set())


# What happens between the copy and the removal


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Has `act` done when DST has everything and has not yet said so."""
    confirm = ConfirmedFiles.confirm

    def confirm_later(self: ConfirmedFiles, round_: int) -> Conversation[int]:
        act()
        return (yield from confirm(self, round_))

    monkeypatch.setattr(ConfirmedFiles, "confirm", confirm_later)


def rewritten(path: Path) -> None:
    """Another content of the same size, under the old time."""
    stat = path.stat()
    path.write_bytes(b"w" * stat.st_size)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def replaced(path: Path) -> None:
    """Another file, whose stat is the same but for inode and ctime."""
    stat = path.stat()
    beside = path.with_name("beside")
    beside.write_bytes(b"r" * stat.st_size)
    os.utime(beside, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    beside.rename(path)


def made_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [rewritten, replaced, made_directory])
def test_what_changed_stays(
    change: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = both(tmp_path)
    meanwhile(monkeypatch, lambda: change(source / "changed"))
    run = run_sync(source, destination, OPTIONS)
    assert run.done.exit == ExitCode.PARTIAL
    assert [problem.path_bytes for problem in run.problems] == [b"changed"]
    assert "changed since it was synced" in run.problems[0].message
    assert leaves(source) == ({b"changed"} if change is not made_directory else set())


def test_what_is_gone_already_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = both(tmp_path)
    meanwhile(monkeypatch, (source / "new").unlink)
    run = run_sync(source, destination, OPTIONS)
    assert (run.done.exit, leaves(source)) == (ExitCode.OK, set())


@pytest.mark.parametrize("where", ["contents", "relative", "root"])
def test_a_parent_that_became_a_symlink_leads_to_no_removal(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the link leads to has files of the same names, contents and times."""
    source, destination = both(tmp_path)
    beyond = write_tree(
        tmp_path / "beyond", {path[2:]: node for path, node in SOURCE.items() if path[:2] == b"d/"}
    )
    outside = leaves(beyond)
    assert outside == {b"deep/file", b"left.o"}

    def swap() -> None:
        (source / "d").rename(tmp_path / "moved")
        (source / "d").symlink_to("../beyond")

    meanwhile(monkeypatch, swap)
    monkeypatch.chdir(tmp_path)
    taken = {
        "contents": contents_of(source),
        "relative": b"source/./d/deep",
        "root": os.fsencode(source) + b"/./d/left.o",
    }[where]
    run_sync(taken, destination, replace(OPTIONS, relative=where != "contents"))
    assert leaves(beyond) == outside
    assert (source / "d").is_symlink()


def test_an_entry_with_a_problem_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = both(tmp_path)
    confirm = ConfirmedFiles.confirm

    def confirm_with(self: ConfirmedFiles, round_: int) -> Conversation[int]:
        self._events.report(Problem(ExitCode.PARTIAL, b"same", "same: could not be compared"))
        return (yield from confirm(self, round_))

    monkeypatch.setattr(ConfirmedFiles, "confirm", confirm_with)
    assert run_sync(source, destination, OPTIONS).done.exit == ExitCode.PARTIAL
    assert leaves(source) == {b"same"}


def test_what_the_disk_does_not_have_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(finish, "sync_file_systems", lambda fds: False)
    monkeypatch.setattr(os, "fsync", fails)
    monkeypatch.setattr(os, "sync", lambda: None)
    source, destination = (write_tree(tmp_path / name, SOURCE) for name in ("source", "destination"))
    run = run_sync(source, destination, OPTIONS)
    assert run.done.exit != ExitCode.OK
    assert describe(SOURCE, read_tree(source)) == []
    assert "the source keeps what is in it" in run.problems[0].message


# Kills


@dataclass(frozen=True, slots=True)
class MovedTree:
    """A sync that moves a tree, for `steps_of`."""

    source: Path
    destination: Path
    said: Path

    def sync(self, *, fsync: bool) -> None:
        run = run_sync(self.source, self.destination, OPTIONS)
        assert run.problems == [], run.problems


def test_a_kill_before_any_step_loses_nothing(tmp_path: Path) -> None:
    wanted = tree({"d/f": b"1", "g": b"2", "big": bytes(70_000), "l": Link(b"g"), "same": b"same"})
    files = {path: node for path, node in wanted.items() if isinstance(node, (File, Link))}

    def scene(number: int) -> MovedTree:
        top = tmp_path / str(number)
        top.mkdir()
        held = write_tree(top / "destination", tree({"same": b"same", "g": File(b"0", 0o644, 5)}))
        return MovedTree(write_tree(top / "source", wanted), held, tmp_path / "said")

    whole = scene(0)
    steps = steps_of(whole, fsync=False)
    assert leaves(whole.source) == set() and steps > 10
    between = 0
    for at in range(steps):
        killed = scene(at + 1)
        if steps_of(killed, fsync=False, stop_at=at) < at:
            break
        here, there = read_tree(killed.source), read_tree(killed.destination)
        lost = [path for path, node in files.items() if here.get(path) != node and there.get(path) != node]
        assert lost == []
        between += bool(files.keys() - here.keys()) and bool(files.keys() & here.keys())
    assert between >= 3


# Refusals


def test_nothing_is_removed_through_symlinks(tmp_path: Path) -> None:
    source, destination = both(tmp_path)
    for name in ("--copy-links", "--copy-dirlinks", "--copy-unsafe-links"):
        ended = command("sync", "--remove-source-files", name, f"{source}/", f"{destination}/")
        assert ended.code == ExitCode.USAGE and name in ended.err
    assert describe(SOURCE, read_tree(source)) == []


@pytest.mark.parametrize(
    "access",
    [Access("module", read_only=True), Access("module", append_only=True), Access("module", no_delete=True)],
)
def test_a_served_directory_that_lets_nothing_go_refuses(access: Access) -> None:
    asked = Open.asking(Role.SOURCE, b"", bytes(16), SyncOptions(remove_source_files=True))
    with pytest.raises(TrustError, match="leave out --remove-source-files"):
        granted_options(asked, access)
    assert granted_options(asked, Access("module", owners=True)).remove_source_files


@pytest.mark.parametrize(
    ("confined", "code"), [("", 0), ("--read-only", 5), ("--no-delete", 5), ("--append-only", 5)]
)
def test_a_confined_key_lets_go_what_it_may(confined: str, code: int, tmp_path: Path) -> None:
    source, _ = both(tmp_path)
    (tmp_path / "outside").mkdir()
    key = forced(tmp_path, f"--root={source}", *confined.split())
    ended = command("sync", "--remove-source-files", "-e", key, "h:/", f"{tmp_path}/copy/")
    assert ended.code == code, ended.err
    assert leaves(source) == (set() if code == 0 else FILES)


def test_what_a_far_side_may_not_name_stays(tmp_path: Path) -> None:
    write_tree(tmp_path, tree({"d/f": b"1", "g": b"2"}))
    source = SourceTree.open(contents_of(tmp_path))
    removal = source.removal(SyncOptions(remove_source_files=True))
    assert isinstance(removal, SourceRemoval)
    manifest = Manifest()
    for path in (b"", b"d"):
        found = source.root.listed(path)
        removal.note(found.inodes)
        manifest.add(path, found.listing)
    assert list(manifest.kinds) == [Kind.DIRECTORY, Kind.FILE, Kind.FILE]
    events = EventRelay(None)
    for files in ((0,), (1, 2)):
        with pytest.raises(ProtocolError, match="no destination may name"):
            removal.take(Landed(files, bytes(16)), manifest, events.report)
    assert removal.take(Landed((2,), bytes(16)), manifest, events.report) == 1
    assert leaves(tmp_path) == {b"g"}
    source.release()


def test_a_source_that_was_not_asked_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceTree, "removal", lambda self, options: None)
    source, destination = both(tmp_path)
    with pytest.raises(RdcError, match="nothing was to be removed"):
        run_sync(source, destination, OPTIONS)
    assert describe(SOURCE, read_tree(source)) == []


@pytest.mark.parametrize("bounded", [SyncOptions(min_size=10), SyncOptions(max_size=1)], ids=["min", "max"])
def test_what_is_left_for_its_size_stays_though_dst_has_it(bounded: SyncOptions, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"file": b"12345"}))
    destination = write_tree(tmp_path / "destination", tree({"file": b"12345"}))
    run = run_sync(source, destination, replace(bounded, remove_source_files=True, fsync=False))
    assert (run.problems, (source / "file").exists()) == ([], True)
    assert run_sync(source, destination, SyncOptions(remove_source_files=True, fsync=False)).problems == []
    assert not (source / "file").exists()


def test_a_link_that_is_left_alone_stays_though_dst_has_it(tmp_path: Path) -> None:
    nodes = tree({"out": Link(b".."), "d/out": Link(b"../../elsewhere"), "d/within": Link(b"../file")})
    source, destination = write_tree(tmp_path / "source", nodes), write_tree(tmp_path / "destination", nodes)
    run = run_sync(source, destination, SyncOptions(safe_links=True, remove_source_files=True, fsync=False))
    assert run.problems == []
    assert sorted(os.listdir(source / "d")) == ["out"]
    assert (source / "out").is_symlink()
