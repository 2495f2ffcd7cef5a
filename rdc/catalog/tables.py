"""Statements that read and write the catalog's two tables: signatures of files, and trees found in sync."""

from __future__ import annotations

from rdc.lean.records import dataclass
from rdc.limits.catalog import CATALOG_ENTRY_BYTES, CATALOG_IN_SYNC

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from array import array

    from rdc.catalog.entry import Entry, RowKey

__all__ = [
    "ROOTS_ONLY",
    "WITH_VALUES",
    "StoredRow",
    "find_many",
    "find_row",
    "find_value",
    "has_in_sync",
    "mark_used",
    "write_entries",
    "write_in_sync",
]

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


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One row of the table of signatures. It is valid only for a FileState that its stamp fits."""

    id: int
    used: int
    """Day of its last use: days since 1970."""
    root: bytes
    stamp: bytes
    value: bytes
    """The encoded signature; b"" if the statement left it out."""


def find_row(connection: sqlite3.Connection, row_key: RowKey) -> StoredRow | None:
    """The row with a key, without its signature."""
    found = connection.execute(_FIND, row_key).fetchone()
    # SQLite stores any type in any column: damage can turn a blob into a number.
    if found is None or not isinstance(found[2], bytes):
        return None
    id_, used, root, stamp = found
    return StoredRow(id_, used, root, stamp, b"")


def find_value(connection: sqlite3.Connection, row_id: int) -> bytes | None:
    """The encoded signature of a row. None if the row is gone or its value is longer than any valid one."""
    found = connection.execute(
        "SELECT value FROM signature WHERE id = ? AND length(value) <= ?",
        (row_id, CATALOG_ENTRY_BYTES * 2),
    ).fetchone()
    return found[0] if found and isinstance(found[0], bytes) else None


def find_many(
    statement: str, file_system: int, params: int, inodes: array[int], connection: sqlite3.Connection
) -> dict[int, StoredRow]:
    """Rows by inode. `statement`: ROOTS_ONLY or WITH_VALUES. The numbers are those of RowKey."""
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
    """Writes entries, given the oldest first. Each replaces the row with its key."""
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
    """Records that rows were used on this day."""
    connection.executemany("UPDATE signature SET used = ? WHERE id = ?", [(today, row) for row in row_ids])


def has_in_sync(connection: sqlite3.Connection, key: bytes) -> bool:
    """Whether the key of two trees in sync is stored."""
    return connection.execute("SELECT 1 FROM settled WHERE key = ?", (key,)).fetchone() is not None


def write_in_sync(connection: sqlite3.Connection, keys: list[bytes]) -> None:
    """Stores keys of trees in sync and drops the oldest beyond CATALOG_IN_SYNC."""
    connection.executemany("INSERT OR REPLACE INTO settled (key) VALUES (?)", [(key,) for key in keys])
    connection.execute(
        "DELETE FROM settled WHERE id <= (SELECT id FROM settled ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (CATALOG_IN_SYNC,),
    )
