"""Types of fields that several messages share, each with its codec; ranges of files, and claims about them.

Claims are digests of the content that a destination has around the ranges it asks for, per check block. Check
block n of a file is its bytes [n * CHECK_BLOCK_BYTES, (n + 1) * CHECK_BLOCK_BYTES); the last one may be
shorter. Its digest covers all of it, with zeros in place of the ranges of the same request.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate, chain
from operator import add, sub

from rdc.errors import ExitCode
from rdc.lean.records import dataclass
from rdc.lean.typed import Annotated
from rdc.limits.chunks import TREE_HEIGHT
from rdc.limits.wire import (
    CHECK_BLOCKS_PER_MESSAGE,
    FILES_PER_MESSAGE,
    FURTHER_BYTES,
    MESSAGE_BYTES,
    NODES_PER_MESSAGE,
    ORDINAL_LIMIT,
    SIZE_LIMIT,
    TIER_NODES,
)
from rdc.protocol.messages.listings import ALL_GROUPS
from rdc.protocol.wire.fields import Blob, Gaps, Integer, Member, Text, Time, Total
from rdc.protocol.wire.integers import pack_gaps, unpack_gaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

ROOT_BYTES = 32
DIGEST_BYTES = 32
REFERENCE_WIDTHS = (4, 32)

Ordinal: TypeAlias = Annotated[int, Integer(highest=ORDINAL_LIMIT)]
Size: TypeAlias = Annotated[int, Integer()]
TotalSize: TypeAlias = Annotated[int, Total()]
"""Bytes of several files together."""
Count: TypeAlias = Annotated[int, Integer()]
Root: TypeAlias = Annotated[bytes, Blob(ROOT_BYTES, ROOT_BYTES)]
Digest: TypeAlias = Annotated[bytes, Blob(DIGEST_BYTES, DIGEST_BYTES)]
Further: TypeAlias = Annotated[bytes, Blob(0, FURTHER_BYTES)]
"""The first bytes of a digest, or b"" for none."""
Files: TypeAlias = Annotated[tuple[int, ...], Gaps(FILES_PER_MESSAGE, ORDINAL_LIMIT)]
Nodes: TypeAlias = Annotated[tuple[int, ...], Gaps(NODES_PER_MESSAGE, ORDINAL_LIMIT)]
Line: TypeAlias = Annotated[str, Text(MESSAGE_BYTES)]
Code: TypeAlias = Annotated[ExitCode, Member(ExitCode)]
Failure: TypeAlias = Annotated[ExitCode, Member(ExitCode, without=(ExitCode.OK,))]
TierNodes: TypeAlias = Annotated[tuple[int, ...], Gaps(TIER_NODES, ORDINAL_LIMIT)]
GroupSet: TypeAlias = Annotated[int, Integer(1, ALL_GROUPS)]
Width: TypeAlias = Annotated[int, Integer(*REFERENCE_WIDTHS)]
Mtime: TypeAlias = Annotated[int | None, Time(optional=True)]
"""Nanoseconds; None for the listed mtime. A file that changed after its listing is sent with its new
mtime."""
Level: TypeAlias = Annotated[int, Integer(0, TREE_HEIGHT)]


class AboutFile:
    """A request about one file or bundle, which may turn out to be unreadable."""

    __slots__ = ()

    file: int


class AboutFiles:
    """A request about several files, each of which may turn out to be unreadable."""

    __slots__ = ()

    files: tuple[int, ...]


class Ranged(AboutFile):
    """Increasing, disjoint byte ranges of a file, as the gaps before them and their lengths."""

    __slots__ = ()

    gaps: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def end(self) -> int:
        """Offset after the last range, in bytes."""
        return sum(self.gaps) + sum(self.lengths)

    @property
    def rows(self) -> array[int]:
        """Two numbers per range: offset and length."""
        found = array("Q", bytes(16 * len(self.lengths)))
        found[1::2] = lengths = array("Q", self.lengths)
        found[0::2] = array("Q", map(sub, accumulate(map(add, self.gaps, self.lengths)), lengths))
        return found

    def check_ranges(self) -> str | None:
        if len(self.gaps) != len(self.lengths):
            return f"lengths: {len(self.lengths)} for {len(self.gaps)} offsets"
        if self.end > SIZE_LIMIT:
            return f"lengths: the last range ends past {SIZE_LIMIT}"
        return None


def columns_of(rows: array[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The gaps and lengths of `rows`. A rebuilt library has tens of thousands of ranges, so this avoids a
    loop."""
    offsets, lengths = rows[0::2], rows[1::2]
    return tuple(map(sub, offsets, chain((0,), map(add, offsets, lengths)))), tuple(lengths)


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
