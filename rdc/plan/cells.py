"""Which cells of a file were put together from blocks, and the digests that say what is held of them.

A block is found by a short fingerprint, which is wrong now and then. Its cell's digest says so before the
file's missing bytes are sent, so that the cell's right bytes come with them and no round trip is lost.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, chain, pairwise
from operator import mul, sub

from rdc.kernel import block_fingerprints
from rdc.kernel.pieces import LITERAL, tile_ranges, tiled_copies
from rdc.limits import CELLS_PER_ANSWER, CELLS_PER_MESSAGE, RANGES_PER_MESSAGE, SIZE_LIMIT
from rdc.plan.descent import Fetch, Patch, Repeat, Reuse
from rdc.protocol.claims import CELL_BYTES, CELL_DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree

__all__ = ["cell_digests", "divided", "divided_wholly", "doubtful", "stretches"]


def doubtful(
    parts: Sequence[Part], trees: Sequence[SignatureTree], size: int
) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """The cells into which blocks went of the file of `size` bytes that `parts` make, CELLS_PER_ANSWER at a
    time, and the kernel's tiles of what these are made of, one behind the other: LITERAL is what is to be
    fetched, a digest sees zeros there.

    Left out are cells with bytes that are not there yet and are not asked for either, which happens in runs
    of equal chunks.
    """
    starts = array("Q", accumulate([part.length * part.count for part in parts], initial=0))
    tiles = _Tiles(parts, starts, trees)
    torn = _torn(parts, starts)
    cells = [cell for cell in _patched(parts, starts) if cell not in torn]
    for first in range(0, len(cells), CELLS_PER_ANSWER):
        some = tuple(cells[first : first + CELLS_PER_ANSWER])
        wanted = array("Q", chain.from_iterable([(at, min(stop, size) - at) for at, stop in stretches(some)]))
        yield some, tiles.of(wanted)


def stretches(cells: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Offsets in the file between which cells lie that follow each other, the last one as long as all."""
    breaks = [row for row, step in enumerate(map(sub, cells[1:], cells), 1) if step != 1]
    for first, stop in pairwise((0, *breaks, len(cells))) if cells else ():
        yield cells[first] * CELL_BYTES, (cells[stop - 1] + 1) * CELL_BYTES


def _patched(parts: Sequence[Part], starts: Sequence[int]) -> list[int]:
    """Cells into which blocks went."""
    cells: list[int] = []
    behind = 0
    for at, part in zip(starts, parts, strict=False):
        if isinstance(part, Patch):
            first, stop = at // CELL_BYTES, (at + part.length - 1) // CELL_BYTES + 1
            cells += range(max(behind, first), stop)
            behind = stop
    return cells


def _torn(parts: Sequence[Part], starts: Sequence[int]) -> set[int]:
    """Cells in which parts repeat something. Of those that are wholly in one the first and the last: no other
    has anything else in it."""
    cells: set[int] = set()
    for row, part in enumerate(parts):
        start = starts[row] if isinstance(part, Repeat) else starts[row] + part.length
        if start < starts[row + 1]:
            cells.update((start // CELL_BYTES, (starts[row + 1] - 1) // CELL_BYTES))
    return cells


class _Tiles:
    """The kernel's tiles of parts that begin at `starts`."""

    def __init__(self, parts: Sequence[Part], starts: array[int], trees: Sequence[SignatureTree]) -> None:
        self._parts = parts
        self._starts = starts
        self._trees = trees
        self._offsets: dict[int, array[int]] = {}

    def of(self, ranges: array[int]) -> bytes:
        """Of these ranges of the file, rows (offset, length), in which no part repeats anything."""
        first = bisect_right(self._starts, ranges[0]) - 1
        parts = self._parts[first : bisect_left(self._starts, ranges[-2] + ranges[-1])]
        copies = tiled_copies(b"".join(map(self._part, parts)), self._starts[first])
        return tile_ranges(copies, ranges)[0]

    def _part(self, part: Part) -> bytes:
        """Of all of it, as if what repeats were to be fetched."""
        if isinstance(part, Fetch | Repeat):
            return array("Q", (LITERAL, 0, part.length * part.count)).tobytes()
        if isinstance(part, Patch):
            tiles = part.pieces.tiles
        else:
            row = part.first if isinstance(part, Reuse) else part.row
            tiles = array("Q", (part.base, self._offset(part.base, row), part.length)).tobytes()
        if part.count > 1:
            tiles += array("Q", (LITERAL, 0, part.length * (part.count - 1))).tobytes()
        return tiles

    def _offset(self, base: int, row: int) -> int:
        if base not in self._offsets:
            level = self._trees[base].levels[0]
            self._offsets[base] = array("Q", accumulate(map(mul, level.lengths, level.counts), initial=0))
        return self._offsets[base][row]


def cell_digests(secret: bytes, images: Buffer) -> bytes:
    """CELL_DIGEST_BYTES for each of the cells that `images` has one behind the other, by the session's key.

    They are fingerprints under another key than blocks have: of one polynomial, a block that was taken for
    another of the same fingerprint would not show where it ends a cell.
    """
    return block_fingerprints(bytes([byte ^ 0xFF for byte in secret]), images, CELL_BYTES, CELL_DIGEST_BYTES)


def divided(ranges: array[int], cells: Sequence[int]) -> Iterator[tuple[array[int], slice]]:
    """Ranges, offset and length by turns, as requests have them, and which of the cells each has. If there
    are ranges each request has some.

    No cell has ranges in two requests, since its digest is over what is in none; a range may be cut for that.
    Cells that find no place are left out.
    """
    left, first = _Ranges(ranges), 0
    while not ranges and first < len(cells):
        yield array("Q"), slice(first, min(first + CELLS_PER_MESSAGE, len(cells)))
        first += CELLS_PER_MESSAGE
    while left:
        stop = min(left.stop, ranges[-2] + ranges[-1] + CELL_BYTES * CELLS_PER_MESSAGE)
        last = _cells_before(stop, cells, first)
        some = left.take(min(stop, _start_of(cells, first + CELLS_PER_MESSAGE)))
        if some:
            yield some, slice(first, last)
        first = last


def divided_wholly(ranges: array[int], cells: Sequence[int]) -> Iterator[tuple[array[int], slice]]:
    """The same, but no cell is left out; requests may have no ranges."""
    left, first = _Ranges(ranges), 0
    while left or first < len(cells):
        stop = min(left.stop, _start_of(cells, first + CELLS_PER_MESSAGE))
        last = _cells_before(stop, cells, first)
        yield left.take(stop), slice(first, last)
        first = last


def _start_of(cells: Sequence[int], row: int) -> int:
    """Where in the file this one of them begins; behind all files for none."""
    return cells[row] * CELL_BYTES if row < len(cells) else SIZE_LIMIT


def _cells_before(stop: int, cells: Sequence[int], first: int) -> int:
    """The first of the cells from `first` on that begins at `stop` or later, or that a request has no room
    for."""
    return bisect_left(cells, -(-stop // CELL_BYTES), first, min(first + CELLS_PER_MESSAGE, len(cells)))


class _Ranges:
    """Ranges that are in no request yet."""

    __slots__ = ("_first", "_offsets", "_rows")

    def __init__(self, rows: array[int]) -> None:
        """`rows`: offset and length by turns; no two touch."""
        self._rows = rows[:]
        self._offsets = rows[0::2]
        self._first = 0

    def __bool__(self) -> bool:
        return self._first < len(self._offsets)

    @property
    def stop(self) -> int:
        """A cell's start by which a request has as many of them as it may."""
        row = self._first + RANGES_PER_MESSAGE
        # So many ranges, which do not touch, are in more than one cell.
        return self._offsets[row] // CELL_BYTES * CELL_BYTES if row < len(self._offsets) else SIZE_LIMIT

    def take(self, stop: int) -> array[int]:
        """Those before offset `stop`; what goes on there is cut."""
        last = bisect_left(self._offsets, stop, self._first)
        some = self._rows[2 * self._first : 2 * last]
        self._first = last
        over = some[-2] + some[-1] - stop if some else 0
        if over > 0:
            some[-1] -= over
            self._first -= 1
            self._offsets[self._first] = self._rows[2 * self._first] = stop
            self._rows[2 * self._first + 1] = over
        return some
