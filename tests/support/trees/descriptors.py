"""The open descriptors of processes, for tests that descriptors are closed, and that no process inherits one
it should not have."""

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
    """Return what a process's descriptors stand for: paths, `socket:[…]`. One that it closes meanwhile is
    left out."""
    targets: list[str] = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            targets.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return targets
