"""The catalog's SQLite file: opened on first use, shared by processes, and never a reason for a job to fail.

How each failure is handled:

- Damaged: the file is moved aside once and a new one is started.
- Locked by another process for more than BUSY_SECONDS: this one read or write is skipped.
- Read-only or full: reads go on, writes stop.
- Not to be created or opened, made by another program or a newer rdc, or owned by another user: one notice is
  given, and the file is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from os import PathLike

from rdc.errors import one_line, printable
from rdc.lean.records import Record
from rdc.lean.typed import TypeVar
from rdc.limits import CATALOG_ENTRY_BYTES, CATALOG_IN_SYNC

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from array import array

    from rdc.catalog.file_state import Entry, RowKey


T = TypeVar("T")

FILE_NAME = "catalog.sqlite"

BUSY_SECONDS = 2.0
"""The longest wait for another process's transaction, which takes some 10 ms. A longer wait means trouble in
that process, and signing again costs less."""

APPLICATION_ID = 0x72646363
"""SQLite's application_id: "rdcc"."""

SCHEMA_VERSION = 1

_SCHEMA = (
    # An id column keeps rows in order of arrival: insertions append, whatever the inodes are.
    """CREATE TABLE signature (
        id INTEGER PRIMARY KEY, file_system INTEGER NOT NULL, inode INTEGER NOT NULL, params INTEGER NOT NULL,
        used INTEGER NOT NULL, size INTEGER NOT NULL, path BLOB NOT NULL, root BLOB NOT NULL,
        stamp BLOB NOT NULL, value BLOB NOT NULL)""",
    "CREATE UNIQUE INDEX signature_of_file ON signature (file_system, inode, params)",
    "CREATE INDEX signature_by_use ON signature (used)",
    # AUTOINCREMENT never reuses an id, so the lowest ids are the oldest.
    "CREATE TABLE settled (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

# Primary result codes of sqlite3.h.
_ERROR, _BUSY, _LOCKED, _READONLY, _CORRUPT, _CANTOPEN, _MISMATCH, _NOTADB = 1, 5, 6, 8, 11, 14, 20, 26
_SHORT_READ = 522  # SQLITE_IOERR_SHORT_READ: the file ends before its own page count


_DAMAGED_VALUES = (ValueError, TypeError)
"""Exceptions that damaged values raise where they are read. sqlite3 itself raises UnicodeDecodeError if the
text of the schema is damaged, or if a message of SQLite quotes such a text."""


class _UnusableError(Exception):
    """The file exists and must be left alone. The text says why."""


class Database:
    """One catalog file. Not thread-safe: the caller holds a lock.

    `read` and `write` run a function on the connection. They return None or False if that was not possible.
    The function may run twice: again on a new file if the first was found damaged.
    """

    def __init__(
        self, directory: str | PathLike[str], *, busy_seconds: float = BUSY_SECONDS, parents: bool = True
    ) -> None:
        """`parents`: create all missing directories above `directory`. Otherwise create at most one level
        above it, so that a home directory that does not exist is not created."""
        self.directory = os.fspath(directory)
        self.path = os.path.join(self.directory, FILE_NAME)
        self.notices: list[str] = []
        self._busy_seconds = busy_seconds
        self._parents = parents
        self._connection: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._writable = True
        self._usable = True

    @property
    def missing(self) -> bool:
        """Return whether there is no file to read yet."""
        return self._connection is None and not os.path.exists(self.path)

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the function's result. None if it failed or there is no catalog yet."""
        return self._attempt(work, create=False)

    def write(self, work: Callable[[sqlite3.Connection], object]) -> bool:
        """Run the function in one transaction. Returns False if nothing was written."""

        def transaction(connection: sqlite3.Connection) -> bool:
            with _transaction(connection, "BEGIN IMMEDIATE"):
                work(connection)
            return True

        return self._writable and bool(self._attempt(transaction, create=True))

    def perform(self, statement: str) -> bool:
        """Run one statement outside a transaction, such as VACUUM. Returns whether it succeeded."""
        return (
            self._writable and self._attempt(lambda c: bool(c.execute(statement)), create=False) is not None
        )

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        import sqlite3

        try:
            connection.close()
        except sqlite3.Error:
            return  # closing merges the log; if that fails, the next process to close the file does it

    def _attempt(self, work: Callable[[sqlite3.Connection], T], *, create: bool) -> T | None:
        if not self._usable or (not create and self.missing):
            return None
        try:
            import sqlite3
        except ImportError:  # a Python built without it
            self._usable = False
            return None
        for _ in range(2):
            try:
                if self._connection is None:
                    self._connection = self._open()
                return work(self._connection)
            except sqlite3.Error as error:
                if not self._damage(error):
                    self._give_up(error)
                    return None
                if not self._move_aside():
                    return None
            except _DAMAGED_VALUES:
                if not self._move_aside():
                    return None
            except _UnusableError as error:
                self._refuse(str(error))
                return None
            except OSError as error:
                # No such directory, no permission to create it, or a full disk: there is no catalog here.
                self._refuse(error.strerror or str(error))
                return None
        # Damaged again at once: the disk is at fault, and rdc cannot repair it.
        self._usable = False
        return None

    # Opening

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        self._prepare()
        found = os.stat(self.path)
        self._inode = (found.st_dev, found.st_ino)
        connection = self._connect("mode=rw")
        try:
            self._check(connection)
        except sqlite3.Error as error:
            connection.close()
            if _primary(error) not in (_READONLY, _CANTOPEN):
                raise
        except BaseException:
            connection.close()
            raise
        else:
            return connection
        # A read-only directory has no room for the log's index. The file can then be read as immutable; rows
        # that another process changes meanwhile fail their stamp.
        self._writable = False
        connection = self._connect("mode=ro&immutable=1")
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        import sqlite3

        # urllib.parse.quote would take 4 ms to load.
        path = [
            chr(byte) if byte == ord("/") or bytes((byte,)).isalnum() else f"%{byte:02x}"
            for byte in os.fsencode(self.path)
        ]
        return sqlite3.connect(
            f"file:{''.join(path)}?{mode}",
            uri=True,
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )

    def prepare_directory(self) -> None:
        """Create the directory if it is missing, accessible to its owner only. Raises OSError, also if it
        belongs to another user."""
        try:
            self._check_directory()
        except _UnusableError as error:
            raise PermissionError(errno.EPERM, str(error)) from error

    def _check_directory(self) -> None:
        euid = os.geteuid()
        try:
            owner = os.stat(self.directory).st_uid
        except FileNotFoundError:
            self._make_directory(euid)
            owner = euid
        if owner != euid:
            raise _UnusableError(f"its directory belongs to user {owner}")

    def _prepare(self) -> None:
        """Create the directory and the file if missing, accessible to their owner only. Raises OSError."""
        euid = os.geteuid()
        self._check_directory()
        if not os.path.exists(self.path):
            with contextlib.suppress(FileExistsError):
                # An existing file is never opened here: closing any descriptor of a file drops all of the
                # process's locks on it.
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        owner = os.stat(self.path).st_uid
        if owner != euid:
            raise _UnusableError(f"it belongs to user {owner}")

    def _make_directory(self, euid: int) -> None:
        above = os.path.dirname(os.path.abspath(self.directory))
        while not os.path.exists(above):
            above = os.path.dirname(above)
        # Root with another user's HOME (sudo) would leave a directory there that its owner cannot write.
        if euid == 0 and os.stat(above).st_uid != 0:
            raise _UnusableError(f"{above} belongs to another user")
        parent = os.path.dirname(os.path.abspath(self.directory))
        if self._parents:
            os.makedirs(parent, exist_ok=True)
        elif not os.path.isdir(os.path.dirname(parent)):
            raise _UnusableError(f"there is no directory {os.path.dirname(parent)}")
        else:
            with contextlib.suppress(FileExistsError):
                os.mkdir(parent, 0o700)
        try:
            os.mkdir(self.directory, 0o700)
        except FileExistsError:
            return  # another process created it

    def _check(self, connection: sqlite3.Connection) -> None:
        """Create the tables in a new file. Raises _UnusableError for a file that rdc must not use."""
        import sqlite3

        # The file may come from anywhere: its schema must not run code, and cells must lie inside their
        # pages.
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        # Both queries of `_version` need one transaction: another process may create the tables between them.
        with _transaction(connection, "BEGIN"):
            version = self._version(connection)
        if version == 0:
            version = self._create(connection)
        if version != SCHEMA_VERSION:
            raise _UnusableError(f"it is of version {version}, this rdc knows {SCHEMA_VERSION}")
        if self._writable and connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            # WAL lets readers and one writer work without waiting for each other. On file systems that lack
            # shared memory (network mounts), SQLite keeps its default journal, which is as safe.
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                # Another process is switching at this moment, or works without WAL.
                if _primary(error) not in (_BUSY, _LOCKED):
                    raise
        # A power cut may lose the last transactions. They hold signatures, which can be made again.
        connection.execute("PRAGMA synchronous = NORMAL")

    @staticmethod
    def _version(connection: sqlite3.Connection) -> int:
        """Return the schema version; 0 for an empty file. Raises _UnusableError for another program's
        database."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION_ID:
            return int(version)
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application or version or tables:
            raise _UnusableError("it is some other program's database")
        return 0

    def _create(self, connection: sqlite3.Connection) -> int:
        with _transaction(connection, "BEGIN IMMEDIATE"):
            if self._version(connection) == 0:
                for statement in _SCHEMA:
                    connection.execute(statement)
            return self._version(connection)

    # Failures

    @staticmethod
    def _damage(error: sqlite3.Error) -> bool:
        code = getattr(error, "sqlite_errorcode", 0)
        # The statements are fixed and the version was checked. So what they do not find, or find in another
        # form, was damaged.
        return code & 0xFF in (_CORRUPT, _NOTADB, _ERROR, _MISMATCH) or code == _SHORT_READ

    def _give_up(self, error: sqlite3.Error) -> None:
        code = _primary(error)
        if code in (_BUSY, _LOCKED):
            return
        self._writable = False
        if self._connection is None:
            self._refuse(str(error))

    @property
    def _shown(self) -> str:
        return printable(str(self.path))

    def _refuse(self, why: str) -> None:
        self._usable = False
        self.notices.append(f"{self._shown}: not used as catalog: {one_line(why)}")

    def _move_aside(self) -> bool:
        """Rename the damaged file. If another process has done so already, its new file is used."""
        self.close()
        try:
            directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                # The lock admits one process at a time: a second one would rename the first one's new file.
                fcntl.flock(directory, fcntl.LOCK_EX)
                self._rename_damaged(directory)
            finally:
                os.close(directory)
        except OSError:
            self._usable = False
            self.notices.append(f"{self._shown}: the catalog is damaged and cannot be moved aside")
            return False
        return True

    def _rename_damaged(self, directory: int) -> None:
        try:
            found = os.stat(FILE_NAME, dir_fd=directory)
        except FileNotFoundError:
            return
        if (found.st_dev, found.st_ino) != self._inode:
            return
        damaged = FILE_NAME + ".damaged"
        # The log is renamed first: a new database must never meet the old one's log. A process that still has
        # the damaged file open may remove the new log when it closes. That costs entries, and a row left half
        # written fails its stamp.
        for suffix in ("-wal", "-shm", ""):
            try:
                os.rename(FILE_NAME + suffix, damaged + suffix, src_dir_fd=directory, dst_dir_fd=directory)
            except FileNotFoundError:
                continue
        self.notices.append(
            f"{self._shown}: the catalog was damaged and is now {damaged}; a new one begins empty"
        )


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _primary(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


# Statements that read and write the catalog's two tables: signatures of files, and trees found in sync.

_FIND = "SELECT id, used, root, stamp FROM signature WHERE file_system = ? AND inode = ? AND params = ?"

FILES_PER_STATEMENT = 256
"""Inodes in one statement that looks up many files. The count is fixed, so SQLite compiles it once."""

_MANY_COLUMNS = "SELECT inode, id, used, root, stamp, "
_MANY_ROWS = (
    " FROM signature WHERE file_system = ? AND params = ? AND length(value) <= ?"
    f" AND inode IN ({', '.join('?' * FILES_PER_STATEMENT)})"
)
ROOTS_ONLY = _MANY_COLUMNS + "NULL" + _MANY_ROWS
"""Statement for `find_many` that leaves the signatures out."""
WITH_VALUES = _MANY_COLUMNS + "value" + _MANY_ROWS
"""Statement for `find_many` that reads the encoded signatures too."""

_PUT = (
    "INSERT OR REPLACE INTO signature (file_system, inode, params, used, size, path, root, stamp, value)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class StoredRow(Record):
    """One row of the table of signatures. It is valid only for a FileState that its stamp fits."""

    id: int
    used: int
    """Day of its last use: days since 1970."""
    root: bytes
    stamp: bytes
    value: bytes
    """The encoded signature; b"" if the statement left it out."""


def find_row(connection: sqlite3.Connection, row_key: RowKey) -> StoredRow | None:
    """Return the row with a key, without its signature."""
    found = connection.execute(_FIND, row_key).fetchone()
    # SQLite stores any type in any column: damage can turn a blob into a number.
    if found is None or not isinstance(found[2], bytes):
        return None
    id_, used, root, stamp = found
    return StoredRow(id_, used, root, stamp, b"")


def find_value(connection: sqlite3.Connection, row_id: int) -> bytes | None:
    """Return the encoded signature of a row. None if the row is gone or its value is longer than any valid
    one."""
    found = connection.execute(
        "SELECT value FROM signature WHERE id = ? AND length(value) <= ?",
        (row_id, CATALOG_ENTRY_BYTES * 2),
    ).fetchone()
    return found[0] if found and isinstance(found[0], bytes) else None


def find_many(
    statement: str, file_system: int, params: int, inodes: array[int], connection: sqlite3.Connection
) -> dict[int, StoredRow]:
    """Return the rows by inode. `statement`: ROOTS_ONLY or WITH_VALUES. The numbers are those of RowKey."""
    found = {}
    for at in range(0, len(inodes), FILES_PER_STATEMENT):
        part = inodes[at : at + FILES_PER_STATEMENT].tolist()
        part += part[-1:] * (FILES_PER_STATEMENT - len(part))
        rows = connection.execute(statement, (file_system, params, CATALOG_ENTRY_BYTES * 2, *part))
        for inode, id_, used, root, stamp, value in rows:
            # SQLite stores any type in any column: damage can turn a blob into a number.
            if isinstance(root, bytes) and (value is None or isinstance(value, bytes)):
                found[inode] = StoredRow(id_, used, root, stamp, value or b"")
    return found


def write_entries(connection: sqlite3.Connection, entries: dict[RowKey, Entry], today: int) -> None:
    """Write entries, given the oldest first. Each replaces the row with its key."""
    # Several entries with one path are files that had it one after another; the last is the present file.
    # Row order tells no age. Entries with other parameters belong to the same file and stay.
    last = {(entry.path, row_key[2]): row_key for row_key, entry in entries.items()}
    # Sorted as the index is, which SQLite then fills page by page.
    rows = [
        (*row_key, today, e.size, e.path, e.root, e.stamp, e.value)
        for row_key, e in sorted(entries.items())
        if not e.path or last[e.path, row_key[2]] == row_key
    ]
    connection.executemany(_PUT, rows)


def mark_used(connection: sqlite3.Connection, row_ids: set[int], today: int) -> None:
    """Record that rows were used on this day."""
    connection.executemany("UPDATE signature SET used = ? WHERE id = ?", [(today, row) for row in row_ids])


def has_in_sync(connection: sqlite3.Connection, key: bytes) -> bool:
    """Return whether the key of two trees in sync is stored."""
    return connection.execute("SELECT 1 FROM settled WHERE key = ?", (key,)).fetchone() is not None


def write_in_sync(connection: sqlite3.Connection, keys: list[bytes]) -> None:
    """Store keys of trees in sync and drop the oldest beyond CATALOG_IN_SYNC."""
    connection.executemany("INSERT OR REPLACE INTO settled (key) VALUES (?)", [(key,) for key in keys])
    connection.execute(
        "DELETE FROM settled WHERE id <= (SELECT id FROM settled ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (CATALOG_IN_SYNC,),
    )


ROW_BYTES = 130
"""Bytes that a row takes besides its path and value: other columns, and entries in two indices."""

KEEP = 0.9
"""Part of the limit that remains after an eviction, so that the next one is not due at once."""


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file's pages in use."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def shrink(connection: sqlite3.Connection, max_bytes: int, keep: float = KEEP) -> int:
    """Delete rows until `keep` of `max_bytes` is used, if more than `max_bytes` are. Returns how many it
    deleted. To be called inside a transaction."""
    excess = used_bytes(connection)
    if excess <= max_bytes:
        return 0
    excess -= int(max_bytes * keep)
    # Sorted as the index on `used`; rows of one day in order of arrival.
    oldest = connection.execute("SELECT id, length(path) + length(value) FROM signature ORDER BY used, id")
    going = []
    for id_, size in oldest:
        going.append((id_,))
        excess -= size + ROW_BYTES
        if excess <= 0:
            break
    oldest.close()
    connection.executemany("DELETE FROM signature WHERE id = ?", going)
    return len(going)
