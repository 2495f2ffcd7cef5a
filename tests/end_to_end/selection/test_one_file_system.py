"""--one-file-system over real mounts: what lies on another file system is not read, and never deleted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rdc.errors import ExitCode, RdcError
from rdc.library.trees import sync
from rdc.limits import MOUNT_POINTS, SMALL_MANIFEST
from rdc.model.entries import Kind, Metadata
from rdc.model.location import Location
from rdc.model.preserved import EVERYTHING
from rdc.model.sync import SyncOptions
from rdc.protocol.messages.course import Describe, MountPoints, Start
from rdc.protocol.sequence import TreeTotals
from rdc.protocol.wire.codec import Illegal, Role
from tests.support.running.paired_sync import Remembering, kinds, sync_in_turns
from tests.support.running.syncing import Way, command, contents_of, run_sync, shell
from tests.support.trees.loop_images import memory_mounted
from tests.support.trees.trees import LONG_AGO, Directory, File, Tree, describe, read_tree, tree, write_tree

ONE = SyncOptions(one_file_system=True, delete=True, fsync=False)
OTHER_TIME = LONG_AGO + 10**9

MANY = {f"many/{number:03}": b"%d" % number for number in range(SMALL_MANIFEST)}
"""Enough for a descent."""

SIZES = pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])


@contextmanager
def mounts(*points: Path) -> Iterator[None]:
    with ExitStack() as stack:
        for point in points:
            stack.enter_context(memory_mounted(point))
            write_tree(point, tree({"mounted": b"here", "below/deep": b"deeper"}))
        yield


def below(found: Tree, *tops: bytes) -> set[bytes]:
    return {path for path in found if path.startswith(tuple(top + b"/" for top in tops))}


@pytest.mark.needs("mount")
@SIZES
@pytest.mark.parametrize("way", Way)
def test_the_source_does_not_cross(way: Way, more: dict[str, bytes], tmp_path: Path) -> None:
    """Whatever the destination has below such a directory stays; all else that is extra goes."""
    source = write_tree(
        tmp_path / "s", tree({"plain/new": b"1", "at/m": Directory(), "n": Directory(), **more})
    )
    held = {"at/m/old/file": b"kept", "at/extra": b"gone", "plain/extra/x": b"gone", "n/x": b"kept", **more}
    destination = write_tree(tmp_path / "d", tree(held))
    with mounts(source / "at/m", source / "n"):
        run = run_sync(source, destination, ONE, way=way)
        assert (run.done.exit, run.problems) == (ExitCode.OK, [])
        expected = tree({"plain/new": b"1", "at/m/old/file": b"kept", "n/x": b"kept", **more})
        assert describe(expected, read_tree(destination)) == []
        assert run_sync(source, destination, ONE, way=way).items == []
        # Without the option nothing is special about them.
        run_sync(source, destination, SyncOptions(delete=True, fsync=False), way=way)
        assert describe(read_tree(source), read_tree(destination)) == []
        assert (destination / "n/below/deep").read_bytes() == b"deeper"


@pytest.mark.needs("mount")
@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("checksum", [False, True])
def test_a_first_copy_and_one_by_content_do_not_cross_either(
    checksum: bool, way: Way, tmp_path: Path
) -> None:
    source = write_tree(tmp_path / "s", tree({"a": b"1", "m": Directory()}))
    with mounts(source / "m"):
        options = SyncOptions(one_file_system=True, delete=True, checksum=checksum, fsync=False)
        assert run_sync(source, tmp_path / "d", options, way=way).done.exit == ExitCode.OK
        assert describe(tree({"a": b"1", "m": Directory()}), read_tree(tmp_path / "d")) == []
        (tmp_path / "d/m/own").write_bytes(b"kept")
        run_sync(source, tmp_path / "d", options, way=way)
        assert (tmp_path / "d/m/own").read_bytes() == b"kept"


@pytest.mark.needs("mount")
@pytest.mark.parametrize("way", Way)
def test_the_named_directory_decides(way: Way, tmp_path: Path) -> None:
    """SRC without a slash is the top, whatever it is mounted in."""
    outer = write_tree(tmp_path / "s", tree({"top": Directory()}))
    with mounts(outer / "top", outer / "top/inner"):
        run = run_sync(os.fsencode(outer / "top"), tmp_path / "d", ONE, way=way)
        assert run.done.exit == ExitCode.OK
        found = read_tree(tmp_path / "d")
        assert below(found, b"top") == {
            b"top/mounted", b"top/below", b"top/below/deep", b"top/inner"
        }  # fmt: skip


@pytest.mark.needs("mount")
@SIZES
@pytest.mark.parametrize("way", Way)
def test_nothing_is_deleted_where_the_destination_crosses(
    way: Way, more: dict[str, bytes], tmp_path: Path
) -> None:
    """Nor moved away; but what the source has is written there."""
    content = os.urandom(200_000)
    names: dict[str, File | bytes] = {"on/new": File(b"to the mount", 0o600), "moved": File(content), **more}
    source = write_tree(tmp_path / "s", tree(names))
    destination = write_tree(
        tmp_path / "d", tree({"on": Directory(), "out/m": Directory(), "out/x": b"gone"})
    )
    with mounts(destination / "on", destination / "out/m"):
        for place in ("on", "out/m"):
            # What could be renamed, being the content, size and time of a file that is new.
            write_tree(destination / place / "vanished", tree({"here": File(content)}))
        before = read_tree(destination)
        dry = run_sync(
            source, destination, SyncOptions(one_file_system=True, delete=True, dry_run=True), way=way
        )
        run = run_sync(source, destination, ONE, way=way)
        assert run.done.exit == ExitCode.OK
        assert [i for i in dry.items if "deleting" in i] == [i for i in run.items if "deleting" in i]
        assert [i for i in run.items if "deleting" in i] == ["*deleting   out/x"]
        found = read_tree(destination)
        assert found[b"on/new"] == File(b"to the mount", 0o600)
        assert found[b"moved"] == File(content)
        kept = below(before, b"on", b"out/m")
        assert {path: before[path] for path in kept} == {path: found.get(path) for path in kept}


@pytest.mark.needs("mount")
def test_a_file_does_not_take_the_place_of_a_mount(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"m": b"a file", "a": b"1"}))
    destination = write_tree(tmp_path / "d", tree({"m": Directory()}))
    with mounts(destination / "m"):
        run = run_sync(source, destination, ONE)
        assert run.done.exit == ExitCode.PARTIAL
        assert "m: a directory is in the way, and what is left in it was not" in run.problems[0].message
        assert (destination / "m/below/deep").read_bytes() == b"deeper"
        assert (destination / "a").read_bytes() == b"1"


@pytest.mark.needs("mount", "rsync")
def test_rsync_leaves_the_same(tmp_path: Path) -> None:
    found = []
    for program in ("rsync", "rdc"):
        place = tmp_path / program
        place.mkdir()
        source = write_tree(place / "s", tree({"a/new": b"1", "m": Directory(), "b": Directory()}))
        held = tree({"a/extra": b"2", "b/extra": b"3", "m/old": b"4", "gone/m": Directory(), "gone/x": b"5"})
        destination = write_tree(place / "d", held)
        with mounts(source / "m", destination / "a", destination / "gone/m"):
            words = ["-ax", "--delete", f"{source}/", f"{destination}/"]
            if program == "rsync":
                subprocess.run(["rsync", *words], check=True, capture_output=True)
            else:
                assert command("sync", *words).code == ExitCode.OK
            tops = (b"", b"gone", b"gone/below", b"gone/m")  # written in, and not what is synced
            found.append({path: node for path, node in read_tree(destination).items() if path not in tops})
    assert describe(found[0], found[1]) == []


@pytest.mark.needs("mount")
@pytest.mark.parametrize("dialler", list(Role))
def test_an_unchanged_tree_costs_one_round_trip(dialler: Role, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"m": Directory(), **MANY}))
    with mounts(source / "m"):
        sync_in_turns(source, tmp_path / "d", ONE, dialler=dialler)
        run = sync_in_turns(source, tmp_path / "d", ONE, dialler=dialler)
        assert run.items == []
        assert run.done.round_trips == 1
        # Where the source dials, it sends the destination's path.
        assert run.done.bytes_sent + run.done.bytes_received < 405 + len(os.fsencode(tmp_path))
        assert "MountPoints" in kinds(run)
    plain = sync_in_turns(source, tmp_path / "d", SyncOptions(fsync=False), dialler=dialler)
    assert "MountPoints" not in kinds(plain)


@pytest.mark.needs("mount")
def test_what_stayed_for_a_mount_goes_with_it(tmp_path: Path) -> None:
    """A pair of trees that needed nothing is another pair once nothing is mounted any more."""
    source = write_tree(tmp_path / "s", tree({"m": Directory(), **MANY}))
    destination = write_tree(tmp_path / "d", tree({"m/old": b"kept so far", **MANY}))
    catalog = Remembering()
    with memory_mounted(source / "m"):
        os.utime(source / "m", ns=(LONG_AGO, LONG_AGO))
        for _ in range(2):
            sync_in_turns(source, destination, ONE, catalog=catalog)
        assert catalog.settled
        assert (destination / "m/old").exists()
    run = sync_in_turns(source, destination, ONE, catalog=catalog)
    assert [item for item in run.items if "deleting" in item] == ["*deleting   m/old"]


@pytest.mark.needs("mount")
def test_a_copy_of_all_onto_a_disk_mounted_in_it(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"a": b"1", "mnt/disk": Directory()}))
    with memory_mounted(source / "mnt/disk"):
        refused = command("sync", f"{source}/", f"{source}/mnt/disk/")
        assert refused.code == ExitCode.USAGE
        for _ in range(2):
            assert command("sync", "-x", "--delete", f"{source}/", f"{source}/mnt/disk/").code == ExitCode.OK
            found = read_tree(source / "mnt/disk")
            assert sorted(found) == [b"", b"a", b"mnt", b"mnt/disk"]
    # Nothing is mounted there now: the same directory, and the same tail.
    assert command("sync", "-x", f"{source}/", f"{source}/mnt/disk/").code == ExitCode.USAGE


def test_mount_points_are_bounded_and_come_after_start() -> None:
    census = TreeTotals()
    census.describe(Describe(False, EVERYTHING))
    with pytest.raises(Illegal):
        census.leave_out(MountPoints((b"early",)))
    census.start(Start(b"", Kind.DIRECTORY, Metadata(0o755, 0, 0, 0)))
    full = MountPoints(tuple(b"%d" % number for number in range(4096)))
    for _ in range(MOUNT_POINTS // 4096 - 1):
        census.leave_out(full)
    census.leave_out(MountPoints(full.paths[:-1]))
    with pytest.raises(Illegal):
        census.leave_out(MountPoints((b"one more",)))


def test_watch_does_not_take_it(tmp_path: Path) -> None:
    ended = command("watch", "-x", tmp_path, tmp_path / "d")
    assert ended.code == ExitCode.USAGE
    assert "-x" in ended.err
    from rdc.library.trees import watch
    from rdc.model.location import Location
    from rdc.watching.records import WatchOptions

    place = Location(None, os.fsencode(tmp_path))
    with pytest.raises(RdcError, match="one-file-system"):
        watch(place, place, WatchOptions(ONE), catalog=None)


@pytest.mark.needs("mount", "rsync")
@pytest.mark.parametrize("way", Way)
def test_each_of_several_sources_keeps_to_its_own_file_system(way: Way, tmp_path: Path) -> None:
    """A SRC that is on another one than the others, and one with a mount below it, as with rsync."""
    source = write_tree(
        tmp_path / "s", tree({"a/f": b"a", "a/m": Directory(), "other": Directory(), "c/f": b"c"})
    )
    with mounts(source / "a/m", source / "other"):
        paths = [f"{source}/a", f"{source}/other", f"{source}/c/"]
        subprocess.run(["rsync", "-ax", *paths, f"{tmp_path}/theirs/"], check=True)
        held = write_tree(tmp_path / "ours", tree({"a/m/kept": b"kept", "a/extra": b"goes"}))
        far = "far" if way is Way.PULL else None
        report = sync(
            [Location(far, os.fsencode(path)) for path in paths],
            Location("far" if way is Way.PUSH else None, contents_of(held)),
            ONE,
            shell=shell(),
            catalog=None,
        )
        assert report.exit is ExitCode.OK
        found = read_tree(held)
        assert found.pop(b"a/m/kept") and set(found) == set(read_tree(tmp_path / "theirs"))
        assert b"other/below/deep" in found and b"a/m/mounted" not in found


@pytest.mark.needs("mount")
def test_a_directory_that_is_a_mount_in_one_of_several_sources_is_named(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"a/d/f": b"a", "b/d": Directory()}))
    with mounts(source / "b/d"):
        ended = command("sync", "-x", f"{source}/a/", f"{source}/b/", f"{tmp_path}/d/")
    assert ended.code == ExitCode.PARTIAL
    assert ended.complaints == [
        "rdc: d: on another file system below one SRC, and not below another one; sync one after the"
        " other, or leave out -x"
    ]
    assert set(read_tree(tmp_path / "d")) == {b"", b"d"}
