"""A file of records that is only appended to, and that says when they are on disk."""

from __future__ import annotations

import errno
import os

from rdc.errors import FileError
from rdc.files.failure import failure, refused

__all__ = ["RecordLog", "read_log"]

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class RecordLog:
    """Made anew, readable by its owner alone: an old log is never written over."""

    def __init__(self, path: bytes) -> None:
        """Missing directories above it are made. Raises RdcError."""
        self.path = path
        try:
            parent = os.path.dirname(path)
            if parent:
                os.makedirs(parent, mode=0o700, exist_ok=True)
            self._fd = os.open(path, _CREATE, 0o600)
            _sync_directory_of(path)
        except OSError as error:
            raise failure(error, path, path, "make the journal") from error

    def append(self, records: bytes) -> None:
        """Append, and return once it is on disk. Raises RdcError."""
        try:
            left = memoryview(records)
            while left:
                left = left[os.write(self._fd, left) :]
            os.fsync(self._fd)
        except OSError as error:
            raise failure(error, self.path, self.path, "write the journal") from error

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def read_log(path: bytes, limit: int) -> bytes:
    """The whole of a file that a user named, of at most `limit` bytes. Raises FileError."""
    try:
        with open(os.open(path, _READ), "rb") as file:
            data = file.read(limit + 1)
    except (FileNotFoundError, IsADirectoryError) as error:
        found = "nothing" if isinstance(error, FileNotFoundError) else "a directory"
        advice = "check the path and run again"
        raise refused(path, path, "read it", expected="a file", found=found, advice=advice) from error
    except (OSError, ValueError) as error:
        cause = error if isinstance(error, OSError) else OSError(errno.EINVAL, str(error))
        raise failure(cause, path, path, "read it") from error
    if len(data) > limit:
        shown = path.decode("utf-8", "surrogateescape")
        raise FileError(path, f"{shown}: cannot read it: expected at most {limit} bytes, found more")
    return data


def _sync_directory_of(path: bytes) -> None:
    fd = os.open(os.path.dirname(path) or b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
