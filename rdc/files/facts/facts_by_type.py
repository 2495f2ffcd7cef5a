"""What is assumed of a file system while nothing was learned of it: its type decides, and a time in it."""

from __future__ import annotations

import os

from rdc.files.base.known_devices import stable_fields
from rdc.files.facts.filesystem_id import type_of
from rdc.lean.records import replace
from rdc.model.preserved import ALL_KEPT, PLAIN, FileSystemFacts, Granularity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root

__all__ = ["facts_by_type"]

_SECOND = 1_000_000_000
_FINE = 100
"""Nanoseconds. A change time that is no multiple of this does not come from a coarse file system."""

_FAT = replace(ALL_KEPT, owner=False, modes=0, directory_modes=0)

_BY_TYPE = {
    0x4D44: replace(_FAT, granularity=Granularity(2 * _SECOND)),
    0x2011BAB0: replace(_FAT, granularity=Granularity(10_000_000)),
    0x482B: replace(ALL_KEPT, granularity=Granularity(_SECOND)),
    0x9660: replace(ALL_KEPT, granularity=Granularity(_SECOND)),
}
"""By f_type of statfs(2), from linux/magic.h and the file systems' headers: fat, exfat, hfs+, iso9660. On FAT
and exFAT, mount options decide owner and mode; chmod is ignored and chown is an error."""


def facts_by_type(root: Root) -> FileSystemFacts:
    """Return what is assumed of the file system of `root` itself. Nothing is written.

    Of an unknown type the change time of the root directory tells the granularity: a whole second means one
    second, which is wrong once in 10^9 times.
    """
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root.fileno())
    except OSError:
        return PLAIN
    try:
        found = os.fstat(fd)
        stable, known = stable_fields(found.st_dev), _BY_TYPE.get(type_of(fd))
        if known is not None:
            return replace(PLAIN, keeps=known, stable=stable)
        fine = found.st_ctime_ns % _FINE or found.st_ctime_ns % _SECOND
        step = 1 if fine else _SECOND
        return replace(PLAIN, keeps=replace(ALL_KEPT, granularity=Granularity(step)), stable=stable)
    except OSError:
        return PLAIN
    finally:
        os.close(fd)
