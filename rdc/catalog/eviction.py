"""Keeps the catalog's file below its cap: what was used longest ago goes first."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

__all__ = ["ROW_BYTES", "shrink", "used_bytes"]

ROW_BYTES = 130
"""Bytes that a row takes besides its path and value: its other columns and its entries in two indices."""

KEEP = 0.9
"""Part of the cap that an eviction leaves: the next one is then some time off."""


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file's pages that hold something."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def shrink(connection: sqlite3.Connection, max_bytes: int, keep: float = KEEP) -> int:
    """Inside a transaction: when more than `max_bytes` are used, deletes entries down to `keep` of it; how
    many."""
    excess = used_bytes(connection)
    if excess <= max_bytes:
        return 0
    excess -= int(max_bytes * keep)
    # In the order of the index on `used`; rows of one day in the order they came.
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
