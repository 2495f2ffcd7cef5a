"""The source's half of claims: in which cells a destination takes a file to be other than it is."""

from __future__ import annotations

from array import array
from itertools import accumulate, islice
from operator import add
from typing import TYPE_CHECKING

from rdc.kernel.pieces import put_tiles, tile_range, tile_reads
from rdc.limits import CELLS_PER_ANSWER
from rdc.plan.cells import cell_digests
from rdc.protocol.claims import CELL_BYTES, CELL_DIGEST_BYTES, rests
from rdc.protocol.messages import Correction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.source import SourceFile
    from rdc.protocol.messages import RangeRequest

__all__ = ["corrections"]


def corrections(source: SourceFile, message: RangeRequest, secret: bytes) -> Iterator[Correction]:
    """What is to be said before the ranges that `message` asks for. `secret`: the session's.

    Cells that are wholly asked for make no claim. FileChangedError where the file is shorter by now.
    """
    claims = message.claims
    if not claims.cells:
        return
    images = _images(source, message)
    row = 0
    while some := tuple(islice(images, CELLS_PER_ANSWER)):
        digests = cell_digests(secret, b"".join(some), array("Q", map(len, some)))
        told = claims.digests[row * CELL_DIGEST_BYTES : (row + len(some)) * CELL_DIGEST_BYTES]
        if told != digests:
            places = range(0, len(told), CELL_DIGEST_BYTES)
            wrong = [
                claims.cells[row + at // CELL_DIGEST_BYTES]
                for at in places
                if told[at : at + CELL_DIGEST_BYTES] != digests[at : at + CELL_DIGEST_BYTES]
            ]
            yield from _correction(source, message, wrong)
        row += len(some)


def _images(source: SourceFile, message: RangeRequest) -> Iterator[bytes]:
    """The cells, with zeros for what is in the ranges."""
    ends = array("Q", (0, *accumulate(map(add, message.gaps, message.lengths))))
    known = array("Q", bytes(32 * len(ends)))
    known[0::4] = known[2::4] = ends
    known[3::4] = array("Q", (*message.gaps, source.size - ends[-1]))
    for cell in message.claims.cells:
        start = cell * CELL_BYTES
        length = min(CELL_BYTES, source.size - start)
        wanted, reads, sources = tile_reads(tile_range(known, start, length), CELL_BYTES)
        numbers = array("Q", reads)
        held = source.pread(numbers[1], numbers[2]) if numbers else b""
        yield put_tiles(sources, held, bytes(wanted))


def _correction(source: SourceFile, message: RangeRequest, wrong: list[int]) -> Iterator[Correction]:
    """One, or none where nothing is to be corrected."""
    found = list(rests(message.ranges, wrong, source.size))
    cells = tuple(sorted({cell for cell, _, _ in found}))
    if cells:
        payload = b"".join(source.pread(offset, length) for _, offset, length in found)
        yield Correction(message.file, cells, payload)
