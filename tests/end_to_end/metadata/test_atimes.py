"""--atimes, beside rsync's: access times of files are kept in whole seconds, and nothing else changes."""

from __future__ import annotations

import errno
import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.files.base import syscalls
from rdc.limits import SMALL_MANIFEST
from rdc.model.entries import Kind
from rdc.model.options import Alternates, AlternateUse, KeepUndo
from rdc.model.preserved import ACCESS_TIME, AttributeKinds, pack_attributes, unpack_attributes
from rdc.model.sync import SyncOptions
from tests.support.running.beside_rsync import rsync
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import File, Link, read_tree, tree, write_tree

OPTIONS = SyncOptions(atimes=True, open_noatime=True, fsync=False)
NS = 10**9
OLD = 981_220_662
"""Seconds, in 2001: any read would change an access time so far back, on a relatime mount too."""
MANY = {f"many/{number:03}": b"%d" % number for number in range(SMALL_MANIFEST)}
KINDS = [{}, MANY]


def set_accessed(path: Path, seconds: int, nanoseconds: int = 0) -> None:
    os.utime(path, ns=(seconds * NS + nanoseconds, path.stat().st_mtime_ns))


def accessed(top: Path) -> dict[str, int]:
    """Access times in nanoseconds of what is neither directory nor symlink."""
    some = [path for path in top.rglob("*") if path.is_fifo() or (path.is_file() and not path.is_symlink())]
    return {str(path.relative_to(top)): path.stat().st_atime_ns for path in sorted(some)}


def made(top: Path, more: dict[str, bytes]) -> Path:
    """A tree whose files were read at different times, each at a fraction of a second."""
    source = write_tree(
        top / "source", tree({"a": b"1", "d/b": b"2", "d/e/c": b"", **more}) | tree({"l": Link(b"a")})
    )
    os.mkfifo(source / "fifo")
    for number, path in enumerate(accessed(source)):
        set_accessed(source / path, OLD + 3 * number, 999_999_999)
    return source


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("more", KINDS, ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", list(Way))
def test_access_times_are_kept(way: Way, more: dict[str, bytes], tmp_path: Path) -> None:
    source, destination = made(tmp_path, more), tmp_path / "destination"
    wanted = {path: at // NS * NS for path, at in accessed(source).items()}
    run = run_sync(source, destination, OPTIONS, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert accessed(destination) == wanted
    assert run_sync(source, destination, OPTIONS, way=way).items == []
    assert rsync("-n", "-i", "-c", "-UU", f"{source}/", f"{destination}/")[1] == []


@pytest.mark.parametrize("more", KINDS, ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", list(Way))
def test_where_they_alone_differ_nothing_else_is_touched(
    way: Way, more: dict[str, bytes], tmp_path: Path
) -> None:
    source, destination = made(tmp_path, more), tmp_path / "destination"
    run_sync(source, destination, OPTIONS, way=way)
    wanted = accessed(destination)
    for path in ("a", "d/e/c", "fifo"):
        set_accessed(destination / path, OLD - 7)
    before = {path: path.lstat() for path in destination.rglob("*")}
    expected = [".f......u.. a", ".S......u.. fifo", ".f......u.. d/e/c"]
    rehearsed = run_sync(source, destination, replace(OPTIONS, dry_run=True), way=way)
    assert sorted(rehearsed.items) == sorted(expected)
    assert accessed(destination)["a"] == (OLD - 7) * NS
    run = run_sync(source, destination, OPTIONS, way=way)
    assert (sorted(run.items), run.done.literal_bytes) == (sorted(expected), 0)
    assert accessed(destination) == wanted
    for place, was in before.items():
        now = place.lstat()
        assert (now.st_ino, now.st_mtime_ns, now.st_mode) == (was.st_ino, was.st_mtime_ns, was.st_mode)


@pytest.mark.needs("rsync")
def test_it_is_as_with_rsync(tmp_path: Path) -> None:
    source, destination, peer = made(tmp_path, {}), tmp_path / "destination", tmp_path / "peer"
    run_sync(source, destination, OPTIONS)
    assert rsync("-UU", f"{source}/", f"{peer}/")[0] == 0
    assert accessed(destination) == accessed(peer)
    assert rsync("-n", "-i", "-UU", f"{source}/", f"{destination}/")[1] == []
    for top in (destination, peer):
        for path in ("a", "fifo"):
            set_accessed(top / path, OLD - 7)
    (source / "d/b").write_bytes(b"longer")
    set_accessed(source / "d/b", OLD + 60)
    said = rsync("-i", "-UU", f"{source}/", f"{peer}/")[1]
    lines = command("sync", "-i", "-UU", f"{source}/", f"{destination}/").out.splitlines()
    # Beside another difference rdc has no letter for what it sets last.
    assert sorted(line[:8] + "..." + line[11:] if line[2:8] != "......" else line for line in said) == sorted(
        lines
    )
    assert accessed(destination) == accessed(peer)


def test_reading_changes_those_of_src_unless_it_is_asked_not_to(tmp_path: Path) -> None:
    source = made(tmp_path, {})
    before = accessed(source)
    assert command("sync", "-UU", f"{source}/", f"{tmp_path / 'one'}/").code == 0
    assert accessed(source) == before
    assert command("sync", "-U", f"{source}/", f"{tmp_path / 'two'}/").code == 0
    assert accessed(source)["a"] > before["a"]
    assert accessed(tmp_path / "two")["a"] == before["a"] // NS * NS


def test_without_the_option_they_do_not_count(tmp_path: Path) -> None:
    source, destination = made(tmp_path, {}), tmp_path / "destination"
    plain = replace(OPTIONS, atimes=False)
    run_sync(source, destination, plain)
    assert accessed(destination)["d/b"] > (OLD + 1000) * NS
    assert run_sync(source, destination, plain).items == []


def test_contents_that_are_compared_at_dst_keep_theirs(tmp_path: Path) -> None:
    source, destination = made(tmp_path, {}), tmp_path / "destination"
    run_sync(source, destination, OPTIONS)
    assert run_sync(source, destination, replace(OPTIONS, checksum=True)).items == []


def test_together_with_extended_attributes(tmp_path: Path) -> None:
    source, destination = made(tmp_path, {}), tmp_path / "destination"
    os.setxattr(source / "a", "user.one", b"1")
    os.setxattr(source / "d", "user.two", b"2")
    set_accessed(source / "a", OLD)
    both = replace(OPTIONS, xattrs=True)
    run_sync(source, destination, both)
    assert os.getxattr(destination / "a", "user.one") == b"1"
    assert os.getxattr(destination / "d", "user.two") == b"2"
    assert accessed(destination)["a"] == OLD * NS
    assert run_sync(source, destination, both).items == []
    os.removexattr(source / "a", "user.one")
    assert run_sync(source, destination, both).items == [".f........x a"]
    set_accessed(destination / "a", OLD - 1)
    os.setxattr(destination / "a", "user.three", b"")
    assert run_sync(source, destination, both).items == [".f......u.x a"]
    assert (os.listxattr(destination / "a"), accessed(destination)["a"]) == ([], OLD * NS)


def test_a_file_in_an_alternate_directory_is_linked_whenever_it_was_read(tmp_path: Path) -> None:
    source, older = made(tmp_path, {}), tmp_path / "older"
    run_sync(source, older, OPTIONS)
    set_accessed(older / "a", OLD - 7)
    alternates = Alternates(AlternateUse.LINK, (bytes(older),))
    run_sync(source, tmp_path / "destination", replace(OPTIONS, alternates=alternates))
    assert (tmp_path / "destination/a").samefile(older / "a")


def test_a_sync_that_set_them_can_be_taken_back(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"a": b"new", "same": b"same"}))
    destination = write_tree(tmp_path / "destination", tree({"a": File(b"old", 0o644, 5), "same": b"same"}))
    before = {path: node for path, node in read_tree(destination).items() if path}
    assert run_sync(source, destination, replace(OPTIONS, keep_undo=KeepUndo(days=9))).problems == []
    assert command("undo", str(destination)).code == 0
    after = read_tree(destination)
    assert {path: after[path] for path in before} == before


@pytest.mark.needs("rsync")
def test_a_system_without_the_call_sets_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscalls, "_extension", None)
    source, destination = made(tmp_path, {}), tmp_path / "destination"
    assert run_sync(source, destination, OPTIONS).problems == []
    assert accessed(destination)["a"] == OLD * NS
    assert rsync("-n", "-i", "-c", f"{source}/", f"{destination}/")[1] == []


def test_one_that_cannot_be_set_is_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = made(tmp_path, {}), tmp_path / "destination"
    real = syscalls.set_access_time

    def refused(fd: int, seconds: int) -> None:
        if seconds == OLD:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        real(fd, seconds)

    monkeypatch.setattr("rdc.files.facts.xattrs.set_access_time", refused)
    run = run_sync(source, destination, OPTIONS)
    assert [(problem.code, problem.path_bytes) for problem in run.problems] == [(ExitCode.PARTIAL, b"a")]
    assert "set its access time" in run.problems[0].message
    assert accessed(destination)["d/b"] == (OLD + 3) * NS


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_time_has_a_packed_form(seconds: int) -> None:
    attributes = ((ACCESS_TIME, struct.pack("<q", seconds)),)
    assert unpack_attributes(pack_attributes(attributes)) == attributes


@given(st.binary(max_size=20).filter(lambda value: len(value) != 8))
def test_a_time_of_another_size_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="access time"):
        unpack_attributes(pack_attributes(((ACCESS_TIME, value),)))


def test_which_entries_have_one() -> None:
    kinds = AttributeKinds.USER | AttributeKinds.ACCESS_TIME
    of = {kind.name: kinds.of(kind) for kind in Kind}
    assert of["FILE"] == kinds
    assert of["DIRECTORY"] == of["SYMLINK"] == AttributeKinds.USER
    assert of["FIFO"] == of["SOCKET"] == of["BLOCK_DEVICE"] == kinds
    assert of["SPECIAL"] == AttributeKinds.NONE


def test_a_file_that_is_fetched_although_it_is_equal_has_one_line(tmp_path: Path) -> None:
    """-I -W replaces it unlooked at, and so changes its access time."""
    source, destination = made(tmp_path, {}), tmp_path / "destination"
    run_sync(source, destination, OPTIONS)
    said = command("sync", "-i", "-I", "-W", "-UU", f"{source}/", f"{destination}/").out.splitlines()
    assert sorted(said) == [f">f......... {path}" for path in ("a", "d/b", "d/e/c")]
    assert accessed(destination) == {path: at // NS * NS for path, at in accessed(source).items()}
