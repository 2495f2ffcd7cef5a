"""Entries under names that rdc keeps for itself, and what is there of them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from rdc.files.replace.replacement import KEEP_BYTES

CONTENT = b"x" * (2 * KEEP_BYTES)
TIME = 1_600_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class Seen:
    """All that can be seen of an entry, times of access and change apart."""

    inode: int
    mode: int
    owner: tuple[int, int]
    mtime_ns: int
    content: object


def seen(path: Path) -> Seen:
    now = os.lstat(path)
    content: object = None
    if stat.S_ISREG(now.st_mode):
        content = path.read_bytes()
    elif stat.S_ISLNK(now.st_mode):
        content = os.readlink(path)
    elif stat.S_ISDIR(now.st_mode):
        content = sorted(os.listdir(path))
    return Seen(now.st_ino, now.st_mode, (now.st_uid, now.st_gid), now.st_mtime_ns, content)
