"""How fine the mtimes are that a file system keeps."""

from __future__ import annotations

import os

from rdc.files.confined import Root
from rdc.files.filesystem import type_of
from rdc.model.kept import granularity_of

__all__ = ["mtime_granularity"]

_SECOND = 1_000_000_000
_FINE = 100
"""Nanoseconds: a change time that is no multiple of these was not stamped by a coarse file system."""
_PROBE = _SECOND + 987_654_321
"""Added to a multiple of two seconds it is changed by every step but 1 ns, and by each in another way."""

_BY_TYPE = {
    0x4D44: 2 * _SECOND,
    0x2011BAB0: 10_000_000,
    0x482B: _SECOND,
    0x9660: _SECOND,
}
"""f_type of statfs(2), from linux/magic.h and the file systems' headers: fat, exfat, hfs+, iso9660."""


def mtime_granularity(root: Root, *, probe: bool) -> int:
    """Nanoseconds, one of rdc.model.kept's GRANULARITIES, for the file system of `root` itself.

    What is mounted below it may be coarser, which costs comparisons and misses none. `probe`: found out where
    in doubt by setting the mtime of the root directory to an odd one, reading it back and setting the old one
    again. A crash in between leaves a directory with a wrong mtime, and no more. Otherwise, or where that is
    refused, the type of the file system says it, or the change time: only a file system that keeps whole
    seconds stamps one, but for once in 10^9 times.
    """
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root.fileno())
    except OSError:
        return 1
    try:
        found = os.fstat(fd)
        if found.st_ctime_ns % _FINE:
            return 1
        if probe:
            told = found.st_mtime_ns // (2 * _SECOND) * 2 * _SECOND + _PROBE
            try:
                os.utime(fd, ns=(found.st_atime_ns, told))
                try:
                    kept = os.fstat(fd).st_mtime_ns
                finally:
                    os.utime(fd, ns=(found.st_atime_ns, found.st_mtime_ns))
                return granularity_of(told, kept)
            except OSError:
                pass  # not ours to set
        return _BY_TYPE.get(type_of(fd), _SECOND if found.st_ctime_ns % _SECOND == 0 else 1)
    except OSError:
        return 1
    finally:
        os.close(fd)
