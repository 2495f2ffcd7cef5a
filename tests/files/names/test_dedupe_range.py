"""Shared blocks on real file systems, and every answer that the kernel can give, from a fake one."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rdc.files.names.leased_files
from rdc.errors import ExitCode, FileError, OutOfSpaceError
from rdc.files.facts.extents import EXTENTS_PER_CALL, extents, measure_sharing, shared_bytes, volume_of
from rdc.files.names.leased_files import SLICE_BYTES, can_share, dedupe_range, sharing_failure
from rdc.files.root.root import Root
from tests.support.trees.loop_images import free_bytes, places_on_disk, settle

BLOCK = 4096


class Open:
    """Files by path, opened for reading until the test ends."""

    def __init__(self) -> None:
        self.fds: list[int] = []

    def __call__(self, path: Path, content: bytes | None = None) -> int:
        if content is not None:
            path.write_bytes(content)
        self.fds.append(os.open(path, os.O_RDONLY))
        return self.fds[-1]


@pytest.fixture
def opened() -> Iterator[Open]:
    files = Open()
    yield files
    for fd in files.fds:
        os.close(fd)


def share_all(source: int, destination: int, size: int) -> None:
    done = 0
    while done < size:
        shared = dedupe_range(source, done, min(SLICE_BYTES, size - done), destination, done)
        assert shared
        done += shared


@pytest.mark.needs("filefrag")
def test_whole_files_come_to_lie_in_one_place(sharing: Path, opened: Open) -> None:
    content = os.urandom(SLICE_BYTES + 70_001)
    one, two = opened(sharing / "one", content), opened(sharing / "two", content)
    before = os.stat(sharing / "two")
    free = free_bytes(sharing)
    places = measure_sharing(one, 0, two, 0, volume_of(two).rounded(len(content)), whole_extents=False)
    assert (places.same, places.own, places.perhaps) == (0, volume_of(two).rounded(len(content)), 0)
    share_all(one, two, len(content))
    assert places_on_disk(sharing / "one") == places_on_disk(sharing / "two")
    won = free_bytes(sharing) - free
    assert won == pytest.approx(places.own, rel=0.02)
    after = measure_sharing(one, 0, two, 0, volume_of(two).rounded(len(content)), whole_extents=False)
    assert (after.same, after.own, after.perhaps) == (places.own, 0, 0)
    # A program that looks sees nothing of it: not even the change time moved.
    now = os.stat(sharing / "two")
    for name in ("st_ino", "st_mtime_ns", "st_ctime_ns", "st_mode", "st_uid", "st_size", "st_blocks"):
        assert getattr(now, name) == getattr(before, name), name
    assert (sharing / "two").read_bytes() == content


def test_bytes_that_differ_are_not_shared(sharing: Path, opened: Open) -> None:
    one = opened(sharing / "one", bytes(3 * BLOCK))
    two = opened(sharing / "two", bytes(3 * BLOCK - 1) + b"x")
    assert dedupe_range(one, 0, 3 * BLOCK, two, 0) is None
    assert dedupe_range(one, 0, 2 * BLOCK, two, 0) == 2 * BLOCK
    assert (sharing / "two").read_bytes()[-1:] == b"x"


def test_ranges_elsewhere_in_the_files(sharing: Path, opened: Open) -> None:
    middle = os.urandom(4 * BLOCK)
    one = opened(sharing / "one", os.urandom(BLOCK) + middle)
    two = opened(sharing / "two", os.urandom(3 * BLOCK) + middle + os.urandom(100))
    assert dedupe_range(one, BLOCK, 4 * BLOCK, two, 3 * BLOCK) == 4 * BLOCK
    places = measure_sharing(one, BLOCK, two, 3 * BLOCK, 4 * BLOCK, whole_extents=False)
    assert (places.same, places.own, places.perhaps) == (4 * BLOCK, 0, 0)


@pytest.mark.parametrize(
    ("source_offset", "length", "offset", "number"),
    [(0, BLOCK, 100, errno.EINVAL), (1, BLOCK, 0, errno.EINVAL), (0, 100 * BLOCK, 0, errno.EINVAL)],
    ids=["offset", "source offset", "past the end"],
)
def test_ranges_that_cannot_be(
    sharing: Path, opened: Open, source_offset: int, length: int, offset: int, number: int
) -> None:
    one, two = opened(sharing / "one", bytes(4 * BLOCK)), opened(sharing / "two", bytes(4 * BLOCK))
    with pytest.raises(OSError) as caught:
        dedupe_range(one, source_offset, length, two, offset)
    assert caught.value.errno == number


@pytest.mark.needs("filefrag")
def test_who_says_no(btrfs: Path, xfs: Path, ext4: Path, opened: Open) -> None:
    content = bytes(2 * BLOCK)
    here, there = opened(btrfs / "one", content), opened(xfs / "one", content)
    for fd, other, number in (
        (here, there, errno.EXDEV),
        (opened(ext4 / "one", content), opened(ext4 / "two", content), errno.EOPNOTSUPP),
    ):
        with pytest.raises(OSError) as caught:
            can_share(fd, other)
        assert caught.value.errno == number
    can_share(here, opened(btrfs / "two", content))
    assert places_on_disk(btrfs / "one") != places_on_disk(btrfs / "two")


def test_what_is_shared_with_others_is_not_won_for_sure(sharing: Path, opened: Open) -> None:
    content = os.urandom(8 * BLOCK)
    one, two = opened(sharing / "one", content), opened(sharing / "two", content)
    third = opened(sharing / "third", content)
    share_all(two, third, len(content))
    places = measure_sharing(one, 0, two, 0, len(content), whole_extents=False)
    assert (places.same, places.own, places.perhaps) == (0, 0, len(content))


def test_bytes_shared_with_anything(sharing: Path, ext4: Path, opened: Open) -> None:
    content = os.urandom(8 * BLOCK)
    one, two = opened(sharing / "one", content), opened(sharing / "two", content)
    settle(sharing)
    assert shared_bytes(one) == shared_bytes(two) == 0
    assert dedupe_range(one, 0, 4 * BLOCK, two, 0)
    assert shared_bytes(one) in (4 * BLOCK, 8 * BLOCK)  # btrfs counts whole extents
    assert shared_bytes(two) >= 4 * BLOCK
    assert shared_bytes(opened(ext4 / "one", content)) == 0


def test_holes_and_what_lies_behind_them(sharing: Path, opened: Open) -> None:
    for name in ("one", "two"):
        with (sharing / name).open("wb") as file:
            file.truncate(1 << 20)
            file.seek(1 << 19)
            file.write(bytes([7]) * 5 * BLOCK)
    one, two = opened(sharing / "one"), opened(sharing / "two")
    places = measure_sharing(one, 0, two, 0, 1 << 20, whole_extents=False)
    assert (places.same, places.own, places.perhaps) == (0, 5 * BLOCK, 0)
    share_all(one, two, 1 << 20)
    places = measure_sharing(one, 0, two, 0, 1 << 20, whole_extents=False)
    assert (places.same, places.own, places.perhaps) == (5 * BLOCK, 0, 0)


def test_btrfs_gives_back_whole_extents(btrfs: Path, opened: Open) -> None:
    """The reason for `whole_extents`: half of an extent given up frees nothing."""
    content = os.urandom(1 << 20)
    one, two = opened(btrfs / "one", content), opened(btrfs / "two", content)
    settle(btrfs)
    half = 1 << 19
    places = measure_sharing(one, 0, two, 0, half, whole_extents=volume_of(two).whole_extents)
    assert (places.own, places.perhaps) == (0, half)
    free = free_bytes(btrfs)
    share_all(one, two, half)
    assert free_bytes(btrfs) - free < half // 2


def test_inline_files_have_nothing_to_share(btrfs: Path, opened: Open) -> None:
    one, two = opened(btrfs / "one", b"few"), opened(btrfs / "two", b"few")
    places = measure_sharing(one, 0, two, 0, BLOCK, whole_extents=True)
    assert (places.same, places.own, places.perhaps) == (0, 0, 0)


def test_subvolumes_are_one_volume(btrfs: Path, xfs: Path, ext4: Path, opened: Open) -> None:
    subprocess.run(["btrfs", "-q", "subvolume", "create", btrfs / "sub"], check=True, capture_output=True)
    content = os.urandom(4 * BLOCK)
    one, two = opened(btrfs / "one", content), opened(btrfs / "sub" / "two", content)
    assert os.fstat(one).st_dev != os.fstat(two).st_dev
    assert volume_of(one) == volume_of(two)
    share_all(one, two, len(content))
    others = {volume_of(opened(place / "file", b"")).id for place in (xfs, ext4)}
    assert len(others | {volume_of(one).id}) == 3


def test_files_of_many_extents(sharing: Path, opened: Open) -> None:
    """More than one call of FIEMAP tells."""
    pieces = EXTENTS_PER_CALL + 40
    for name in ("one", "two"):
        with (sharing / name).open("wb") as file:
            file.truncate(2 * pieces * BLOCK)
            for number in range(pieces):
                file.seek(2 * number * BLOCK)
                file.write(number.to_bytes(4, "little"))
    one, two = opened(sharing / "one"), opened(sharing / "two")
    found = list(extents(two, 0, 2 * pieces * BLOCK))
    assert [extent.start for extent in found] == [2 * number * BLOCK for number in range(pieces)]
    places = measure_sharing(one, 0, two, 0, 2 * pieces * BLOCK, whole_extents=False)
    assert (places.same, places.own) == (0, pieces * BLOCK)
    share_all(one, two, 2 * pieces * BLOCK)
    places = measure_sharing(one, 0, two, 0, 2 * pieces * BLOCK, whole_extents=False)
    assert (places.same, places.own) == (pieces * BLOCK, 0)


# What the kernel may answer


def answering(status: int, done: int) -> Callable[..., int]:
    def ioctl(fd: int, request: int, buffer: bytearray, mutate: bool) -> int:
        assert (request, mutate) == (0xC0189436, True)
        assert struct.unpack_from("=QQHHI", buffer)[2:] == (1, 0, 0)
        struct.pack_into("=Qi", buffer, 24 + 16, done, status)
        return 0

    return ioctl


@pytest.mark.parametrize("number", [errno.EPERM, errno.EROFS, errno.ETXTBSY, errno.EINVAL, errno.ENOSPC])
def test_a_status_becomes_an_error(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdc.files.names.leased_files, "ioctl", answering(-number, 0))
    with pytest.raises(OSError) as caught:
        dedupe_range(3, 0, 10, 4, 0)
    assert caught.value.errno == number


@pytest.mark.parametrize("done", [11, 0, 1 << 63])
def test_answers_that_make_no_sense(done: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdc.files.names.leased_files, "ioctl", answering(0, done))
    with pytest.raises(OSError):
        dedupe_range(3, 0, 10, 4, 0)


def test_less_than_asked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdc.files.names.leased_files, "ioctl", answering(0, 4))
    assert dedupe_range(3, 0, 10, 4, 0) == 4
    monkeypatch.setattr(rdc.files.names.leased_files, "ioctl", answering(1, 0))
    assert dedupe_range(3, 0, 10, 4, 0) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.EOPNOTSUPP, "cannot share blocks (ENOTSUP)"),
        (errno.EXDEV, "different file systems"),
        (errno.EPERM, "immutable"),
        (errno.EACCES, "somebody else"),
        (errno.EROFS, "read-only file system"),
        (errno.ETXTBSY, "swap file"),
        (errno.EINVAL, "kernel does not take"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_who_says_no_is_named(number: int, text: str, tmp_path: Path) -> None:
    root = Root.open(os.fsencode(tmp_path))
    error = sharing_failure(root, b"a\nb", OSError(number, ""))
    assert isinstance(error, FileError)
    assert error.code is ExitCode.PARTIAL
    assert text in str(error)
    assert str(error).startswith(f"{tmp_path}/a\\x0ab: cannot share its blocks")
    assert isinstance(sharing_failure(root, b"a", OSError(errno.ENOSPC, "")), OutOfSpaceError)


def test_fiemap_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, opened: Open) -> None:
    def ioctl(fd: int, request: int, buffer: bytearray, mutate: bool) -> int:
        struct.pack_into("=I", buffer, 20, EXTENTS_PER_CALL + 1)
        return 0

    monkeypatch.setattr("rdc.files.facts.extents.ioctl", ioctl)
    with pytest.raises(OSError):
        list(extents(3, 0, 10))


def test_fiemap_that_goes_in_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full answer that brings nothing new must end, not repeat."""
    calls = 0

    def ioctl(fd: int, request: int, buffer: bytearray, mutate: bool) -> int:
        nonlocal calls
        calls += 1
        assert calls < 10
        struct.pack_into("=I", buffer, 20, EXTENTS_PER_CALL)
        return 0

    monkeypatch.setattr("rdc.files.facts.extents.ioctl", ioctl)
    with pytest.raises(OSError):
        list(extents(3, 0, 10))


def test_the_request_is_the_kernels() -> None:
    """Numbers of linux/fs.h and linux/fiemap.h, made as their macros make them."""

    def read_write(kind: int, number: int, size: int) -> int:
        return 3 << 30 | size << 16 | kind << 8 | number

    assert read_write(0x94, 54, 24) == 0xC0189436
    assert read_write(ord("f"), 11, 32) == 0xC020660B
    assert hasattr(fcntl, "F_SETLEASE")
