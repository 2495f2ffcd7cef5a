"""FIDEDUPERANGE: makes two files share the blocks of a range after the kernel has found their bytes equal.

The kernel compares and shares under the locks of both files, so no writer can interfere. Content, metadata
and times stay. ioctl_fideduperange(2) is the source of the structures and rules.
"""

from __future__ import annotations

import errno
import os
import struct
from fcntl import ioctl

from rdc.errors import FileError, RdcError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root

__all__ = [
    "NO_SHARING",
    "PAIR_ERRORS",
    "SLICE_BYTES",
    "TARGET_ERRORS",
    "can_share",
    "dedupe_range",
    "sharing_failure",
]

SLICE_BYTES = 16 << 20
"""Bytes per call. btrfs handles so many at a time. Writers of both files and signals wait for one call, about
10 ms, or 0.2 s from a disk. It is a multiple of every block size."""

_FIDEDUPERANGE = 0xC0189436
_RANGE = struct.Struct("=QQHHI")
_INFO = struct.Struct("=qQQiI")
_DIFFERS = 1


def dedupe_range(source: int, source_offset: int, length: int, destination: int, offset: int) -> int | None:
    """Share `length` bytes (at most SLICE_BYTES) of two open files. Return the bytes shared, or None if they
    differ.

    Offsets are multiples of the file system's block size. So is `length`, unless both ranges end with their
    files. The destination may be open for reading only if the caller owns it. Raises OSError, for example
    EOPNOTSUPP, EXDEV, EPERM, EROFS or EINVAL; then nothing was changed.
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
        # No known kernel answers so. A caller that accepted it would loop or count wrongly.
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return int(done)


def can_share(source: int, destination: int) -> None:
    """Check rights and file systems without changing anything, by sharing a range of no bytes.

    Raises OSError as dedupe_range does. An immutable file passes, because the kernel checks that only with
    bytes.
    """
    dedupe_range(source, 0, 0, destination, 0)


NO_SHARING = frozenset((errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS))
"""Errors that concern a whole file system rather than one pair of files, if `can_share` raises them."""

PAIR_ERRORS = NO_SHARING | {errno.EINVAL, errno.EXDEV}
"""Errors of a pair that do not fit each other. Each may fit another file."""

TARGET_ERRORS = frozenset((errno.EPERM, errno.EACCES, errno.EROFS, errno.ETXTBSY))
"""Errors of a file that cannot change. Other files may share with it."""

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
    """Return the error for a failed dedupe_range. It concerns this file, unless the disk is full."""
    if error.errno not in _FOUND_AND_ADVICE:
        return root.failure(error, path, "share its blocks")
    found, advice = _FOUND_AND_ADVICE[error.errno]
    name = printable(root.shown(path))
    code = errno.errorcode.get(error.errno, error.errno)
    return FileError(path, f"{name}: cannot share its blocks: found {found} ({code}); {advice}")
