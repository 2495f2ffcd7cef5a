"""Real file systems on images: btrfs, XFS, ext4 and exFAT, mounted for the time of a test run."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

__all__ = [
    "free_bytes",
    "fresh_directory",
    "image_directory",
    "memory_mounted",
    "mounted",
    "places_on_disk",
    "settle",
]

IMAGE_BYTES = {
    "btrfs": 256 << 20,
    "xfs": 320 << 20,
    "ext4": 64 << 20,
    "ext4-seconds": 64 << 20,
    "exfat": 64 << 20,
}
"""What mkfs asks for at least, or a little more; the images are sparse."""

_MAKE = {
    "btrfs": ("mkfs.btrfs", "-q"),
    "xfs": ("mkfs.xfs", "-q", "-m", "reflink=1"),
    "ext4": ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0"),
    "ext4-seconds": ("mkfs.ext4", "-q", "-I", "128", "-E", "lazy_itable_init=0"),
    "exfat": ("mkfs.exfat",),
}
"""ext4-seconds: inodes too small for fractions of seconds."""

_BY_A_PROCESS = """
device=$(losetup --find --show "$0") || exit
mount.exfat-fuse "$device" "$1"
code=$?
losetup --detach "$device" # once nobody has it open
exit $code
"""
"""The kernel need not know this file system."""

_numbers = count()


@contextmanager
def image_directory() -> Iterator[Path]:
    """Make a directory for images, in memory where there is room: syncs then cost no disk, and these tests
    make hundreds."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of random name is made in it
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 1 << 30
    with tempfile.TemporaryDirectory(prefix="rdc-image-", dir=memory if roomy else None) as place:
        yield Path(place)


@contextmanager
def mounted(kind: str, place: Path, *, size: int = 0, options: str = "") -> Iterator[Path]:
    """A new file system of this kind, mounted below `place`. Fails, not skips, where that is not possible."""
    image, point = place / f"{kind}.img", place / kind
    point.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(size or IMAGE_BYTES[kind])
    how = ("sh", "-c", _BY_A_PROCESS) if kind == "exfat" else ("mount", "-o", f"loop,{options}".rstrip(","))
    mount = (*how, str(image), str(point))
    for words in ((*_MAKE[kind], str(image)), mount):
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            problem = done.stderr if done.returncode else ""
        except FileNotFoundError:
            problem = "no such program"
        if problem:
            pytest.fail(
                f"these tests need root, a loop device and the {kind} file system: {words[0]}: {problem}"
            )
    image.unlink()  # the loop device keeps it, and a run that is killed leaves none behind
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


@contextmanager
def memory_mounted(point: Path) -> Iterator[Path]:
    """An empty file system mounted at `point`. Fails, not skips, where that is not possible."""
    point.mkdir(parents=True, exist_ok=True)
    words = ("mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "tmpfs", str(point))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"these tests need root and tmpfs: {done.stderr}")
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def fresh_directory(mount: Path) -> Iterator[Path]:
    """A new directory on a mounted image; it goes afterwards, with all it holds."""
    place = mount / f"test{next(_numbers)}"
    place.mkdir()
    try:
        yield place
    finally:
        subprocess.run(["chattr", "-R", "-i", place], check=False, capture_output=True)
        shutil.rmtree(place)
        settle(mount)


def settle(mount: Path) -> None:
    """Wait until everything written is on disk and everything given up is free."""
    fd = os.open(mount, os.O_RDONLY)
    try:
        ctypes.CDLL(None).syncfs(fd)
    finally:
        os.close(fd)


def free_bytes(mount: Path) -> int:
    """Return the free bytes, as df shows them, once they stay the same: XFS and btrfs give back the blocks of
    a removed file in the background, on a busy machine with pauses between them."""
    found, same = -1, 0
    while same < 4:
        settle(mount)
        now = os.statvfs(mount)
        free = now.f_bfree * now.f_frsize
        found, same = free, same + 1 if free == found else 0
        time.sleep(0.05)
    return found


def places_on_disk(path: Path) -> list[tuple[int, int, int]]:
    """(offset, physical offset, length) in blocks of each extent, as filefrag tells."""
    text = subprocess.run(["filefrag", "-s", "-e", path], capture_output=True, text=True, check=True).stdout
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(":")]
        if len(parts) >= 4 and parts[0].isdigit():
            logical, physical, length = parts[1], parts[2], parts[3]
            found.append((int(logical.split("..")[0]), int(physical.split("..")[0]), int(length)))
    return found
