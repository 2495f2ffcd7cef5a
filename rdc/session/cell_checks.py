"""The source's half of claims: in which cells a destination takes a file to be other than it is."""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import add

from rdc.kernel import take_targets, target_bits
from rdc.kernel.pieces import put_images, put_tiles, tile_range, tile_reads
from rdc.limits import CELLS_PER_ANSWER
from rdc.plan.cells import cell_digests, stretches
from rdc.protocol.claims import CELL_BYTES, CELL_DIGEST_BYTES, rests
from rdc.protocol.messages import Correction, Targets
from rdc.records import dataclass
from rdc.session.blanks import CLAIMED, LOOK_AHEAD, LOOK_BACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.source import SourceFile
    from rdc.protocol.messages import RangeRequest

__all__ = ["corrections"]


@dataclass(frozen=True, slots=True)
class _Images:
    """Cells, one behind the other, with zeros for what is in the ranges and, where targets are left out,
    blanks for these."""

    cells: tuple[int, ...]
    content: bytes | bytearray
    targets: bytes = b""
    """Those that are in no range, as they are sent."""
    counts: bytes = b""
    """How many bytes of them are of each cell, packed."""

    def targets_but(self, wrong: Sequence[int]) -> bytes:
        """Without those of these rows."""
        if not wrong:
            return self.targets
        ends = array("Q", accumulate(array("Q", self.counts), initial=0))
        return b"".join(
            self.targets[ends[row] : ends[row + 1]] for row in range(len(self.cells)) if row not in wrong
        )


def corrections(source: SourceFile, message: RangeRequest, secret: bytes) -> Iterator[Correction | Targets]:
    """What is to be said before the ranges that `message` asks for. `secret`: the session's.

    Cells that are wholly asked for make no claim. FileChangedError where the file is shorter by now.
    """
    claims, at = message.claims, 0
    for images in _images(source, message):
        digests = cell_digests(secret, images.content)
        told = claims.digests[at : at + len(digests)]
        at += len(digests)
        wrong = []
        if told != digests:
            wrong = [
                row
                for row, place in enumerate(range(0, len(told), CELL_DIGEST_BYTES))
                if told[place : place + CELL_DIGEST_BYTES] != digests[place : place + CELL_DIGEST_BYTES]
            ]
            yield from _correction(source, message, [images.cells[row] for row in wrong])
        targets = images.targets_but(wrong) if images.targets else b""
        if targets:
            yield Targets(message.file, targets)


def _images(source: SourceFile, message: RangeRequest) -> Iterator[_Images]:
    """Of all that is claimed, CELLS_PER_ANSWER at a time."""
    ends = array("Q", (0, *accumulate(map(add, message.gaps, message.lengths))))
    known = array("Q", bytes(32 * len(ends)))
    known[0::4] = known[2::4] = ends
    known[3::4] = array("Q", (*message.gaps, source.size - ends[-1]))
    around = (LOOK_BACK, LOOK_AHEAD, array("Q", (source.size,))) if message.blank else ()
    for first in range(0, len(message.claims.cells), CELLS_PER_ANSWER):
        cells = message.claims.cells[first : first + CELLS_PER_ANSWER]
        tiles = b"".join(
            tile_range(known, start, min(stop, source.size) - start) for start, stop in stretches(cells)
        )
        wanted, reads, sources = tile_reads(tiles, CELL_BYTES, *around)
        rows = array("Q", reads)
        del rows[0::3]  # all of one base, the file itself
        held = source.read_ranges(rows)
        if not message.blank:
            yield _Images(cells, put_tiles(sources, held, bytes(wanted)))
            continue
        images, bits = put_images(sources, held, target_bits(held, rows[1::2]))
        offsets = array("Q", [cell * CELL_BYTES for cell in cells])
        targets, counts = take_targets(images, bits, CELL_BYTES, offsets, CLAIMED)
        yield _Images(cells, images, targets, counts)


def _correction(source: SourceFile, message: RangeRequest, wrong: list[int]) -> Iterator[Correction]:
    """One, or none where nothing is to be corrected."""
    found = list(rests(message.rows, wrong, source.size))
    cells = tuple(sorted({cell for cell, _, _ in found}))
    if cells:
        payload = b"".join(source.pread(offset, length) for _, offset, length in found)
        yield Correction(message.file, cells, payload)
