"""Catalog entries that wait in memory to be written in one transaction."""

from __future__ import annotations

import time

from rdc.limits.catalog import CATALOG_BATCH_BYTES, CATALOG_BATCH_ENTRIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.catalog.entry import Entry, RowKey

__all__ = ["PendingEntries"]

BATCH_SECONDS = 5.0
"""The longest time an entry waits for others. A job that is killed loses no more than this."""


class PendingEntries:
    """One batch of entries by row key. A newer entry with the same key replaces the older one."""

    def __init__(self) -> None:
        self.entries: dict[RowKey, Entry] = {}
        """Read by lookups; changed by `add` and `take` alone."""
        self._inodes: set[int] = set()
        self._bytes = 0
        self._first_added = 0.0

    def add(self, entries: list[tuple[RowKey, Entry]]) -> bool:
        """Adds entries. Returns whether the batch is due to be written."""
        if not self.entries:
            self._first_added = time.monotonic()
        for row_key, entry in entries:
            replaced = self.entries.pop(row_key, None)
            self._bytes += len(entry.value) - (len(replaced.value) if replaced else 0)
            self.entries[row_key] = entry
            self._inodes.add(row_key[1])
        return (
            len(self.entries) >= CATALOG_BATCH_ENTRIES
            or self._bytes >= CATALOG_BATCH_BYTES
            or time.monotonic() - self._first_added >= BATCH_SECONDS
        )

    def has_none_of(self, inodes: Iterable[int]) -> bool:
        """Whether no entry has one of these inode numbers (signed, as in RowKey)."""
        return self._inodes.isdisjoint(inodes)

    def take(self) -> dict[RowKey, Entry]:
        """Empties the batch and returns its entries, the oldest first."""
        entries, self.entries, self._inodes, self._bytes = self.entries, {}, set(), 0
        return entries
