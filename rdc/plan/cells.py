"""Which cells of a file were put together from blocks, and the digests that say what is held of them.

A block is found by a short fingerprint, which is wrong now and then. Its cell's digest says so before the
file's missing bytes are sent, so that the cell's right bytes come with them and no round trip is lost.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import mul

from rdc.kernel.naming import NAME_BYTES, name_parts
from rdc.kernel.pieces import put_tiles, tile_reads
from rdc.limits import CELLS_PER_MESSAGE, RANGES_PER_MESSAGE, SIZE_LIMIT
from rdc.plan.descent import Fetch, Patch, Repeat, Reuse
from rdc.protocol.claims import CELL_BYTES, CELL_DIGEST_BYTES
from rdc.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree

__all__ = ["cell_digests", "divided", "divided_wholly", "doubtful"]

CLOSE_BYTES = 4 << 10
"""Bytes of a base between two copies of one chunk that cost less to read than another system call."""


def doubtful(
    parts: Sequence[Part],
    trees: Sequence[SignatureTree],
    size: int,
    read: Callable[[int, int, int], bytes],
) -> Iterator[tuple[int, bytes]]:
    """The cells into which blocks went of the file of `size` bytes that `parts` make, each as its digest sees
    it: with zeros for what is to be fetched.

    `read` takes a base's number, offset and length. Left out are cells with bytes that are not there yet and
    are not asked for either, which happens in runs of equal chunks.
    """
    cells = _patched(parts)
    contents = _Contents(trees, read)
    row, found, whole = 0, bytearray(), True
    at = 0
    for part in parts:
        end = at + part.length * part.count
        while row < len(cells) and cells[row] * CELL_BYTES < end:
            start = cells[row] * CELL_BYTES
            stop = min(start + CELL_BYTES, size)
            first, last = max(at, start) - at, min(end, stop) - at
            whole = whole and last <= part.length and not isinstance(part, Repeat)
            if whole:
                found += contents.of(part, first, last)
            if stop > end:
                break
            if whole:
                yield cells[row], bytes(found)
            row, found, whole = row + 1, bytearray(), True
        at = end


def _patched(parts: Sequence[Part]) -> list[int]:
    """Cells into which blocks went."""
    cells: list[int] = []
    at = 0
    for part in parts:
        if isinstance(part, Patch):
            first, last = at // CELL_BYTES, (at + part.length - 1) // CELL_BYTES
            cells += range(max(first, cells[-1] + 1) if cells else first, last + 1)
        at += part.length * part.count
    return cells


class _Contents:
    """What is held of parts, the last patch of which is kept: it is in several cells."""

    def __init__(self, trees: Sequence[SignatureTree], read: Callable[[int, int, int], bytes]) -> None:
        self._trees = trees
        self._read = read
        self._starts: dict[int, array[int]] = {}
        self._patch: Patch | None = None
        self._made = b""

    def of(self, part: Part, start: int, stop: int) -> bytes:
        """Bytes start to stop of a part that repeats nothing."""
        if isinstance(part, Patch):
            if part is not self._patch:
                self._patch, self._made = part, self._put_together(part)
            return self._made[start:stop]
        if isinstance(part, Fetch | Repeat):
            return bytes(stop - start)
        row = part.first if isinstance(part, Reuse) else part.row
        return self._read(part.base, self._offset(part.base, row) + start, stop - start)

    def _put_together(self, part: Patch) -> bytes:
        wanted, reads, sources = tile_reads(part.pieces.tiles, CLOSE_BYTES)
        numbers = iter(array("Q", reads))
        held = b"".join(
            self._read(base, offset, length)
            for base, offset, length in zip(numbers, numbers, numbers, strict=True)
        )
        return put_tiles(sources, held, bytes(wanted))

    def _offset(self, base: int, row: int) -> int:
        if base not in self._starts:
            level = self._trees[base].levels[0]
            self._starts[base] = array("Q", accumulate(map(mul, level.lengths, level.counts), initial=0))
        return self._starts[base][row]


def cell_digests(secret: bytes, images: bytes, sizes: array[int]) -> bytes:
    """CELL_DIGEST_BYTES for each of the cells, of so many bytes (typecode 'Q'), that `images` has one behind
    the other. `secret`: the session's."""
    names = name_parts(images, sizes, secret * 2)
    return b"".join(names[at : at + CELL_DIGEST_BYTES] for at in range(0, len(names), NAME_BYTES))


def divided(
    ranges: Sequence[tuple[int, int]], cells: Sequence[int]
) -> Iterator[tuple[list[tuple[int, int]], list[int]]]:
    """Ranges and cells as requests have them, each with a range if there are any.

    No cell has ranges in two requests, since its digest is over what is in none; a range may be cut for that.
    Cells that find no place are left out.
    """
    left, row, col = list(ranges), 0, 0
    while not left and col < len(cells):
        yield [], list(cells[col : col + CELLS_PER_MESSAGE])
        col += CELLS_PER_MESSAGE
    while row < len(left):
        stop = left[-1][0] + left[-1][1] + CELL_BYTES * CELLS_PER_MESSAGE
        if row + RANGES_PER_MESSAGE < len(left):
            stop = left[row + RANGES_PER_MESSAGE][0] // CELL_BYTES * CELL_BYTES
        here = [cell for cell in cells[col : col + CELLS_PER_MESSAGE] if cell * CELL_BYTES < stop]
        if col + CELLS_PER_MESSAGE < len(cells):
            stop = min(stop, cells[col + CELLS_PER_MESSAGE] * CELL_BYTES)
        taken: list[tuple[int, int]] = []
        while row < len(left) and left[row][0] < stop and len(taken) < RANGES_PER_MESSAGE:
            offset, length = left[row]
            taken.append((offset, min(length, stop - offset)))
            if offset + length > stop:
                left[row] = (stop, offset + length - stop)
                break
            row += 1
        col += len(here)
        if taken:
            yield taken, here


def divided_wholly(
    ranges: Sequence[tuple[int, int]], cells: Sequence[int]
) -> Iterator[tuple[list[tuple[int, int]], list[int]]]:
    """The same, but no cell is left out; requests may have no ranges."""
    left, row, col = list(ranges), 0, 0
    while row < len(left) or col < len(cells):
        further = cells[col + CELLS_PER_MESSAGE : col + CELLS_PER_MESSAGE + 1]
        stop = further[0] * CELL_BYTES if further else SIZE_LIMIT
        if row + RANGES_PER_MESSAGE < len(left):
            # So many ranges, which do not touch, are in more than one cell.
            stop = min(stop, left[row + RANGES_PER_MESSAGE][0] // CELL_BYTES * CELL_BYTES)
        here = [cell for cell in cells[col : col + CELLS_PER_MESSAGE] if cell * CELL_BYTES < stop]
        col += len(here)
        taken: list[tuple[int, int]] = []
        while row < len(left) and left[row][0] < stop:
            offset, length = left[row]
            taken.append((offset, min(length, stop - offset)))
            if offset + length > stop:
                left[row] = (stop, offset + length - stop)
                break
            row += 1
        yield taken, here
