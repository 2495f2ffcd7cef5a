"""disk_use: what a whole file takes on disk, and whether its blocks can change."""

from __future__ import annotations

import errno
import os
from array import array

from rdc.files.facts.block_sharing_volume import inode_flags, volume_of
from rdc.files.facts.extents import extents
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.facts.block_sharing_volume import Volume

__all__ = ["NO_EXTENTS", "DiskUse", "disk_use"]

NO_EXTENTS = frozenset((errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL))
"""Errors of a file system that does not report extents."""

_IMMUTABLE, _APPEND = 0x10, 0x20  # FS_IMMUTABLE_FL and FS_APPEND_FL of linux/fs.h


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Facts of one file; sizes in bytes."""

    volume: Volume
    own: int
    """In extents that nothing else refers to. Compressed extents count half: how much they take is not known,
    but it is less than their length."""
    shared: array[int]
    """Typecode 'Q': physical offset and length of each extent that something else refers to as well."""
    first: int | None
    """Physical offset of the first bytes; None for a hole, for inline data, or if unknown."""
    sparse: bool
    """Whether it has holes."""
    inline: bool
    """Whether some bytes lie inside metadata, where nothing can share them."""
    immutable: bool
    """Whether it is immutable or append-only, so that its blocks cannot change even to equal ones."""
    fixed: bool
    """Whether this process cannot change it: it is immutable, on a read-only file system, or of another user.
    Other files can still share with it."""


def disk_use(fd: int) -> DiskUse:
    """Return the facts of an open file. Raises OSError."""
    found = os.fstat(fd)
    own, allocated, shared, first, inline = 0, 0, array("Q"), None, False
    try:
        for extent in extents(fd, 0, found.st_size):
            inline = inline or extent.in_metadata
            allocated += extent.length
            if extent.start == 0 and not extent.in_metadata:
                first = extent.physical_offset(0)
            if extent.is_shared:
                shared.extend((extent.physical, extent.length))
            elif not extent.in_metadata:
                own += extent.length // 2 if extent.is_encoded else extent.length
    except OSError as error:
        if error.errno not in NO_EXTENTS:
            raise
        own = allocated = found.st_blocks * 512
    sparse = allocated < found.st_size
    immutable = bool(inode_flags(fd) & (_IMMUTABLE | _APPEND))
    fixed = immutable or bool(os.fstatvfs(fd).f_flag & os.ST_RDONLY) or not _may_change(fd, found)
    return DiskUse(volume_of(fd), own, shared, first, sparse, inline, immutable, fixed)


def _may_change(fd: int, found: os.stat_result) -> bool:
    """Whether the kernel lets this process share the file's blocks: its owner, root, or who may write it."""
    if os.geteuid() in {0, found.st_uid}:
        return True
    try:
        return os.access(b"/proc/self/fd/%d" % fd, os.W_OK, effective_ids=True)
    except (OSError, NotImplementedError):
        return False
