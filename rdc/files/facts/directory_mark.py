"""A mark of a directory, by which two ends of a session see that they mean the same one."""

from __future__ import annotations

import os
import struct
import sys
from functools import lru_cache

from blake3 import blake3

from rdc.files.base.entry_path import WithoutProcError

__all__ = ["MARK_BYTES", "directory_mark"]

MARK_BYTES = 16

_BOOT = "/proc/sys/kernel/random/boot_id"
"""It differs for each kernel that runs, and containers of one kernel share it."""


def directory_mark(fd: int) -> bytes:
    """Return 16 bytes that are equal for one directory only. Raises OSError.

    A directory of a file server has another mark on each machine that mounts it.
    """
    stat = os.fstat(fd)
    text = _kernel() + struct.pack("<QQ", stat.st_dev & 0xFFFF_FFFF_FFFF_FFFF, stat.st_ino)
    return blake3(text).digest(MARK_BYTES)


@lru_cache(maxsize=1)
def _kernel() -> bytes:
    try:
        with open(_BOOT, "rb") as file:
            return file.read(64).strip()
    except OSError as error:
        if sys.platform == "linux":
            # By another name for it, one kernel might be taken for two, and a directory for its own copy.
            raise WithoutProcError from error
        import platform  # rare: it costs as much as a whole module

        return platform.node().encode()
