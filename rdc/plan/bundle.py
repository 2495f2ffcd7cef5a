"""A bundle: many changed files treated as one, and the search for their contents in the old versions.

The contents of the files lie one after another, and so do their old versions, the base. Files of several
chunks come first, described by these chunks. Files of one chunk follow, described by fingerprints of their
blocks: first those in blocks of the full size, then short files in shorter blocks. Within each group the
files keep their order.
"""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.lean.records import dataclass
from rdc.plan.descent import ByteRange
from rdc.plan.search import FURTHER, UNPLACED, Gap, GapSearch, first_step, gap_within
from rdc.protocol.messages.content import SHORTEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class BundleLayout:
    """The order and the offsets of the files in a bundle."""

    order: tuple[int, ...]
    """Numbers of the files, as requested, in bundle order."""
    sizes: array[int]
    """Bytes of each file in bundle order (typecode 'Q')."""
    starts: array[int]
    """Offset of each file; the last item is the end of the bundle."""
    chunked: int
    """Number of files described by their chunks; they come first."""
    short: int
    """Number of files described in shorter blocks; they come last."""

    @classmethod
    def of(cls, files: Sequence[int], sizes: Sequence[int], chunk: int, block: int) -> BundleLayout:
        """Lays out the files with these numbers and sizes in bytes.

        `chunk`: bytes of the longest chunk; a file described by blocks is no longer. `block`: bytes of a full
        block.
        """
        chunked = [row for row, size in enumerate(sizes) if size > chunk]
        whole = [row for row, size in enumerate(sizes) if 2 * block <= size <= chunk]
        short = [row for row, size in enumerate(sizes) if size < 2 * block and size <= chunk]
        rows = chunked + whole + short
        lengths = array("Q", [sizes[row] for row in rows])
        starts = array("Q", accumulate(lengths, initial=0))
        return cls(tuple([files[row] for row in rows]), lengths, starts, len(chunked), len(short))

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return self.starts[-1]

    @property
    def shorter(self) -> int:
        """Index in `order` of the first file described in shorter blocks."""
        return len(self.order) - self.short


def chunk_copies(
    wanted: bytes, lengths: Sequence[int], base_references: bytes, base_lengths: Sequence[int]
) -> array[int]:
    """Returns the wanted chunks that the base has, as the kernel's rows of copies.

    `wanted` and `base_references` are packed references of equal width, one per chunk. `lengths` and
    `base_lengths` are the lengths of these chunks in bytes.
    """
    width = len(base_references) // max(1, len(base_lengths))
    known: dict[bytes, tuple[int, int]] = {}
    at = 0
    for row, length in enumerate(base_lengths):
        known.setdefault(base_references[row * width : (row + 1) * width], (at, length))
        at += length
    copies = array("Q")
    at = 0
    for row, length in enumerate(lengths):
        base_offset, same = known.get(wanted[row * width : (row + 1) * width], (0, 0))
        if same == length:
            if copies and copies[-4] + copies[-1] == at and copies[-2] + copies[-1] == base_offset:
                copies[-1] += length
            else:
                copies.extend((at, 0, base_offset, length))
        at += length
    return copies


class BundleSearch(GapSearch):
    """Searches for all gaps of a bundle, each in the old version of its file."""

    def __init__(
        self,
        layout: BundleLayout,
        old: Sequence[int],
        copies: array[int],
        block: int,
        width: int,
        rounds: int,
    ) -> None:
        """Prepares the search.

        `old`: bytes of the old versions in bundle order. `copies`: chunks that the base has. `block`: bytes
        per block of the fingerprints that came with the bundle, `width`: bytes per fingerprint. `rounds`: how
        many times `questions` may return any.
        """
        gaps = list(_gaps(layout, old, copies))
        sizes = (block, *FURTHER[max(0, min(rounds, len(FURTHER) - 1))])
        super().__init__(gaps, sizes)
        chunked = [gap for gap in gaps if gap.offset < layout.starts[layout.chunked]]
        if rounds > 0:
            least = 0 if rounds >= len(sizes) else 1
            for gap in chunked:
                self.open(gap, max(least, first_step(gap.end - gap.offset, len(sizes))))
        border = len(chunked) + layout.shorter - layout.chunked
        self.expect(gaps[len(chunked) : border], block, width, 0)
        shorter = block // SHORTEN
        self.expect(gaps[border:], shorter, width, sum(size >= shorter for size in sizes) - 1)


def _gaps(layout: BundleLayout, old: Sequence[int], copies: array[int]) -> list[Gap]:
    """Returns the gaps in order. Neighbours of a gap count only if they lie in the old version of the same
    file."""
    gaps = []
    rows = iter(zip(copies[0::4], copies[2::4], copies[3::4], strict=True))
    row = next(rows, None)
    begin = 0
    for number, size in enumerate(layout.sizes):
        bounds = begin, begin + old[number]
        begin = bounds[1]
        at, end = layout.starts[number], layout.starts[number] + size
        before = bounds[0]
        while row is not None and row[0] < end:
            offset, base_offset, length = row
            # A copy may begin in one file and end in the next.
            start, stop = max(at, offset), min(end, offset + length)
            if at < start:
                behind = base_offset if bounds[0] <= base_offset <= bounds[1] else bounds[1]
                gaps.append(_gap(ByteRange(at, start - at), before, behind, bounds))
            goes_on = base_offset + stop - offset
            before = goes_on if bounds[0] <= goes_on <= bounds[1] else bounds[0]
            at = stop
            if offset + length > end:
                break
            row = next(rows, None)
        if at < end:
            gaps.append(_gap(ByteRange(at, end - at), before, bounds[1], bounds))
    return gaps


def _gap(unmatched: ByteRange, before: int, behind: int, bounds: tuple[int, int]) -> Gap:
    return gap_within(unmatched, 0, (before, behind), bounds, (UNPLACED, UNPLACED))
