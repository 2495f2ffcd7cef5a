"""What this process has open, for tests of what gives it back."""

from __future__ import annotations

import gc
import os

__all__ = ["open_descriptors"]


def open_descriptors() -> set[str]:
    """Their numbers. What earlier tests left to the collector of garbage is closed before."""
    gc.collect()
    return set(os.listdir("/proc/self/fd"))
