"""Record logs: files that are only appended to, of lines that prove themselves.

A line is JSON, a space, and the CRC-32 of the JSON in eight hex digits, which reveals a torn or edited line.
Paths and other bytes are base64. The journal of duplicates (rdc.duplicates.journal) and the journal of a sync
that can be undone (rdc.undoing.store) are kinds of records on top of it: they say which JSON means what,
and take each value from it through the functions below, which trust none.

A kill or a power cut leaves a torn end: `complete_lines` and `whole_end` find what is before it. What was
lost together with whole lines shows in a length beside the log.
"""

from __future__ import annotations

import binascii
import errno
import json
import mmap
import os
import stat
from contextlib import contextmanager
from zlib import crc32

from rdc.errors import FileError, printable
from rdc.files.base.paths import check_path, failure, refused
from rdc.files.base.taking_names import flush, sync_directory
from rdc.files.own.output_file import OpenedPath
from rdc.lean.typed import TypeVar
from rdc.limits import LINE_BYTES, PATH_BYTES
from rdc.model.entries import Metadata
from rdc.model.preserved import Attributes, packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


T = TypeVar("T")

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_LENGTH = b"%020d\n"

HEAD_BYTES = 4096
"""Bytes of the longest first line."""

_ID_MAX = (1 << 32) - 1
_TIME_MAX = (1 << 63) * 1_000_000_000
"""Nanoseconds. Seconds are 64-bit numbers."""


class RecordError(ValueError):
    """A line or value that no writer of the log makes. Its text says what was expected."""


# Lines


def signed(text: bytes) -> bytes:
    """Return the line of a JSON text."""
    return b"%s %08x\n" % (text, crc32(text))


def line_of(value: object) -> bytes:
    """Return the line of a value that JSON has."""
    return signed(json.dumps(value, separators=(",", ":")).encode())


def value_of(line: bytes) -> object:
    """Return what the JSON of a line, without its line feed, means. Raises RecordError."""
    text, space, check = line.rpartition(b" ")
    if not space or check != b"%08x" % crc32(text):
        raise RecordError("a record with its checksum")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError("JSON") from error


def complete_lines(data: bytes) -> list[bytes]:
    """Return the lines of a log without their line feeds. A last line without one was cut short, and what it
    announced was not done."""
    whole, _, _ = data.rpartition(b"\n")
    return whole.split(b"\n") if whole else []


def backwards(data: mmap.mmap | bytes, decode: Callable[[object], T]) -> Iterator[T]:
    """Yield the records of a log, the last first, without its torn end. Raises RecordError for any other line
    that `decode` refuses."""
    end = whole_end(data, decode) - 1
    while end >= 0:
        start = _start_of(data, end)
        yield decode(value_of(data[start:end]))
        end = start - 1


def whole_end(data: mmap.mmap | bytes, decode: Callable[[object], object]) -> int:
    """Return the end of the last good line. A power cut can leave parts of what was written after it."""
    end = data.rfind(b"\n")
    while end >= 0:
        start = _start_of(data, end)
        try:
            decode(value_of(data[start:end]))
        except RecordError:
            end = start - 1
        else:
            return end + 1
    return 0


def _start_of(data: mmap.mmap | bytes, end: int) -> int:
    """Return the first byte of the line that ends at `end`, or of its last LINE_BYTES, which are no line
    then."""
    return max(data.rfind(b"\n", max(0, end - LINE_BYTES), end) + 1, end - LINE_BYTES)


# Values


def encoded(data: bytes) -> bytes:
    """Return bytes as the JSON of a line has them between its quotes."""
    return binascii.b2a_base64(data, newline=False)


def bytes_of(value: object) -> bytes:
    """Return the bytes of an encoded value. Raises RecordError."""
    if not isinstance(value, str):
        raise RecordError("a path")
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError as error:
        raise RecordError("a path in base64") from error


def path_of(value: object) -> bytes:
    """Return any path, or the text of a symbolic link. Raises RecordError."""
    path = bytes_of(value)
    if not path or len(path) > PATH_BYTES or b"\0" in path:
        raise RecordError(f"a path of 1 to {PATH_BYTES} bytes")
    return path


def absolute_path_of(value: object) -> bytes:
    """Return a path that begins at the root of the file system. Raises RecordError."""
    path = path_of(value)
    if not path.startswith(b"/"):
        raise RecordError("the absolute path of a directory or file")
    return path


def relative_path_of(value: object, *, top: bool = False) -> bytes:
    """Return a path that leads nowhere else than below its directory. `top`: it may be that directory itself,
    b"". Raises RecordError."""
    if top and value == "":
        return b""
    path = path_of(value)
    try:
        check_path(path)
    except FileError as error:
        raise RecordError("a path below its directory") from error
    return path


def number_of(value: object) -> int:
    """Return a whole number of any size. Raises RecordError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError("a whole number")
    return value


def size_of(value: object, bits: int = 63) -> int:
    """Return a number of bytes. Raises RecordError."""
    size = number_of(value)
    if not 0 <= size < 1 << bits:
        raise RecordError(f"a size of {bits} bits")
    return size


def time_of(value: object) -> int:
    """Return a time in nanoseconds since the epoch. Raises RecordError."""
    time = number_of(value)
    if not -_TIME_MAX <= time < _TIME_MAX:
        raise RecordError("a time whose seconds have 64 bits")
    return time


def metadata_of(mode: object, mtime_ns: object, uid: object, gid: object) -> Metadata:
    """Return metadata that a file can have. Raises RecordError."""
    bits, user, group = number_of(mode), number_of(uid), number_of(gid)
    if not (0 <= bits <= 0o7777 and 0 <= user <= _ID_MAX and 0 <= group <= _ID_MAX):
        raise RecordError("permission bits, an owner and a group")
    return Metadata(bits, packed_time(time_of(mtime_ns)), user, group)


def attributes_of(parts: object) -> Attributes:
    """Return the attributes of names and values in turn. Raises RecordError."""
    if not isinstance(parts, list) or len(parts) % 2:
        raise RecordError("names and values of attributes")
    found = [bytes_of(part) for part in parts]
    return tuple(zip(found[::2], found[1::2], strict=True))


# Files


class RecordLog:
    """An open log. Its methods raise OSError, which the owner names.

    The length beside a log is one that it had on disk at some moment. So a shorter log has lost a part.
    """

    def __init__(self, fd: int, length: int = -1, *, lasting: bool = True) -> None:
        """Take over `fd`, open for appending, and `length`, the descriptor of the file with its length; -1:
        there is none. `lasting`: an append that does not wait for the disk may be lost in a power cut, and
        that is no damage."""
        self._fd = fd
        self._length = length
        self._lasting = lasting

    @classmethod
    def make(cls, path: bytes) -> RecordLog:
        """Create a log that its owner alone may read, and missing directories above it. An existing file is
        never overwritten, and no link of another user is followed. Raises RdcError."""
        try:
            with OpenedPath(path, make=0o700, last=False) as opened:
                fd = os.open(opened.name, _CREATE, 0o600, dir_fd=opened.directory)
                sync_directory(opened.directory, fd)
        except OSError as error:
            raise failure(error, path, path, "make the journal") from error
        return cls(fd)

    @property
    def has_length(self) -> bool:
        return self._length >= 0

    def append(self, lines: bytes, *, fsync: bool = True) -> None:
        """Append lines, and with `fsync` return once they are on disk."""
        left = memoryview(lines)
        while left:
            left = left[os.write(self._fd, left) :]
        if fsync:
            flush(self._fd)
        if self.has_length and (fsync or not self._lasting):
            # Only what is on disk by now may be missed later.
            os.pwrite(self._length, _LENGTH % self.size(), 0)

    def end(self) -> None:
        """Make the length durable, after the last line."""
        if self.has_length:
            flush(self._length)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def noted_length(self) -> int | None:
        """Return the length beside the log; None: there is none, or a power cut left none; -1: it is
        unreadable."""
        # A power cut may leave zeros in place of what was never flushed.
        noted = os.pread(self._length, len(_LENGTH % 0), 0).strip(b"\0") if self.has_length else b""
        if not noted:
            return None
        return int(noted) if noted.strip().isdigit() else -1

    def whole_size(self, decode: Callable[[object], object]) -> int:
        """Return the size without the torn end."""
        with self._mapped() as data:
            return whole_end(data, decode)

    def cut(self, decode: Callable[[object], object]) -> None:
        """Remove the torn end."""
        whole = self.whole_size(decode)
        if whole != self.size():
            os.ftruncate(self._fd, whole)

    def backwards(self, decode: Callable[[object], T]) -> Iterator[T]:
        """Yield the records, as the function of this name. Raises RecordError too."""
        with self._mapped() as data:
            yield from backwards(data, decode)

    def first(self, decode: Callable[[object], T]) -> T | None:
        """Return the first record; None if it was cut short."""
        line, end, _ = os.pread(self._fd, HEAD_BYTES, 0).partition(b"\n")
        try:
            return decode(value_of(line)) if end else None
        except RecordError:
            return None

    @contextmanager
    def _mapped(self) -> Iterator[mmap.mmap | bytes]:
        if not self.size():
            yield b""  # of which there is no map
            return
        with mmap.mmap(self._fd, 0, access=mmap.ACCESS_READ) as data:
            yield data

    def close(self) -> None:
        for fd in (self._fd, self._length):
            if fd >= 0:
                os.close(fd)
        self._fd = self._length = -1


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
