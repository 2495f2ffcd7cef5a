"""Reads many files of one tree, whole or only both ends, and proves that they are the files that were
listed."""

from __future__ import annotations

import errno
import os
import stat
from array import array

from rdc.files import _files
from rdc.files.base.os_errors import changed, failure
from rdc.files.depth.depth import RowsSeen
from rdc.lean.records import dataclass
from rdc.model.entries import strings
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from rdc.errors import RdcError
    from rdc.files.depth.depth import Depth

__all__ = ["REPLACED", "RESIZED", "TOUCHED", "Contents", "content_bytes", "content_error", "read_contents"]

REPLACED = -1
"""Outcome: another entry than the regular file that was listed."""
RESIZED = -2
"""Outcome: the file had another size when it was opened."""
TOUCHED = -3
"""Outcome: the file changed while it was read."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_FOUND = {
    REPLACED: ("the file that was listed", "another one in its place"),
    RESIZED: ("the size that was listed", "another one"),
    TOUCHED: ("the times it had when it was opened", "others"),
}


@dataclass(frozen=True, slots=True)
class Contents:
    data: bytes
    """content_bytes of each file, joined. Undefined for a file whose outcome is not 0."""
    outcomes: array[int]
    """Typecode 'i', one per file: 0 if it was read, an errno, or REPLACED, RESIZED, TOUCHED."""
    ctimes: array[int]
    """Typecode 'q', nanoseconds, of the files that were read. An equal earlier ctime proves equal content."""


def content_bytes(size: int, head: int, tail: int) -> int:
    """Return the bytes read of a file of `size`: all, or `head` from its start and `tail` from its end."""
    return min(size, head + tail)


def read_contents(
    fd: int, paths: bytes, wanted: array[int], head: int, tail: int, depth: Depth | None = None
) -> Contents:
    """Read files below the directory open at `fd`, which may be an O_PATH descriptor.

    `paths` are relative, each followed by NUL. `wanted` has typecode 'Q' and holds device, inode and size of
    each file as listed. `depth`: files in work at a time, one without it. No link is followed and no fifo
    waited for. Raises ValueError if the arguments do not fit each other.
    """
    if _reader is None:
        return _read_contents(fd, paths, wanted, head, tail)
    if _SWAPPED:
        wanted = wanted[:]
        wanted.byteswap()
    now, most = (1, 1) if depth is None else (depth.now, depth.most)
    data, outcomes, ctimes, seen = _reader.read_contents(fd, paths, wanted, head, tail, now, most)
    if depth is not None:
        depth.saw(RowsSeen(*seen))
    return Contents(data, array("i", outcomes), array("q", ctimes))


def content_error(outcome: int, path: bytes, shown: bytes) -> RdcError:
    """Return the error for an outcome other than 0. `shown` is the path in the message."""
    if outcome > 0:
        # No link is read here, so EINVAL tells of no entry that took the place of one.
        error, gone = OSError(outcome, os.strerror(outcome)), outcome != errno.EINVAL
        return failure(error, path, shown, "read it", reading=gone)
    return changed(path, shown, *_FOUND[outcome])


def _read_contents(fd: int, paths: bytes, wanted: array[int], head: int, tail: int) -> Contents:
    """The reference that defines the C function."""
    rows = strings(paths)
    if len(wanted) != 3 * len(rows) or (paths and not paths.endswith(b"\0")):
        raise ValueError("read_contents: as many paths, each followed by NUL, as rows of three numbers")
    parts, outcomes, ctimes = [], array("i"), array("q")
    for row, path in enumerate(rows):
        device, inode, size = wanted[3 * row : 3 * row + 3]
        try:
            opened = _open(fd, path)
        except OSError as error:
            part, outcome, ctime = b"", error.errno or 0, 0
        else:
            try:
                part, outcome, ctime = _read_open(opened, device, inode, size, head, tail)
            except OSError as error:
                part, outcome, ctime = b"", error.errno or 0, 0
            finally:
                os.close(opened)
        parts.append(part.ljust(content_bytes(size, head, tail), b"\0"))
        outcomes.append(outcome)
        ctimes.append(ctime)
    return Contents(b"".join(parts), outcomes, ctimes)


def _open(fd: int, path: bytes) -> int:
    *directories, name = path.split(b"/")
    here = os.dup(fd)
    try:
        for directory in directories:
            above, here = here, os.open(directory, _PASS, dir_fd=here)
            os.close(above)
        return os.open(name, _READ, dir_fd=here)
    finally:
        os.close(here)


def _read_open(fd: int, device: int, inode: int, size: int, head: int, tail: int) -> tuple[bytes, int, int]:
    """Return data, outcome and ctime of an open file. Raises OSError."""
    before = os.fstat(fd)
    if not stat.S_ISREG(before.st_mode) or (before.st_dev, before.st_ino) != (device, inode):
        return b"", REPLACED, 0
    if before.st_size != size:
        return b"", RESIZED, 0
    whole = size <= head + tail
    data = os.pread(fd, size if whole else head, 0)
    if not whole:
        data += os.pread(fd, tail, size - tail)
    after = os.fstat(fd)
    same = (before.st_mtime_ns, before.st_ctime_ns, size) == (
        after.st_mtime_ns,
        after.st_ctime_ns,
        after.st_size,
    )
    read = len(data) == content_bytes(size, head, tail)
    return data, 0 if same and read else TOUCHED, packed_time(after.st_ctime_ns)


_reader: ModuleType | None = _files if hasattr(_files, "read_contents") else None
"""The C part, which Linux alone has."""
_SWAPPED = array("H", b"\1\0")[0] != 1
