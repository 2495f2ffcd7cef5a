"""`put`: what the store's snapshots hold, restored by a reader that knows nothing of rdc."""

from __future__ import annotations

import os
import random
import re
import socket
import time
from itertools import pairwise
from pathlib import Path

import pytest

import rdc
from rdc.catalog.catalog import Catalog
from rdc.catalog.store import NoCatalog
from rdc.errors import ExitCode, FileError, RdcError, UsageError
from rdc.files.root.source_file import SourceFile
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Event, Progressed
from rdc.store import put as put_module
from rdc.store.directory import KEY_BYTES, split_keys
from rdc.store.place import PackStore
from rdc.store.put import put
from rdc.store.reader import StoreReader
from rdc.store.records import StoreOptions
from rdc.store.snapshot_tree import SnapshotTree
from rdc.store.tree_rows import DirectoryRows, StreamRef
from tests.support.store.stores import Problems, put_tree, read_alone, state_of, write_snapshot

NOISE = random.Random(5).randbytes(9_000_000)
TEXT = b"".join(b"line %d of a text\n" % number for number in range(20_000))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "docs" / "deep").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "docs" / "text").write_bytes(TEXT)
    (top / "docs" / "deep" / "noise").write_bytes(NOISE)
    (top / "docs" / "nothing").write_bytes(b"")
    (top / "link").symlink_to("docs/text")
    return top


def restored(store: Path, number: int, tmp_path: Path) -> dict[str, object]:
    destination = tmp_path / f"restored-{number}"
    read_alone(store, number, destination)
    return state_of(destination)


def scatter(path: Path) -> None:
    """Change a file everywhere, so that each of its chunks is another."""
    scattered = bytearray(path.read_bytes())
    for at in range(0, len(scattered), 600_000):
        scattered[at] ^= 1
    path.write_bytes(scattered)


def test_a_directory_that_lost_all_its_entries_is_not_mounted(source: Path, tmp_path: Path) -> None:
    store, name = tmp_path / "st", source.name
    put_tree(source, store)
    os.rename(source, tmp_path / "unmounted")
    source.mkdir()
    before = state_of(store)
    for _ in range(2):
        with pytest.raises(
            FileError, match=rf"{name}: expected 7 entries, as in snapshot 1, found an empty directory; "
        ) as caught:
            rdc.store_put(source, store, catalog=None)
        assert caught.value.code is ExitCode.FILE_IO and "--force-empty" in str(caught.value)
    assert state_of(store) == before
    assert rdc.store_put(source, store, name="other", catalog=None).entries == 0
    # Once it is stored as it is, it may stay empty.
    assert rdc.store_put(source, store, force_empty=True, catalog=None).entries == 0
    assert rdc.store_put(source, store, catalog=None).exit is ExitCode.OK
    # SRC still has entries that filters leave out, so nothing is unmounted.
    (source / "left-out").touch()
    rdc.store_put(source, store, catalog=None)
    assert rdc.store_put(source, store, exclude="left-out", catalog=None).entries == 0


def pack_bytes(store: Path) -> int:
    return sum(path.stat().st_size for path in (store / "packs").rglob("*.pack"))


def test_each_snapshot_is_restored_as_the_tree_was(source: Path, tmp_path: Path) -> None:
    store, states = tmp_path / "st", []
    put_tree(source, store)
    states.append(state_of(source))
    (source / "docs" / "text").write_bytes(TEXT.replace(b"line 77 ", b"a changed line "))
    (source / "docs" / "deep" / "noise").write_bytes(NOISE[:4_000_000] + b"more" + NOISE[4_000_000:])
    (source / "docs" / "new").write_bytes(NOISE[:1000])
    os.rename(source / "empty", source / "renamed")
    put_tree(source, store)
    states.append(state_of(source))
    for number, state in enumerate(states, 1):
        assert restored(store, number, tmp_path) == state


def test_every_kind_and_all_metadata_are_kept(tmp_path: Path) -> None:
    top = tmp_path / "tree"
    top.mkdir()
    (top / "a").write_bytes(b"several names")
    os.link(top / "a", top / "b")
    os.mkfifo(top / "fifo", 0o640)
    os.mknod(top / "null", 0o20666, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(top)
        made.bind("socket")
        os.chdir("/")
    name = os.fsdecode(b"not \xff utf-8\n")
    (top / name).write_bytes(b"x")
    os.setxattr(top / "a", "user.note", b"y" * 3000)
    os.setxattr(top, "user.top", b"z")
    (top / "setuid").write_bytes(b"s")
    os.chown(top / "setuid", 12, 34)
    os.chmod(top / "setuid", 0o4751)  # noqa: S103 - all bits are kept
    os.utime(top / "setuid", ns=(5, -7_000_000_001))
    with (top / "hole").open("wb") as file:
        file.truncate(8 << 20)
    store = tmp_path / "st"
    put_tree(top, store)
    assert restored(store, 1, tmp_path) == state_of(top)
    assert pack_bytes(store) < 8000


def test_an_acl_is_kept(tmp_path: Path) -> None:
    top = tmp_path / "tree"
    top.mkdir()
    (top / "file").write_bytes(b"x")
    entries = [(1, 6, -1), (2, 4, 1000), (4, 4, -1), (16, 4, -1), (32, 0, -1)]
    packed = b"\2\0\0\0" + b"".join(
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + (number & 0xFFFF_FFFF).to_bytes(4, "little")
        for tag, bits, number in entries
    )
    os.setxattr(top / "file", "system.posix_acl_access", packed)
    store = tmp_path / "st"
    put_tree(top, store)
    assert restored(store, 1, tmp_path) == state_of(top)


def test_an_equal_tree_costs_one_small_file(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "st"
    put_tree(source, store)
    before = pack_bytes(store)
    report = put_tree(source, store)
    assert (report.number, report.stored, report.new_bytes) == (2, 0, 0)
    assert pack_bytes(store) == before
    assert (store / "snapshots" / "2").stat().st_size < 500


def test_unchanged_files_are_not_read(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "st"
    for path in source.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000), follow_symlinks=False)
    with Catalog(str(tmp_path / "catalog")) as catalog:
        time.sleep(2.5)  # the catalog takes no ctime for final that is as young as this
        first = put_tree(source, store, catalog=catalog)
        assert (first.files_read, first.bytes_read) == (2, len(TEXT) + len(NOISE))
        again = put_tree(source, store, catalog=catalog)
        assert (again.files_read, again.bytes_read) == (0, 0)
        # Another content with the old size and times: the ctime shows it.
        (source / "docs" / "text").write_bytes(TEXT[::-1])
        os.utime(source / "docs" / "text", (1_600_000_000, 1_600_000_000))
        third = put_tree(source, store, catalog=catalog)
    assert third.files_read == 1
    assert restored(store, 3, tmp_path) == state_of(source)


def test_a_small_change_is_stored_as_a_delta(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "st"
    put_tree(source, store)
    (source / "docs" / "deep" / "noise").write_bytes(NOISE[:5_000_000] + b"new" + NOISE[5_000_000:])
    report = put_tree(source, store)
    assert report.deltas
    assert report.stored < 4000
    off = put_tree(source, tmp_path / "other", StoreOptions(name="tree", deltas=False))
    assert off.deltas == 0


def test_a_directory_of_changed_files_is_looked_up_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, store = tmp_path / "tree", tmp_path / "st"
    source.mkdir()
    for number in range(500):
        (source / f"{number}").write_bytes(b"%d " % number * 60)
    put_tree(source, store)
    for number in range(500):
        (source / f"{number}").write_bytes(b"%d " % number * 60 + b"more")
    looked = []
    look = DirectoryRows.file_numbers

    def count(self: DirectoryRows) -> dict[int, int]:
        looked.append(self.path)
        return look(self)

    monkeypatch.setattr(DirectoryRows, "file_numbers", count)
    report = put_tree(source, store)
    assert report.files_read == 500
    assert looked == [b""]
    # Each would be smaller as a delta, but for what its frame takes in the directory.
    monkeypatch.undo()
    whole = tmp_path / "whole"
    put_tree(source, whole, StoreOptions(name="tree", deltas=False))
    assert report.stored < pack_bytes(whole)


def test_a_renamed_and_changed_file_finds_the_old_one(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "st"
    put_tree(source, store)
    os.rename(source / "docs" / "deep" / "noise", source / "elsewhere")
    scatter(source / "elsewhere")
    report = put_tree(source, store)
    assert report.stored < 30_000


def test_a_thousand_generations_stay_five_frames_deep(tmp_path: Path) -> None:
    top, store = tmp_path / "tree", tmp_path / "st"
    top.mkdir()
    drawn = random.Random(9)
    content = bytearray(drawn.randbytes(20_000))
    for number in range(100):
        content[drawn.randrange(len(content))] ^= 0xFF
        (top / "file").write_bytes(content)
        os.utime(top / "file", (number, number))
        put_tree(top, store)
    with PackStore.open(os.fsencode(store)) as opened:
        reader = StoreReader(opened)
        frames = [reader.frame(number) for number in range(reader.frames)]
        assert max(frame.generation for frame in frames) > 60
        assert max(frame.depth for frame in frames) <= 4
        reader.close()
    assert restored(store, 100, tmp_path) == state_of(top)


def test_holes_are_not_read_and_change_no_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top, store, size = tmp_path / "tree", tmp_path / "st", 30_000_000
    parts = [(0, NOISE[:300_000]), (12_345_678, NOISE[:777]), (20_000_001, TEXT)]
    content = bytearray(size)
    top.mkdir()
    with (top / "sparse").open("wb") as file:
        for at, data in parts:
            file.seek(at)
            file.write(data)
            content[at : at + len(data)] = data
        file.truncate(size)
    (top / "dense").write_bytes(content)
    read: dict[bytes, int] = {}
    original = SourceFile.pread

    def counted(source: SourceFile, offset: int, length: int) -> bytes:
        read[source.path] = read.get(source.path, 0) + length
        return original(source, offset, length)

    monkeypatch.setattr(SourceFile, "pread", counted)
    report = put_tree(top, store)
    assert (report.files_read, report.bytes_read) == (2, 2 * size)
    assert read[b"dense"] >= size
    assert read[b"sparse"] < 1_000_000
    with PackStore.open(os.fsencode(store)) as opened:
        reader = StoreReader(opened)
        rows = SnapshotTree(reader, opened.snapshot(1)).rows(b"")
        assert rows is not None
        assert rows.files[0] == rows.files[1]
        reader.close()
    monkeypatch.undo()
    assert restored(store, 1, tmp_path) == state_of(top)


def test_progress_grows_within_a_file_and_ends_at_what_was_read(source: Path, tmp_path: Path) -> None:
    told = list[Event]()

    def progress() -> list[tuple[int, int | None]]:
        """Put the tree, and return what was told of it."""
        told.clear()
        names = os.fsencode(source), os.fsencode(tmp_path / "st")
        report = put(*names, StoreOptions(name="tree"), told.append, NoCatalog())
        found = [one for one in told if isinstance(one, Progressed)]
        assert {one.phase for one in found} <= {"compare"}
        *before, last = [(one.done, one.total) for one in found] or [(0, 0)]
        assert last == (report.bytes_read, report.bytes_read)
        assert [total for _, total in before] == [None] * len(before)
        assert before == sorted(before)
        return before

    assert len(progress()) >= len(NOISE) >> 20
    for path in source.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.unlink()
    assert progress() == []


def test_filters_leave_out_and_rdcs_own_names_stay_out(source: Path, tmp_path: Path) -> None:
    for name in (".rdc-undo", ".rdc-unite"):
        (source / name).mkdir()
        (source / name / "kept").write_bytes(b"x")
    (source / "docs" / "a.tmp").write_bytes(b"x")
    rule = FilterRule(RuleAction.EXCLUDE, b"*.tmp")
    store = tmp_path / "st"
    put_tree(source, store, StoreOptions(name="tree", rules=(rule,)))
    found = restored(store, 1, tmp_path)
    assert not any(".rdc" in path or path.endswith(".tmp") for path in found)
    assert "docs/text" in found


def test_series_have_their_own_newest_tree_and_share_chunks(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "st"
    put_tree(source, store, StoreOptions(name="one"))
    report = put_tree(source, store, StoreOptions(name="two"))
    assert report.number == 2
    assert report.stored == 0


def test_releases_under_names_of_their_own_are_deltas(source: Path, tmp_path: Path) -> None:
    one_series, two_series = tmp_path / "one", tmp_path / "two"
    put_tree(source, one_series)
    put_tree(source, two_series, StoreOptions(name="v1"))
    scatter(source / "docs" / "deep" / "noise")
    os.rename(source / "docs" / "text", source / "docs" / "renamed")
    report = put_tree(source, two_series, StoreOptions(name="v2"))
    assert report.stored < 30_000
    assert abs(report.stored - put_tree(source, one_series).stored) < 200
    assert restored(two_series, 2, tmp_path) == state_of(source)


def test_the_first_snapshot_of_a_series_is_put_beside_the_series_with_the_most_of_its_names(
    source: Path, tmp_path: Path
) -> None:
    store, unlike = tmp_path / "st", tmp_path / "unlike"
    unlike.mkdir()
    (unlike / "docs").mkdir()
    (unlike / "docs" / "text").write_bytes(random.Random(1).randbytes(100_000))
    put_tree(source, store, StoreOptions(name="alike"))
    put_tree(unlike, store, StoreOptions(name="unlike"))
    scatter(source / "docs" / "deep" / "noise")
    assert put_tree(source, store, StoreOptions(name="new")).stored < 30_000
    assert restored(store, 3, tmp_path) == state_of(source)


def test_a_damaged_tree_of_another_series_is_nothing_to_walk_beside(source: Path, tmp_path: Path) -> None:
    store, problems = tmp_path / "st", Problems()
    put_tree(source, store, StoreOptions(name="one"))
    write_snapshot(store, 2, StreamRef(7, 0, bytes(KEY_BYTES)))
    report = put_tree(source, store, StoreOptions(name="three"), problems)
    assert (report.exit, problems.texts, report.stored) == (ExitCode.OK, [], 0)
    assert restored(store, report.number, tmp_path) == state_of(source)


@pytest.mark.parametrize("name", ["", "17", "latest", "2026-11-28", "a/b", "."])
def test_names_that_no_path_could_have_are_refused(source: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--name"):
        put_tree(source, tmp_path / "st", StoreOptions(name=name))


def test_the_store_in_the_tree_is_left_out_and_said(source: Path) -> None:
    problems = Problems()
    store = source / "docs" / "st"
    put_tree(source, store, problems=problems)
    report = put_tree(source, store, problems=problems)
    assert report.exit is ExitCode.OK
    assert any("left out, as it is the store itself" in text for text in problems.texts)
    destination = source.parent / "restored"
    read_alone(store, 2, destination)
    assert not (destination / "docs" / "st").exists()
    assert (destination / "docs" / "text").exists()


def test_no_store_is_made_in_a_store(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "st"
    put_tree(source, store)
    before = state_of(store)
    for place in ("@1", "@1/docs", "snapshots", "packs/of/mine"):
        with pytest.raises(UsageError, match=r"lies in the store .*/st: name that store"):
            put_tree(source, store / place)
    with pytest.raises(UsageError, match="st is a store: put a directory of your own"):
        put_tree(store, tmp_path / "other")
    assert state_of(store) == before
    os.symlink(store, tmp_path / "link")
    assert put_tree(source, tmp_path / "link").number == 2


def test_a_tree_in_the_store_is_refused(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "st"
    put_tree(source, store)
    with pytest.raises(UsageError, match="lies in the store"):
        put_tree(store / "packs", store)


def test_a_directory_that_is_no_store_is_not_made_one(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_bytes(b"x")
    with pytest.raises(UsageError, match="expected a store"):
        put_tree(source, other)
    assert [path.name for path in other.iterdir()] == ["file"]


def test_a_missing_source_is_refused_and_makes_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for name, found in {
        "missing": "nothing; mount or make it, ",
        "file": "a file; put its directory with --include=/file --exclude='*', ",
        "pipe": "something else; ",
        "file/below": "nothing; mount or make it, ",
    }.items():
        with pytest.raises(
            FileError, match=re.escape(f"expected a directory to put into a store, found {found}")
        ):
            put_tree(tmp_path / name, tmp_path / "st")
    assert not (tmp_path / "st").exists()


def test_a_store_that_others_may_write_into_is_refused(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "st"
    put_tree(source, store)
    store.chmod(0o777)
    with pytest.raises(RdcError, match="nobody else may write"):
        put_tree(source, store)


def test_a_store_of_a_later_version_is_refused(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "st"
    put_tree(source, store)
    head = bytearray((store / "store").read_bytes())
    head[8] = 2
    (store / "store").chmod(0o600)
    (store / "store").write_bytes(head)
    with pytest.raises(FileError, match="version 2, this rdc reads 1"):
        put_tree(source, store)


def test_a_snapshot_that_is_forgotten_during_a_put_is_no_damage(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        put_tree(source, tmp_path / "st")
    numbers = PackStore.numbers

    def then_forgotten(store: PackStore) -> list[int]:
        found = numbers(store)
        monkeypatch.undo()
        rdc.forget_snapshots(tmp_path / "st", rdc.ForgetOptions(numbers=(2,), apply=True))
        return found

    monkeypatch.setattr(PackStore, "numbers", then_forgotten)
    report = put_tree(source, tmp_path / "st")
    assert (report.number, report.exit) == (3, ExitCode.OK)


def test_a_clock_set_back_changes_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "st"
    put_tree(source, store)
    (source / "docs" / "text").write_bytes(b"newer")
    monkeypatch.setattr("time.time", lambda: 1000.0)
    assert put_tree(source, store).number == 2
    monkeypatch.undo()
    with PackStore.open(os.fsencode(store)) as opened:
        assert [opened.snapshot(number).number for number in opened.numbers()] == [1, 2]


def test_a_file_that_changes_everywhere_each_day_takes_the_changes_alone(tmp_path: Path) -> None:
    """Databases do so. A delta that skips generations is made against the parts of the old one that lay
    where its own are now, also if the frames between have other ends."""
    drawn, size = random.Random(5), 4 << 20
    content = bytearray(drawn.randbytes(size))
    (tmp_path / "tree").mkdir()
    sizes = []
    for _ in range(9):
        for _ in range(100):
            content[drawn.randrange(size)] ^= 1
        at = drawn.randrange(size)
        content[at:at] = drawn.randbytes(50)
        (tmp_path / "tree" / "file").write_bytes(content)
        put_tree(tmp_path / "tree", tmp_path / "st")
        sizes.append(sum(path.stat().st_size for path in (tmp_path / "st").rglob("*.pack")))
    added = [after - before for before, after in pairwise(sizes)]
    assert max(added) < 30_000, added
    # Where bases were the middle ones, and a generation lay below up to four others, it was 5.6 times.
    with PackStore.open(os.fsencode(tmp_path / "st")) as store:
        reader = StoreReader(store)
        for number in store.numbers():
            rows = SnapshotTree(reader, store.snapshot(number)).rows(b"")
            assert rows is not None
            found: dict[int, int] = {}
            for key in split_keys(reader.expand(rows.files[0].content)):
                found |= {one.number: one.size for one in reader.needed(reader.facts(key).number)}
            assert sum(found.values()) < 5 * size, number
        reader.close()


def test_a_put_that_ends_meanwhile_is_no_damage(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another put of the series ends right after this one has listed the packs."""
    store, other = tmp_path / "st", tmp_path / "other"
    put_tree(source, store)
    other.mkdir()
    (other / "new").write_bytes(NOISE[:200_000])

    def opened(place: PackStore) -> StoreReader:
        reader = StoreReader(place)
        monkeypatch.setattr(put_module, "StoreReader", StoreReader)
        put_tree(other, store, StoreOptions(name=source.name))
        return reader

    monkeypatch.setattr(put_module, "StoreReader", opened)
    assert put_tree(source, store).number == 3
    assert restored(store, 3, tmp_path) == state_of(source)


def test_the_list_of_keys_of_a_long_file_is_a_difference_too(source: Path, tmp_path: Path) -> None:
    """In a published store it is not: its readers would have to fetch the old list."""
    stores = tmp_path / "st", tmp_path / "published"
    for store in stores:
        put_tree(source, store, StoreOptions(name="tree", publish=store.name == "published"))
    scatter(source / "docs" / "deep" / "noise")
    plain, published = [put_tree(source, store) for store in stores]
    assert plain.deltas == published.deltas + 1
    assert plain.stored < published.stored - 1000
    for store in stores:
        for number in (1, 2):
            assert (restored(store, number, tmp_path / store.name) == state_of(source)) == (number == 2)
        assert rdc.verify_store(store, 1.0).damaged == 0


def test_another_directory_in_a_series_is_noted_unless_it_is_named(source: Path, tmp_path: Path) -> None:
    """Forgetting would keep one of the two alone."""
    store, other = tmp_path / "st", tmp_path / "elsewhere" / source.name

    def notes(path: Path, name: str | None = None) -> list[str]:
        problems = Problems()
        rdc.store_put(path, store, catalog=None, reporter=problems, name=name)
        assert {one.code for one in problems.found} <= {ExitCode.OK}
        return [text for text in problems.texts if "another directory than" in text]

    assert notes(source) == []
    (other / "own").mkdir(parents=True)
    (note,) = notes(other)
    assert note.startswith(f"{other}: another directory than {source}, of which the last snapshot of tree is")
    assert note.endswith("(@1); --name=NAME keeps them apart, --name=tree goes on without this note")
    assert len(rdc.snapshots(store)) == 2
    assert notes(source, name="tree") == []
    os.symlink(source, tmp_path / "link")
    assert notes(tmp_path / "link", name="tree") == []
    os.rename(other, tmp_path / "tree of old")
    source.rename(other)
    assert notes(other) == []
