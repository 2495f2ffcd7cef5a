"""Catalog maintenance: totals, pruning of outdated or unused entries, and deletion on request."""

from __future__ import annotations

import os

from rdc.catalog.catalog import DAY_NS, Catalog
from rdc.catalog.database import Database, shrink
from rdc.catalog.file_state import signed64
from rdc.errors import ExitCode, RdcError
from rdc.files.facts.file_systems import file_system_of
from rdc.lean.records import Record
from rdc.lean.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator


T = TypeVar("T")


PAGE = 1_000
"""Rows examined between two statements, so that other processes can write in between."""


class Summary(Record):
    path: str
    bytes: int
    """Size of the file, free pages included."""
    entries: int
    covered: int
    """Total bytes of the files whose signatures are stored."""
    pairs_in_sync: int
    first_used: int | None
    """Day of the least recent use of any entry, counted from 1970-01-01."""
    last_used: int | None


class Pruned(Record):
    gone: int
    """Entries of files that were removed, moved or replaced."""
    unused: int
    evicted: int
    """Entries deleted to make room."""


def summary(catalog: Catalog) -> Summary | None:
    """Totals of `catalog`; None if it has no file yet. Raises RdcError if the file cannot be read."""
    database = catalog.database
    if not os.path.exists(database.path):
        return None

    def look(connection: sqlite3.Connection) -> Summary:
        # In halves: SQLite's sum fails beyond 2^63, which a few sparse files exceed.
        entries, upper, lower, first, last = connection.execute(
            "SELECT count(*), coalesce(sum(size >> 32), 0), coalesce(sum(size & 0xFFFFFFFF), 0),"
            " min(used), max(used) FROM signature"
        ).fetchone()
        covered = (upper << 32) + lower
        (pairs_in_sync,) = connection.execute("SELECT count(*) FROM settled").fetchone()
        size = os.stat(database.path).st_size
        return Summary(database.path, size, entries, covered, pairs_in_sync, first, last)

    return _must(database, database.read(look), "read")


def prune(catalog: Catalog, *, unused_days: int, max_bytes: int | None = None) -> Pruned:
    """Delete entries of missing files and entries not used for `unused_days`. Then deletes the least
    recently used ones above `max_bytes`, and returns the space to the file system. Raises RdcError on
    failure."""
    database = catalog.database
    before = catalog.now() // DAY_NS - unused_days
    gone = 0
    for rows in _pages(database):
        ids = [row.id for row in rows if row.is_gone()]
        gone += _delete(database, "DELETE FROM signature WHERE id = ?", [(id_,) for id_ in ids])
    unused = _delete(database, "DELETE FROM signature WHERE used < ?", [(before,)])
    evicted: list[int] = []
    if max_bytes is not None:
        cap = max_bytes
        done = database.write(lambda c: evicted.append(shrink(c, cap, keep=1.0)))
        _must(database, done or None, "written")
    if gone or unused or any(evicted):
        _must(database, database.perform("VACUUM") or None, "written")
    return Pruned(gone, unused, sum(evicted))


def forget_all(catalog: Catalog) -> int:
    """Delete every entry, those of trees in sync too. Returns the number of signatures deleted."""
    count = _delete(catalog.database, "DELETE FROM signature", [()])
    _delete(catalog.database, "DELETE FROM settled", [()])
    if count:
        catalog.database.perform("VACUUM")
    return count


def forget(catalog: Catalog, path: bytes) -> int:
    """Delete the entries of the file `path`, or of all files that were below it when they were signed.
    Returns how many."""
    whole = os.path.realpath(path)
    below = whole.rstrip(b"/") + b"/"
    # Bytes compare as unsigned numbers: every path that starts with "a/" lies between "a/" and "a0".
    return _delete(
        catalog.database,
        "DELETE FROM signature WHERE path = ? OR (path >= ? AND path < ?)",
        [(whole, below, below[:-1] + b"0")],
    )


class _Row(Record):
    id: int
    file_system: int
    inode: int
    path: bytes

    def is_gone(self) -> bool:
        """Return whether the file system is mounted and the file is missing or is another file.

        A file on a file system that is not mounted now is not gone.
        """
        if not self.path:
            return False
        if not isinstance(self.path, bytes) or b"\0" in self.path:
            return True  # not a path: a damaged row
        try:
            found = os.lstat(self.path)
        except OSError:
            return _file_system_above(self.path) == self.file_system
        return signed64(found.st_ino) != self.inode and _file_system_above(self.path) == self.file_system


def _file_system_above(path: bytes) -> int | None:
    """Return the file system of the nearest directory above `path` that exists. None if it cannot be
    opened."""
    while path != b"/":
        path = os.path.dirname(path)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None
        try:
            return signed64(file_system_of(fd).id)
        finally:
            os.close(fd)
    return None


def _pages(database: Database) -> Iterator[list[_Row]]:
    after = 0
    while True:
        at = after

        def page(connection: sqlite3.Connection, at: int = at) -> list[_Row]:
            rows = connection.execute(
                "SELECT id, file_system, inode, path FROM signature WHERE id > ? ORDER BY id LIMIT ?",
                (at, PAGE),
            )
            return [_Row(*row) for row in rows]

        rows = _must(database, database.read(page), "read")
        if not rows:
            return
        yield rows
        after = rows[-1].id


def _delete(database: Database, statement: str, rows: list[tuple[object, ...]]) -> int:
    count = 0

    def work(connection: sqlite3.Connection) -> None:
        nonlocal count
        count = connection.executemany(statement, rows).rowcount

    if rows:
        _must(database, database.write(work) or None, "written")
    return max(0, count)


def _must(database: Database, result: T | None, what: str) -> T:
    """Return a result that is not None. Raises RdcError for None: a maintenance command must fail where other
    jobs continue without a catalog."""
    if result is None:
        raise RdcError(
            f"{database.path}: the catalog cannot be {what}; check its owner and permissions, the disk,"
            " and whether another process holds it",
            code=ExitCode.FILE_IO,
        )
    return result
