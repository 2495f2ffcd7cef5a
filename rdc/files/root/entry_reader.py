"""EntryReader: the operations of Root that look at entries and open files for reading."""

from __future__ import annotations

import errno
import os
import stat
from functools import partial

from rdc.errors import FileChangedError
from rdc.files.base.entry_check import identity_of
from rdc.files.base.metadata import kind_of
from rdc.files.root.confined_access import ConfinedAccess, stat_entry
from rdc.files.root.source_file import SourceFile
from rdc.model.entries import Identity, Kind, Metadata
from rdc.model.times import packed_time

__all__ = ["NO_ATIME", "EntryReader"]

NO_ATIME: int = getattr(os, "O_NOATIME", 0)
"""Only Linux has this flag."""

# O_NONBLOCK: if a fifo has replaced the file, opening it must not wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class EntryReader(ConfinedAccess):
    """Reads single entries. No operation changes the tree."""

    keeps_atimes = False
    """True if reading leaves access times alone where this process may open files so."""

    def keep_atimes(self) -> None:
        """Set `keeps_atimes`."""
        self.keeps_atimes = True

    def identity(self, path: bytes) -> Identity:
        """Return the identity of the entry at `path`, without following a link.

        Raises FileChangedError if nothing is there.
        """
        return identity_of(self._stat(path))

    def link_count(self, path: bytes) -> int:
        """Return how many names the file at `path` has, inside and outside the tree."""
        return self._stat(path).st_nlink

    def metadata(self, path: bytes) -> Metadata:
        """Return mode, mtime (nanoseconds), uid and gid of the entry at `path`."""
        found = self._stat(path)
        timed = not self.untimed or kind_of(found.st_mode) not in self.untimed
        mtime = packed_time(found.st_mtime_ns) if timed else 0
        if self.fakes:
            from rdc.files.root.faked_listing import faked_at

            faked = faked_at(self, path)
            if faked is not None:
                return Metadata(stat.S_IMODE(faked.mode), mtime, faked.uid, faked.gid)
        return Metadata(stat.S_IMODE(found.st_mode), mtime, found.st_uid, found.st_gid)

    def kind(self, path: bytes) -> Kind | None:
        """Return the kind of the entry at `path`, or None if it or a directory above it is missing.

        A symlink or another non-directory above `path` is a FileError, because nothing can be made at `path`.
        """
        try:
            directory, name = self._locate(path)
            found = stat_entry(name, directory.fd)
        except FileNotFoundError:
            return None  # the usual answer for a new file, so no RdcError is built for it
        except OSError as error:
            raise self.failure(error, path, "look at it") from error
        if self.fakes and stat.S_ISREG(found.st_mode):
            from rdc.files.root.faked_listing import faked_at

            faked = faked_at(self, path)
            return kind_of(found.st_mode if faked is None else faked.mode)
        return kind_of(found.st_mode)

    def open_read(self, path: bytes) -> SourceFile:
        """Open a regular file for reading. Raises FileChangedError for anything else."""
        doing = "open it for reading"
        try:
            fd, found = self.perform(
                path,
                doing,
                partial(_open_for_reading, more=NO_ATIME) if self.keeps_atimes else _open_for_reading,
                reading=True,
            )
        except FileChangedError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno == errno.EINVAL:
                # Only of a link to be read would it tell that another entry took its place.
                raise self.failure(cause, path, doing) from cause
            raise
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            raise self.failure(_not_regular(found), path, "open it for reading", reading=True)
        source = SourceFile(fd, found, path, self.shown(path))
        source.rate = self.read_rate
        return source


def _open_for_reading(name: bytes, parent: int, more: int = 0) -> tuple[int, os.stat_result]:
    """Open a file with the flags `more`, or without them where only its owner may use them."""
    try:
        fd = os.open(name, _READ | more, dir_fd=parent)
    except PermissionError:
        if not more:
            raise
        fd = os.open(name, _READ, dir_fd=parent)
    try:
        return fd, os.fstat(fd)
    except BaseException:
        os.close(fd)
        raise


def _not_regular(found: os.stat_result) -> OSError:
    return OSError(errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.ENXIO, "")
