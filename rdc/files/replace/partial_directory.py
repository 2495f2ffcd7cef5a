"""PartialDirectory: where the parts of files wait that a run could not finish (--partial-dir).

A relative directory is one beside each such file, and is made with mode 0700 when it is needed. An absolute
one has the parts of all files. A part has the name of its file, as in rsync, so each can go on from the
other's: what rdc could have made is read as a base, and what is taken from it is verified.

The option may name any directory that the user has. So only parts that the directory's record knows are
replaced or removed (rdc.files.replace.partial_directory), and a directory goes only if the record says that
rdc made it. A name that somebody else's entry has stays free of parts: then the temporary stays where it was
written.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import stat
from contextlib import contextmanager, suppress

from rdc.errors import FileError, RdcError
from rdc.files.base.metadata import stat_entry
from rdc.files.base.paths import PARTS_NAME, join, make_aside
from rdc.files.base.taking_names import hold_free_name
from rdc.lean.records import Record, field
from rdc.limits import PARTS_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile


# The record of a directory of --partial-dir: which of its entries are parts that rdc put there.
#
# A part has the name of its file, so its name proves nothing. The record is the file `.rdc.parts` beside it.
# Nobody but the user that rdc runs as can have written it: no peer may use its name, and it counts only if it
# is a private regular file of that user with one name. An entry is a recorded part if its inode, size and
# mtime are those of its line. Everything else in the directory belongs to somebody else.
#
# Each line is a JSON array:
#
#     ["rdc parts", 1, inode]             first; the directory's inode if rdc made the directory, else 0
#     ["part", name, inode, size, mtime]  the name in base64, the time in nanoseconds
#
# A record that is damaged, too long or not trusted is no record: what is there stays.

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class _Part(Record):
    inode: int
    size: int
    mtime_ns: int


class PartsRecord(Record):
    """The record of one directory, which is locked while it is used."""

    directory: int
    """Descriptor of the directory."""
    made: int = 0
    """The directory's inode number when rdc made it; 0: somebody else did."""
    parts: dict[bytes, _Part] = field(default_factory=dict)

    def has(self, name: bytes) -> bool:
        """Return whether the entry `name` is a recorded part."""
        part = self.parts.get(name)
        if part is None:
            return False
        try:
            found = os.stat(name, dir_fd=self.directory, follow_symlinks=False)
        except OSError:
            return False
        return _is_private(found) and part == _part_of(found)

    def with_part(self, name: bytes, found: os.stat_result, *, made: bool) -> PartsRecord:
        """Return this record with a part about to get `name`. `made`: rdc has just made the directory."""
        inode = os.fstat(self.directory).st_ino if made else self.made
        return PartsRecord(self.directory, inode, {**self.parts, name: _part_of(found)})

    def write(self) -> None:
        """Put the record in place of the last one, without what is no part any more. Raises OSError."""
        with suppress(FileNotFoundError):
            if not is_own_record(os.stat(PARTS_NAME, dir_fd=self.directory, follow_symlinks=False)):
                raise PermissionError
        lines: list[list[object]] = [["rdc parts", 1, self.made]]
        for name, part in self.parts.items():
            lines.append(["part", base64.b64encode(name).decode(), part.inode, part.size, part.mtime_ns])
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        if len(data) > PARTS_BYTES:
            raise OSError("too many parts")
        fd = -1

        def create(name: bytes) -> None:
            nonlocal fd
            fd = os.open(name, _CREATE, 0o600, dir_fd=self.directory)

        temporary = make_aside(PARTS_NAME, create)
        try:
            with open(fd, "wb") as file:
                file.write(data)
            os.rename(temporary, PARTS_NAME, src_dir_fd=self.directory, dst_dir_fd=self.directory)
        except OSError:
            os.unlink(temporary, dir_fd=self.directory)
            raise

    def remove(self, name: bytes) -> PartsRecord:
        """Remove the part `name` if it is a recorded one. Return the record without it. Raises OSError."""
        if self.has(name):
            os.unlink(name, dir_fd=self.directory)
        return PartsRecord(
            self.directory, self.made, {one: self.parts[one] for one in self.parts if one != name}
        )

    def end(self) -> bool:
        """Remove the record if it has no part any more, else write it. Return whether rdc made the directory
        and nothing is in it now. Raises OSError."""
        left = {name: part for name, part in self.parts.items() if self.has(name)}
        if left:
            PartsRecord(self.directory, self.made, left).write()
            return False
        with suppress(FileNotFoundError):
            if is_own_record(os.stat(PARTS_NAME, dir_fd=self.directory, follow_symlinks=False)):
                os.unlink(PARTS_NAME, dir_fd=self.directory)
        return (
            self.made != 0 and self.made == os.fstat(self.directory).st_ino and not os.listdir(self.directory)
        )


def is_own_record(found: os.stat_result) -> bool:
    """Return whether an entry named PARTS_NAME, of this stat, is a record that this user wrote."""
    return _is_private(found) and not stat.S_IMODE(found.st_mode) & 0o077


@contextmanager
def locked_record(directory: int) -> Iterator[PartsRecord]:
    """Open and lock the directory of which `directory` is a descriptor, and yield its record.

    Raises OSError, also if another process works in it now.
    """
    fd = os.open(b".", _DIRECTORY, dir_fd=directory)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield _read(fd)
    finally:
        os.close(fd)


def remove_recorded(directory: int) -> bool:
    """Remove all recorded parts of a directory, and the record. Return what `end` returns. Raises OSError."""
    with locked_record(directory) as record:
        for name in record.parts:
            record.remove(name)
        return record.end()


def _is_private(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid()


def _part_of(found: os.stat_result) -> _Part:
    return _Part(found.st_ino, found.st_size, found.st_mtime_ns)


def _read(directory: int) -> PartsRecord:
    empty = PartsRecord(directory)
    try:
        fd = os.open(PARTS_NAME, _READ, dir_fd=directory)
    except OSError:
        return empty
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not is_own_record(found) or found.st_size > PARTS_BYTES:
            return empty
        try:
            return _decoded(directory, file.read(PARTS_BYTES + 1))
        except (ValueError, TypeError, RecursionError, OSError):
            return empty


def _decoded(directory: int, data: bytes) -> PartsRecord:
    """Decode the record of a directory. Raises ValueError, TypeError."""
    made, parts = 0, dict[bytes, _Part]()
    for number, line in enumerate(data.splitlines()):
        match json.loads(line):
            case ["rdc parts", 1, int(inode)] if not number:
                made = inode
            case ["part", str(text), int(inode), int(size), int(mtime_ns)] if number:
                name = base64.b64decode(text, validate=True)
                if not name or b"/" in name or b"\0" in name or name in (b".", b".."):
                    raise ValueError("no name of a part")
                parts[name] = _Part(inode, size, mtime_ns)
            case _:
                raise ValueError("an unknown line")
    return PartsRecord(directory, made, parts)


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
        """Close the directory of all."""
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
                    hold_free_name(temporary, name, directory, into=fd)

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
    there. The rules are those of rdc.files.replace.commit_group."""
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return False
    user = os.geteuid()
    if found.st_uid == user:
        return True
    return user == 0 and not directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
