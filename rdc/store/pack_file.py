"""Packs: files of frames with their directory at the end, written once and never changed.

A pack appears under its name when all of it is durable: it is written under a temporary name, synced,
renamed, and its directory is synced. A pack that nobody names yet does no harm: a later put finds its chunks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from array import array
from contextlib import suppress

from blake3 import blake3

from rdc.errors import FileError, OutOfSpaceError, RdcError, printable
from rdc.files.base.paths import make_aside
from rdc.lean.records import dataclass
from rdc.store.directory import (
    DIRECTORY_BYTES,
    PACK_BYTES,
    PACK_ROWS,
    Directory,
    FrameRow,
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

PACK_BYTES_MOST = PACK_BYTES + FRAME_BYTES + DIRECTORY_BYTES + 1024
"""No file of this size or more is a pack."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}


def pack_path(name: bytes) -> bytes:
    """Return the path of a pack below the store, such as b"packs/ab/abcdef0123456789.pack"."""
    text = name.hex().encode()
    return b"packs/" + text[:2] + b"/" + text + b".pack"


def storing_failure(error: OSError, path: bytes, doing: str) -> RdcError:
    """Return the error of a failed call on a file of a store at `path`."""
    reason = f"{printable(path)}: cannot {doing}: {error.strerror}"
    if error.errno in _FULL:
        return OutOfSpaceError(
            f"{reason}; the snapshots that are listed are whole: free some space, run again"
        )
    return FileError(path, reason)


def damaged(path: bytes, expected: str, found: str) -> FileError:
    """Return the error of a file of a store that is not what the format says."""
    advice = "restore the file from a copy of the store; rdc store verify names what else it reaches"
    return FileError(path, f"{printable(path)}: damaged: expected {expected}, found {found}; {advice}")


def sync_directory(path: bytes, place: int) -> None:
    """Make the names in a directory below the open directory `place` durable. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class OpenPack:
    """A pack whose directory was read."""

    name: bytes
    fd: int
    path: bytes
    """As messages name it."""
    directory: Directory
    size: int
    """Bytes of the file."""

    def read(self, offset: int, length: int) -> bytes:
        """Return the stored bytes of a frame. Raises FileError."""
        try:
            data = os.pread(self.fd, length, offset)
        except OSError as error:
            raise storing_failure(error, self.path, "read it") from error
        if len(data) != length:
            raise damaged(self.path, f"{length} bytes at {offset}", f"{len(data)}")
        return data

    def close(self) -> None:
        os.close(self.fd)


def open_pack(name: bytes, fd: int, path: bytes, key: bytes) -> OpenPack:
    """Read the directory of the pack open as `fd`, which this takes over. `key`: of the store.

    Raises FileError for a pack that is short, of another store, under another name or otherwise damaged.
    """
    try:
        return OpenPack(name, fd, path, _read_directory(name, fd, path, key), os.fstat(fd).st_size)
    except BaseException:
        os.close(fd)
        raise


def _read_directory(name: bytes, fd: int, path: bytes, key: bytes) -> Directory:
    try:
        size = os.fstat(fd).st_size
        head, trailer = os.pread(fd, len(MAGIC), 0), b""
        if len(MAGIC) + _TRAILER.size <= size < PACK_BYTES_MOST:
            trailer = os.pread(fd, _TRAILER.size, size - _TRAILER.size)
    except OSError as error:
        raise storing_failure(error, path, "read it") from error
    if head != MAGIC or len(trailer) != _TRAILER.size:
        raise damaged(path, "a pack of version 1", f"{size} bytes that begin with {head!r}")
    offset, length, digest, own, magic = _TRAILER.unpack(trailer)
    if magic != END_MAGIC or offset < len(MAGIC) or offset + length + _TRAILER.size != size:
        raise damaged(path, "the end of a pack", "something else; it may be cut off")
    if own != name:
        raise damaged(path, f"pack {name.hex()}", f"pack {own.hex()} under its name")
    try:
        data = os.pread(fd, length, offset)
    except OSError as error:
        raise storing_failure(error, path, "read it") from error
    if len(data) != length or blake3(data, key=key).digest() != digest:
        raise damaged(path, "the directory that its digest says", "another one, or a pack of another store")
    try:
        return decode_directory(data, offset - len(MAGIC))
    except ValueError as error:
        raise damaged(path, "a sound directory", str(error)) from error


class PackWriter:
    """Writes one pack below the directory that is open as `place`. `finish` or `discard` ends it."""

    def __init__(self, place: int, shown: bytes, key: bytes) -> None:
        """`shown`: the path of the store, for messages. Raises RdcError."""
        self.name = os.urandom(ID_BYTES)
        self._key = key
        self._place = place
        self._path = pack_path(self.name)
        self._shown = shown.rstrip(b"/") + b"/" + self._path
        self._frames: list[FrameRow] = []
        self._keys: list[bytes] = []
        self._lengths: array[int] = array("I")
        self._bases = 0
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
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._fd = os.open(name, flags, 0o400, dir_fd=self._directory)

        self._temporary = make_aside(self._path.rpartition(b"/")[2], make)
        # While it is locked, no other put takes it for what a killed one left.
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @property
    def is_full(self) -> bool:
        """Whether the pack should be finished before another frame."""
        return self.stored >= PACK_BYTES or len(self._lengths) >= PACK_ROWS or self._bases >= PACK_ROWS

    def add(self, frame: StoredFrame, row: FrameRow, keys: list[bytes], lengths: list[int]) -> None:
        """Append a frame and its chunks. Raises RdcError."""
        self._frames.append(row)
        self._keys += keys
        self._lengths.extend(lengths)
        self._bases += len(row.bases) // len(keys[0])
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

    def finish(self) -> OpenPack:
        """Make the pack durable and give it its name. Return it, open for reading. Raises RdcError."""
        directory = Directory(tuple(self._frames), b"".join(self._keys), self._lengths)
        packed = encode_directory(directory)
        offset = len(MAGIC) + self.stored
        digest = blake3(packed, key=self._key).digest()
        self._buffer += [packed, _TRAILER.pack(offset, len(packed), digest, self.name, END_MAGIC)]
        self._write()
        try:
            os.fdatasync(self._fd)
            name = self._path.rpartition(b"/")[2]
            os.rename(self._temporary, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            self._temporary = b""
            os.fsync(self._directory)
            # Another put may have made the directory and not synced it yet.
            sync_directory(b"packs", self._place)
        except OSError as error:
            raise storing_failure(error, self._shown, "write it") from error
        fd, self._fd = self._fd, -1
        self._close()
        return OpenPack(self.name, fd, self._shown, directory, offset + len(packed) + _TRAILER.size)

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
