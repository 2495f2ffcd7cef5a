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
from functools import partial
from itertools import chain

from rdc.errors import ExitCode, FileError, RdcError, printable
from rdc.files.base.directory_descriptors import Closing
from rdc.files.base.paths import UNDO_NAME
from rdc.files.base.taking_names import refuses_links, sync_directory_at
from rdc.files.own import record_log
from rdc.files.own.record_log import (
    RecordError,
    RecordLog,
    encoded,
    line_of,
    number_of,
    relative_path_of,
    time_of,
)
from rdc.lean.records import Record, field_names
from rdc.limits import RECORDS
from rdc.model.entries import Metadata
from rdc.model.preserved import Attributes, packed_time, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from rdc.files.root.root import Root
    from rdc.model.options import KeepUndo


# The journal of one sync: what it was about to do to each entry, in order. UNDO.md defines the format.
#
# Version 1 is still read. Its lines have no ctimes: they are 0 then, and it has no Left, Held and Own.

VERSION = 2


class Facts(Record):
    """The facts that tell one entry from another."""

    format: int
    """The format bits of st_mode."""
    inode: int
    size: int
    """Bytes; 0 for a directory."""
    mtime_ns: int
    ctime_ns: int = 0
    """The ctime of the entry before the sync touched it. For a file that got a further name, the
    ctime before that. 0: unknown, or nothing that counts."""

    @property
    def is_directory(self) -> bool:
        return self.format == stat.S_IFDIR

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """The facts that must be equal for two entries to be the same one."""
        return self.format, self.inode, self.size, self.mtime_ns


def facts_of(found: os.stat_result) -> Facts:
    bits = stat.S_IFMT(found.st_mode)
    if bits == stat.S_IFDIR:
        return Facts(bits, found.st_ino, 0, 0)
    return Facts(bits, found.st_ino, found.st_size, packed_time(found.st_mtime_ns), found.st_ctime_ns)


class Head(Record):
    """The first line."""

    version: int
    top: int
    """Inode number of the destination."""
    seconds: int
    """The start of the sync: seconds since 1970."""


class Made(Record):
    """An entry appeared where nothing was."""

    path: bytes
    new: Facts
    """The facts; of a directory, only the format counts."""


class Saved(Record):
    """An entry other than a directory was replaced or removed. It has another name among the kept ones."""

    path: bytes
    number: int
    """Its name among the kept ones."""
    old: Facts
    new: Facts | None
    """The entry that took its place; None: nothing."""


class RemovedDirectory(Record):
    """An empty directory was removed or replaced."""

    path: bytes
    new: Facts | None
    """The entry that took its place; None: nothing."""


class Changed(Record):
    """The metadata of an entry changed, or (of a directory) were about to change because of its entries."""

    path: bytes
    old: Facts
    metadata: Metadata
    """Before the change."""
    attributes: Attributes | None
    """Before the change; None: they did not change."""
    wanted: Metadata | None
    """After the change; None: unknown."""


class Moved(Record):
    """An entry was renamed, with everything below it."""

    path: bytes
    """Before."""
    new: bytes
    """Afterwards."""
    facts: Facts


class Left(Record):
    """The sync has changed the metadata of a regular file, or given it a further name."""

    inode: int
    ctime_ns: int
    """Afterwards."""


class Held(Record):
    """The entries that the sync replaced or removed, which have their names among the kept ones alone by
    now."""

    ctimes_ns: tuple[tuple[int, int], ...]
    """The number of each, and the ctime of the file."""


class Own(Record):
    """An undo acts on a file whose ctime was as this sync left it, or has acted on it."""

    inode: int
    was: int
    """The ctime that the file had when it was as it is now, or as it was before the undo began to act on
    it."""
    now: int | None
    """Its ctime; None: the undo is about to act on it."""


class Finished(Record):
    """The sync came to its end."""

    entries: int
    bytes: int
    """Space that the kept entries took."""


class Undoing(Record):
    """An undo began."""


class Ended(Record):
    """An undo came to its end and left some entries alone."""

    left_alone: int
    bytes: int
    """Space that the kept entries take, which were not put back."""


Step: TypeAlias = "Made | Saved | RemovedDirectory | Changed | Moved"
"""A line about a change."""

Line: TypeAlias = "Head | Step | Left | Held | Own | Finished | Undoing | Ended"


class _Form(Record):
    """The writer and the reader of one value of a line. The reader raises RecordError for any other."""

    write: Callable[[Any], object]
    read: Callable[[object], Any]

    def or_none(self) -> _Form:
        """Return the form of a value that may be None."""
        return _Form(
            lambda value: None if value is None else self.write(value),
            lambda value: None if value is None else self.read(value),
        )


def _text(data: bytes) -> str:
    return encoded(data).decode("ascii")


def _write_facts(facts: Facts) -> list[int]:
    return [facts.format, facts.inode, facts.size, real_time(facts.mtime_ns), facts.ctime_ns]


def _read_facts(items: object) -> Facts:
    match items:
        case [int(bits), int(inode), int(size), mtime_ns, *ctime] if len(ctime) < 2:
            ctime_ns = number_of(ctime[0]) if ctime else 0
            return Facts(bits, inode, size, packed_time(time_of(mtime_ns)), ctime_ns)
    raise RecordError("the facts of an entry")


def _write_metadata(metadata: Metadata) -> list[int]:
    return [metadata.mode, real_time(metadata.mtime_ns), metadata.uid, metadata.gid]


def _read_metadata(items: object) -> Metadata:
    match items:
        case [mode, mtime_ns, uid, gid]:
            return record_log.metadata_of(mode, mtime_ns, uid, gid)
    raise RecordError("the metadata of an entry")


def _read_attributes(pairs: object) -> Attributes:
    if not isinstance(pairs, list) or any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        raise RecordError("names and values of attributes")
    # The other journal has them in turn.
    return record_log.attributes_of([part for pair in pairs for part in pair])


def _read_held(pairs: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(pairs, list) or len(pairs) % 2:
        raise RecordError("numbers and ctimes")
    numbers = list(map(number_of, pairs))
    return tuple(zip(numbers[0::2], numbers[1::2], strict=True))


def _read_natural(value: object, most: int | None = None) -> int:
    number = number_of(value)
    if number < 0 or (most is not None and not 1 <= number <= most):
        raise RecordError("a number in its range")
    return number


_NUMBER = _Form(int, number_of)
_PATH = _Form(_text, relative_path_of)
_FACTS = _Form(_write_facts, _read_facts)
_METADATA = _Form(_write_metadata, _read_metadata)
_ATTRIBUTES = _Form(lambda pairs: [list(map(_text, pair)) for pair in pairs], _read_attributes)

_LINES: dict[str, tuple[type, tuple[_Form, ...]]] = {
    "rdc undo": (Head, (_Form(int, partial(_read_natural, most=VERSION)), _NUMBER, _NUMBER)),
    "make": (Made, (_PATH, _FACTS)),
    "keep": (Saved, (_PATH, _Form(int, _read_natural), _FACTS, _FACTS.or_none())),
    "rmdir": (RemovedDirectory, (_PATH, _FACTS.or_none())),
    "set": (
        Changed,
        (
            *(_Form(_text, partial(relative_path_of, top=True)), _FACTS, _METADATA),
            *(_ATTRIBUTES.or_none(), _METADATA.or_none()),
        ),
    ),
    "move": (Moved, (_PATH, _PATH, _FACTS)),
    "left": (Left, (_NUMBER, _NUMBER)),
    "held": (Held, (_Form(lambda pairs: list(chain.from_iterable(pairs)), _read_held),)),
    "own": (Own, (_NUMBER, _NUMBER, _NUMBER.or_none())),
    "finished": (Finished, (_NUMBER, _NUMBER)),
    "undoing": (Undoing, ()),
    "ended": (Ended, (_NUMBER, _NUMBER)),
}
"""By its first item: the record of a line, and the forms of its fields."""

_WORDS = {kind: (word, forms) for word, (kind, forms) in _LINES.items()}


def encode(record: Line) -> bytes:
    """Return the line of a record."""
    word, forms = _WORDS[type(record)]
    values = [getattr(record, name) for name in field_names(type(record))]
    items = [word, *(form.write(value) for form, value in zip(forms, values, strict=True))]
    return line_of(items)


def decode(items: object) -> Line:
    """Return the record of a line's JSON. Raises RecordError for any that `encode` does not make."""
    match items:
        case [str(word), *values] if word in _LINES and len(values) == len(_LINES[word][1]):
            kind, forms = _LINES[word]
            found: Line = kind(*(form.read(value) for form, value in zip(forms, values, strict=True)))
            return found
    raise RecordError("a record of a sync that can be undone")


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
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

    def append(self, records: list[Line], *, fsync: bool) -> int:
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

    def is_cut(self) -> bool:
        """Return whether the journal is shorter than it was, so that its end may have been another one."""
        noted = self._journal.noted_length()
        return noted is not None and not 0 <= noted <= self._journal.size()

    def _named(self) -> set[int]:
        """Return the numbers of the kept entries that the journal names. Raises FileError for a damaged
        journal."""
        return {record.number for record in self.backwards() if isinstance(record, Saved)}

    def _unnamed(self, kept: set[int]) -> bytes:
        """Return the name of a kept entry that has no other name, and whose number is not in `kept`; b"" for
        none. An entry that was kept right before a kill has no line yet, but another name, unless a user
        removed it."""
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

    def backwards(self) -> Iterator[Line]:
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
        """Return how the sync and the last undo ended, None for not at all, and whether an undo began. Raises
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
        """The last change of a record without a head: seconds since 1970."""
        return int(os.fstat(self.saved).st_mtime)

    def size(self) -> int:
        """Return the bytes of disk space that the kept entries take. Raises RdcError."""
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


class UndoStore(Closing):
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
                with suppress(OSError):  # a directory of another user keeps the new time
                    os.utime(b".", dir_fd=top, ns=(before.st_atime_ns, before.st_mtime_ns))
                if fsync:
                    sync_directory_at(b".", top)
        store = cls.open(root)
        if store is None:
            raise _failed(root.shown(UNDO_NAME), "open it", FileNotFoundError(errno.ENOENT, ""))
        return store

    def numbers(self) -> list[int]:
        """Return the numbers of the records, in increasing order. Raises RdcError."""
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
            raise _failed(self.shown, "make a record in it", error) from error
        return record

    def _check_links(self, directory: int) -> None:
        """Raise RdcError if the file system refuses a second name for a file. Raises OSError."""
        try:
            os.link(b"journal", b"kept/probe", src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            if not refuses_links(error):
                raise
            raise RdcError(
                f"{printable(self.shown)}: cannot keep anything to undo: expected hard links, found that the"
                f" file system has none ({os.strerror(error.errno or 0)}); leave out --keep-undo",
                code=ExitCode.FILE_IO,
            ) from error
        os.unlink(b"kept/probe", dir_fd=directory)

    def _make(self, number: int, seconds: int, *, fsync: bool) -> StoredSync:
        """Make a record without a number yet. Raises OSError and RdcError."""
        os.mkdir(_NEW, 0o700, dir_fd=self._fd)
        directory = os.open(_NEW, _DIRECTORY, dir_fd=self._fd)
        try:
            os.mkdir(b"kept", 0o700, dir_fd=directory)
            journal = os.open(b"journal", _APPEND | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
            length = os.open(b"length", _WRITE | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
            self._check_links(directory)
        except (OSError, RdcError):
            os.close(directory)
            raise
        log = RecordLog(journal, length, lasting=fsync)
        record = StoredSync(self._shown(number), number, directory, log)
        record.append([Head(VERSION, os.fstat(self._root.fileno()).st_ino, seconds)], fsync=fsync)
        if fsync:
            sync_directory_at(b".", directory)
        return record

    def stored(self, number: int) -> StoredSync:
        """Open a record. One that has lost its journal has an empty one. Raises RdcError."""
        shown = self._shown(number)
        with _failing(shown, "open it", "move this record away, and what it keeps with it, to go on"):
            directory = _trusted(shown, os.open(b"%d" % number, _DIRECTORY, dir_fd=self._fd))
            try:
                try:
                    journal = _trusted_file(shown, os.open(b"journal", _APPEND, dir_fd=directory))
                except FileNotFoundError:
                    journal = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
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
    """Do as `_trusted` does, for a regular file with one name. Raises RdcError."""
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
        while days is not None and self._older:
            try:
                age = self._age(self._older[0])
            except RdcError:
                self._older.pop(
                    0
                )  # no record that can be opened: it stays, and those after it have their turn
                continue
            if age <= days * DAY_SECONDS:
                break
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
        try:
            record = self._store.stored(number)
        except RdcError:
            return 0  # it cannot be opened, which its own undo says
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
        """Return the seconds since the sync began; negative if the clock was set back."""
        record = self._store.stored(number)
        try:
            head = record.head()
            # A journal that lost its head keeps what it has until its turn, too.
            return self._seconds - (record.made if head is None else head.seconds)
        finally:
            record.close()


_ELSE = "check the disk and the system log, and run again"


@contextmanager
def _failing(shown: bytes, doing: str, advice: str = _ELSE) -> Iterator[None]:
    """Raise an OSError within as the RdcError of `_failed`."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _failed(shown, doing, error, advice) from error


_ADVICE = {
    errno.EACCES: "run as its owner",
    errno.EPERM: "run as its owner",
    errno.EROFS: "mount it so that it can be written",
    errno.ENOTDIR: "move it away, then run again",
    errno.ENOSPC: "make room there, then run again",
    errno.EDQUOT: "make room there, then run again",
    errno.EMFILE: "raise the limit of open files (ulimit -n), and run again",
}
"""The advice for an error, by its number."""


def _failed(shown: bytes, doing: str, error: OSError | ValueError, advice: str = _ELSE) -> RdcError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, OSError):
        advice = _ADVICE.get(error.errno or 0, advice)
    return RdcError(f"{printable(shown)}: cannot {doing}: {reason or error}; {advice}", code=ExitCode.FILE_IO)
