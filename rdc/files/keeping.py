"""What a file system keeps of entries besides their content."""

from __future__ import annotations

import os

from rdc.files.confined import Root
from rdc.files.filesystem import type_of
from rdc.model.kept import EVERYTHING, Kept, granularity_of

__all__ = ["kept_by"]

_SECOND = 1_000_000_000
_FINE = 100
"""Nanoseconds: a change time that is no multiple of these was not stamped by a coarse file system."""
_PROBE = _SECOND + 987_654_321
"""Added to a multiple of two seconds it is changed by every step but 1 ns, and by each in another way."""

_BY_TYPE = {
    0x4D44: Kept(owner=False, granularity=2 * _SECOND, modes=False),
    0x2011BAB0: Kept(owner=False, granularity=10_000_000, modes=False),
    0x482B: Kept(owner=True, granularity=_SECOND),
    0x9660: Kept(owner=True, granularity=_SECOND),
}
"""f_type of statfs(2), from linux/magic.h and the file systems' headers: fat, exfat, hfs+, iso9660. Of FAT's
and exFAT's files the mount options say owner and mode; chmod is passed over there, and chown an error."""


def kept_by(root: Root, *, probe: bool) -> Kept:
    """What the file system of `root` itself keeps; what is mounted below it may keep less, which costs
    comparisons and misses none.

    How fine mtimes are is found out, with `probe` and where in doubt, by setting the mtime of the root
    directory to an odd one, reading it back and setting the old one again. A crash in between leaves a
    directory with a wrong mtime, and no more. Otherwise, or where that is refused, the change time says it:
    only a file system of whole seconds stamps one, but for once in 10^9 times.
    """
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root.fileno())
    except OSError:
        return EVERYTHING
    try:
        known = _BY_TYPE.get(type_of(fd))
        return known or Kept(True, _granularity(fd, probe=probe))
    except OSError:
        return EVERYTHING
    finally:
        os.close(fd)


def _granularity(fd: int, *, probe: bool) -> int:
    """Nanoseconds, for the file system of an open directory. Raises OSError."""
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
    return 1 if found.st_ctime_ns % _SECOND else _SECOND
