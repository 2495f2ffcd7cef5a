"""What a destination says it holds of a file around the ranges it asks for, cell by cell.

A file's cells are its bytes [n * CELL_BYTES, (n + 1) * CELL_BYTES), the last one shorter. A digest of a cell
is over all of it, with zeros for what is in the ranges of the same request.
"""

from __future__ import annotations

from bisect import bisect_right

from rdc.limits import CELLS_PER_MESSAGE, SIZE_LIMIT
from rdc.protocol.columns import pack_gaps, unpack_gaps
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

__all__ = ["CELL_BYTES", "CELL_DIGEST_BYTES", "NO_CLAIMS", "Claimed", "Claims", "rests"]

CELL_BYTES = 8 << 10
"""Where a block is not what its fingerprint promised, the cell around it comes again, some 3 KB of it after
compression; smaller cells would cost more in digests than they save. 4 and 16 KiB were tried."""

CELL_DIGEST_BYTES = 2
"""One wrong cell in 65,536 is not noticed: it then costs a round trip more."""


@dataclass(frozen=True, slots=True)
class Claims:
    """`digests` of these cells, CELL_DIGEST_BYTES each."""

    cells: tuple[int, ...]
    """Their numbers, strictly increasing."""
    digests: bytes

    def part(self, rows: slice) -> Claims:
        """The claims about these of the cells."""
        return Claims(
            self.cells[rows], self.digests[rows.start * CELL_DIGEST_BYTES : rows.stop * CELL_DIGEST_BYTES]
        )


NO_CLAIMS = Claims((), b"")


class Claimed:
    """The gaps between the cells as a column, their digests behind it; nothing at all for none."""

    def pack(self, value: Claims) -> object:
        if len(value.digests) != CELL_DIGEST_BYTES * len(value.cells):
            raise ValueError(f"{len(value.digests)} bytes of digests for {len(value.cells)} cells")
        if len(value.cells) > CELLS_PER_MESSAGE:
            raise ValueError(f"{len(value.cells)} cells, the limit is {CELLS_PER_MESSAGE}")
        return pack_gaps(value.cells) + value.digests

    def unpack(self, raw: object) -> Claims:
        if type(raw) is not bytes:
            raise ValueError(f"expected bytes, found {type(raw).__name__}")
        if not raw:
            return NO_CLAIMS
        count, rest = divmod(len(raw) - 1, raw[0] + CELL_DIGEST_BYTES)
        if rest or count > CELLS_PER_MESSAGE:
            raise ValueError(f"{len(raw)} bytes are not at most {CELLS_PER_MESSAGE} cells with digests")
        column = len(raw) - count * CELL_DIGEST_BYTES
        cells = unpack_gaps(raw[:column], count, SIZE_LIMIT // CELL_BYTES)
        return Claims(cells, raw[column:])


def rests(ranges: array[int], cells: Sequence[int], size: int) -> Iterator[tuple[int, int, int]]:
    """(cell, offset in the file, length) of all that is in these cells of a file of `size` bytes and in none
    of `ranges`, which are offset and length by turns; both are in order."""
    offsets, lengths = ranges[0::2], ranges[1::2]
    for cell in cells:
        at, end = cell * CELL_BYTES, min((cell + 1) * CELL_BYTES, size)
        # The one before may go on in the cell.
        row = max(0, bisect_right(offsets, at) - 1)
        while at < end:
            offset, length = (offsets[row], lengths[row]) if row < len(offsets) else (end, 0)
            if offset > at:
                yield cell, at, min(offset, end) - at
            at = max(at, offset + length)
            row += 1
