"""PartialDirectory: where the parts of files wait that a run could not finish (--partial-dir).

A relative directory is one beside each such file, and is made with mode 0700 when it is needed. An absolute
one has the parts of all files. A part has the name of its file, as in rsync, so each can go on from the
other's: what rdc could have made is read as a base, and what is taken from it is verified.

The option may name any directory that the user has. So only parts that the directory's record knows are
replaced or removed (rdc.files.replace.parts_record), and a directory goes only if the record says that
rdc made it. A name that somebody else's entry has stays free of parts: then the temporary stays where it was
written.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress

from rdc.errors import FileError, RdcError
from rdc.files.base.entry_check import stat_entry
from rdc.files.base.relative_path import join
from rdc.files.base.syscalls import rename_no_replace_between
from rdc.files.replace.parts_record import locked_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile

__all__ = ["PartialDirectory"]

_OPEN = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PartialDirectory:
    """The parts of the files of one destination. Their paths here begin with two slashes.

    Below an append-only root nothing is kept or removed."""

    def __init__(self, root: Root, *, name: bytes = b"", top: Root | None = None) -> None:
        """`name`: the directory beside each file. `top`: the one directory of all."""
        self._root = root
        self._name = name
        self._top = top
        self._found: set[bytes] = set()
        """Paths of the parts that were asked for."""

    def release(self) -> None:
        """Closes the directory of all."""
        if self._top is not None:
            self._top.release()

    @contextmanager
    def _opened(self, path: bytes) -> Iterator[int]:
        """Open the directory of the part of the file at `path`. No link is followed. Raises OSError,
        RdcError."""
        if self._top is not None:
            yield self._top.fileno()
            return
        fd = os.open(self._name, _OPEN, dir_fd=self._parent(path))
        try:
            yield fd
        finally:
            os.close(fd)

    def _parent(self, path: bytes) -> int:
        return self._root.directory(path.rpartition(b"/")[0]).fd

    def _made(self, path: bytes) -> bool:
        """Make the directory of the part of the file at `path`. Return False if something is there. Raises
        OSError, RdcError."""
        if self._top is not None:
            return False
        parent, above = self._parent(path), path.rpartition(b"/")[0]
        with suppress(FileNotFoundError):
            stat_entry(self._name, parent)
            return False
        self._root.note_placing(join(above, self._name), parent, None)
        os.mkdir(self._name, 0o700, dir_fd=parent)
        return True

    def _note_change(self, path: bytes, directory: int) -> None:
        """Tell what keeps an undo that the directory of a part changes. Raises RdcError."""
        if self._root.writes.undo is not None and self._top is None:
            self._root.writes.undo.entering(join(path.rpartition(b"/")[0], self._name), directory)

    def keep(self, path: bytes, directory: int, temporary: bytes) -> None:
        """Move a temporary here, unless a longer part is there: then it goes. Where that cannot be done it
        stays, and the next run takes it up from there. Never raises."""
        if self._root.append_only:
            return
        name = path.rpartition(b"/")[2]
        with suppress(OSError, RdcError):
            made = self._made(path)
            with self._opened(path) as fd, locked_record(fd) as record:
                self._note_change(path, fd)
                taken = _is_there(name, fd)
                if taken and not record.has(name):
                    return
                new = stat_entry(temporary, directory)
                if taken and stat_entry(name, fd).st_size > new.st_size:
                    os.unlink(temporary, dir_fd=directory)
                    return
                # The line comes first: a part without one would stay for ever.
                record.with_part(name, new, made=made).write()
                if taken:
                    os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=fd)
                else:
                    rename_no_replace_between(temporary, directory, name, fd)

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
        """Remove those of these parts that are recorded; None: all that were asked for. A directory that rdc
        made goes, too, when it is empty then."""
        if self._root.append_only:
            return
        for path in sorted(self._found) if parts is None else [part[2:] for part in parts]:
            name = path.rpartition(b"/")[2]
            with suppress(OSError, RdcError):
                with self._opened(path) as fd, locked_record(fd) as record:
                    if not record.parts:
                        continue
                    self._note_change(path, fd)
                    goes = record.remove(name).end()
                if goes and self._top is None:
                    above = path.rpartition(b"/")[0]
                    if self._root.writes.undo is not None:
                        self._root.writes.undo.removing((join(above, self._name),))
                    os.rmdir(self._name, dir_fd=self._parent(path))

    def __bool__(self) -> bool:
        return True


def _is_there(name: bytes, directory: int) -> bool:
    with suppress(FileNotFoundError):
        stat_entry(name, directory)
        return True
    return False


def _is_part(found: os.stat_result, directory: os.stat_result) -> bool:
    """Return whether an entry is a file with one name that this user made, or that nobody else could put
    there. The rules are those of rdc.files.base.own_temporary."""
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return False
    user = os.geteuid()
    if found.st_uid == user:
        return True
    return user == 0 and not directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
