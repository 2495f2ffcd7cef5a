"""Bytes that each kind of message costs on the connection, with framing and compression.

A block's bytes, header included, are divided among the frames in it in proportion to their share of its
content. A block mostly holds messages sent between two waits, so few kinds share it. Preambles and keepalives
belong to no frame and form a row of their own, so the rows add up to all bytes.
"""

from __future__ import annotations

from collections import deque

from rdc.model.sync_report import MessageCost, Purpose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Costs", "Lane", "cost_of", "dearest_first", "purpose_of"]

FRAMING = "Preamble"
"""The row of bytes that belong to no message."""

PURPOSES = {
    Purpose.MANIFEST: "ListingPart ListingEnd Manifest MountPoints HardLinks EntryAttributes TopTier"
    " TierRequest TierAnswer RowsRequest RowsPart Changed Renamed TurnEnd",
    Purpose.ROOTS: "RootRequest RootAnswer DigestRequest DigestAnswer TraitsRequest TraitsAnswer",
    Purpose.NODES: "TreeRequest TreeAnswer NodeRequest NodeAnswer BundleRequest BundleAnswer",
    Purpose.BLOCKS: "BlockRequest BlockAnswer",
    Purpose.LITERALS: "RangeRequest Correction Targets Literals Code Table FileRequest FileBatch Data FileEnd"
    " FileFailed Resized Holes",
}
"""The purpose of each message. All others are overhead of the session."""

_PURPOSE = {name: purpose for purpose, names in PURPOSES.items() for name in names.split()}


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
