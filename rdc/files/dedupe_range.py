"""FIDEDUPERANGE: two files share the blocks of a range, once the kernel has found its bytes equal.

The kernel compares and shares under the locks of both files, so that no writer comes in between; content,
metadata and times stay as they are. ioctl_fideduperange(2) is the source of structure and rules.
"""

from __future__ import annotations

import errno
import os
import struct
from fcntl import ioctl

from rdc.errors import FileError, RdcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root

__all__ = ["NO_SHARING", "SLICE_BYTES", "can_share", "dedupe_range", "sharing_failure"]

SLICE_BYTES = 16 << 20
"""Bytes of one call: what btrfs takes at a time, and how long (some 10 ms, from a disk 0.2 s) writers of both
files wait and a signal goes unseen. A multiple of every block size."""

_FIDEDUPERANGE = 0xC0189436
_RANGE = struct.Struct("=QQHHI")
_INFO = struct.Struct("=qQQiI")
_DIFFERS = 1


def dedupe_range(source: int, source_offset: int, length: int, destination: int, offset: int) -> int | None:
    """Share `length` bytes (at most SLICE_BYTES) of two open files; returns how many, None where bytes
    differ.

    Offsets are multiples of the file system's block size, and so is `length` unless both ranges end where
    their files do. The destination may be open for reading only: owning it is enough. Raises OSError:
    EOPNOTSUPP, EXDEV, EPERM, EROFS, EINVAL and others, nothing being changed.
    """
    request = bytearray(
        _RANGE.pack(source_offset, length, 1, 0, 0) + _INFO.pack(destination, offset, 0, 0, 0)
    )
    ioctl(source, _FIDEDUPERANGE, request, True)
    _, _, done, status, _ = _INFO.unpack_from(request, _RANGE.size)
    if status < 0:
        raise OSError(-status, os.strerror(-status))
    if status == _DIFFERS:
        return None
    if done > length or (length and not done):
        # Neither happens with the kernels known; a caller that believed it would loop or count in vain.
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return int(done)


def can_share(source: int, destination: int) -> None:
    """Ask without changing anything: a range of no bytes passes the checks of rights and file systems.

    Raises OSError as dedupe_range does. What only shows with bytes (an immutable file) is not seen.
    """
    dedupe_range(source, 0, 0, destination, 0)


NO_SHARING = frozenset((errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS))
"""What is said of a whole file system, and not of one pair of files."""

_NO_SUPPORT = (
    "a file system that cannot share blocks",
    "btrfs and XFS (made with reflink=1) can; --hardlink works elsewhere",
)
_FOUND_AND_ADVICE = {
    **dict.fromkeys(NO_SHARING, _NO_SUPPORT),
    errno.EXDEV: ("files on different file systems", "blocks can be shared within one only"),
    errno.EPERM: (
        "a file of somebody else, or an immutable one",
        "run as its owner or as root; lsattr shows an 'i' where chattr -i helps",
    ),
    errno.EACCES: ("a file of somebody else", "run as its owner or as root"),
    errno.EROFS: ("a read-only file system", "mount it read-write and run again"),
    errno.ETXTBSY: ("a swap file or a program that is being run", "run again once it is not in use"),
    errno.EINVAL: (
        "that the kernel does not take this pair",
        "on btrfs both must have data checksums or neither (lsattr shows a 'C' where not)",
    ),
}


def sharing_failure(root: Root, path: bytes, error: OSError) -> RdcError:
    """The error for a failed dedupe_range: this file's, unless the disk is full."""
    if error.errno not in _FOUND_AND_ADVICE:
        return root.failure(error, path, "share its blocks")
    found, advice = _FOUND_AND_ADVICE[error.errno]
    name = root.shown(path).decode("utf-8", "surrogateescape")
    code = errno.errorcode.get(error.errno, error.errno)
    return FileError(path, f"{name}: cannot share its blocks: found {found} ({code}); {advice}")
