"""UnchangedRemoval: removes entries that are what a listing saw, and nothing else.

An entry is the one listed if its inode, size, mtime and ctime are, and the ctime is no later than the run. A
change after the listing gives it a later one: a run lists nothing before the clock that stamps files
(rdc.files.base.file_clock) has passed its beginning.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.file_clock import outlast
from rdc.files.root.confined_access import stat_entry
from rdc.model.times import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity

__all__ = ["UnchangedRemoval"]

_SECOND = 10**9
"""Nanoseconds."""


class UnchangedRemoval:
    """Removals of one run. It is made before anything is listed."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._began = time.time_ns()
        outlast(self._began)
        self._own: dict[tuple[int, int], int] = {}
        """The ctimes that removals of other names gave to files with several names, by device and inode."""

    def remove(self, path: bytes, listed: Identity) -> bool:
        """Remove the entry at `path`; False if nothing is there any more.

        Raises FileError, and leaves it, if it is a directory or not the entry that was listed.
        """
        directory, name = self._root.locate(path)
        try:
            found = stat_entry(name, directory.fd)
            if stat.S_ISDIR(found.st_mode) or not self._is_listed(found, listed):
                shown = printable(self._root.shown(path))
                text = f"{shown}: changed since it was synced, so it stays; run again"
                raise FileError(path, text, code=ExitCode.PARTIAL)
            self._unlink(directory, name, found)
        except FileNotFoundError:
            return False
        except OSError as error:
            failed = self._root.failure(error, path, "remove it")
            if isinstance(failed, FileError):
                raise failed from error
            # A full or read-only source stops no run: it only keeps what it has.
            raise self._root.refused(
                path,
                "remove it from the source",
                expected="a source that may be changed",
                found=f"{os.strerror(error.errno or 0)} ({errno.errorcode.get(error.errno or 0)})",
                advice="it is at the destination, and stays here; mount the source read-write, or leave out"
                " --remove-source-files",
            ) from error
        return True

    def _is_listed(self, found: os.stat_result, listed: Identity) -> bool:
        if (found.st_dev, found.st_ino) != (listed.device, listed.inode):
            return False
        # Symlinks may be listed without their times (--omit-link-times). Their ctime tells of a change, too.
        if stat.S_ISREG(found.st_mode) and (found.st_size, packed_time(found.st_mtime_ns)) != (
            listed.size,
            listed.mtime_ns,
        ):
            return False
        own = self._own.get((found.st_dev, found.st_ino))
        if own is not None:
            return found.st_ctime_ns == own
        # A file system of whole seconds, or of two as FAT, may have stamped a later change so.
        coarse = 0 if found.st_ctime_ns % _SECOND else 2 * _SECOND - 1
        return found.st_ctime_ns == listed.ctime_ns and found.st_ctime_ns + coarse <= self._began

    def _unlink(self, directory: Directory, name: bytes, found: os.stat_result) -> None:
        if found.st_nlink < 2:
            os.unlink(name, dir_fd=directory.fd)
            return
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory.fd)
        try:
            os.unlink(name, dir_fd=directory.fd)
            with suppress(OSError):
                self._own[found.st_dev, found.st_ino] = os.fstat(fd).st_ctime_ns
        finally:
            os.close(fd)
