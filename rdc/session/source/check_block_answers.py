"""The source's answers to claims: corrections for check blocks that differ, displacements for masked ones."""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import add

from rdc.kernel.recipe_rows import assemble, instructions_of_range, plan_reads
from rdc.limits.wire import CELLS_PER_ANSWER
from rdc.plan.check_blocks import check_block_digests, check_block_ranges
from rdc.protocol.messages.claims import CELL_BYTES, CELL_DIGEST_BYTES, rests
from rdc.protocol.messages.registry import Correction, Targets
from rdc.records import dataclass
from rdc.session.binaries.filters import LOOK_AHEAD, LOOK_BACK, cut_displacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.root.source_file import SourceFile
    from rdc.protocol.messages.registry import RangeRequest

__all__ = ["corrections"]


@dataclass(frozen=True, slots=True)
class _CheckBlocks:
    """Check blocks back to back, as the destination's claims have them: with zeros for the requested ranges,
    and with masked displacements if the request is masked."""

    numbers: tuple[int, ...]
    content: bytes | bytearray
    displacements: bytes = b""
    """The displacements outside of the requested ranges, as they are sent."""
    counts: bytes = b""
    """Bytes of displacements per check block, 64-bit numbers."""

    def displacements_without(self, wrong: Sequence[int]) -> bytes:
        """Returns the displacements except those of the check blocks in these rows."""
        if not wrong:
            return self.displacements
        ends = array("Q", accumulate(array("Q", self.counts), initial=0))
        return b"".join(
            self.displacements[ends[row] : ends[row + 1]]
            for row in range(len(self.numbers))
            if row not in wrong
        )


def corrections(source: SourceFile, message: RangeRequest, secret: bytes) -> Iterator[Correction | Targets]:
    """Yields what answers the claims of `message`, before its ranges are sent. `secret`: the session's.

    Check blocks that lie wholly in requested ranges have no claim. Raises FileChangedError if the file is
    shorter by now.
    """
    claims, at = message.claims, 0
    for blocks in _claimed_blocks(source, message):
        digests = check_block_digests(secret, blocks.content)
        claimed = claims.digests[at : at + len(digests)]
        at += len(digests)
        wrong = []
        if claimed != digests:
            wrong = [
                row
                for row, start in enumerate(range(0, len(claimed), CELL_DIGEST_BYTES))
                if claimed[start : start + CELL_DIGEST_BYTES] != digests[start : start + CELL_DIGEST_BYTES]
            ]
            yield from _correction(source, message, [blocks.numbers[row] for row in wrong])
        displacements = blocks.displacements_without(wrong) if blocks.displacements else b""
        if displacements:
            yield Targets(message.file, displacements)


def _claimed_blocks(source: SourceFile, message: RangeRequest) -> Iterator[_CheckBlocks]:
    """Yields all claimed check blocks, CELLS_PER_ANSWER at a time."""
    ends = array("Q", (0, *accumulate(map(add, message.gaps, message.lengths))))
    known = array("Q", bytes(32 * len(ends)))
    known[0::4] = known[2::4] = ends
    known[3::4] = array("Q", (*message.gaps, source.size - ends[-1]))
    around = (LOOK_BACK, LOOK_AHEAD, array("Q", (source.size,))) if message.blank else ()
    for first in range(0, len(message.claims.cells), CELLS_PER_ANSWER):
        numbers = message.claims.cells[first : first + CELLS_PER_ANSWER]
        copies = b"".join(
            instructions_of_range(known, start, min(stop, source.size) - start)
            for start, stop in check_block_ranges(numbers)
        )
        requested, reads, sources = plan_reads(copies, CELL_BYTES, *around)
        rows = array("Q", reads)
        del rows[0::3]  # the number of the base, which is always the file itself
        content = source.read_ranges(rows)
        if message.blank:
            yield _CheckBlocks(numbers, *cut_displacements(sources, content, rows[1::2], numbers))
        else:
            yield _CheckBlocks(numbers, assemble(sources, content, bytes(requested)))


def _correction(source: SourceFile, message: RangeRequest, wrong: list[int]) -> Iterator[Correction]:
    """Yields one correction for the `wrong` check blocks, or none if there is nothing to correct."""
    found = list(rests(message.rows, wrong, source.size))
    numbers = tuple(sorted({number for number, _, _ in found}))
    if numbers:
        payload = b"".join(source.pread(offset, length) for _, offset, length in found)
        yield Correction(message.file, numbers, payload)
