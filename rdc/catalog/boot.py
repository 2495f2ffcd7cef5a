"""Identifies the running boot, to limit signatures of recently changed files to it.

A change of a file reaches the disk some time after it was made. A power cut can undo the new content and keep
the new size and times: journals write a file's inode before data that overwrites old data. So the signature
of a recently changed file is valid in this boot only.
"""

from __future__ import annotations

import os
from functools import cache

__all__ = ["WRITEBACK_NS", "boot", "is_unsettled"]

WRITEBACK_NS = 600_000_000_000
"""How long a change may wait in memory. Linux starts writing after 35 s, laptop modes after ten minutes. A
longer time costs little: files read that early are read once more after the next boot."""


def is_unsettled(ctime_ns: int, began_ns: int) -> bool:
    """Whether a file with this ctime, read from `began_ns` on, may have been read before it was on disk."""
    return began_ns - ctime_ns <= WRITEBACK_NS


@cache
def boot() -> bytes:
    """The identifier of this boot. Where the system has none, random bytes of this process."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read(64)
    except OSError:
        return os.urandom(16)
