"""Claims: digests of the content that a destination has around the ranges it asks for, per check block.

Check block n of a file is its bytes [n * CHECK_BLOCK_BYTES, (n + 1) * CHECK_BLOCK_BYTES); the last one may
be shorter. Its digest covers all of it, with zeros in place of the ranges of the same request.
"""

from __future__ import annotations

from bisect import bisect_right

from rdc.limits.wire import CHECK_BLOCKS_PER_MESSAGE, SIZE_LIMIT
from rdc.protocol.wire.columns import pack_gaps, unpack_gaps
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

__all__ = ["CHECK_BLOCK_BYTES", "CHECK_BLOCK_DIGEST_BYTES", "NO_CLAIMS", "Claimed", "Claims", "rests"]

CHECK_BLOCK_BYTES = 8 << 10
"""Bytes of a check block. After a false block match the whole check block is sent again, some 3 KB after
compression. Smaller ones cost more in digests than they save; 4 and 16 KiB were tried."""

CHECK_BLOCK_DIGEST_BYTES = 2
"""Bytes of a claim's digest. One wrong check block in 65,536 passes unnoticed and then costs another round
trip."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Check blocks with their `digests`, CHECK_BLOCK_DIGEST_BYTES each."""

    cells: tuple[int, ...]
    """Numbers of the check blocks, strictly increasing."""
    digests: bytes

    def part(self, rows: slice) -> Claims:
        """The claims about the check blocks in `rows`."""
        return Claims(
            self.cells[rows],
            self.digests[rows.start * CHECK_BLOCK_DIGEST_BYTES : rows.stop * CHECK_BLOCK_DIGEST_BYTES],
        )


NO_CLAIMS = Claims((), b"")


class Claimed:
    """The gaps between check blocks as a column, followed by their digests; empty bytes without claims."""

    def pack(self, value: Claims) -> object:
        if len(value.digests) != CHECK_BLOCK_DIGEST_BYTES * len(value.cells):
            raise ValueError(f"{len(value.digests)} bytes of digests for {len(value.cells)} cells")
        if len(value.cells) > CHECK_BLOCKS_PER_MESSAGE:
            raise ValueError(f"{len(value.cells)} cells, the limit is {CHECK_BLOCKS_PER_MESSAGE}")
        return pack_gaps(value.cells) + value.digests

    def unpack(self, raw: object) -> Claims:
        if type(raw) is not bytes:
            raise ValueError(f"expected bytes, found {type(raw).__name__}")
        if not raw:
            return NO_CLAIMS
        count, rest = divmod(len(raw) - 1, raw[0] + CHECK_BLOCK_DIGEST_BYTES)
        if rest or count > CHECK_BLOCKS_PER_MESSAGE:
            raise ValueError(
                f"{len(raw)} bytes are not at most {CHECK_BLOCKS_PER_MESSAGE} cells with digests"
            )
        column = len(raw) - count * CHECK_BLOCK_DIGEST_BYTES
        cells = unpack_gaps(raw[:column], count, SIZE_LIMIT // CHECK_BLOCK_BYTES)
        return Claims(cells, raw[column:])


def rests(ranges: array[int], cells: Sequence[int], size: int) -> Iterator[tuple[int, int, int]]:
    """The parts of these check blocks outside of `ranges`, as (check block, offset in the file, length).

    ranges: offset and length by turns, in order. cells: numbers in order. size: bytes of the file.
    """
    offsets, lengths = ranges[0::2], ranges[1::2]
    for check_block in cells:
        at, end = check_block * CHECK_BLOCK_BYTES, min((check_block + 1) * CHECK_BLOCK_BYTES, size)
        # The preceding range may reach into the check block.
        row = max(0, bisect_right(offsets, at) - 1)
        while at < end:
            offset, length = (offsets[row], lengths[row]) if row < len(offsets) else (end, 0)
            if offset > at:
                yield check_block, at, min(offset, end) - at
            at = max(at, offset + length)
            row += 1
