"""The racy rule: when an unchanged stat proves unchanged content.

A change of a file sets its ctime to the file system's clock, which moves in ticks: 1 to 10 ms on most file
systems, 1 s on some. A file read in the very tick of its ctime can be changed again in that tick, and its
stat will not tell. So what was read is remembered only if the clock had passed the ctime by more than a tick
when the reading BEGAN: every later change then has a later ctime. The margin is wider than a tick because
write(2) stamps the file when it begins to copy, and a large one takes a while.

mtimes play no part: programs set them at will, and whatever sets one moves the ctime. The one change that
stays invisible is a store into a shared mapping whose page was already dirty when the file was read; the
kernel stamps the file again when it writes the page back. rsync's comparison by size and mtime has the same
limit.
"""

from __future__ import annotations

from rdc.files.filesystem import ChangeTimes
from rdc.files.tick import file_clock

__all__ = ["DISTANT_MARGIN_NS", "LOCAL_MARGIN_NS", "file_clock", "is_racy"]

LOCAL_MARGIN_NS = 2_000_000_000
"""Twice the coarsest tick of a local file system with change times (1 s: ext3, ext4 with small inodes)."""

DISTANT_MARGIN_NS = 600_000_000_000
"""A file server's clock cannot be read without writing to its tree. Servers that are minutes behind exist,
ten minutes are rare, and to be missed a file must besides be changed again in the tick of its last change."""


def is_racy(ctime_ns: int, began_ns: int, change_times: ChangeTimes) -> bool:
    """Whether a file with this ctime, read from `began_ns` on, may have been changed since without a trace.

    A ctime in the future is racy: the clock was set back, and will pass it again.
    """
    if change_times is ChangeTimes.NONE:
        return True
    margin = LOCAL_MARGIN_NS if change_times is ChangeTimes.LOCAL else DISTANT_MARGIN_NS
    return began_ns - ctime_ns <= margin
