"""The source's half of claims: in which cells a destination takes a file to be other than it is."""

from __future__ import annotations

from array import array
from itertools import accumulate, islice
from operator import add

from rdc.kernel import overlay, take_targets
from rdc.kernel.pieces import put_tiles, tile_range, tile_reads
from rdc.limits import CELLS_PER_ANSWER
from rdc.plan.cells import cell_digests
from rdc.protocol.claims import CELL_BYTES, CELL_DIGEST_BYTES, rests
from rdc.protocol.messages import Correction, Targets
from rdc.session.blanks import CLAIMED, shown
from rdc.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.source import SourceFile
    from rdc.protocol.messages import RangeRequest

__all__ = ["corrections"]


class _Image:
    """A cell with zeros for what is in the ranges and, where targets are left out, blanks for these."""

    __slots__ = ("content", "targets")

    def __init__(self, content: bytes, targets: bytes = b"") -> None:
        self.content = content
        self.targets = targets
        """Those that are in no range, as they are sent."""


def corrections(source: SourceFile, message: RangeRequest, secret: bytes) -> Iterator[Correction | Targets]:
    """What is to be said before the ranges that `message` asks for. `secret`: the session's.

    Cells that are wholly asked for make no claim. FileChangedError where the file is shorter by now.
    """
    claims = message.claims
    if not claims.cells:
        return
    images = _blank_images(source, message) if message.blank else _images(source, message)
    row = 0
    while some := tuple(islice(images, CELLS_PER_ANSWER)):
        contents = [image.content for image in some]
        digests = cell_digests(secret, b"".join(contents), array("Q", map(len, contents)))
        told = claims.digests[row * CELL_DIGEST_BYTES : (row + len(some)) * CELL_DIGEST_BYTES]
        wrong = []
        if told != digests:
            places = range(0, len(told), CELL_DIGEST_BYTES)
            wrong = [
                at // CELL_DIGEST_BYTES
                for at in places
                if told[at : at + CELL_DIGEST_BYTES] != digests[at : at + CELL_DIGEST_BYTES]
            ]
            yield from _correction(source, message, [claims.cells[row + number] for number in wrong])
        row += len(some)
        targets = b"".join(image.targets for number, image in enumerate(some) if number not in wrong)
        if targets:
            yield Targets(message.file, targets)


def _blank_images(source: SourceFile, message: RangeRequest) -> Iterator[_Image]:
    for cell, tiles in _tiles(source, message):
        start = cell * CELL_BYTES
        wanted, reads, sources = tile_reads(tiles, CELL_BYTES)
        numbers = array("Q", reads)
        zeros = bytes(wanted)
        if not numbers:
            yield _Image(zeros)
            continue
        held, hidden = shown(source, numbers[1], numbers[2])
        content, mask = put_tiles(sources, held, zeros), put_tiles(sources, hidden, zeros)
        targets = take_targets(content, mask, start)
        if targets:
            blank = bytearray(content)
            overlay(blank, bytes([CLAIMED]) * len(mask), mask)
            content = bytes(blank)
        yield _Image(content, targets)


def _images(source: SourceFile, message: RangeRequest) -> Iterator[_Image]:
    for _, tiles in _tiles(source, message):
        wanted, reads, sources = tile_reads(tiles, CELL_BYTES)
        numbers = array("Q", reads)
        held = source.pread(numbers[1], numbers[2]) if numbers else b""
        yield _Image(put_tiles(sources, held, bytes(wanted)))


def _tiles(source: SourceFile, message: RangeRequest) -> Iterator[tuple[int, bytes]]:
    """Of what each cell is made: of the file, and of what is in the ranges."""
    ends = array("Q", (0, *accumulate(map(add, message.gaps, message.lengths))))
    known = array("Q", bytes(32 * len(ends)))
    known[0::4] = known[2::4] = ends
    known[3::4] = array("Q", (*message.gaps, source.size - ends[-1]))
    for cell in message.claims.cells:
        start = cell * CELL_BYTES
        length = min(CELL_BYTES, source.size - start)
        yield cell, tile_range(known, start, length)


def _correction(source: SourceFile, message: RangeRequest, wrong: list[int]) -> Iterator[Correction]:
    """One, or none where nothing is to be corrected."""
    found = list(rests(message.ranges, wrong, source.size))
    cells = tuple(sorted({cell for cell, _, _ in found}))
    if cells:
        payload = b"".join(source.pread(offset, length) for _, offset, length in found)
        yield Correction(message.file, cells, payload)
