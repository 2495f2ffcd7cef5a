"""PackStore: the directory of a store, with its head, its lock, its packs and its snapshots.

    store          the head: version, id and chunk sizes; made last, so a directory with it is a whole store
    lock           for flock alone, which ends with the process that holds it
    packs/ab/      packs by the first two digits of their names
    snapshots/17   one snapshot each: a link of a synced temporary, which is the moment a put is done
    forgotten/     snapshots that were forgotten

Everything is reached from one descriptor of the directory, and no link is followed below it.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import struct
import time
from contextlib import contextmanager, suppress

from blake3 import blake3

from rdc.chunking import ChunkParams
from rdc.errors import ExitCode, FileError, RdcError, UsageError, printable
from rdc.files.base.paths import is_reserved, is_temporary, make_aside
from rdc.files.base.store_guard import HEAD_NAME, MAGIC
from rdc.lean.records import dataclass
from rdc.store.pack_file import (
    ID_BYTES,
    OpenPack,
    damaged,
    open_pack,
    pack_path,
    storing_failure,
)
from rdc.store.snapshots import SNAPSHOT_BYTES, Snapshot, decode_snapshot, encode_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 1

_HEAD = struct.Struct("<8sI16sII32s")
"""MAGIC, version, id, smallest and largest chunk, BLAKE3 of what is before."""

CHUNK_MEAN = 64 << 10
"""Bytes of a chunk on average. With deltas, smaller chunks save hardly any bytes, and their index is
larger."""

LEFT_SECONDS = 60
"""Age of a temporary without a lock that is removed."""

_DIRECTORIES = (b"packs", b"snapshots", b"forgotten")
_OWN = frozenset((HEAD_NAME, b"lock", *_DIRECTORIES))
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NUMBER = re.compile(rb"[1-9][0-9]{0,17}")
_PACK = re.compile(rb"([0-9a-f]{2})[0-9a-f]{14}\.pack")


@dataclass(frozen=True, slots=True)
class StoreHead:
    """What the head of a store says."""

    id: bytes
    params: ChunkParams

    @property
    def key(self) -> bytes:
        """The key of the BLAKE3 that names chunks and directories of packs."""
        return blake3(self.id, derive_key_context="rdc store 1 chunk keys").digest()


def read_head(directory: int, label: bytes) -> StoreHead | None:
    """Return the head of the store that is open as `directory`; None if it is no store.

    Raises FileError for a head that is damaged or of a later version.
    """
    try:
        fd = os.open(HEAD_NAME, _READ, dir_fd=directory)
    except OSError:
        return None
    try:
        data = os.read(fd, _HEAD.size + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    if not data.startswith(MAGIC):
        return None
    shown = label.rstrip(b"/") + b"/" + HEAD_NAME
    if len(data) >= 12 and (version := int.from_bytes(data[8:12], "little")) > VERSION:
        raise FileError(
            shown, f"{printable(shown)}: a store of version {version}, this rdc reads {VERSION}; update rdc"
        )
    if len(data) != _HEAD.size or blake3(data[:-32]).digest() != data[-32:]:
        raise damaged(shown, f"the head of a store of {_HEAD.size} bytes", f"{len(data)} others")
    _, _, id_, least, most, _ = _HEAD.unpack(data)
    try:
        return StoreHead(id_, ChunkParams(least, most))
    except UsageError as error:
        raise damaged(shown, "sizes of chunks", str(error)) from error


class PackStore:
    """An open store. Close it with `close`, or use it as a context manager."""

    def __init__(self, directory: int, label: bytes) -> None:
        """Take over the descriptor of the directory at `label`. Raises RdcError if it is no store."""
        self.label = label
        self._fd = directory
        try:
            head = read_head(directory, label)
            if head is None:
                raise FileError(
                    label, f"{printable(label)}: expected a store, found none; rdc store put makes one"
                )
        except BaseException:
            self.close()
            raise
        self.head = head

    @classmethod
    def open(cls, path: bytes) -> PackStore:
        """Open the store at a path of this machine. Raises RdcError."""
        try:
            return cls(os.open(path, _DIRECTORY & ~os.O_NOFOLLOW), path)
        except OSError as error:
            raise storing_failure(error, path, "open the store") from error

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __enter__(self) -> PackStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the descriptor of the directory."""
        return self._fd

    def shown(self, path: bytes) -> bytes:
        """Return the path of one of the store's files as messages name it."""
        return self.label.rstrip(b"/") + b"/" + path

    # Packs.

    def pack_names(self) -> list[bytes]:
        """Return the names of all packs, in order. Raises FileError."""
        names: list[bytes] = []
        for group in self._listed(b"packs"):
            if re.fullmatch(rb"[0-9a-f]{2}", group):
                found = [_PACK.fullmatch(name) for name in self._listed(b"packs/" + group)]
                names += [
                    bytes.fromhex(one[0][: 2 * ID_BYTES].decode()) for one in found if one and one[1] == group
                ]
        return sorted(names)

    def open_pack(self, name: bytes) -> OpenPack:
        """Open a pack and read its directory. Raises FileError."""
        path = pack_path(name)
        shown = self.shown(path)
        try:
            fd = os.open(path, _READ, dir_fd=self._fd)
        except OSError as error:
            raise storing_failure(error, shown, "open it") from error
        return open_pack(name, fd, shown, self.head.key)

    def _listed(self, path: bytes) -> list[bytes]:
        try:
            fd = os.open(path, _DIRECTORY, dir_fd=self._fd)
            try:
                return sorted(map(os.fsencode, os.listdir(fd)))
            finally:
                os.close(fd)
        except OSError as error:
            raise storing_failure(error, self.shown(path), "list it") from error

    # Snapshots.

    def numbers(self) -> list[int]:
        """Return the numbers of all snapshots, in order. Raises FileError."""
        return sorted(int(name) for name in self._listed(b"snapshots") if _NUMBER.fullmatch(name))

    def snapshot(self, number: int) -> Snapshot:
        """Read a snapshot. Raises FileError."""
        path = b"snapshots/%d" % number
        shown = self.shown(path)
        try:
            fd = os.open(path, _READ, dir_fd=self._fd)
            try:
                data = os.read(fd, SNAPSHOT_BYTES + 1)
            finally:
                os.close(fd)
        except FileNotFoundError as error:
            raise FileError(
                shown, f"{printable(shown)}: there is no such snapshot; see rdc store list"
            ) from error
        except OSError as error:
            raise storing_failure(error, shown, "read it") from error
        try:
            found = decode_snapshot(data, self.head.key)
        except ValueError as error:
            raise damaged(shown, "a snapshot of this store", str(error)) from error
        if found.number != number:
            raise damaged(shown, f"snapshot {number}", f"snapshot {found.number} under its name")
        return found

    def commit(self, snapshot: Snapshot) -> Snapshot:
        """Add a snapshot under the next number, which replaces its own. Return it. Raises RdcError.

        Its packs are durable. The snapshot is listed at the moment in which the link appears.
        """
        forgotten = [int(name) for name in self._listed(b"forgotten") if _NUMBER.fullmatch(name)]
        number = 1 + max([0, *self.numbers(), *forgotten])
        while True:
            numbered = snapshot.numbered(number)
            name = b"snapshots/%d" % number
            data = encode_snapshot(numbered, self.head.key)
            try:
                link_new(data, name, self._fd)
            except FileExistsError:
                number += 1  # another put was faster
            except OSError as error:
                raise storing_failure(error, self.shown(name), "write it") from error
            else:
                return numbered

    # The lock, and what killed puts left.

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store's lock, shared with other puts, for the time of the block.

        Raises RdcError with exit code 40 while it is being cleaned, and FileError where it cannot be locked.
        """
        shown = self.shown(b"lock")
        try:
            fd = os.open(b"lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._fd)
        except OSError as error:
            raise storing_failure(error, shown, "open it") from error
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RdcError(
                    f"{printable(self.label)}: the store is being cleaned; try again later",
                    code=ExitCode.BUSY,
                ) from error
            except OSError as error:
                raise storing_failure(error, shown, "lock it") from error
            yield
        finally:
            os.close(fd)

    def check_owner(self) -> None:
        """Raise RdcError if others may write into the store, or own it, so that a put would trust them."""
        found = os.fstat(self._fd)
        if found.st_uid not in (os.geteuid(), 0) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise RdcError(
                f"{printable(self.label)}: expected a store that you own and nobody else may write into,"
                f" found owner {found.st_uid} and mode {stat.S_IMODE(found.st_mode):o}; change that",
                code=ExitCode.REFUSED,
            )

    def sweep(self) -> None:
        """Remove temporaries of puts that were killed. Those of others hold a lock of their file."""
        places = [b"", b"snapshots", *[b"packs/" + one for one in self._listed(b"packs") if len(one) == 2]]
        for place in places:
            for name in self._listed(place or b"."):
                if is_temporary(name):
                    self._remove_left(place + b"/" + name if place else name)

    def _remove_left(self, path: bytes) -> None:
        with suppress(OSError):
            fd = os.open(path, _READ, dir_fd=self._fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A new one may not be locked yet.
                if os.fstat(fd).st_mtime < time.time() - LEFT_SECONDS:
                    os.unlink(path, dir_fd=self._fd)
            finally:
                os.close(fd)


def link_new(data: bytes, path: bytes, place: int) -> None:
    """Make a durable file with `data` at a free path below the open directory `place`. Raises OSError:
    FileExistsError if the path is taken.

    The file is whole and synced before it has its name.
    """
    above, _, name = path.rpartition(b"/")
    directory = os.open(above or b".", _DIRECTORY, dir_fd=place)
    made = [-1]
    try:

        def make(temporary: bytes) -> None:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            made[0] = os.open(temporary, flags, 0o400, dir_fd=directory)

        temporary = make_aside(name, make)
        try:
            fcntl.flock(made[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
            view = memoryview(data)
            while view:
                view = view[os.write(made[0], view) :]
            os.fsync(made[0])
            os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        finally:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
        os.fsync(directory)
    finally:
        for fd in (made[0], directory):
            if fd >= 0:
                os.close(fd)


def make_store(path: bytes) -> None:
    """Make a store in a missing or empty directory, unless one is there. Raises RdcError.

    The head comes last. What a killed run left is no store and is completed.
    """
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
            _sync_above(path)
        directory = os.open(path, _DIRECTORY & ~os.O_NOFOLLOW)
    except OSError as error:
        raise storing_failure(error, path, "make a store") from error
    try:
        _fill(directory, path)
    except OSError as error:
        raise storing_failure(error, path, "make a store") from error
    finally:
        os.close(directory)


def _sync_above(path: bytes) -> None:
    fd = os.open(os.path.dirname(path.rstrip(b"/")) or b".", _DIRECTORY & ~os.O_NOFOLLOW)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _fill(directory: int, path: bytes) -> None:
    if read_head(directory, path) is not None:
        return
    names = {os.fsencode(name) for name in os.listdir(directory)}
    strange = sorted(name for name in names - _OWN if not is_reserved(name))
    if strange or HEAD_NAME in names:
        shown = printable((strange or [HEAD_NAME])[0])
        raise UsageError(
            f"{printable(path)}: expected a store, or a missing or empty directory to make one in, found"
            f" '{shown}'; name another directory"
        )
    for name in _DIRECTORIES:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=directory)
    os.close(os.open(b"lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=directory))
    os.fsync(directory)
    params = ChunkParams.for_mean(CHUNK_MEAN)
    head = _HEAD.pack(MAGIC, VERSION, os.urandom(16), params.min_size, params.max_size, b"")[:-32]
    with suppress(FileExistsError):
        link_new(head + blake3(head).digest(), HEAD_NAME, directory)
