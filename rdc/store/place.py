"""PackStore: the directory of a store, with its head, its lock, its packs and its snapshots.

    store          the head: version, id and chunk sizes; made last, so a directory with it is a whole store
    lock           for flock alone, which ends with the process that holds it
    packs/ab/      packs by the first two digits of their names
    snapshots/17   one snapshot each: a link of a synced temporary, which is the moment a put is done
    forgotten/     snapshots that were forgotten

Everything is reached from one descriptor of the directory, and no link is followed below it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shlex
import stat
import struct
import time
from contextlib import contextmanager, suppress

from blake3 import blake3

from rdc.chunking import ChunkParams
from rdc.errors import ExitCode, FileError, RdcError, UsageError, printable
from rdc.files.base.paths import is_reserved, is_temporary, make_aside
from rdc.files.base.store_guard import HEAD_NAME, MAGIC, store_above
from rdc.files.base.taking_names import create_temporary, flush, take_free_name
from rdc.lean.enums import Enum
from rdc.lean.records import Record
from rdc.store.pack_file import (
    ID_BYTES,
    LocalPack,
    PackBytes,
    PackEnd,
    damaged,
    lock_temporary,
    pack_path,
    read_end,
    storing_failure,
    sync_directory,
)
from rdc.store.snapshots import (
    SNAPSHOT_BYTES,
    Snapshot,
    decode_snapshot,
    encode_snapshot,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

VERSION = 1

_HEAD = struct.Struct("<8sI16sII32s")
"""MAGIC, version, id, smallest and largest chunk, BLAKE3 of what is before."""

HEAD_BYTES = _HEAD.size

CHUNK_MEAN = 64 << 10
"""Bytes of a chunk on average. With deltas, smaller chunks save hardly any bytes, and their index is
larger."""

LOCK_SECONDS = 60.0
"""The time that a put or a restore waits for a gc that removes packs, which takes moments."""

_LOOK_SECONDS = 0.05
_NO_LOCKS = {errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL}

LOCK_NAME = b"lock"
INDEX_NAME = b"index"

LEFT_SECONDS = 60
"""Age of a temporary without a lock that is removed."""

_DIRECTORIES = (b"packs", b"snapshots", b"forgotten")
_OWN = frozenset((HEAD_NAME, LOCK_NAME, INDEX_NAME, *_DIRECTORIES))
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NUMBER = re.compile(rb"[1-9][0-9]{0,17}")
_PACK = re.compile(rb"([0-9a-f]{2})[0-9a-f]{14}\.pack")


class StoreHead(Record):
    """The head of a store."""

    id: bytes
    params: ChunkParams
    key: bytes
    """The key of the BLAKE3 that names chunks and directories of packs."""
    data: bytes
    """The head itself."""


def read_head(directory: int, label: bytes) -> StoreHead | None:
    """Return the head of the store that is open as `directory`; None if it is no store.

    Raises FileError for a head that is damaged or of a later version.
    """
    try:
        fd = os.open(HEAD_NAME, _READ, dir_fd=directory)
    except OSError:
        return None
    try:
        data = os.read(fd, HEAD_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    if not data.startswith(MAGIC):
        return None
    return decode_head(data, label.rstrip(b"/") + b"/" + HEAD_NAME)


def decode_head(data: bytes, shown: bytes) -> StoreHead:
    """Return the head of a store in the file `shown`. Raises FileError."""
    if len(data) >= 12 and (version := int.from_bytes(data[8:12], "little")) > VERSION:
        raise FileError(
            shown, f"{printable(shown)}: a store of version {version}, this rdc reads {VERSION}; update rdc"
        )
    if len(data) != HEAD_BYTES or blake3(data[:-32]).digest() != data[-32:]:
        raise damaged(shown, f"the head of a store of {HEAD_BYTES} bytes", f"{len(data)} others")
    _, _, id_, least, most, _ = _HEAD.unpack(data)
    try:
        params = ChunkParams(least, most)
    except UsageError as error:
        raise damaged(shown, "sizes of chunks", str(error)) from error
    key = blake3(id_, derive_key_context="rdc store 1 chunk keys").digest()
    return StoreHead(id_, params, key, data)


def _check_lost_head(directory: int, label: bytes) -> None:
    """Raise FileError if an open directory without a head was a store. Its packs and snapshots are of no use
    to a new head, with which they would look like those of another store."""
    if all(_is_empty(directory, name) for name in _DIRECTORIES):
        return  # a put that was killed before it made the head
    try:
        os.stat(HEAD_NAME, dir_fd=directory, follow_symlinks=False)
        found = "other bytes"
    except OSError:
        found = "nothing"
    raise damaged(label.rstrip(b"/") + b"/" + HEAD_NAME, "the head of a store", found)


def _is_empty(directory: int, name: bytes) -> bool:
    """Return whether a directory of a store is missing, or has nothing but what killed runs leave."""
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError:
        return True
    try:
        return all(is_reserved(os.fsencode(one)) for one in os.listdir(fd))
    finally:
        os.close(fd)


class ReadableSnapshots(Record):
    """The snapshots of a store. One that is damaged costs what it has, and no other one."""

    snapshots: tuple[Snapshot, ...]
    """The readable snapshots, in order of their numbers."""
    errors: Mapping[int, FileError]
    """Why the others cannot be read, by their numbers."""


class PackStore:
    """An open store. Close it with `close`, or use it as a context manager."""

    where_missing = "a pack is missing or damaged: restore it from a copy of the store"
    """The advice about a chunk that no pack has."""

    def __init__(self, directory: int, label: bytes) -> None:
        """Take over the descriptor of the directory at `label`. Raises RdcError if it is no store."""
        self.label = label
        self._fd = directory
        self._held: StoreLock | None = None
        try:
            head = read_head(directory, label)
            if head is None:
                _check_lost_head(directory, label)
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
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _no_store(path) from error
        except OSError as error:
            raise storing_failure(error, path, "open the store") from error

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        if self._held is not None:
            self._held.close()

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

    def open_pack(self, name: bytes) -> PackBytes:
        """Open a pack for reading. Raises FileError."""
        shown = self.shown_pack(name)
        try:
            return LocalPack(os.open(pack_path(name), _READ, dir_fd=self._fd), shown)
        except OSError as error:
            raise storing_failure(error, shown, "open it") from error

    def pack_end(self, name: bytes) -> PackEnd:
        """Return what the end of a pack says. Raises FileError for a damaged one."""
        file = self.open_pack(name)
        try:
            return read_end(name, file, self.shown_pack(name))
        finally:
            file.close()

    def shown_pack(self, name: bytes) -> bytes:
        """Return the path of a pack as messages name it."""
        return self.shown(pack_path(name))

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

    def readable(self) -> ReadableSnapshots:
        """Return the snapshots that can be read, and why the others cannot be. Raises FileError if they
        cannot be listed."""
        found, errors = list[Snapshot](), dict[int, FileError]()
        for number in self.numbers():
            try:
                found.append(self.snapshot(number))
            except FileError as error:
                if not is_gone(error):
                    errors[number] = error
        return ReadableSnapshots(tuple(found), errors)

    def numbers(self) -> list[int]:
        """Return the numbers of all snapshots, in order. Raises FileError."""
        return sorted(int(name) for name in self._listed(b"snapshots") if _NUMBER.fullmatch(name))

    def snapshot(self, number: int, *, forgotten: bool = False) -> Snapshot:
        """Read a snapshot, or one that was forgotten. Raises FileError."""
        path = (b"forgotten/%d" if forgotten else b"snapshots/%d") % number
        shown = self.shown(path)
        try:
            fd = os.open(path, _READ, dir_fd=self._fd)
            try:
                data = os.read(fd, SNAPSHOT_BYTES + 1)
            finally:
                os.close(fd)
        except FileNotFoundError as error:
            raise FileError(
                shown,
                f"{printable(shown)}: there is no such snapshot; see rdc store list {typed(self.label)}",
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

    def needed_snapshot(self, number: int, *, forgotten: bool = False) -> Snapshot:
        """Read a snapshot as `snapshot` does, for a run that cannot go on without it. Raises FileError that
        says how to give it up."""
        try:
            return self.snapshot(number, forgotten=forgotten)
        except FileError as error:
            if is_gone(error):
                raise
            raise self.needs(error, number, forgotten=forgotten) from error

    def needed_snapshots(self) -> list[Snapshot]:
        """Read all snapshots as `needed_snapshot` does, but for those that are forgotten meanwhile."""
        found = list[Snapshot]()
        for number in self.numbers():
            try:
                found.append(self.needed_snapshot(number))
            except FileError as error:
                if not is_gone(error):
                    raise
        return found

    def needs(self, error: FileError, number: int, *, forgotten: bool) -> FileError:
        """Return the error of a snapshot that a run cannot go on without, with how to give it up."""
        advice = f"rdc store forget --apply {typed(self.label)} @{number}"
        if forgotten:
            advice = f"rm -f {typed(self.shown(b'forgotten/%d' % number))}"
        return FileError(error.path_bytes, f"{error}; or give up snapshot {number}: {advice}")

    def forgotten_numbers(self) -> list[int]:
        """Return the numbers of the snapshots in the trash, in order. Raises FileError."""
        return sorted(int(name) for name in self._listed(b"forgotten") if _NUMBER.fullmatch(name))

    def forgotten_at(self, number: int) -> float:
        """Return when a snapshot was forgotten, in seconds since 1970. Raises FileError."""
        path = b"forgotten/%d" % number
        try:
            return os.stat(path, dir_fd=self._fd, follow_symlinks=False).st_mtime
        except OSError as error:
            raise storing_failure(error, self.shown(path), "look at it") from error

    def forget(self, numbers: Sequence[int]) -> None:
        """Move snapshots to the trash, and make that durable. Raises RdcError."""
        for number in numbers:
            name = b"snapshots/%d" % number
            try:
                # Its mtime says when it was forgotten.
                os.utime(name, dir_fd=self._fd, follow_symlinks=False)
                os.rename(name, b"forgotten/%d" % number, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            except FileNotFoundError:
                continue  # another run forgot it
            except OSError as error:
                raise storing_failure(error, self.shown(name), "forget it") from error
        self._sync(b"forgotten", b"snapshots")

    def remove_forgotten(self, number: int) -> None:
        """Remove a snapshot from the trash. Raises RdcError."""
        self._remove(b"forgotten/%d" % number)
        self._sync(b"forgotten")

    def remove_packs(self, names: Sequence[bytes]) -> None:
        """Remove packs. Raises RdcError."""
        for name in names:
            self._remove(pack_path(name))
        self._sync(*sorted({pack_path(name).rpartition(b"/")[0] for name in names}))

    def read_small(self, path: bytes, most: int) -> bytes:
        """Return at most `most` bytes of one of the store's files; b"" if it is missing. Raises FileError."""
        try:
            fd = os.open(path, _READ, dir_fd=self._fd)
            try:
                return os.pread(fd, most, 0)
            finally:
                os.close(fd)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise storing_failure(error, self.shown(path), "read it") from error

    def _remove(self, path: bytes) -> None:
        try:
            os.unlink(path, dir_fd=self._fd)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise storing_failure(error, self.shown(path), "remove it") from error

    def _sync(self, *directories: bytes) -> None:
        for path in directories:
            try:
                sync_directory(path, self._fd)
            except OSError as error:
                raise storing_failure(error, self.shown(path), "make it durable") from error

    def commit(self, snapshot: Snapshot) -> Snapshot:
        """Add a snapshot under the next number, which replaces its own. Return it. Raises RdcError.

        Its packs are durable. The snapshot is listed at the moment in which the link appears.
        """
        number = 1 + max([0, *self.numbers(), *self.forgotten_numbers()])
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
    def locked(
        self, *, exclusive: bool = False, required: bool = False, wait: float = LOCK_SECONDS
    ) -> Iterator[None]:
        """Hold the store's lock for the time of the block: shared with other puts, or alone.

        `required`: fail where the file system has no locks; else go on without. `wait`: seconds. Raises
        RdcError with exit code 40 if others hold it for longer, and FileError if it cannot be opened.
        """
        try:
            fd = os.open(LOCK_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._fd)
        except FileNotFoundError as error:
            # Not made here: a run may still hold the lock of the file that was removed.
            raise self._no_lock() from error
        except OSError as error:
            raise storing_failure(error, self.shown(LOCK_NAME), "open it") from error
        try:
            try:
                found = _locked_in_time(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, wait)
            except OSError as error:
                raise storing_failure(error, self.shown(LOCK_NAME), "lock it") from error
            if found is _Lock.BUSY:
                used = "puts, restores or checks run" if exclusive else "it is being cleaned"
                raise RdcError(
                    f"{printable(self.label)}: the store is in use ({used}); try again later",
                    code=ExitCode.BUSY,
                )
            if found is _Lock.NONE and required:
                raise RdcError(
                    f"{printable(self.label)}: the file system has no locks, so nothing shows whether puts"
                    " run; with --exclusive, gc trusts you that none do",
                    code=ExitCode.REFUSED,
                )
            yield
        finally:
            os.close(fd)

    def _no_lock(self) -> FileError:
        shown = self.shown(LOCK_NAME)
        return FileError(
            shown,
            f"{printable(shown)}: expected the file that shows gc whether puts and restores run, found none;"
            f" once no rdc uses the store, make it again: touch {typed(shown)}",
        )

    def check_lock(self) -> None:
        """Raise FileError if the file is missing whose lock shows that puts and restores run."""
        try:
            os.stat(LOCK_NAME, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError as error:
            raise self._no_lock() from error
        except OSError as error:
            raise storing_failure(error, self.shown(LOCK_NAME), "look at it") from error

    def hold(self) -> None:
        """Keep packs from being removed until the store is closed, as far as this user may lock it."""
        if self._held is None:
            self._held = StoreLock(self._fd)

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Be the only one that writes an index for the time of the block. Raises RdcError."""
        shown = self.shown(b"snapshots")
        try:
            fd = os.open(b"snapshots", _DIRECTORY, dir_fd=self._fd)
        except OSError as error:
            raise storing_failure(error, shown, "open it") from error
        try:
            if _locked_in_time(fd, fcntl.LOCK_EX, LOCK_SECONDS) is _Lock.BUSY:
                raise RdcError(
                    f"{printable(self.label)}: another run writes the index; publish again later",
                    code=ExitCode.BUSY,
                )
            yield
        finally:
            os.close(fd)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Be the only gc for the time of the block. Raises RdcError with exit code 40 if another one runs."""
        shown = self.shown(b"forgotten")
        try:
            fd = os.open(b"forgotten", _DIRECTORY, dir_fd=self._fd)
        except OSError as error:
            raise storing_failure(error, shown, "open it") from error
        try:
            if _locked_in_time(fd, fcntl.LOCK_EX, 0) is _Lock.BUSY:
                raise RdcError(
                    f"{printable(self.label)}: another gc cleans the store; let it end", code=ExitCode.BUSY
                )
            yield
        finally:
            os.close(fd)

    def check_owner(self) -> None:
        """Raise RdcError if others may write into the store, or own it, so that a put would trust them."""
        found = os.fstat(self._fd)
        wrong = found.st_uid not in (os.geteuid(), 0) or _is_open_to_others(found)
        if wrong and _keeps_owner_and_mode(self._fd):
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


def is_gone(error: FileError) -> bool:
    """Return whether reading a snapshot failed because there is none, so it was forgotten since it was
    listed."""
    return isinstance(error.__cause__, FileNotFoundError)


def typed(path: bytes) -> str:
    """Return a path as a shell takes it."""
    return shlex.quote(printable(path))


class StoreLock:
    """A shared lock on the store in a directory, as far as there is one and this user may lock it.

    While it is held, no gc removes packs.
    """

    def __init__(self, directory: int) -> None:
        """`directory`: a descriptor of the directory, which may be no store yet."""
        self._fd = -1
        with suppress(OSError):
            self._fd = os.open(LOCK_NAME, _READ, dir_fd=directory)
            _locked_in_time(self._fd, fcntl.LOCK_SH, LOCK_SECONDS)

    @classmethod
    def at(cls, directory: int, entry: bytes) -> StoreLock:
        """Return the lock of the store that is the entry of an open directory, or may become one; b"": of
        that directory itself."""
        if not entry:
            return cls(directory)
        try:
            fd = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        except OSError:
            return cls(-1)
        try:
            return cls(fd)
        finally:
            os.close(fd)

    def is_alone(self) -> bool:
        """Turn it into an exclusive lock. Return whether nobody else holds one by then."""
        if self._fd < 0:
            return True
        try:
            return _locked_in_time(self._fd, fcntl.LOCK_EX, LOCK_SECONDS) is not _Lock.BUSY
        except OSError:
            return False

    def close(self) -> None:
        """Give it up. May be called again."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class _Lock(Enum):
    """The result of an attempt to lock a store."""

    HELD = "held"
    BUSY = "others hold it"
    NONE = "the file system has none"


def _locked_in_time(fd: int, how: int, seconds: float) -> _Lock:
    """Lock an open file, at the latest after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return _Lock.BUSY
            time.sleep(_LOOK_SECONDS)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return _Lock.NONE
            raise
        else:
            return _Lock.HELD


def _is_open_to_others(found: os.stat_result) -> bool:
    return bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _keeps_owner_and_mode(directory: int) -> bool:
    """Return whether a new file has the owner and mode that it is made with. Elsewhere, as on FAT, those of
    an entry say nothing: whoever may write there may write anywhere on that file system."""
    made, before = [-1], os.fstat(directory)

    def make(name: bytes) -> None:
        made[0] = create_temporary(name, directory)

    try:
        temporary = make_aside(b"trial", make)
    except OSError:
        return True
    try:
        found = os.fstat(made[0])
        return found.st_uid == os.geteuid() and not _is_open_to_others(found)
    finally:
        os.close(made[0])
        with suppress(OSError):  # the next put removes it
            os.unlink(temporary, dir_fd=directory)
            os.utime(directory, ns=(before.st_atime_ns, before.st_mtime_ns))


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
            made[0] = create_temporary(temporary, directory, 0o400)

        temporary = make_aside(name, make)
        try:
            lock_temporary(made[0])
            view = memoryview(data)
            while view:
                view = view[os.write(made[0], view) :]
            flush(made[0])
            # Where no call refuses a name that is taken, the lock keeps another put away meanwhile.
            with suppress(OSError):
                fcntl.flock(directory, fcntl.LOCK_EX)
            take_free_name(temporary, name, directory)
        finally:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
        flush(directory)
    finally:
        for fd in (made[0], directory):
            if fd >= 0:
                os.close(fd)


def make_store(path: bytes) -> None:
    """Make a store in a missing or empty directory, unless one is there. Raises RdcError.

    The head comes last. What a killed run left is no store and is completed. A store whose head is lost is
    damaged, and gets no other one. None is made inside another one, where it would hide a snapshot of its
    name, or go with the next copy.
    """
    above = store_above(path)
    if above is not None and above != os.path.realpath(path):
        raise UsageError(
            f"{printable(path)} lies in the store {printable(above)}: name that store, or a place outside it"
        )
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
            _sync_above(path)
        directory = os.open(path, _DIRECTORY & ~os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _no_place(path) from error
    except OSError as error:
        raise storing_failure(error, path, "make a store") from error
    try:
        _fill(directory, path)
    except OSError as error:
        raise storing_failure(error, path, "make a store") from error
    finally:
        os.close(directory)


def _no_store(path: bytes) -> FileError:
    """Return the error of a path at which there is no directory."""
    found, above = "something else" if os.path.lexists(path) else "nothing", store_above(path)
    advice = "rdc store put makes one" if above is None else f"the store is {printable(above)}"
    return FileError(path, f"{printable(path)}: expected a store, found {found}; {advice}")


def _no_place(path: bytes) -> FileError:
    """Return the error of a path at which no directory can be made."""
    if os.path.lexists(path):
        expected = "a store, or a missing or empty directory to make one in"
        return FileError(
            path, f"{printable(path)}: expected {expected}, found something else; name another place"
        )
    above = os.path.dirname(path.rstrip(b"/")) or b"."
    shown = printable(above)
    if os.path.isdir(above):
        return FileError(
            above, f"{shown}: expected a directory that a store can be made in; name another place"
        )
    found = "a file" if os.path.exists(above) else "nothing"
    return FileError(
        above,
        f"{shown}: expected a directory to make the store in, found {found}; make it, or mount it, and run"
        " again",
    )


def _sync_above(path: bytes) -> None:
    fd = os.open(os.path.dirname(path.rstrip(b"/")) or b".", _DIRECTORY & ~os.O_NOFOLLOW)
    try:
        flush(fd)
    finally:
        os.close(fd)


def _fill(directory: int, path: bytes) -> None:
    if read_head(directory, path) is not None:
        return
    names = {os.fsencode(name) for name in os.listdir(directory)}
    strange = sorted(name for name in names - _OWN if not is_reserved(name))
    if not strange:
        _check_lost_head(directory, path)
    if strange or HEAD_NAME in names:
        shown = printable((strange or [HEAD_NAME])[0])
        raise UsageError(
            f"{printable(path)}: expected a store, or a missing or empty directory to make one in, found"
            f" '{shown}'; name another directory"
        )
    for name in _DIRECTORIES:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=directory)
    os.close(
        os.open(LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=directory)
    )
    flush(directory)
    params = ChunkParams.for_mean(CHUNK_MEAN)
    head = _HEAD.pack(MAGIC, VERSION, os.urandom(16), params.min_size, params.max_size, b"")[:-32]
    with suppress(FileExistsError):
        link_new(head + blake3(head).digest(), HEAD_NAME, directory)
