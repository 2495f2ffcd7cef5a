"""What processes have open, for tests of what gives it back and of what reaches whom."""

from __future__ import annotations

import gc
import os
from contextlib import suppress

__all__ = ["open_descriptors", "open_files"]


def open_descriptors() -> set[str]:
    """The numbers of this process's. What earlier tests left to the collector of garbage is closed before."""
    gc.collect()
    return set(os.listdir("/proc/self/fd"))


def open_files(pid: int) -> list[str]:
    """What a process's descriptors stand for: paths, `socket:[…]`. One that it closes meanwhile is none."""
    targets: list[str] = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            targets.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return targets
