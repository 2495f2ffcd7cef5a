"""Finds out which metadata of entries a file system preserves."""

from __future__ import annotations

import os

from rdc.files.facts.filesystem_id import type_of
from rdc.files.root.root import Root
from rdc.model.preserved import EVERYTHING, Preserved, granularity_of

__all__ = ["preserved_by"]

_SECOND = 1_000_000_000
_FINE = 100
"""Nanoseconds. A change time that is no multiple of this does not come from a coarse file system."""
_PROBE = _SECOND + 987_654_321
"""Added to a multiple of two seconds. Every granularity but 1 ns changes the sum, each in a different way."""

_BY_TYPE = {
    0x4D44: Preserved(owner=False, granularity=2 * _SECOND, modes=False),
    0x2011BAB0: Preserved(owner=False, granularity=10_000_000, modes=False),
    0x482B: Preserved(owner=True, granularity=_SECOND),
    0x9660: Preserved(owner=True, granularity=_SECOND),
}
"""By f_type of statfs(2), from linux/magic.h and the file systems' headers: fat, exfat, hfs+, iso9660. On FAT
and exFAT, mount options decide owner and mode; chmod is ignored and chown is an error."""


def preserved_by(root: Root, *, probe: bool) -> Preserved:
    """Return what the file system of `root` itself preserves.

    A file system mounted below it may preserve less. That costs comparisons but misses no change.

    With `probe`, an unknown mtime granularity is measured: the root directory gets an odd mtime, which is
    read back and replaced by the old one. A crash in between leaves only a wrong mtime on that directory.
    Otherwise the change time decides: a whole second means a granularity of one second, which is wrong once
    in 10^9 times.
    """
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root.fileno())
    except OSError:
        return EVERYTHING
    try:
        known = _BY_TYPE.get(type_of(fd))
        return known or Preserved(True, _granularity(fd, probe=probe and not root.append_only))
    except OSError:
        return EVERYTHING
    finally:
        os.close(fd)


def _granularity(fd: int, *, probe: bool) -> int:
    """Return the mtime granularity in nanoseconds of the file system of an open directory. Raises OSError."""
    found = os.fstat(fd)
    if found.st_ctime_ns % _FINE:
        return 1
    if probe:
        written = found.st_mtime_ns // (2 * _SECOND) * 2 * _SECOND + _PROBE
        try:
            os.utime(fd, ns=(found.st_atime_ns, written))
            try:
                read_back = os.fstat(fd).st_mtime_ns
            finally:
                os.utime(fd, ns=(found.st_atime_ns, found.st_mtime_ns))
            return granularity_of(written, read_back)
        except OSError:
            pass  # this process may not set it
    return 1 if found.st_ctime_ns % _SECOND else _SECOND
