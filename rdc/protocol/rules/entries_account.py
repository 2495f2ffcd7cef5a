"""Accounting of the memory that announced entries need, before any of them is kept.

The figures are upper bounds on what a destination keeps of an entry until the session or the turn ends.
tests/session/test_entries_memory.py measures them.
"""

from __future__ import annotations

from rdc.errors import ExitCode, RdcError
from rdc.limits.wire import SIZE_LIMIT
from rdc.model.entries import Kind
from rdc.protocol.messages.registry import (
    Changed,
    EntryAttributes,
    HardLinks,
    ListingPart,
    MountPoints,
    Owners,
    Renamed,
    RowsPart,
    TierAnswer,
    Turn,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rdc.model.entries import Listing
    from rdc.protocol.messages.registry import Message

__all__ = ["EntriesAccount"]

ENTRY_BYTES = 200
"""Bytes per entry of a listing: its manifest row, and the record of a file until the file is committed."""

OPEN_BYTES = 350
"""Further bytes per entry of the current directory, which is unpacked, compared and decided on."""

DIRECTORY_BYTES = 600
"""Further bytes per entry that is a directory: its metadata until the end of the run."""

LISTED_BYTES = 400
"""Bytes per listed directory, besides its path."""

PATH_COPIES = 4
"""Copies of a directory's path: in the manifest's text, in its list, and in two tables by path."""

SET_BYTES = 400
"""Bytes per set of extended attributes, besides its content."""

LINK_BYTES = 32
"""Bytes per hard link, or per entry with extended attributes."""

PATH_BYTES = 150
"""Bytes per mount point or rename, besides its path."""

OWNER_BYTES = 250
"""Bytes per user or group with a name, and what it becomes."""

NODE_BYTES = 250
"""Bytes per manifest node during the comparison of the trees."""

ROWS_BYTES = 900
"""Bytes per node whose rows one message holds, besides the rows."""


class EntriesAccount:
    """Counts the bytes that a destination needs for the entries of one description of a tree, or of one
    turn."""

    def __init__(self) -> None:
        self.limit = SIZE_LIMIT
        """Limit in bytes, which may change at any time."""
        self.begin()

    def begin(self) -> None:
        """Start the account of a new description or turn, which replaces the last one."""
        self._entries = 0
        self._counted = 0
        self._open = 0
        self._directory = b""
        """The directory of the last entries; `_open` counts its entries."""

    @property
    def size(self) -> int:
        """Bytes counted now."""
        return self._counted + self._open

    def take(self, message: Message) -> None:
        """Count a message's entries before any of them is kept. RdcError if they exceed the limit."""
        if isinstance(message, Turn):
            self.begin()
        # Most messages have no entries: they cost one look-up here.
        measure = _MEASURES.get(type(message))
        if measure is None:
            return
        self._counted += measure(message)
        if isinstance(message, (ListingPart, Changed)):
            self._enter(message.path, len(message.listing))
        elif isinstance(message, RowsPart):
            for segment in message.rows.segments:
                self._enter(segment.path, segment.count)
        if self.size > self.limit:
            raise RdcError(
                f"the source told of {self._entries:,} entries, for which the destination needs more than the"
                f" {self.limit >> 20:,} MiB of memory that it may use; raise --max-memory there (in a"
                " daemon's settings: memory), or sync parts of the tree by themselves",
                code=ExitCode.FILE_IO,
            )

    def _enter(self, path: bytes, entries: int) -> None:
        if path != self._directory:
            self._directory, self._open = path, 0
        self._open += entries * OPEN_BYTES
        self._entries += entries


def _listing(path: bytes, listing: Listing) -> int:
    return (
        len(path) * PATH_COPIES
        + LISTED_BYTES
        + len(listing) * ENTRY_BYTES
        + listing.kinds.count(Kind.DIRECTORY) * DIRECTORY_BYTES
        + 2 * (sum(map(len, listing.names)) + sum(map(len, listing.targets)))
    )


def _part(message: ListingPart) -> int:
    return _listing(message.path, message.listing)


def _changed(message: Changed) -> int:
    return _listing(message.path, message.listing) + 2 * len(message.gone)


def _rows(message: RowsPart) -> int:
    rows = message.rows
    named = sum(len(one.path) * PATH_COPIES + 2 * len(one.names + one.targets) for one in rows.segments)
    return (
        len(message.counts) * ROWS_BYTES
        + len(rows.segments) * LISTED_BYTES
        + rows.count * ENTRY_BYTES
        + rows.kinds.count(Kind.DIRECTORY) * DIRECTORY_BYTES
        + named
    )


def _tier(message: TierAnswer) -> int:
    return sum(message.counts) * NODE_BYTES


def _links(message: HardLinks) -> int:
    return len(message.files) * LINK_BYTES


def _attributes(message: EntryAttributes) -> int:
    sets = sum(map(len, message.sets)) + len(message.sets) * SET_BYTES
    return sets + len(message.entries) * LINK_BYTES


def _mounts(message: MountPoints) -> int:
    return sum(map(len, message.paths)) + len(message.paths) * PATH_BYTES


def _owners(message: Owners) -> int:
    names = (*message.user_names, *message.group_names)
    return sum(map(len, names)) + len(names) * OWNER_BYTES


def _renamed(message: Renamed) -> int:
    return 2 * (len(message.old) + len(message.new) + PATH_BYTES)


_MEASURES: dict[type[Message], Callable[[Any], int]] = {
    ListingPart: _part,
    Changed: _changed,
    RowsPart: _rows,
    TierAnswer: _tier,
    HardLinks: _links,
    EntryAttributes: _attributes,
    MountPoints: _mounts,
    Owners: _owners,
    Renamed: _renamed,
}
