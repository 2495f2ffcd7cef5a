"""PartialDirectory: where the parts of files wait that a run could not finish (--partial-dir).

A relative directory is one beside each such file, and is made with mode 0700 when it is needed. An absolute
one has the parts of all files. A part has the name of its file, as in rsync, so each can go on from the
other's. It is a base: what is taken from it is verified. Only a part that rdc could have made is read,
replaced or removed.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress

from rdc.errors import FileError
from rdc.files.root.confined_access import stat_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.root.entry_reader import EntryReader
    from rdc.files.root.source_file import SourceFile

__all__ = ["PartialDirectory"]

_OPEN = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PartialDirectory:
    """The parts of the files of one destination. Their paths here begin with two slashes."""

    def __init__(
        self,
        root: EntryReader,
        *,
        name: bytes = b"",
        top: EntryReader | None = None,
        append_only: bool = False,
    ) -> None:
        """`name`: the directory beside each file. `top`: the one directory of all. `append_only`: nothing is
        kept or removed."""
        self._root = root
        self._append_only = append_only
        self._name = name
        self._top = top
        self._found: set[bytes] = set()
        """Paths of the parts that were asked for."""

    def release(self) -> None:
        """Closes the directory of all."""
        if self._top is not None:
            self._top.release()

    @contextmanager
    def _opened(self, path: bytes, *, make: bool = False) -> Iterator[int]:
        """Open the directory of the part of the file at `path`. No link is followed. Raises OSError,
        RdcError."""
        if self._top is not None:
            yield self._top.fileno()
            return
        parent = self._root.directory(path.rpartition(b"/")[0]).fd
        if make:
            with suppress(FileExistsError):
                os.mkdir(self._name, 0o700, dir_fd=parent)
        fd = os.open(self._name, _OPEN, dir_fd=parent)
        try:
            yield fd
        finally:
            os.close(fd)

    def keep(self, path: bytes, directory: int, temporary: bytes) -> None:
        """Move a temporary here, unless a longer part is there: then it goes. Where that cannot be done it
        stays, and the next run takes it up from there. Never raises."""
        if self._append_only:
            return
        name = path.rpartition(b"/")[2]
        with suppress(OSError, FileError), self._opened(path, make=True) as fd:
            with suppress(FileNotFoundError):
                found = stat_entry(name, fd)
                if not _is_part(found, os.fstat(fd)):
                    return
                if found.st_size > stat_entry(temporary, directory).st_size:
                    os.unlink(temporary, dir_fd=directory)
                    return
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=fd)

    def of(self, path: bytes) -> bytes | None:
        """Return the part of the file at `path`; None for none."""
        try:
            with self._opened(path) as fd:
                if not _is_part(stat_entry(path.rpartition(b"/")[2], fd), os.fstat(fd)):
                    return None
        except (OSError, FileError):
            return None
        self._found.add(path)
        return b"//" + path

    def open(self, part: bytes) -> SourceFile:
        """Open a part that `of` returned. Raises FileError."""
        path = part[2:]
        if self._top is not None:
            return self._top.open_read(path.rpartition(b"/")[2])
        above, _, name = path.rpartition(b"/")
        return self._root.open_read(b"/".join(filter(None, (above, self._name, name))))

    def remove(self, parts: list[bytes] | None = None) -> None:
        """Remove these parts; None: all that were asked for. A directory that is empty then goes, too."""
        if self._append_only:
            return
        for path in sorted(self._found) if parts is None else [part[2:] for part in parts]:
            with suppress(OSError, FileError):
                name = path.rpartition(b"/")[2]
                with self._opened(path) as fd:
                    if _is_part(stat_entry(name, fd), os.fstat(fd)):
                        os.unlink(name, dir_fd=fd)
                if self._top is None:
                    os.rmdir(self._name, dir_fd=self._root.directory(path.rpartition(b"/")[0]).fd)

    def __bool__(self) -> bool:
        return True


def _is_part(found: os.stat_result, directory: os.stat_result) -> bool:
    """Return whether an entry is a file with one name that this user made, or that nobody else could put
    there. The rules are those of rdc.files.base.own_temporary."""
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return False
    user = os.geteuid()
    if found.st_uid == user:
        return True
    return user == 0 and not directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
