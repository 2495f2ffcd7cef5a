"""What stops a run before its first step."""

from __future__ import annotations

import fcntl
import os
import shutil
from typing import Any

import pytest

import rdc
from rdc import (
    ExitCode,
    RdcError,
    UniteOptions,
)
from rdc.errors import UsageError
from rdc.model.location import RemoteShell
from rdc.uniting.guards import Room
from rdc.uniting.rows import LEFT, RIGHT
from tests.support.running.syncing import FAR
from tests.uniting.pairs import Pair
from tests.uniting.real_world import snapshot
from tests.uniting.remote_runs import unite_in_turns


def test_an_empty_side_that_had_entries_stops_the_run(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    (pair.right / "a").unlink()
    with pytest.raises(RdcError, match="found an empty directory") as caught:
        pair.unite()
    assert caught.value.code is ExitCode.FILE_IO
    assert pair.texts("a") == ["a", None]
    assert pair.unite(force_empty=True).left == 1
    assert pair.texts("a") == [None, None]


def test_an_empty_mount_point_is_known_without_a_state_of_its_own(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    shutil.rmtree(pair.right)
    pair.right.mkdir()
    with pytest.raises(RdcError, match="found an empty directory"):
        pair.unite()
    assert os.listdir(pair.right) == []
    assert pair.unite(force_empty=True).exit is ExitCode.OK
    assert pair.texts("a") == ["a", "a"]


def test_another_directory_in_the_place_of_one_costs_conflicts_and_no_file(pair: Pair) -> None:
    pair.both("a", "a")
    pair.both("gone", "x")
    pair.unite()
    shutil.rmtree(pair.right)
    pair.right.mkdir()
    (pair.right / "a").write_text("another")
    report = pair.unite()
    assert (report.first, report.conflicts) == (True, 1)
    assert pair.texts("gone") == ["x", "x"]


@pytest.mark.parametrize("change", ["delete", "replace"])
def test_the_guard_stops_before_a_step(pair: Pair, change: str) -> None:
    for number in range(120):
        pair.both(f"f{number}", "text")
    pair.unite()
    for number in range(70):
        path = pair.left / f"f{number}"
        if change == "delete":
            path.unlink()
        else:
            path.write_text("encrypted")
    before = snapshot(pair.right)
    with pytest.raises(RdcError, match=f"would {change} 70 of 120 entries") as caught:
        pair.unite()
    assert caught.value.code is ExitCode.MAX_DELETE
    assert snapshot(pair.right) == before
    assert pair.unite(guard=100).right == 70


def test_the_guard_shows_the_largest_parts_of_a_change(pair: Pair) -> None:
    for number in range(120):
        pair.both(f"d/f{number}", "text")
    pair.both("alone", "text")
    pair.unite()
    for number in range(70):
        (pair.left / f"d/f{number}").unlink()
    (pair.left / "alone").unlink()
    with pytest.raises(RdcError, match="would delete 71 of 122 entries"):
        pair.unite()
    assert pair.notices() == ["d: 70 entries to delete or write", "alone: 1 entry to delete or write"]


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
def test_a_dry_run_shows_what_the_guard_would_stop(pair: Pair, near: int | None) -> None:
    for number in range(120):
        pair.both(f"f{number}", "text")
    pair.unite()
    for number in range(70):
        (pair.left / f"f{number}").unlink()
    with pytest.raises(RdcError, match=r"would delete 70 of 120 entries .* look at it with -n"):
        if near is None:
            pair.unite(dry_run=True)
        else:
            pair.events = []
            options = UniteOptions(dry_run=True)
            unite_in_turns(pair.left, pair.right, options, pair.events.append, near=near)
    assert sorted(pair.items()) == sorted(("right", "deleted", b"f%d" % number) for number in range(70))


def test_what_was_renamed_is_not_deleted_for_the_guard(pair: Pair) -> None:
    for number in range(120):
        pair.both(f"d/f{number}", "text")
    pair.unite()
    (pair.left / "d").rename(pair.left / "e")
    assert pair.unite().right == 1


def test_a_missing_side_stops_the_run(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    shutil.rmtree(pair.right)
    with pytest.raises(RdcError, match="expected a directory at the right") as caught:
        pair.unite()
    assert caught.value.code is ExitCode.FILE_IO


def test_a_missing_side_of_another_machine_stops_the_run_alike(pair: Pair) -> None:
    shell = RemoteShell(("sh", "-c", 'shift; exec "$@"', "sh"), FAR)
    shutil.rmtree(pair.right)
    with pytest.raises(RdcError, match="expected a directory, found nothing; nothing was done") as caught:
        rdc.unite(pair.left, f"far:{pair.right}", shell=shell)
    assert caught.value.code is ExitCode.FILE_IO
    assert not pair.right.exists()


def test_the_same_and_nested_directories_are_refused(pair: Pair) -> None:
    with pytest.raises(UsageError, match="the same directory"):
        rdc.unite(pair.left, f"{pair.left}/.")
    (pair.left / "in").mkdir()
    (pair.right / "link").symlink_to(pair.left / "in")
    with pytest.raises(UsageError, match="lies in"):
        rdc.unite(pair.left, pair.right / "link")


def test_a_second_run_at_the_same_time_is_refused(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    with (pair.left / ".rdc-unite/lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RdcError, match="another run of rdc unite works here") as caught:
            pair.unite()
    assert caught.value.code is ExitCode.BUSY
    pair.unite()


def room(
    monkeypatch: pytest.MonkeyPatch, blocks: int, inodes: int, device: dict[int, int], *, total: int = 10**6
) -> None:
    """Has file systems say what they have left, blocks of 4 KiB (of `total`) and inodes, and a device of each
    directory."""
    whole, stat = os.fstatvfs, os.fstat

    def fstatvfs(fd: int) -> os.statvfs_result:
        found = list(whole(fd))
        found[1], found[2], found[4], found[5], found[7] = 4096, total, blocks, 1_000, inodes
        return os.statvfs_result(found)

    def fstat(fd: int) -> os.stat_result:
        found = stat(fd)
        fields = list(found)
        fields[2] = device.get(found.st_ino, found.st_dev)
        return os.stat_result(fields)

    class Calls:
        """The module os, as the guards see it."""

        def __getattr__(self, name: str) -> Any:
            return {"fstatvfs": fstatvfs, "fstat": fstat}.get(name, getattr(os, name))

    monkeypatch.setattr("rdc.uniting.guards.os", Calls())
    monkeypatch.setattr("rdc.uniting.guards.file_system_type", lambda _: 0)


@pytest.mark.parametrize("one", [True, False], ids=["one file system", "two"])
def test_a_run_without_room_for_all_of_it_does_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, one: bool
) -> None:
    pair.both("a", "a")
    pair.unite()
    (pair.left / "a").write_text("edited")
    (pair.left / "new").write_bytes(bytes(range(256)) * 16)
    (pair.right / "other").write_bytes(bytes(range(256)) * 16)
    devices = {} if one else {pair.left.stat().st_ino: 1, pair.right.stat().st_ino: 2}
    for blocks, inodes, text in ((1, 100, "bytes, found 4,096 free"), (100, 1, "new entr")):
        if blocks == 1 and not one:
            (pair.left / "more").write_bytes(bytes(range(256)) * 16)
        with monkeypatch.context() as patch:
            room(patch, blocks, inodes, devices)
            for dry in (True, False):
                with pytest.raises(RdcError, match=text) as caught:
                    pair.unite(dry_run=dry)
                assert caught.value.code is ExitCode.FILE_IO
        assert pair.texts("a") == ["edited", "a"]
    assert pair.unite().exit is ExitCode.OK


def test_a_file_system_that_tells_no_room_is_written_to(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    room(monkeypatch, 0, 0, {pair.left.stat().st_ino: 1, pair.right.stat().st_ino: 2}, total=0)
    pair.both("a", "a")
    (pair.left / "new").write_bytes(b"new")
    (pair.right / "other").write_bytes(b"other")
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("new") == ["new", "new"]


def test_a_file_system_that_fails_statfs_is_written_to(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_fd: int) -> os.statvfs_result:
        raise OSError(5, "Input/output error")

    room(monkeypatch, 0, 0, {})
    monkeypatch.setattr("rdc.uniting.guards.os.fstatvfs", failing)
    (pair.left / "new").write_bytes(b"new")
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("new") == ["new", "new"]


def test_holes_need_no_room(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(pair.left / "image", "wb") as image:
        image.truncate(1 << 30)
    room(monkeypatch, 4, 100, {})
    assert pair.unite().exit is ExitCode.OK
    assert (pair.right / "image").stat().st_size == 1 << 30


@pytest.mark.parametrize("near", [LEFT, RIGHT])
def test_holes_of_the_dialler_need_no_room_at_the_other_machine(
    near: int, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = (pair.left, pair.right) if near == LEFT else (pair.right, pair.left)
    with open(own / "image", "wb") as image:
        image.truncate(1 << 24)
        image.write(b"data")
    monkeypatch.setattr("rdc.uniting.far_side.room_of", lambda _: Room(1 << 20, 100))
    found = unite_in_turns(pair.left, pair.right, UniteOptions(), lambda _: None, near=near)
    assert found.report.exit is ExitCode.OK
    assert (other / "image").read_bytes() == (own / "image").read_bytes()
    (own / "long").write_bytes(bytes(range(256)) * (1 << 13))
    with pytest.raises(RdcError, match="expected room for 2,097,152 bytes"):
        unite_in_turns(pair.left, pair.right, UniteOptions(), lambda _: None, near=near)


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
@pytest.mark.parametrize("store", [LEFT, RIGHT])
def test_no_side_is_a_store_or_lies_in_one(near: int | None, store: int, pair: Pair) -> None:
    """A deletion at the other side would remove packs, and its files would lie among them."""
    own, other = (pair.left, pair.right) if store == LEFT else (pair.right, pair.left)
    (other / "file").write_text("content")
    rdc.store_put(other, own, catalog=None)
    before = snapshot(own)
    for path, what in ((own, "is a store"), (own / "packs", "lies in a store")):
        left, right = (path, other) if store == LEFT else (other, path)
        with pytest.raises(RdcError, match=f"{path.name} {what}: a two-way sync") as caught:
            if near is None:
                rdc.unite(left, right)
            else:
                unite_in_turns(left, right, UniteOptions(), lambda _: None, near=near)
        assert caught.value.code is ExitCode.USAGE
        assert snapshot(own) == before
        assert {*os.listdir(other)} <= {"file", ".rdc-unite"}


def test_a_side_that_is_no_directory_has_the_exit_code_of_a_missing_one(pair: Pair) -> None:
    (pair.left / "file").write_text("content")
    for path in (pair.left / "file", pair.left / "missing"):
        with pytest.raises(RdcError, match="expected a directory") as caught:
            rdc.unite(path, pair.right)
        assert caught.value.code is ExitCode.FILE_IO
        with pytest.raises(RdcError, match="expected a directory") as caught:
            rdc.forget_united(path, pair.right)
        assert caught.value.code is ExitCode.FILE_IO
