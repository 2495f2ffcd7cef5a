"""Which cells of a file were put together from blocks, and the digests that say what is held of them.

A block is found by a short fingerprint, which is wrong now and then. Its cell's digest says so before the
file's missing bytes are sent, so that the cell's right bytes come with them and no round trip is lost.
"""

from __future__ import annotations

from array import array
from itertools import groupby
from typing import TYPE_CHECKING

from rdc.kernel.naming import NAME_BYTES, name_parts
from rdc.limits import CELLS_PER_MESSAGE, RANGES_PER_MESSAGE
from rdc.plan.context import placed_pieces
from rdc.plan.descent import ByteRange, Patch
from rdc.protocol.claims import CELL_BYTES, CELL_DIGEST_BYTES, rests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.plan.context import PlacedPiece
    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree

__all__ = ["cell_digests", "divided", "doubtful", "image"]

ZEROS = memoryview(bytes(CELL_BYTES))

FAR = 4
"""Pieces of one cell that lie within so many times its length of each other are read at once."""


def doubtful(
    parts: Sequence[Part], trees: Sequence[SignatureTree], ranges: Sequence[tuple[int, int]], size: int
) -> Iterator[tuple[int, list[PlacedPiece]]]:
    """The cells of the file that `parts` make into which blocks went, and all that the bases have of each.

    `ranges`: of what is to be fetched, (offset, length) in order. Left out are cells of which something is
    neither there nor in `ranges`, which happens in runs of equal chunks.
    """
    cells: list[int] = []
    at = 0
    for part in parts:
        if isinstance(part, Patch):
            first, last = at // CELL_BYTES, (at + part.length - 1) // CELL_BYTES
            cells += range(max(first, cells[-1] + 1) if cells else first, last + 1)
        at += part.length * part.count
    wanted = [ByteRange(cell * CELL_BYTES, min(CELL_BYTES, size - cell * CELL_BYTES)) for cell in cells]
    missing = dict.fromkeys(cells, 0)
    for cell, _, length in rests(ranges, cells, size):
        missing[cell] += length
    for cell, pieces in groupby(placed_pieces(parts, trees, wanted), lambda piece: piece[0] // CELL_BYTES):
        held = list(pieces)
        if sum(length for _, _, _, length in held) == missing[cell]:
            yield cell, held


def image(
    cell: int, size: int, pieces: Sequence[PlacedPiece], read: Callable[[int, int, int], bytes]
) -> list[bytes | memoryview]:
    """A cell of a file of `size` bytes as its digest sees it, to be joined; `read` takes a base's number,
    offset and length."""
    found: list[bytes | memoryview] = []
    at = cell * CELL_BYTES
    end = min(at + CELL_BYTES, size)
    start = min(offset for _, _, offset, _ in pieces)
    stop = max(offset + length for _, _, offset, length in pieces)
    near: memoryview | None = None
    if stop - start <= FAR * CELL_BYTES and len({base for _, base, _, _ in pieces}) == 1:
        near = memoryview(read(pieces[0][1], start, stop - start))
    for begin, base, offset, length in pieces:
        if begin > at:
            found.append(ZEROS[: begin - at])
        if near is None:
            found.append(read(base, offset, length))
        else:
            found.append(near[offset - start : offset - start + length])
        at = begin + length
    if end > at:
        found.append(ZEROS[: end - at])
    return found


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
