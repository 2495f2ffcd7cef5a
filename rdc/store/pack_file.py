"""Packs: files of frames with their directory at the end, written once and never changed.

A pack appears under its name when all of it is durable: it is written under a temporary name, synced,
renamed, and its directory is synced. A pack that nobody names yet does no harm: a later put finds its chunks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from contextlib import suppress

from blake3 import blake3

from rdc.errors import FileError, OutOfSpaceError, RdcError, printable
from rdc.files.base.paths import make_aside
from rdc.files.base.taking_names import create_temporary, flush, is_refused
from rdc.lean.records import Record
from rdc.lean.typed import Protocol
from rdc.model.location import is_web
from rdc.store.directory import (
    DIRECTORY_BYTES,
    PACK_BYTES,
    Directory,
    DirectoryBuilder,
    FrameRow,
    decode_bases,
    decode_directory,
    encode_directory,
)
from rdc.store.frames import FRAME_BYTES, StoredFrame

MAGIC = b"RDCPACK1"
END_MAGIC = b"RDCPEND1"
ID_BYTES = 8
"""Bytes of a pack's random name."""

_TRAILER = struct.Struct("<QQ32s8s8s")
"""Offset and length of the directory, its keyed BLAKE3, the pack's name, END_MAGIC."""

TRAILER_BYTES = _TRAILER.size

PACK_BYTES_MOST = PACK_BYTES + FRAME_BYTES + DIRECTORY_BYTES + 1024
"""No file of this size or more is a pack."""

_ADVICE = {
    errno.EACCES: "run as the owner of the store, or give this user the rights",
    errno.EPERM: "run as the owner of the store, or give this user the rights",
    errno.ELOOP: "rdc makes no links there: remove it",
    errno.ENOTDIR: "rdc makes a directory there: move the other entry away",
    errno.EMFILE: "raise the limit of open files (ulimit -n), and run again",
    errno.ENOENT: "if no other run removed it, restore it from a copy of the store",
}
"""The advice for an error, by its number. Most others are the disk's."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}


def pack_path(name: bytes) -> bytes:
    """Return the path of a pack below the store, such as b"packs/ab/abcdef0123456789.pack"."""
    text = name.hex().encode()
    return b"packs/" + text[:2] + b"/" + text + b".pack"


def storing_failure(error: OSError, path: bytes, doing: str) -> RdcError:
    """Return the error of a failed call on a file of a store at `path`."""
    reason = f"{printable(path)}: cannot {doing}: {error.strerror}"
    if error.errno in _FULL:
        advice = "free some space"
        if error.errno == errno.EROFS:
            advice = "make its file system writable, or use a copy of the store that is"
        elif error.errno == errno.EFBIG:
            advice = "raise the limit of the size of files, or use another file system"
        return OutOfSpaceError(f"{reason}; the snapshots that are listed are whole: {advice}, and run again")
    advice = _ADVICE.get(error.errno or 0, "check the disk and the system log, and run again")
    return FileError(path, f"{reason}; {advice}")


def damaged(path: bytes, expected: str, found: str) -> FileError:
    """Return the error of a file of a store that is not what the format says."""
    advice = "restore the file from a copy of the store; rdc store verify names what else it reaches"
    if is_web(path):
        advice = "run again later, or tell who publishes the store"
    elif os.path.isfile(path.rpartition(b"/packs/")[0]):
        advice = "carry the file again"
    return FileError(path, f"{printable(path)}: damaged: expected {expected}, found {found}; {advice}")


def sync_directory(path: bytes, place: int) -> None:
    """Make the names in a directory below the open directory `place` durable. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        flush(fd)
    finally:
        os.close(fd)


class PackBytes(Protocol):
    """The bytes of a pack, wherever they are."""

    @property
    def size(self) -> int:
        """Bytes of the pack."""

    def pread(self, length: int, offset: int) -> bytes:
        """Return the bytes of a range, fewer beyond the end. Raises FileError."""

    def close(self) -> None:
        """Give the pack up."""


class LocalPack:
    """A pack that is a file of this machine."""

    __slots__ = ("_fd", "_path", "size")

    def __init__(self, fd: int, path: bytes) -> None:
        """Take over a descriptor. `path`: as messages name it."""
        self._fd = fd
        self._path = path
        self.size = os.fstat(fd).st_size

    def pread(self, length: int, offset: int) -> bytes:
        try:
            return os.pread(self._fd, length, offset)
        except OSError as error:
            raise storing_failure(error, self._path, "read it") from error

    def close(self) -> None:
        os.close(self._fd)


class PackEnd(Record):
    """The trailer of a pack."""

    offset: int
    """The offset of the directory."""
    length: int
    """Bytes of the directory as stored."""
    digest: bytes
    """The keyed BLAKE3 of the directory as stored."""
    size: int
    """Bytes of the pack."""
    begin: bytes
    """The first bytes of the directory, which say how large it is."""


class FinishedPack(Record):
    """A pack that was just written."""

    name: bytes
    end: PackEnd
    directory: Directory


BEGIN_BYTES = 18
"""The largest head of a zstd frame."""


def read_end(name: bytes, file: PackBytes, path: bytes) -> PackEnd:
    """Read the end of a pack. `path`: as messages name it.

    Raises FileError for a pack that is short, under another name or otherwise damaged.
    """
    size = file.size
    head, trailer = file.pread(len(MAGIC), 0), b""
    if len(MAGIC) + _TRAILER.size <= size < PACK_BYTES_MOST:
        trailer = file.pread(_TRAILER.size, size - _TRAILER.size)
    if head != MAGIC or len(trailer) != _TRAILER.size:
        raise damaged(path, "a pack of version 1", f"{size} bytes that begin with {head!r}")
    offset, length, digest, own, magic = _TRAILER.unpack(trailer)
    if magic != END_MAGIC or offset < len(MAGIC) or offset + length + _TRAILER.size != size:
        raise damaged(path, "the end of a pack", "something else; it may be cut off")
    if own != name:
        raise damaged(path, f"pack {name.hex()}", f"pack {own.hex()} under its name")
    begin = file.pread(min(length, BEGIN_BYTES), offset)
    return PackEnd(offset, length, digest, size, begin)


def read_directory(file: PackBytes, end: PackEnd, path: bytes, key: bytes) -> Directory:
    """Read the directory of a pack. `key`: of the store.

    Raises FileError for a directory that is damaged or of another store.
    """
    data = _stored_directory(file, end, path, key)
    try:
        return decode_directory(data, end.offset - len(MAGIC))
    except ValueError as error:
        raise damaged(path, "a sound directory", str(error)) from error


def read_bases(file: PackBytes, end: PackEnd, path: bytes, key: bytes) -> bytes:
    """Return the keys of all bases of a pack whose directory was read before, so it need not be checked
    again. Raises FileError."""
    data = _stored_directory(file, end, path, key)
    try:
        return decode_bases(data)
    except ValueError as error:
        raise damaged(path, "a sound directory", str(error)) from error


def _stored_directory(file: PackBytes, end: PackEnd, path: bytes, key: bytes) -> bytes:
    data = file.pread(end.length, end.offset)
    if len(data) != end.length or blake3(data, key=key).digest() != end.digest:
        raise damaged(path, "the directory that its digest says", "another one, or a pack of another store")
    return data


def read_frame(file: PackBytes, offset: int, length: int, path: bytes) -> bytes:
    """Return the stored bytes of a frame. Raises FileError."""
    data = file.pread(length, offset)
    if len(data) != length:
        raise damaged(path, f"{length} bytes at {offset}", f"{len(data)}")
    return data


def lock_temporary(fd: int) -> None:
    """Lock a temporary file, so that no other put takes it for what a killed one left."""
    with suppress(OSError):  # where there are no locks, nobody removes it
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def pack_end(directory: Directory, offset: int, name: bytes, key: bytes) -> tuple[PackEnd, bytes]:
    """Return the end of a pack whose directory is at `offset`, and the bytes from there on."""
    packed = encode_directory(directory)
    digest = blake3(packed, key=key).digest()
    size = offset + len(packed) + TRAILER_BYTES
    tail = packed + _TRAILER.pack(offset, len(packed), digest, name, END_MAGIC)
    return PackEnd(offset, len(packed), digest, size, packed[:BEGIN_BYTES]), tail


class PackWriter:
    """Writes one pack below the directory that is open as `place`. `finish` or `discard` ends it."""

    def __init__(self, place: int, shown: bytes, key: bytes) -> None:
        """`shown`: the path of the store, for messages. Raises RdcError."""
        self.name = os.urandom(ID_BYTES)
        self._key = key
        self._place = place
        self._path = pack_path(self.name)
        self._shown = shown.rstrip(b"/") + b"/" + self._path
        self._rows = DirectoryBuilder()
        self.stored = 0
        """Bytes of all frames so far."""
        self._buffer = [MAGIC]
        self._buffered = len(MAGIC)
        self._fd = self._directory = -1
        self._temporary = b""
        try:
            self._open()
        except OSError as error:
            self._close()
            raise storing_failure(error, self._shown, "write it") from error

    def _open(self) -> None:
        above = self._path.rpartition(b"/")[0]
        with suppress(FileExistsError):
            os.mkdir(above, 0o700, dir_fd=self._place)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._directory = os.open(above, flags, dir_fd=self._place)

        def make(name: bytes) -> None:
            self._fd = create_temporary(name, self._directory, 0o400)

        self._temporary = make_aside(self._path.rpartition(b"/")[2], make)
        lock_temporary(self._fd)

    @property
    def is_full(self) -> bool:
        """Return whether the pack should be finished before another frame."""
        return self.stored >= PACK_BYTES or self._rows.is_full

    def add(self, frame: StoredFrame, row: FrameRow, keys: list[bytes], lengths: list[int]) -> None:
        """Append a frame and its chunks. Raises RdcError."""
        self._rows.add(row, keys, lengths)
        self.stored += len(frame.data)
        self._buffer.append(frame.data)
        self._buffered += len(frame.data)
        if self._buffered >= 4 * FRAME_BYTES:
            self._write()

    def _write(self) -> None:
        data = memoryview(b"".join(self._buffer))
        self._buffer, self._buffered = [], 0
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            raise storing_failure(error, self._shown, "write it") from error

    def finish(self) -> FinishedPack:
        """Make the pack durable and give it its name. Raises RdcError."""
        directory = self._rows.directory()
        end, tail = pack_end(directory, len(MAGIC) + self.stored, self.name, self._key)
        self._buffer.append(tail)
        self._write()
        try:
            flush(self._fd)
            name = self._path.rpartition(b"/")[2]
            self._rename(name)
            self._temporary = b""
            flush(self._directory)
            # Another put may have made the directory and not synced it yet.
            sync_directory(b"packs", self._place)
        except OSError as error:
            raise storing_failure(error, self._shown, "write it") from error
        self._close()
        return FinishedPack(self.name, end, directory)

    def _rename(self, name: bytes) -> None:
        """Give the file its name. Some file systems rename no open file. Raises OSError."""
        places = {"src_dir_fd": self._directory, "dst_dir_fd": self._directory}
        try:
            os.rename(self._temporary, name, **places)
        except OSError as error:
            if not is_refused(error):
                raise
            os.close(self._fd)
            self._fd = -1
            os.rename(self._temporary, name, **places)

    def discard(self) -> None:
        """Remove what was written, if the pack was not finished. May be called again. Never raises."""
        if self._temporary:
            with suppress(OSError):  # the next put removes it
                os.unlink(self._temporary, dir_fd=self._directory)
            self._temporary = b""
        self._close()

    def _close(self) -> None:
        for fd in (self._fd, self._directory):
            if fd >= 0:
                os.close(fd)
        self._fd = self._directory = -1
