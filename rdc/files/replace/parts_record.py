"""The record of a directory of --partial-dir: which of its entries are parts that rdc put there.

A part has the name of its file, so its name proves nothing. The record is the file `.rdc.parts` beside it.
Nobody but the user that rdc runs as can have written it: no peer may use its name, and it counts only if it
is a private regular file of that user with one name. An entry is a recorded part if its inode, size and mtime
are those of its line. Everything else in the directory belongs to somebody else.

Each line is a JSON array:

    ["rdc parts", 1, inode]             first; the directory's inode if rdc made the directory, else 0
    ["part", name, inode, size, mtime]  the name in base64, the time in nanoseconds

A record that is damaged, too long or not trusted is no record: what is there stays.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import stat
from contextlib import contextmanager, suppress

from rdc.files.base.temporary_names import PARTS_NAME, make_aside
from rdc.lean.records import dataclass, field
from rdc.limits.wire import PARTS_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PartsRecord", "is_own_record", "locked_record", "remove_recorded"]

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class _Part:
    inode: int
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class PartsRecord:
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
    """Raises ValueError, TypeError."""
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
