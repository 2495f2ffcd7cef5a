"""UndoStore: the directory `.rdc-undo` of a destination, with one record for each sync that can be undone.

Only the effective user may have written what is in it: a record decides about owners and modes of entries.
StoredSync is one record, and Bounds drops the oldest ones.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager, suppress

from rdc.errors import ExitCode, FileError, RdcError, printable
from rdc.files.base.durability import sync_directory_at
from rdc.files.base.temporary_names import UNDO_NAME
from rdc.files.own.record_log import RecordError, RecordLog
from rdc.limits.sessions import RECORDS
from rdc.undoing.journal import Ended, Finished, Head, Own, Saved, Undoing, decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.root.root import Root
    from rdc.model.options import KeepUndo
    from rdc.undoing.journal import Record

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}
_NEW = b"new"
"""The name of a record that is being made."""

_GONE = b".gone"
"""The end of the name of a record that is being removed."""

DAY_SECONDS = 86_400


class StoredSync:
    """The record of one sync: a journal, and the entries that the sync replaced or removed."""

    def __init__(self, shown: bytes, number: int, directory: int, journal: RecordLog) -> None:
        """Take over the descriptor of the record's directory, and its journal."""
        self.number = number
        self.shown = shown
        """The record's path in messages."""
        self.directory = directory
        self._journal = journal
        self.saved = _trusted(shown, os.open(b"kept", _DIRECTORY, dir_fd=directory))
        """Descriptor of the directory of the kept entries."""

    def append(self, records: list[Record], *, fsync: bool) -> int:
        """Append to the journal, and with `fsync` wait for the disk. Return the bytes written. Raises
        RdcError."""
        data = b"".join(map(encode, records))
        if data:
            with _failing(self.shown, "write the journal"):
                self._journal.append(data, fsync=fsync)
        return len(data)

    def end(self) -> None:
        """Make the journal's length durable, after the last line of a sync. Raises RdcError."""
        with _failing(self.shown, "write the journal"):
            self._journal.end()

    def check(self) -> None:
        """Raise RdcError if the journal has lost a part, so that it does not say all that the sync did."""
        journal = self._journal
        noted, whole = journal.noted_length(), journal.whole_size(decode)
        if noted is not None and not 0 <= noted <= whole:
            shown = str(noted) if noted >= 0 else "an unreadable number of"
            raise self._damaged(f"the {shown} bytes that were written", f"{whole}")
        head = self.head()
        if head is None and (journal.size() or journal.has_length or self._unnamed(set())):
            raise self._damaged("a first line", "none")
        if head is not None and head.version > 1 and not journal.has_length:
            raise self._damaged("its length in a file beside it", "none")
        if noted is None and (unnamed := self._unnamed(self._named())):
            raise self._damaged("a line about each kept entry", f"none about {os.fsdecode(unnamed)}")

    def _named(self) -> set[int]:
        """The numbers of the kept entries that the journal names. Raises FileError for a damaged journal."""
        return {record.number for record in self.backwards() if isinstance(record, Saved)}

    def _unnamed(self, kept: set[int]) -> bytes:
        """The name of a kept entry that has no other name, and whose number is not in `kept`; b"" for none.
        An entry that was kept right before a kill has no line yet, but another name, unless a user removed
        it."""
        for name in map(os.fsencode, os.listdir(self.saved)):
            if not (name.isdigit() and len(name) < 19 and int(name) in kept):
                found = os.stat(name, dir_fd=self.saved, follow_symlinks=False)
                if found.st_nlink < 2 or stat.S_ISDIR(found.st_mode):
                    return name
        return b""

    def _damaged(self, expected: str, found: str) -> RdcError:
        shown = printable(self.shown)
        return RdcError(
            f"{shown}/journal: cannot undo it: expected {expected}, found {found}: a part of the journal is"
            f" lost. Nothing was undone, and what the sync replaced and removed stays in {shown}/kept. Copy"
            f" what you need from there, then remove {shown}",
            code=ExitCode.FILE_IO,
        )

    def cut(self) -> None:
        """Remove what a kill or power cut left of a last write. Raises RdcError."""
        with _failing(self.shown, "read the journal"):
            self._journal.cut(decode)

    def backwards(self) -> Iterator[Record]:
        """Yield the records, the last first. Raises FileError for a damaged journal."""
        try:
            yield from self._journal.backwards(decode)
        except RecordError as error:
            path = self.shown + b"/journal"
            raise FileError(
                path,
                f"{printable(path)}: cannot read it: expected a journal of rdc undo, found a line that rdc"
                " did not write; what is kept beside it stays",
            ) from error

    def head(self) -> Head | None:
        """Return the first line; None if a kill prevented it."""
        head = self._journal.first(decode)
        return head if isinstance(head, Head) else None

    def state(self) -> tuple[Finished | None, Ended | None, bool]:
        """How the sync and the last undo ended, None for not at all, and whether an undo began. Raises
        FileError."""
        ended, begun = None, False
        for record in self.backwards():
            if isinstance(record, Own):
                continue
            if isinstance(record, Finished):
                return record, ended, begun
            if isinstance(record, Ended) and not begun:
                ended = record
            begun = begun or isinstance(record, (Undoing, Ended))
            if not isinstance(record, (Ended, Undoing)):
                break
        return None, ended, begun

    @property
    def made(self) -> int:
        """When the record was changed last, for one without a head: seconds since 1970."""
        return int(os.fstat(self.saved).st_mtime)

    def size(self) -> int:
        """Bytes of disk space that the kept entries take. Raises RdcError."""
        total = 0
        with _failing(self.shown, "look at it"), os.scandir(self.saved) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    total += 512 * entry.stat(follow_symlinks=False).st_blocks
        return total

    def close(self) -> None:
        self._journal.close()
        for fd in (self.saved, self.directory):
            os.close(fd)


class UndoStore:
    """The open and locked directory of records. A context manager that unlocks and closes it."""

    def __init__(self, root: Root, fd: int) -> None:
        """Take over `fd`, a descriptor of the directory. Raises RdcError if another process works in it."""
        self._root = root
        self._fd = fd
        self.shown = root.shown(UNDO_NAME)
        self._lock = -1
        try:
            self._lock = os.open(
                b"lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd
            )
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise RdcError(
                f"{printable(self.shown)}: a sync that keeps an undo, or an undo, works here now; run again"
                " when it has ended",
                code=ExitCode.FILE_IO,
            ) from error
        except OSError as error:
            self.close()
            raise _failed(self.shown, "lock it", error) from error

    @classmethod
    def open(cls, root: Root) -> UndoStore | None:
        """Open the directory below `root`; None if there is none. Raises RdcError."""
        try:
            fd = os.open(UNDO_NAME, _DIRECTORY, dir_fd=root.fileno())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(root.shown(UNDO_NAME), "open it", error) from error
        return cls(root, _trusted(root.shown(UNDO_NAME), fd))

    @classmethod
    def make(cls, root: Root, *, fsync: bool) -> UndoStore:
        """Open the directory below `root`, and make it if there is none. The mtime of `root` stays. Raises
        RdcError."""
        top = root.fileno()
        with _failing(root.shown(UNDO_NAME), "make it"):
            before = os.fstat(top)
            with suppress(FileExistsError):
                os.mkdir(UNDO_NAME, 0o700, dir_fd=top)
                with suppress(PermissionError):  # a directory of another user keeps the new time
                    os.utime(b".", dir_fd=top, ns=(before.st_atime_ns, before.st_mtime_ns))
                if fsync:
                    sync_directory_at(b".", top)
        store = cls.open(root)
        if store is None:
            raise _failed(root.shown(UNDO_NAME), "open it", FileNotFoundError(errno.ENOENT, ""))
        return store

    def numbers(self) -> list[int]:
        """The numbers of the records, in increasing order. Raises RdcError."""
        with _failing(self.shown, "list it"):
            names = [os.fsencode(name) for name in os.listdir(self._fd)]
        return sorted(int(name) for name in names if name.isdigit() and len(name) < 19 and name[:1] != b"0")

    def begin(self, seconds: int, *, fsync: bool) -> StoredSync:
        """Make the record of a new sync. Raises RdcError, also where files take no second name."""
        numbers = self.numbers()
        if len(numbers) >= RECORDS:
            self.drop(numbers[0])
        number = numbers[-1] + 1 if numbers else 1
        try:
            record = self._make(number, seconds, fsync=fsync)
            # A record is numbered only once complete; `clear` removes incomplete ones.
            os.rename(_NEW, b"%d" % number, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            if fsync:
                sync_directory_at(b".", self._fd)
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise RdcError(
                    f"{printable(self.shown)}: cannot keep anything to undo: the file system has no hard"
                    " links; leave out --keep-undo",
                    code=ExitCode.FILE_IO,
                ) from error
            raise _failed(self.shown, "make a record in it", error) from error
        return record

    def _make(self, number: int, seconds: int, *, fsync: bool) -> StoredSync:
        """Make a record without a number yet. Raises OSError and RdcError."""
        os.mkdir(_NEW, 0o700, dir_fd=self._fd)
        directory = os.open(_NEW, _DIRECTORY, dir_fd=self._fd)
        try:
            os.mkdir(b"kept", 0o700, dir_fd=directory)
            journal = os.open(b"journal", _APPEND | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
            length = os.open(b"length", _WRITE | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
            os.link(b"journal", b"kept/probe", src_dir_fd=directory, dst_dir_fd=directory)
            os.unlink(b"kept/probe", dir_fd=directory)
        except OSError:
            os.close(directory)
            raise
        log = RecordLog(journal, length, lasting=fsync)
        record = StoredSync(self._shown(number), number, directory, log)
        record.append([Head(os.fstat(self._root.fileno()).st_ino, seconds)], fsync=fsync)
        if fsync:
            sync_directory_at(b".", directory)
        return record

    def stored(self, number: int) -> StoredSync:
        """Open a record. Raises RdcError."""
        shown = self._shown(number)
        with _failing(shown, "open it"):
            directory = _trusted(shown, os.open(b"%d" % number, _DIRECTORY, dir_fd=self._fd))
            try:
                journal = _trusted_file(shown, os.open(b"journal", _APPEND, dir_fd=directory))
                length = -1
                with suppress(FileNotFoundError):  # a record of version 1
                    length = _trusted_file(shown, os.open(b"length", _WRITE, dir_fd=directory))
                return StoredSync(shown, number, directory, RecordLog(journal, length))
            except OSError:
                os.close(directory)
                raise

    def drop(self, number: int) -> None:
        """Remove a record with everything it keeps. A kill leaves the rest to `clear`. Raises RdcError."""
        name = b"%d" % number
        with _failing(self._shown(number), "remove it"):
            os.rename(name, name + _GONE, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            self._remove(name + _GONE)

    def clear(self) -> None:
        """Remove what is left of records whose making or removal was interrupted. Raises RdcError."""
        with _failing(self.shown, "remove old records"):
            for name in map(os.fsencode, os.listdir(self._fd)):
                if name == _NEW or name.endswith(_GONE):
                    self._remove(name)

    def _remove(self, name: bytes) -> None:
        directory = os.open(name, _DIRECTORY, dir_fd=self._fd)
        try:
            with suppress(FileNotFoundError):
                old_versions = os.open(b"kept", _DIRECTORY, dir_fd=directory)
                try:
                    for entry in os.listdir(old_versions):
                        os.unlink(entry, dir_fd=old_versions)
                finally:
                    os.close(old_versions)
                os.rmdir(b"kept", dir_fd=directory)
            for file in (b"journal", b"length"):
                with suppress(FileNotFoundError):
                    os.unlink(file, dir_fd=directory)
        finally:
            os.close(directory)
        os.rmdir(name, dir_fd=self._fd)

    def _shown(self, number: int) -> bytes:
        return self.shown + b"/%d" % number

    def close(self) -> None:
        for fd in (self._lock, self._fd):
            if fd >= 0:
                os.close(fd)
        self._lock = self._fd = -1

    def __enter__(self) -> UndoStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _trusted(shown: bytes, fd: int) -> int:
    """Return `fd` if only the effective user can have written it, else close it. Raises RdcError."""
    found = os.fstat(fd)
    if found.st_uid == os.geteuid() and not found.st_mode & 0o022:
        return fd
    os.close(fd)
    what = f"one of user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):04o}"
    raise RdcError(
        f"{printable(shown)}: cannot use it: expected a directory or file that only you can write, found"
        f" {what}; run as its owner, or move it away",
        code=ExitCode.FILE_IO,
    )


def _trusted_file(shown: bytes, fd: int) -> int:
    """As `_trusted`, for a regular file with one name. Raises RdcError."""
    found = os.fstat(_trusted(shown, fd))
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return fd
    os.close(fd)
    raise RdcError(
        f"{printable(shown)}: cannot use it: expected a file of its own, found one with other names; move it"
        " away",
        code=ExitCode.FILE_IO,
    )


class Bounds:
    """The records of earlier syncs, seen from one that keeps an undo itself.

    The record of the sync itself always stays whole, even if it is larger than the bound: to drop a part of
    it would lose what was just replaced. `finish` says so, and the next sync drops it.
    """

    def __init__(self, store: UndoStore, keep: KeepUndo, seconds: int) -> None:
        """`seconds`: the present time since 1970. Raises RdcError."""
        self._store = store
        self._keep = keep
        self._seconds = seconds
        self._older = store.numbers()
        self._sizes: dict[int, int] = {}
        if keep.size is not None:
            self._sizes = {number: self._size(number) for number in self._older}

    def make_room(self, own: int) -> None:
        """Drop records until `own` bytes of this sync fit beside them, or none is left. Raises RdcError."""
        size = self._keep.size
        while size is not None and self._older and own + sum(self._sizes.values()) > size:
            self._drop()

    def finish(self, own: int) -> list[str]:
        """Drop what is too large or too old at the end of a sync that keeps `own` bytes. Returns notices."""
        self.make_room(own)
        days = self._keep.days
        while days is not None and self._older and self._age(self._older[0]) > days * DAY_SECONDS:
            self._drop()
        if self._keep.size is not None and own > self._keep.size:
            shown = printable(self._store.shown)
            return [
                f"{shown}: this sync alone keeps {own:,} bytes to be undone, more than --keep-undo allows"
                f" ({self._keep.size:,}): it stays whole until the next sync with --keep-undo"
            ]
        return []

    def _drop(self) -> None:
        number = self._older.pop(0)
        self._sizes.pop(number, None)
        self._store.drop(number)

    def _size(self, number: int) -> int:
        record = self._store.stored(number)
        try:
            finished, ended, _ = record.state()
            if ended is not None:
                return ended.bytes
            return record.size() if finished is None else finished.bytes
        except FileError:
            return record.size()  # a damaged journal: it keeps what it has until its turn
        finally:
            record.close()

    def _age(self, number: int) -> int:
        """Seconds since the sync began; negative if the clock was set back."""
        record = self._store.stored(number)
        try:
            head = record.head()
            # A journal that lost its head keeps what it has until its turn, too.
            return self._seconds - (record.made if head is None else head.seconds)
        finally:
            record.close()


@contextmanager
def _failing(shown: bytes, doing: str) -> Iterator[None]:
    """Raise an OSError within as the RdcError of `_failed`."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _failed(shown, doing, error) from error


def _failed(shown: bytes, doing: str, error: OSError | ValueError) -> RdcError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return RdcError(f"{printable(shown)}: cannot {doing}: {reason or error}", code=ExitCode.FILE_IO)
