"""The umask of this process."""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["process_umask"]


def process_umask() -> int:
    """Return the umask, read without changing it where possible: other threads may make files meanwhile."""
    with suppress(OSError), open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
