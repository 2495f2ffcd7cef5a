"""AppendLog: a file of records that is only appended to and synced after each append."""

from __future__ import annotations

import errno
import os
import stat

from rdc.errors import FileError, printable
from rdc.files.base.durability import sync_directory
from rdc.files.base.os_errors import failure, refused
from rdc.files.own.opened_path import OpenedPath

__all__ = ["AppendLog", "read_log"]

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class AppendLog:
    """A new log file, readable by its owner alone. An existing file is never overwritten."""

    def __init__(self, path: bytes) -> None:
        """Create the file and missing directories above it. No link of another user is followed. Raises
        RdcError."""
        self.path = path
        try:
            with OpenedPath(path, make=0o700, last=False) as opened:
                self._fd = os.open(opened.name, _CREATE, 0o600, dir_fd=opened.directory)
                sync_directory(opened.directory, self._fd)
        except OSError as error:
            raise failure(error, path, path, "make the journal") from error

    def append(self, records: bytes) -> None:
        """Append `records` and return once they are on disk. Raises RdcError."""
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


def read_log(path: bytes, limit: int, *, trusted: bool = False) -> bytes:
    """Return the content of a file that a user named, of at most `limit` bytes. Raises FileError.

    With `trusted`, a file that anybody but root and the effective user can have written is a FileError too.
    """
    try:
        with open(os.open(path, _READ), "rb") as file:
            if trusted:
                _check_trusted(path, os.fstat(file.fileno()))
            data = file.read(limit + 1)
    except (FileNotFoundError, IsADirectoryError) as error:
        found = "nothing" if isinstance(error, FileNotFoundError) else "a directory"
        advice = "check the path and run again"
        raise refused(path, path, "read it", expected="a file", found=found, advice=advice) from error
    except (OSError, ValueError) as error:
        cause = error if isinstance(error, OSError) else OSError(errno.EINVAL, str(error))
        raise failure(cause, path, path, "read it") from error
    if len(data) > limit:
        shown = printable(path)
        raise FileError(path, f"{shown}: cannot read it: expected at most {limit} bytes, found more")
    return data


def _check_trusted(path: bytes, found: os.stat_result) -> None:
    """Check the stat of the open file, so that the file checked is the file read. Raises FileError."""
    if not stat.S_ISREG(found.st_mode):
        what, advice = "no regular file", "check the path and run again"
    elif found.st_uid not in {os.geteuid(), 0}:
        what, advice = f"one that belongs to user {found.st_uid}", "run as that user"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        what = f"one that others may write (mode {stat.S_IMODE(found.st_mode):04o})"
        advice = "make sure that it is what rdc wrote, then chmod go-w it"
    else:
        return
    expected = "a file that only you or root can write"
    raise refused(path, path, "trust it", expected=expected, found=what, advice=advice)
