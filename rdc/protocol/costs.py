"""What each kind of message cost in bytes through the connection, framing and compression included.

A block belongs to the frames whose bytes are in it, to each by its share of the block's content; its header
too. Blocks are mostly what was said between two waits, so messages of a kind share them with few others. What
belongs to no frame, preambles and signs of life, is a row of its own: the rows add up to what passed.
"""

from __future__ import annotations

from collections import deque

from rdc.model.sync import MessageCost, Purpose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Costs", "Lane", "cost_of", "dearest_first", "purpose_of"]

FRAMING = "Preamble"
"""The row of what belongs to no message."""

PURPOSES = {
    Purpose.MANIFEST: "ListingPart ListingEnd Manifest MountPoints HardLinks EntryAttributes TopTier"
    " TierRequest TierAnswer RowsRequest RowsPart Changed Renamed TurnEnd",
    Purpose.ROOTS: "RootRequest RootAnswer DigestRequest DigestAnswer TraitsRequest TraitsAnswer",
    Purpose.NODES: "TreeRequest TreeAnswer NodeRequest NodeAnswer BundleRequest BundleAnswer",
    Purpose.BLOCKS: "BlockRequest BlockAnswer",
    Purpose.LITERALS: "RangeRequest Correction Targets Literals Code Table FileRequest FileBatch Data FileEnd"
    " FileFailed",
}
"""What messages are for; all others only keep the session going."""

_PURPOSE = {name: purpose for purpose, names in PURPOSES.items() for name in names.split()}


def purpose_of(name: str) -> Purpose:
    """What a kind of message is for."""
    return _PURPOSE.get(name, Purpose.OVERHEAD)


def cost_of(name: str, count: int, size: int, plain: int) -> MessageCost:
    return MessageCost(name, count, size, plain, purpose_of(name))


class _Tally:
    __slots__ = ("bytes", "count", "plain")

    def __init__(self) -> None:
        self.count = self.bytes = self.plain = 0


class _Frame:
    __slots__ = ("left", "tally")

    def __init__(self, tally: _Tally, left: int) -> None:
        self.tally = tally
        self.left = left
        """Bytes of it that are in no block yet."""


class _Block:
    __slots__ = ("content", "size")

    def __init__(self, content: int, size: int) -> None:
        self.content = content
        """Bytes of frames in it, of those not yet known."""
        self.size = size
        """Its own bytes that they share."""


class Lane:
    """One direction: frames and blocks in the order in which they come, either of them ahead."""

    __slots__ = ("_blocks", "_frames", "_tallies")

    def __init__(self, tallies: dict[str, _Tally]) -> None:
        self._tallies = tallies
        self._frames: deque[_Frame] = deque()
        self._blocks: deque[_Block] = deque()

    def frame(self, name: str, size: int) -> None:
        """A whole frame of `size` bytes."""
        tally = self._tallies.get(name)
        if tally is None:
            tally = self._tallies[name] = _Tally()
        tally.count += 1
        tally.plain += size
        frames = self._frames
        if frames and frames[-1].tally is tally:
            # Neighbours of a kind share what is shared as one.
            frames[-1].left += size
        else:
            frames.append(_Frame(tally, size))
        if self._blocks:
            self._settle()

    def block(self, content: int, size: int) -> None:
        """A block of `size` bytes with the next `content` bytes of frames."""
        if content:
            self._blocks.append(_Block(content, size))
            if self._frames:
                self._settle()

    def _settle(self) -> None:
        frames, blocks = self._frames, self._blocks
        while frames and blocks:
            frame, block = frames[0], blocks[0]
            part = min(frame.left, block.content)
            # What is left of a block is shared anew, so that nothing is lost by rounding.
            share = block.size * part // block.content
            frame.tally.bytes += share
            block.content -= part
            block.size -= share
            frame.left -= part
            if not frame.left:
                frames.popleft()
            if not block.content:
                blocks.popleft()


class Costs:
    """Both directions of a connection."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self.sent = Lane(self._tallies)
        self.received = Lane(self._tallies)

    def rows(self, passed: int) -> tuple[MessageCost, ...]:
        """Of each kind of message, the most bytes first; `passed`: bytes both ways, which they add up to."""
        tallies = self._tallies.items()
        rows = [cost_of(name, tally.count, tally.bytes, tally.plain) for name, tally in tallies]
        rest = passed - sum(row.bytes for row in rows)
        return dearest_first((*rows, cost_of(FRAMING, 2, rest, rest)))


def dearest_first(rows: Iterable[MessageCost]) -> tuple[MessageCost, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.name)))
