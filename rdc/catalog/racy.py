"""The racy rule: when an unchanged stat proves unchanged content.

A change of a file sets its ctime to the file system's clock. That clock has a granularity of 1 to 10 ms on
most file systems, and of 1 s on some. A file read within one clock step of its ctime can change again in that
step, and its stat does not show it. So a signature is stored only if the clock had passed the ctime by more
than the granularity when reading BEGAN: every later change then gets a later ctime. The margin is wider than
one step because write(2) stamps the file before it copies the data, and a large write takes a while.

mtimes are not used: programs set them freely, and setting one moves the ctime. One change stays invisible: a
store into a shared mapping whose page was already dirty when the file was read. The kernel stamps the file
again when it writes the page back. rsync's comparison by size and mtime has the same limit.
"""

from __future__ import annotations

from rdc.files.base.file_clock import file_clock
from rdc.files.facts.filesystem_id import ChangeTimes

__all__ = ["DISTANT_MARGIN_NS", "LOCAL_MARGIN_NS", "file_clock", "is_racy"]

LOCAL_MARGIN_NS = 2_000_000_000
"""Twice the coarsest granularity of a local file system with change times (1 s: ext3, ext4 with small
inodes)."""

DISTANT_MARGIN_NS = 600_000_000_000
"""Margin for network file systems, since a server's clock cannot be read without writing to its tree. Servers
whose clock is minutes behind exist; ten minutes are rare. A change is missed only if the file also changes
twice within one clock step."""


def is_racy(ctime_ns: int, began_ns: int, change_times: ChangeTimes) -> bool:
    """Whether a file with this ctime, read from `began_ns` on, may have changed since without a trace.

    A ctime in the future is racy: the clock was set back and will pass the ctime again.
    """
    if change_times is ChangeTimes.NONE:
        return True
    margin = LOCAL_MARGIN_NS if change_times is ChangeTimes.LOCAL else DISTANT_MARGIN_NS
    return began_ns - ctime_ns <= margin
