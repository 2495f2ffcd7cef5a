"""A snapshot as the source of `rdc sync` and `rdc check`."""

from __future__ import annotations

import os
import random
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rdc
from rdc.cli.environment import process_environment
from rdc.cli.main import run as run_command
from rdc.errors import ExitCode, FileError, UsageError
from rdc.limits import SMALL_MANIFEST
from rdc.model import preserved
from rdc.model.entries import Kind
from rdc.progress import Event, Problem
from rdc.session.sync_run import SyncRun
from rdc.store.reader import StoreReader
from rdc.store.records import StoreOptions
from rdc.store.snapshot_tree import AHEAD_WORTH
from tests.support.store.stores import Problems, put_tree, state_of
from tests.support.trees.loop_images import memory_mounted

NOISE = random.Random(6).randbytes(3_000_000)
ALL = rdc.SyncOptions(
    delete=True, hard_links=True, xattrs=True, acls=True, devices=True, specials=True, owner=True
)


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        yield Path(made)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "docs" / "deep").mkdir(parents=True)
    (top / "empty").mkdir()
    for number in range(30):
        (top / "docs" / f"{number}.txt").write_bytes(b"text %d\n" % number * 300)
    (top / "docs" / "deep" / "noise").write_bytes(NOISE)
    os.link(top / "docs" / "deep" / "noise", top / "again")
    (top / "nothing").write_bytes(b"")
    (top / "link").symlink_to("docs")
    os.mkfifo(top / "fifo")
    os.mknod(top / "null", 0o20666, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(top)
        made.bind("socket")
        os.chdir("/")
    os.setxattr(top / "nothing", "user.note", b"value")
    os.setxattr(top / "docs", "user.note", b"of a directory")
    os.setxattr(top, "user.top", b"of the top")
    os.chown(top / "docs" / "1.txt", 12, 34)
    return top


@pytest.fixture
def store(source: Path, tmp_path: Path) -> Path:
    put_tree(source, tmp_path / "st")
    return tmp_path / "st"


def test_times_outside_64_bits_of_nanoseconds_are_restored(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another process than the one that put them, which knows nothing of its stamps."""
    times = {"a": -(1 << 40), "b": 10_000_000_000, "d": 1 << 40, "d/c": 1 << 41, "": 1 << 42}
    (memory / "s" / "d").mkdir(parents=True)
    for name in ("a", "b", "d/c"):
        (memory / "s" / name).write_text(name)
    for name in ("a", "b", "d/c", "d", ""):
        os.utime(memory / "s" / name, ns=(0, times[name] * 10**9 + 1))
    put_tree(memory / "s", tmp_path / "st")
    monkeypatch.setattr(preserved, "_times", {})
    assert restore(f"{tmp_path}/st/@1/", memory / "d").exit is ExitCode.OK
    found = {name: (memory / "d" / name).stat().st_mtime_ns for name in times}
    assert found == {name: seconds * 10**9 + 1 for name, seconds in times.items()}
    monkeypatch.setattr(preserved, "_times", {})
    put_tree(memory / "s", tmp_path / "st")
    monkeypatch.setattr(preserved, "_times", {})
    again = restore(f"{tmp_path}/st/@2/", memory / "d")
    assert (again.created, again.changed, again.deleted) == (0, 0, 0)


def restore(snapshot: str, destination: Path, options: rdc.SyncOptions = ALL) -> rdc.SyncReport:
    return rdc.sync(snapshot, f"{destination}/", options, catalog=None)


@pytest.mark.parametrize("path", ["@1/", "@1/docs/", "@1/docs"])
def test_a_local_restore_opens_the_store_once_and_leaves_nothing_open(
    source: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """The table of a store's chunks may take most of the memory of a run: 220 MB for 16.8 million."""
    put_tree(source, store)
    opened = []
    begin = StoreReader.__init__

    def count(self: StoreReader, *given: Any) -> None:
        opened.append(self)
        begin(self, *given)

    monkeypatch.setattr(StoreReader, "__init__", count)
    before = len(os.listdir("/proc/self/fd"))
    rdc.sync(f"{store}/{path}", tmp_path / "out", catalog=None)
    assert len(opened) == 1
    with pytest.raises(UsageError):
        rdc.sync(f"{store}/{path}", store / "below", catalog=None)
    assert len(os.listdir("/proc/self/fd")) == before

    def refuse(self: SyncRun) -> None:
        raise OSError("no place for clones")

    monkeypatch.setattr(SyncRun, "staged_clones", refuse)
    with pytest.raises(OSError, match="no place for clones"):
        rdc.sync(f"{store}/{path}", tmp_path / "other", catalog=None)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_restored_tree_is_the_one_that_was_put(source: Path, store: Path, tmp_path: Path) -> None:
    report = restore(f"{store}/@1/", tmp_path / "out")
    assert report.exit is ExitCode.OK
    assert state_of(tmp_path / "out") == state_of(source)


def test_equal_files_of_a_snapshot_are_copied_at_the_destination(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(3):
        (tmp_path / "tree" / f"{number}").write_bytes(NOISE)
    put_tree(tmp_path / "tree", tmp_path / "st")
    report = restore(f"{tmp_path}/st/@1/", tmp_path / "out")
    assert state_of(tmp_path / "out") == state_of(tmp_path / "tree")
    assert (report.literal_bytes, report.reused_bytes) == (len(NOISE), 2 * len(NOISE))


def test_only_what_differs_is_written(source: Path, store: Path, tmp_path: Path) -> None:
    before = state_of(source)
    untouched = (source / "docs" / "2.txt").stat()
    (source / "docs" / "3.txt").write_bytes(b"changed")
    (source / "docs" / "deep" / "noise").write_bytes(NOISE[:1_000_000] + b"!" + NOISE[1_000_000:])
    (source / "extra").write_bytes(b"x")
    (source / "link").unlink()
    report = restore(f"{store}/@1/", source)
    assert report.exit is ExitCode.OK
    assert report.literal_bytes < 200_000
    assert state_of(source) == before
    assert (source / "docs" / "2.txt").stat().st_ctime_ns == untouched.st_ctime_ns


def test_a_long_file_is_decoded_ahead_and_damage_in_it_costs_it_alone(tmp_path: Path) -> None:
    tree, noise = tmp_path / "tree", random.Random(7).randbytes(1 << 18)
    tree.mkdir()
    words = b"".join(b"%d: %d\n" % (one, one * one) for one in range(20_000))
    contents = {
        "long": b"".join(noise[one:] + words[: 1000 * one] for one in range(60)),
        "short": words[:999],
    }
    for name, content in contents.items():
        (tree / name).write_bytes(content)
    put_tree(tree, tmp_path / "st")
    assert len(contents["long"]) > AHEAD_WORTH
    assert restore(f"{tmp_path}/st/@1/", tmp_path / "out").exit is ExitCode.OK
    assert state_of(tmp_path / "out") == state_of(tree)
    [pack] = (tmp_path / "st").glob("packs/*/*")
    data = bytearray(pack.read_bytes())
    at = data.index(noise[1000:1100])
    data[at] ^= 1
    pack.chmod(0o600)
    pack.write_bytes(data)
    problems = Problems()
    report = rdc.sync(f"{tmp_path}/st/@1/", f"{tmp_path}/again/", ALL, catalog=None, reporter=problems)
    assert report.exit is ExitCode.PARTIAL
    assert os.listdir(tmp_path / "again") == ["short"]
    assert not [one for one in threading.enumerate() if one.name.startswith("rdc")]


def test_a_dry_run_changes_nothing(source: Path, store: Path) -> None:
    (source / "docs" / "3.txt").write_bytes(b"changed")
    before = state_of(source)
    items: list[rdc.ItemChanged] = []

    def note(event: Event) -> None:
        if isinstance(event, rdc.ItemChanged):
            items.append(event)

    options = rdc.SyncOptions(dry_run=True, items=True)
    rdc.sync(f"{store}/@1/", f"{source}/", options, catalog=None, reporter=note)
    assert state_of(source) == before
    assert [one.path_bytes for one in items if one.path_bytes == b"docs/3.txt"]


@pytest.mark.parametrize("whole_file", [True, False])
def test_parts_of_a_snapshot(source: Path, store: Path, tmp_path: Path, whole_file: bool) -> None:
    options = rdc.SyncOptions(whole_file=whole_file)
    restore(f"{store}/@latest/docs/deep/", tmp_path / "one", options)
    assert (tmp_path / "one" / "noise").read_bytes() == NOISE
    restore(f"{store}/@1/docs", tmp_path / "two", options)
    assert sorted(os.listdir(tmp_path / "two")) == ["docs"]
    assert len(os.listdir(tmp_path / "two" / "docs")) == 31
    restore(f"{store}/@1/docs/1.txt", tmp_path / "three", options)
    assert (tmp_path / "three" / "1.txt").read_bytes() == b"text 1\n" * 300


def test_check_compares_snapshots_and_trees(source: Path, store: Path) -> None:
    assert rdc.check(f"{store}/@1/", f"{source}/", catalog=None).exit is ExitCode.OK
    assert rdc.check(f"{source}/", f"{store}/@1/", catalog=None).exit is ExitCode.OK
    (source / "docs" / "3.txt").write_bytes(b"changed")
    put_tree(source, store)
    found: list[bytes] = []

    def note(event: rdc.EntryDiffers) -> None:
        found.append(event.path_bytes)

    report = rdc.check(f"{store}/@1/", f"{store}/@2/", catalog=None, on_difference=note)
    assert report.exit is ExitCode.DIFFERENT
    assert b"docs/3.txt" in found
    assert b"docs/2.txt" not in found


def test_names_of_snapshots(source: Path, store: Path, tmp_path: Path) -> None:
    (source / "docs" / "new").write_bytes(b"2")
    put_tree(source, store)
    for name in ("@2", "@latest", "@tree/latest", "@tree/2", "@tree/@latest"):
        destination = tmp_path / name.replace("/", "-")
        restore(f"{store}/{name}/", destination, rdc.SyncOptions())
        assert (destination / "docs" / "new").read_bytes() == b"2"
    put_tree(source, store, StoreOptions(name="other"))
    with pytest.raises(UsageError, match="several series; name one of @other/latest, @tree/latest"):
        restore(f"{store}/@latest/", tmp_path / "out")
    for name, why in (
        ("@9", "no such snapshot, the last ones are @1, @2, @3$"),
        ("@tree/9", "no such snapshot, the last ones are @1, @2$"),
        ("@nonsense", "@nonsense: expected a number, .* such as @other/latest, @tree/latest$"),
        ("@typo/latest", "@typo: expected a number, .* such as @other/latest, @tree/latest$"),
        ("@1999-01-01", "several series"),
        ("@tree/1999-01-01", "no such snapshot"),
        ("@tree/1999-99-01", "@tree/1999-99-01: expected a number, 'latest', or a date such as 2026-11-28$"),
        ("@tree", "a series has many snapshots"),
        ("@1/..", "'..' in it"),
    ):
        with pytest.raises(UsageError, match=why):
            restore(f"{store}/{name}/", tmp_path / "out")
    with pytest.raises(UsageError, match="end it with a slash"):
        restore(f"{store}/@1", tmp_path / "out")
    with pytest.raises(FileError, match="no such directory"):
        restore(f"{store}/@1/missing/", tmp_path / "out")
    with pytest.raises(FileError, match="no such file or directory"):
        restore(f"{store}/@1/missing", tmp_path / "out")


def test_a_name_with_spaces_is_shown_as_a_shell_takes_it(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "st"
    for name in (" ", "two words"):
        put_tree(source, store, StoreOptions(name=name))
    with pytest.raises(UsageError, match="name one of @' '/latest, @'two words'/latest"):
        restore(f"{store}/@latest/", tmp_path / "out")
    with pytest.raises(UsageError, match="@' '/1999-01-01: the store has no such"):
        restore(f"{store}/@ /1999-01-01/", tmp_path / "out")
    assert run_command(["store", "list", str(store)], process_environment()) == 0
    first, second = capfd.readouterr().out.splitlines()
    assert "  ' '  3" in first and "  'two words'  3" in second
    restore(f"{store}/@ /latest/", tmp_path / "out")
    assert state_of(tmp_path / "out") == state_of(source)


def test_a_date_means_the_last_snapshot_by_its_end(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    store = tmp_path / "st"
    for day in (1, 2, 2, 4):
        noon = time.mktime((2026, 11, day, 12, 0, 0, 0, 0, -1))
        monkeypatch.setattr("time.time", lambda noon=noon: noon)
        (source / "number").write_bytes(b"%d" % day)
        put_tree(source, store)
    monkeypatch.undo()
    for name, expected in (
        ("2026-11-01", b"1"),
        ("2026-11-02", b"2"),
        ("2026-11-03", b"2"),
        ("2026-12-24", b"4"),
    ):
        restore(f"{store}/@{name}/", tmp_path / name, rdc.SyncOptions())
        assert (tmp_path / name / "number").read_bytes() == expected


def test_a_path_with_an_at_sign_that_is_no_store_is_an_ordinary_one(tmp_path: Path) -> None:
    (tmp_path / "@home" / "@1").mkdir(parents=True)
    (tmp_path / "@home" / "@1" / "file").write_bytes(b"x")
    restore(f"{tmp_path}/@home/@1/", tmp_path / "out", rdc.SyncOptions())
    assert (tmp_path / "out" / "file").read_bytes() == b"x"


def test_below_a_served_directory(source: Path, store: Path, tmp_path: Path) -> None:
    """As a daemon and a confined key open it: the store's path is one inside what is served."""
    from rdc.session.trees.sites import ServedDirectory
    from rdc.session.trees.source_tree import SourceTree

    site = ServedDirectory(lambda: os.open(tmp_path, os.O_PATH | os.O_DIRECTORY), "the module", b"module")
    tree = SourceTree.open(b"/st/@1/docs/", site)
    assert tree.root.kind(b"1.txt") is Kind.FILE
    with tree.root.open_read(b"1.txt") as file:
        assert file.whole() == b"text 1\n" * 300
    tree.release()
    with pytest.raises(FileError, match="inside the module"):
        SourceTree.open(b"../st/@1/docs/", site)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (rdc.SyncOptions(remove_source_files=True), "leave out --remove-source-files"),
        (rdc.SyncOptions(copy_links=True), "follows links"),
        (rdc.SyncOptions(fake_super=True), "--fake-super"),
    ],
)
def test_what_a_snapshot_cannot_do_is_refused(
    store: Path, tmp_path: Path, options: rdc.SyncOptions, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        restore(f"{store}/@1/", tmp_path / "out", options)


def test_a_snapshot_goes_alone_and_is_not_watched(store: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    with pytest.raises(UsageError, match="the one SRC"):
        rdc.sync([f"{store}/@1/docs/1.txt", f"{store}/@1/docs/2.txt"], out, catalog=None)
    with pytest.raises(UsageError, match="the one SRC"):
        rdc.sync(f"{store}/@1/docs/", out, rdc.SyncOptions(relative=True), catalog=None)
    with pytest.raises(UsageError, match="nothing to watch"):
        rdc.watch(f"{store}/@1/", out, catalog=None)


def test_a_directory_that_was_unreadable_keeps_what_dst_has(
    source: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore with --delete must not take it for empty."""
    from rdc.files.root.root import Root

    listed = Root.list_unviewed

    def refuse(self: Root, path: bytes, **rest: Any) -> object:
        if path == b"docs/deep":
            raise FileError(path, "docs/deep: Permission denied")
        return listed(self, path, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(Root, "list_unviewed", refuse)
        put_tree(source, store)
    report = restore(f"{store}/@2/", source)
    assert report.exit is ExitCode.PARTIAL
    assert (source / "docs" / "deep" / "noise").read_bytes() == NOISE


@pytest.mark.needs("mount")
@pytest.mark.parametrize("more", [0, SMALL_MANIFEST], ids=["listed", "by manifest"])
def test_what_a_put_with_x_left_out_is_no_error_and_keeps_what_dst_has(
    source: Path, tmp_path: Path, more: int
) -> None:
    store, out = tmp_path / "st", tmp_path / "out"
    for number in range(more):
        (source / "docs" / f"more {number}").touch()
    with memory_mounted(source / "docs" / "mnt") as point:
        (point / "inner").mkdir()
        put_tree(source, store, StoreOptions(name="tree", one_file_system=True))
    for _ in range(2):
        assert restore(f"{store}/@1/", out).exit is ExitCode.OK
        assert sorted(os.listdir(out / "docs" / "mnt")) == []
    (out / "docs" / "mnt" / "own").touch()
    (out / "docs" / "extra").touch()
    assert restore(f"{store}/@1/", out).exit is ExitCode.OK
    assert (out / "docs" / "mnt" / "own").exists() and not (out / "docs" / "extra").exists()
    assert restore(f"{store}/@1/docs/", tmp_path / "docs").exit is ExitCode.OK
    for pair in ((f"{store}/@1/", f"{out}/"), (f"{out}/", f"{store}/@1/")):
        report = rdc.check(*pair, rdc.CheckOptions(), catalog=None)
        assert (report.exit, report.different) == (ExitCode.OK, 0)


def test_damage_costs_the_files_that_it_reaches_and_no_others(
    source: Path, store: Path, tmp_path: Path
) -> None:
    """The frame of `noise` is damaged; everything else comes back, and the file that is there stays."""
    (pack,) = store.rglob("*.pack")
    data = bytearray(pack.read_bytes())
    data[2_000_000] ^= 1
    pack.chmod(0o600)
    pack.write_bytes(data)
    problems: list[Problem] = []

    def note(event: Event) -> None:
        if isinstance(event, Problem):
            problems.append(event)

    (source / "docs" / "deep" / "noise").write_bytes(b"an old state")
    (source / "docs" / "3.txt").unlink()
    report = rdc.sync(f"{store}/@1/", f"{source}/", rdc.SyncOptions(delete=True), catalog=None, reporter=note)
    assert report.exit is ExitCode.PARTIAL
    assert any("noise" in one.message and "damaged" in one.message for one in problems)
    assert (source / "docs" / "3.txt").read_bytes() == b"text 3\n" * 300
    assert (source / "docs" / "deep" / "noise").read_bytes() == b"an old state"


@pytest.mark.parametrize("hit", [0, 5, 11])
def test_a_wrong_byte_costs_one_file_of_those_that_share_a_frame(tmp_path: Path, hit: int) -> None:
    """In whatever order they are read. A put that heals stores that one again."""
    tree, store, size = tmp_path / "tree", tmp_path / "st", 20_000
    tree.mkdir()
    drawn = random.Random(9)
    for number in range(12):
        (tree / f"{number:02}").write_bytes(drawn.randbytes(size))
    put_tree(tree, store)
    (pack,) = store.rglob("*.pack")
    data = bytearray(pack.read_bytes())
    data[8 + size * hit + 100] ^= 1
    pack.chmod(0o600)
    pack.write_bytes(data)
    problems = Problems()
    report = rdc.sync(f"{store}/@1/", f"{tmp_path}/out/", reporter=problems, catalog=None)
    assert report.exit is ExitCode.PARTIAL
    found = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert found == {path.name: path.read_bytes() for path in tree.iterdir() if path.name != f"{hit:02}"}
    problems = Problems()
    assert rdc.verify_store(store, 1.0, reporter=problems).damaged == 2
    assert [f": {hit:02}: cannot be restored" in text for text in problems.texts] == [True, False]
    healed = put_tree(tree, store, StoreOptions(heal=True))
    assert size <= healed.stored < 2 * size
    assert restore(f"{store}/@2/", tmp_path / "healed").exit is ExitCode.OK
    assert state_of(tmp_path / "healed") == state_of(tree)
    problems = Problems()
    assert rdc.verify_store(store, 1.0, reporter=problems).damaged == 0
    assert [text.endswith("; other packs have them, so nothing is lost") for text in problems.texts] == [True]


def test_a_missing_pack_is_an_error_and_never_an_empty_tree(source: Path, store: Path) -> None:
    before = state_of(source)
    (pack,) = store.rglob("*.pack")
    pack.unlink()
    with pytest.raises(FileError, match="a pack is missing"):
        restore(f"{store}/@1/", source)
    assert state_of(source) == before
