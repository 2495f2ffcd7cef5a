"""A FUSE file system that shows a directory and keeps less of its entries than Linux promises.

Each field of Oddities is one thing that real file systems do: network mounts, FUSE programs, FAT and NTFS.
tests/support/storage/limited_server.py serves it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tests.support.project_paths import TOP

__all__ = ["CONTROL", "PLAIN", "OddMount", "Oddities", "odd_mounted"]

MOUNT_SECONDS = 20

CONTROL = "user.oddities"
"""Set on the top directory, this extended attribute says what is odd from then on."""


@dataclass(frozen=True)
class Oddities:
    """The oddities of a file system. The default of each field is what Linux promises.

    A field with the name of an error says that the calls fail so; empty: they work. The kernel never asks
    again for some calls that failed with ENOSYS, such as those of xattrs and flags.
    """

    step: int = 1
    """Nanoseconds. Times are multiples of it."""
    rounding: str = "down"
    """down, up, near or float: a time is kept in a double of seconds."""
    times: str = "kept"
    """kept, ignored (utimensat succeeds and changes nothing), or an error."""
    directory_times: str = "kept"
    """The same for directories; now: a directory's time is the time of day."""
    link_times: str = "kept"
    time_at_close: bool = False
    """Closing a file that was written gives it the time of day."""
    time_at_rename: bool = False
    ctime: str = "kept"
    """kept, or now: it is the time of day at each look."""
    modes: int = 0o7777
    """The bits that chmod changes. The others are those of `file_mode` and `directory_mode`."""
    file_mode: int = 0o755
    directory_mode: int = 0o755
    chmod: str = ""
    owner: int = -1
    """The user and group of everything; -1: as set."""
    chown: str = ""
    """An error, or ignored."""
    link: str = ""
    symlink: str = ""
    mknod: str = ""
    """An error, or another kind: a regular file is made, and the call fails, as of exFAT and rclone."""
    flags: str = ""
    """The result of renameat2 with flags: an error, or ignored, so that the rename replaces."""
    rename_over: str = ""
    """The result of a rename to a name that is taken."""
    rename_open: str = ""
    """The result of a rename of a file that is open for writing."""
    change_open: str = ""
    """The result of chmod, chown and utimensat of a file that is open for writing."""
    exclusive: str = ""
    """The result of open with O_EXCL."""
    fallocate: str = "EOPNOTSUPP"
    grow: str = ""
    """The result of truncate to a greater size."""
    seek: str = ""
    """The result of a write that is not at the end of the file."""
    fsync: str = ""
    fsyncdir: str = ""
    flock: str = ""
    xattrs: str = ""
    inodes: str = "kept"
    """kept, random (another at each look), same (all have one) or by name (as over SFTP)."""
    links: int = 0
    """The link count of everything; 0: as it is, -1: 0."""
    folds: bool = False
    """True if names that differ in letter case alone are one."""


PLAIN = Oddities()


class OddMount:
    """A mounted one."""

    def __init__(self, point: Path) -> None:
        self.point = point

    def become(self, oddities: Oddities) -> None:
        """Has the file system be odd so from now on."""
        os.setxattr(self.point, CONTROL, json.dumps(asdict(oddities)).encode())

    def count(self) -> int:
        """Return how many calls have changed anything so far."""
        return int(os.getxattr(self.point, CONTROL))


@contextlib.contextmanager
def odd_mounted(point: Path, behind: Path) -> Iterator[OddMount]:
    """Mount at `point` what is in `behind`. Fails, not skips, where FUSE is not to be had."""
    point.mkdir(parents=True, exist_ok=True)
    behind.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "tests.support.storage.limited_server", str(point), str(behind)]
    server = subprocess.Popen(words, cwd=TOP)
    try:
        end = time.monotonic() + MOUNT_SECONDS
        while not os.path.ismount(point):
            if server.poll() is not None or time.monotonic() > end:
                pytest.fail("these tests need root, /dev/fuse and libfuse (fuse3)")
            time.sleep(0.01)
        yield OddMount(point)
    finally:
        subprocess.run(["umount", "-l", point], check=False, capture_output=True)
        try:
            server.wait(MOUNT_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
