"""Keeps the catalog's file below its size limit by deleting the least recently used rows."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

__all__ = ["ROW_BYTES", "shrink", "used_bytes"]

ROW_BYTES = 130
"""Bytes that a row takes besides its path and value: other columns, and entries in two indices."""

KEEP = 0.9
"""Part of the limit that remains after an eviction, so that the next one is not due at once."""


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file's pages in use."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def shrink(connection: sqlite3.Connection, max_bytes: int, keep: float = KEEP) -> int:
    """Deletes rows until `keep` of `max_bytes` is used, if more than `max_bytes` are. Returns how many it
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
