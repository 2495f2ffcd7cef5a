"""Accounts of a connection: bytes that each kind of message costs, and memory that announced entries need.

Costs include framing and compression. A block's bytes, header included, are divided among the frames in it in
proportion to their share of its content. A block mostly holds messages sent between two waits, so few kinds
share it. Preambles and keepalives belong to no frame and form a row of their own, so the rows add up to all
bytes.

Entries are counted before any of them is kept. The figures are upper bounds on what a destination keeps of an
entry until the session or the turn ends. tests/session/test_entries_memory.py measures them.
"""

from __future__ import annotations

from collections import deque

from rdc.errors import ExitCode, RdcError
from rdc.limits import SIZE_LIMIT
from rdc.model.entries import Kind, Listing
from rdc.model.runs import MessageCost, Purpose
from rdc.protocol import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


FRAMING = "Preamble"
"""The row of bytes that belong to no message."""

_PURPOSE = {message.name: message.place.purpose for message in messages.message_kinds().values()}


def purpose_of(name: str) -> Purpose:
    """The purpose of a kind of message."""
    return _PURPOSE.get(name, Purpose.OVERHEAD)


def cost_of(name: str, count: int, size: int, plain: int) -> MessageCost:
    return MessageCost(name, count, size, plain, purpose_of(name))


class _KindTotals:
    __slots__ = ("bytes", "count", "plain")

    def __init__(self) -> None:
        self.count = self.bytes = self.plain = 0


class _Frame:
    __slots__ = ("kind", "left")

    def __init__(self, kind: _KindTotals, left: int) -> None:
        self.kind = kind
        self.left = left
        """Bytes of the frame that no block has covered yet."""


class _Block:
    __slots__ = ("content", "size")

    def __init__(self, content: int, size: int) -> None:
        self.content = content
        """Bytes of frames in the block that no frame has claimed yet."""
        self.size = size
        """Bytes on the wire that these frames share."""


class Lane:
    """One direction: frames and blocks in the order in which they pass. Either may run ahead of the other."""

    __slots__ = ("_blocks", "_frames", "_totals")

    def __init__(self, totals: dict[str, _KindTotals]) -> None:
        self._totals = totals
        self._frames: deque[_Frame] = deque()
        self._blocks: deque[_Block] = deque()

    def frame(self, name: str, size: int) -> None:
        """Record a whole frame of `size` bytes."""
        kind = self._totals.get(name)
        if kind is None:
            kind = self._totals[name] = _KindTotals()
        kind.count += 1
        kind.plain += size
        frames = self._frames
        if frames and frames[-1].kind is kind:
            # Adjacent frames of a kind count as one.
            frames[-1].left += size
        else:
            frames.append(_Frame(kind, size))
        if self._blocks:
            self._distribute()

    def block(self, content: int, size: int) -> None:
        """Record a block of `size` bytes with the next `content` bytes of frames."""
        if content:
            self._blocks.append(_Block(content, size))
            if self._frames:
                self._distribute()

    def _distribute(self) -> None:
        frames, blocks = self._frames, self._blocks
        while frames and blocks:
            frame, block = frames[0], blocks[0]
            part = min(frame.left, block.content)
            # The rest of a block is divided anew each time, so rounding loses nothing.
            share = block.size * part // block.content
            frame.kind.bytes += share
            block.content -= part
            block.size -= share
            frame.left -= part
            if not frame.left:
                frames.popleft()
            if not block.content:
                blocks.popleft()


class Costs:
    """The costs of both directions of a connection."""

    def __init__(self) -> None:
        self._totals: dict[str, _KindTotals] = {}
        self.sent = Lane(self._totals)
        self.received = Lane(self._totals)

    def rows(self, passed: int) -> tuple[MessageCost, ...]:
        """One row per kind of message, the most bytes first. passed: bytes in both directions, the sum of the
        rows."""
        totals = self._totals.items()
        rows = [cost_of(name, kind.count, kind.bytes, kind.plain) for name, kind in totals]
        rest = passed - sum(row.bytes for row in rows)
        return dearest_first((*rows, cost_of(FRAMING, 2, rest, rest)))


def dearest_first(rows: Iterable[MessageCost]) -> tuple[MessageCost, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.name)))


# Memory

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

    def take(self, message: messages.Message) -> None:
        """Count a message's entries before any of them is kept. RdcError if they exceed the limit."""
        if isinstance(message, messages.Turn):
            self.begin()
        # Most messages have no entries: they cost one look-up here.
        measure = _MEASURES.get(type(message))
        if measure is None:
            return
        self._counted += measure(message)
        if isinstance(message, (messages.ListingPart, messages.Changed)):
            self._enter(message.path, len(message.listing))
        elif isinstance(message, messages.RowsPart):
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


def _part(message: messages.ListingPart) -> int:
    return _listing(message.path, message.listing)


def _changed(message: messages.Changed) -> int:
    return _listing(message.path, message.listing) + 2 * len(message.gone)


def _rows(message: messages.RowsPart) -> int:
    rows = message.rows
    named = sum(len(one.path) * PATH_COPIES + 2 * len(one.names + one.targets) for one in rows.segments)
    return (
        len(message.counts) * ROWS_BYTES
        + len(rows.segments) * LISTED_BYTES
        + rows.count * ENTRY_BYTES
        + rows.kinds.count(Kind.DIRECTORY) * DIRECTORY_BYTES
        + named
    )


def _tier(message: messages.TierAnswer) -> int:
    return sum(message.counts) * NODE_BYTES


def _links(message: messages.HardLinks) -> int:
    return len(message.files) * LINK_BYTES


def _attributes(message: messages.EntryAttributes) -> int:
    sets = sum(map(len, message.sets)) + len(message.sets) * SET_BYTES
    return sets + len(message.entries) * LINK_BYTES


def _mounts(message: messages.MountPoints) -> int:
    return sum(map(len, message.paths)) + len(message.paths) * PATH_BYTES


def _owners(message: messages.Owners) -> int:
    names = (*message.user_names, *message.group_names)
    return sum(map(len, names)) + len(names) * OWNER_BYTES


def _renamed(message: messages.Renamed) -> int:
    return 2 * (len(message.old) + len(message.new) + PATH_BYTES)


_MEASURES: dict[type[messages.Message], Callable[[Any], int]] = {
    messages.ListingPart: _part,
    messages.Changed: _changed,
    messages.RowsPart: _rows,
    messages.TierAnswer: _tier,
    messages.HardLinks: _links,
    messages.EntryAttributes: _attributes,
    messages.MountPoints: _mounts,
    messages.Owners: _owners,
    messages.Renamed: _renamed,
}
