"""Which of the blocks that were found have nothing beside them that confirms it, and where else to look.

A fingerprint of 4 bytes finds a block of new content somewhere in a window of 40 KB once in 100,000 times.
Over the thousands of blocks of a session that makes a wrong chunk often enough to matter, because repairing
it takes further round trips. Where two blocks in a row are found in a row, chance is out of the question; so
it is where one is found between its neighbours, which is a place hardly longer than the block.
"""

from __future__ import annotations

from bisect import bisect_left

from rdc.records import dataclass

__all__ = ["Found", "Stray", "strays"]


@dataclass(frozen=True, slots=True)
class Found:
    """`length` bytes at `offset` of a file that a base seems to have at `place`."""

    offset: int
    length: int
    base: int
    place: int

    def precedes(self, other: Found) -> bool:
        """Whether `other` goes on where this one ends, on both sides."""
        return (
            self.offset + self.length == other.offset
            and self.base == other.base
            and self.place + self.length == other.place
        )


@dataclass(frozen=True, slots=True)
class Stray:
    """A block out of order with what is certain about it: its row, and bytes [start, stop) of the base
    between its neighbours, where it would be in order."""

    row: int
    start: int
    stop: int


def strays(blocks: list[Found | None], certain: list[Found], start: int, stop: int) -> list[Stray]:
    """Of `blocks`, in order of the file, those that stand alone in a place out of order.

    `certain`: what was found earlier, in order of the file, none of it overlapping `blocks`. `start`,
    `stop`: of the base's bytes that were searched.
    """
    anchors = sorted((*certain, *_runs(blocks)), key=lambda found: found.offset)
    offsets = [found.offset for found in anchors]
    result = []
    for row, block in enumerate(blocks):
        if block is None:
            continue
        at = bisect_left(offsets, block.offset)
        if at < len(anchors) and (anchors[at].offset == block.offset or block.precedes(anchors[at])):
            continue
        before = anchors[at - 1] if at else None
        if before is not None and (before.offset + before.length > block.offset or before.precedes(block)):
            continue  # one of a run, or what goes on after it
        first, last = start, stop
        if before is not None and before.base == block.base:
            first = before.place + before.length
        if at < len(anchors) and anchors[at].base == block.base:
            last = anchors[at].place
        if not first <= block.place <= last - block.length:
            result.append(Stray(row, first, last))
    return result


def _runs(blocks: list[Found | None]) -> list[Found]:
    """Two or more blocks in a row that were found in a row, each such run as one."""
    runs: list[Found] = []
    held: Found | None = None
    blocks_held = 0
    for block in (*blocks, None):
        if held is not None and block is not None and held.precedes(block):
            held = Found(held.offset, held.length + block.length, held.base, held.place)
            blocks_held += 1
            continue
        if held is not None and blocks_held > 1:
            runs.append(held)
        held, blocks_held = block, 1
    return runs
