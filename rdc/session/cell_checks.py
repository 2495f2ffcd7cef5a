"""The source's half of claims: in which cells a destination takes a file to be other than it is."""

from __future__ import annotations

from array import array
from itertools import groupby
from typing import TYPE_CHECKING

from rdc.limits import CELLS_PER_ANSWER
from rdc.plan.cells import ZEROS, cell_digests
from rdc.protocol.claims import CELL_BYTES, CELL_DIGEST_BYTES, rests
from rdc.protocol.messages import Correction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.source import SourceFile
    from rdc.protocol.messages import RangeRequest

__all__ = ["corrections"]


class _Read:
    """Cells that were read: what they have outside of the ranges, and their images."""

    def __init__(self) -> None:
        self.cells: list[int] = []
        self.contents: list[list[memoryview]] = []
        self.images: list[bytes | memoryview] = []
        self.sizes = array("Q")

    def add(self, source: SourceFile, cell: int, pieces: Iterator[tuple[int, int, int]]) -> None:
        start = at = cell * CELL_BYTES
        end = min(start + CELL_BYTES, source.size)
        data = memoryview(source.pread(start, end - start))
        content = []
        for _, offset, length in pieces:
            piece = data[offset - start : offset - start + length]
            content.append(piece)
            self.images += (ZEROS[: offset - at], piece)
            at = offset + length
        self.images.append(ZEROS[: end - at])
        self.cells.append(cell)
        self.contents.append(content)
        self.sizes.append(end - start)

    def wrong(self, secret: bytes, claimed: dict[int, bytes], file: int) -> Iterator[Correction]:
        """One message, or none."""
        digests = cell_digests(secret, b"".join(self.images), self.sizes)
        rows = [
            row
            for row, cell in enumerate(self.cells)
            if digests[row * CELL_DIGEST_BYTES : (row + 1) * CELL_DIGEST_BYTES] != claimed[cell]
        ]
        if rows:
            payload = b"".join(piece for row in rows for piece in self.contents[row])
            yield Correction(file, tuple(self.cells[row] for row in rows), payload)


def corrections(source: SourceFile, message: RangeRequest, secret: bytes) -> Iterator[Correction]:
    """What is to be said before the ranges that `message` asks for. `secret`: the session's.

    Cells that are wholly asked for make no claim. FileChangedError where the file is shorter by now.
    """
    claims = message.claims
    claimed = {
        cell: claims.digests[row * CELL_DIGEST_BYTES : (row + 1) * CELL_DIGEST_BYTES]
        for row, cell in enumerate(claims.cells)
    }
    read = _Read()
    for cell, pieces in groupby(rests(message.ranges, claims.cells, source.size), lambda rest: rest[0]):
        read.add(source, cell, pieces)
        if len(read.cells) == CELLS_PER_ANSWER:
            yield from read.wrong(secret, claimed, message.file)
            read = _Read()
    if read.cells:
        yield from read.wrong(secret, claimed, message.file)
