"""Syncs to and from file systems that keep less of entries than the other side's."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.files.facts import file_systems as by_type
from rdc.files.facts.file_systems import TRIED, facts_by_type, path_of
from rdc.files.facts.file_systems import type_of as real_type_of
from rdc.files.root.root import Root
from rdc.model.entries import Kind
from rdc.model.preserved import GRANULARITIES, PLAIN, Granularity, Preserved, Rounding, granularity_of
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from tests.support.running.paired_sync import kinds, sync_in_turns
from tests.support.running.syncing import Run
from tests.support.trees.trees import LONG_AGO, File, Tree, tree, write_tree

SECOND = 1_000_000_000
TIMED = (Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK)
DIALLERS = pytest.mark.parametrize("dialler", list(Role), ids=["source dials", "destination dials"])
COMPARES = {"RootRequest", "DigestRequest", "TreeRequest", "FileRequest"}
"""What is sent where contents may differ."""


def odd(files: int, content: bytes = b"content") -> Tree:
    """So many files whose mtimes no coarse file system keeps."""
    return tree(
        {f"d{i // 50}/f{i:04}": File(content, 0o644, LONG_AGO + 1_234_567 * i + 1) for i in range(files)}
    )


def quick(run: Run) -> bool:
    return run.done.bytes_sent + run.done.bytes_received <= 600 and not COMPARES & kinds(run)


def mtimes(top: Path) -> list[int]:
    return [path.stat().st_mtime_ns for path in sorted(top.rglob("*"))]


# Steps


@given(
    st.sampled_from(GRANULARITIES),
    st.sampled_from((Rounding.DOWN, Rounding.NEAREST, Rounding.UP)),
    st.integers(-(1 << 62), 1 << 62),
    st.integers(-(1 << 62), 1 << 62),
)
def test_what_is_kept_is_a_multiple_nearby(step: int, rounding: Rounding, one: int, other: int) -> None:
    granularity = Granularity(step, rounding)
    kept = Preserved(False, granularity)
    assert kept.mtime(one) % step == 0
    assert abs(one - kept.mtime(one)) < step
    assert kept.mtime(kept.mtime(one)) == kept.mtime(one)
    assert granularity.alike(one, kept.mtime(one))
    column = b"".join(value.to_bytes(8, "little", signed=True) for value in (one, other))
    expected = [kept.mtime(one), kept.mtime(other)]
    found = bytes(kept.mtimes(column, bytes([Kind.DIRECTORY, Kind.SYMLINK])))
    assert [int.from_bytes(found[i : i + 8], "little", signed=True) for i in (0, 8)] == expected


def test_times_of_files_that_prove_little_are_compared_as_they_are() -> None:
    column = b"".join(value.to_bytes(8, "little", signed=True) for value in (5, 5))
    kinds = bytes([Kind.FILE, Kind.DIRECTORY])
    for kept in (Preserved(True, Granularity(60 * SECOND)), Preserved(True, untimed=frozenset(TIMED))):
        assert [bytes(kept.mtimes(column, kinds))[i] for i in (0, 8)] == [5, 0]


@pytest.mark.parametrize("rounding", [Rounding.DOWN, Rounding.NEAREST, Rounding.UP])
@pytest.mark.parametrize("step", GRANULARITIES)
def test_a_step_is_read_off_what_became_of_odd_times(step: int, rounding: Rounding) -> None:
    granularity = Granularity(step, rounding)
    times = [(given, granularity.of(given)) for given in TRIED]
    found = granularity_of(times)
    assert found is not None
    assert (found.step, found.rounding) == (step, rounding if step > 1 else Rounding.DOWN)


def test_times_in_floating_point_are_about_right() -> None:
    found = granularity_of([(given, int(given / 1e9 * 1e9)) for given in TRIED])
    assert found is not None
    assert found.is_vague
    assert found.step <= SECOND


def test_times_that_are_far_off_are_not_kept() -> None:
    assert granularity_of([(given, given + 500 * SECOND) for given in TRIED]) is None


@given(
    st.builds(Granularity, st.sampled_from(GRANULARITIES), st.sampled_from(list(Rounding)[:3])),
    st.builds(Granularity, st.sampled_from(GRANULARITIES), st.sampled_from(list(Rounding)[:3])),
    st.integers(0, 1 << 61),
)
def test_a_copy_and_the_copy_of_a_copy_have_the_same_time(
    source: Granularity, destination: Granularity, mtime: int
) -> None:
    """Whichever of the two file systems rounds more, and wherever the file was first."""
    there = Preserved(True, destination).both(Preserved(True, source))
    back = Preserved(True, source).both(Preserved(True, destination))
    listed = source.of(mtime)
    copied = destination.of(listed)
    assert there.same_time(listed, copied)
    assert back.same_time(copied, listed)
    assert there.at_source.mtime(listed) == there.at_destination.mtime(copied)
    assert there.mtime(listed) == there.mtime(copied) == there.at_source.mtime(listed)


@given(st.integers(0, 1 << 61))
def test_a_wrong_memory_of_coarse_times_hides_no_other_time(mtime: int) -> None:
    """A time that is no multiple of what is remembered of its own file system is taken as it is."""
    coarse = Preserved(True, Granularity(2 * SECOND))
    for both in (coarse.both(Preserved(True)), Preserved(True).both(coarse)):
        if mtime % (2 * SECOND):
            wanted, existing = (mtime - 1, mtime) if both.granularity.step > 1 else (mtime, mtime - 1)
            assert not both.same_time(wanted, existing)


def test_coarser_steps_are_multiples_of_finer_ones() -> None:
    assert all(b % a == 0 for a, b in itertools.pairwise(GRANULARITIES))


def test_whole_seconds_are_seen_without_a_trace(seconds: Path) -> None:
    os.utime(seconds, ns=(LONG_AGO, LONG_AGO // SECOND * SECOND))
    before = seconds.stat()
    with_root = Root.open(os.fsencode(seconds))
    assert facts_by_type(with_root).keeps.granularity == Granularity(SECOND)
    with_root.close()
    assert seconds.stat() == before
    assert os.listdir(seconds) == []


def test_nanoseconds_are_seen(ext4: Path) -> None:
    os.utime(ext4, ns=(0, LONG_AGO // SECOND * SECOND))
    root = Root.open(os.fsencode(ext4))
    assert facts_by_type(root) == PLAIN
    root.close()


# Syncs


@DIALLERS
@pytest.mark.parametrize("files", [10, 400])
def test_a_copy_on_a_coarse_file_system_is_not_read_again(
    dialler: Role, files: int, tmp_path: Path, seconds: Path
) -> None:
    source, copy = write_tree(tmp_path / "source", odd(files)), seconds / "copy"
    sync_in_turns(source, copy, dialler=dialler)
    run = sync_in_turns(source, copy, dialler=dialler)
    assert run.done.changed == 0
    assert quick(run)
    (source / "d0/f0003").write_bytes(b"another content")
    run = sync_in_turns(source, copy, dialler=dialler)
    assert [item.split()[-1] for item in run.items] == ["d0/f0003"]
    assert not {"RootRequest", "DigestRequest"} & kinds(run)


@DIALLERS
def test_extra_files_there_change_nothing_about_it(dialler: Role, tmp_path: Path, seconds: Path) -> None:
    source, copy = write_tree(tmp_path / "source", odd(300)), seconds / "copy"
    sync_in_turns(source, copy, dialler=dialler)
    (copy / "extra").write_bytes(b"ours")
    run = sync_in_turns(source, copy, dialler=dialler)
    assert not COMPARES & kinds(run)


@DIALLERS
@pytest.mark.parametrize("files", [10, 400])
def test_the_way_back_changes_nothing_either(
    dialler: Role, files: int, tmp_path: Path, seconds: Path
) -> None:
    """The finer times of the original stay."""
    original, copy = write_tree(tmp_path / "original", odd(files)), seconds / "copy"
    sync_in_turns(original, copy)
    before = mtimes(original)
    run = sync_in_turns(copy, original, dialler=dialler)
    assert run.done.changed == 0
    assert not COMPARES & kinds(run)
    assert mtimes(original) == before


def test_a_dry_run_knows_it_too(tmp_path: Path, seconds: Path) -> None:
    source, copy = write_tree(tmp_path / "source", odd(10)), seconds / "copy"
    sync_in_turns(source, copy)
    run = sync_in_turns(source, copy, SyncOptions(dry_run=True))
    assert run.items == []


@DIALLERS
def test_what_was_moved_is_renamed_there(dialler: Role, tmp_path: Path, seconds: Path) -> None:
    source, copy = write_tree(tmp_path / "source", odd(300, b"moved content " * 200)), seconds / "copy"
    sync_in_turns(source, copy, dialler=dialler)
    inode = (copy / "d1/f0060").stat().st_ino
    (source / "d1/f0060").rename(source / "d2/elsewhere")
    run = sync_in_turns(source, copy, SyncOptions(delete=True, fsync=False), dialler=dialler)
    assert (copy / "d2/elsewhere").stat().st_ino == inode
    assert run.done.literal_bytes == 0


def test_within_a_second_size_tells_and_otherwise_a_checksum(tmp_path: Path, seconds: Path) -> None:
    """Every file system is like this within one tick of its clock."""
    source, copy = write_tree(tmp_path / "source", tree({"f": b"content"})), seconds / "copy"
    sync_in_turns(source, copy)
    stamp = (source / "f").stat().st_mtime_ns // SECOND * SECOND
    (source / "f").write_bytes(b"CONTENT")
    os.utime(source / "f", ns=(stamp, stamp + 5))
    assert sync_in_turns(source, copy).done.changed == 0
    assert sync_in_turns(source, copy, SyncOptions(checksum=True, fsync=False)).done.changed == 1
    (source / "f").write_bytes(b"longer content")
    os.utime(source / "f", ns=(stamp, stamp + 5))
    assert sync_in_turns(source, copy).done.changed == 1
    (source / "f").write_bytes(b"LONGER CONTENT")
    os.utime(source / "f", ns=(stamp, stamp + SECOND))
    assert sync_in_turns(source, copy).done.changed == 1
    assert (copy / "f").read_bytes() == b"LONGER CONTENT"


# Without modes and owners


@pytest.fixture
def like_fat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory that says it is on a FAT file system; who sets owners there, fails as there."""
    place, chown = tmp_path / "stick", os.chown
    place.mkdir()

    def type_of(fd: int) -> int:
        return 0x4D44 if path_of(fd).startswith(os.fsencode(place)) else real_type_of(fd)

    def refusing(*arguments: Any, **options: Any) -> None:
        chown(*arguments, **options)
        raise PermissionError(errno.EPERM, "as on FAT")

    monkeypatch.setattr(by_type, "type_of", type_of)
    monkeypatch.setattr(os, "chown", refusing)
    return place


FAT_STEP = 2 * 10**9
"""Nanoseconds."""


def owned_by_others(top: Path) -> Path:
    for path in top.rglob("*"):
        os.lchown(path, 1234, 4321)
    return top


@DIALLERS
@pytest.mark.parametrize("files", [10, 400])
def test_modes_and_owners_are_not_compared_where_the_file_system_has_none(
    dialler: Role, files: int, tmp_path: Path, like_fat: Path
) -> None:
    source = owned_by_others(write_tree(tmp_path / "source", odd(files)))
    copy = like_fat / "copy"
    first = sync_in_turns(source, copy, dialler=dialler)
    assert (first.done.errors, first.done.exit) == (0, ExitCode.OK)
    for path in copy.rglob("*"):
        path.chmod(0o777)
    for path in (copy, *copy.rglob("*")):
        mtime = path.stat().st_mtime_ns
        os.utime(path, ns=(mtime, mtime - mtime % FAT_STEP))
    run = sync_in_turns(source, copy, dialler=dialler)
    assert run.done.changed == 0
    assert quick(run)


@DIALLERS
def test_nor_on_the_way_back(dialler: Role, tmp_path: Path, like_fat: Path) -> None:
    original = owned_by_others(write_tree(tmp_path / "original", odd(300)))
    copy = like_fat / "copy"
    sync_in_turns(original, copy)
    for path in copy.rglob("*"):
        path.chmod(0o777)
    before = [(path.stat().st_mode, path.stat().st_uid) for path in sorted(original.rglob("*"))]
    run = sync_in_turns(copy, original, dialler=dialler)
    assert run.done.changed == 0
    assert [(path.stat().st_mode, path.stat().st_uid) for path in sorted(original.rglob("*"))] == before


def test_a_root_that_cannot_be_looked_at_keeps_everything_as_far_as_is_known(tmp_path: Path) -> None:
    root = Root.open(os.fsencode(tmp_path))
    os.rmdir(tmp_path)
    assert facts_by_type(root) == PLAIN
    root.close()
