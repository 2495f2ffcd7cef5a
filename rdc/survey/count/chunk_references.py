"""ChunkReferences: where chunks occur, to attribute duplicate bytes to directories and to find overlapping
ones."""

from __future__ import annotations

from array import array
from itertools import compress

from rdc.kernel import select_chunks
from rdc.survey.walk.equal_groups import equal_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.survey.walk.equal_groups import Groups

__all__ = ["REFERENCES", "ChunkReferences"]

REFERENCES = 1 << 19
"""Most references stored, 20 bytes each: all of 8 GB at 16 KiB. Of more data, one chunk in 2, 4, 8 ... is
followed. That still tells directories of some megabytes apart."""

SALT = 0x7265_6673_0000_0001
"""Makes this selection independent of the samples of tables and compression."""


class ChunkReferences:
    """(chunk, location) for every occurrence of the followed chunks. A chunk is followed at all its
    occurrences or at none."""

    def __init__(self) -> None:
        self.keys: array[int] = array("Q")
        self.sizes: array[int] = array("Q")
        self.locations: array[int] = array("I")
        self.shift = 0
        """One chunk in 2^shift is followed."""
        self._groups: Groups | None = None
        """Rows of equal keys, until rows change: a report asks three times."""

    def add(self, keys: bytes, sizes: bytes, locations: array[int]) -> None:
        """Adds occurrences as columns."""
        self._groups = None
        if self.shift:
            rows = array("Q", select_chunks(keys, SALT, self.shift))
            if not rows:
                return
            column, lengths = memoryview(keys).cast("Q"), memoryview(sizes).cast("Q")
            self.keys.extend(column[row] for row in rows)
            self.sizes.extend(lengths[row] for row in rows)
            self.locations.extend(locations[row] for row in rows)
        else:
            self.keys.frombytes(keys)
            self.sizes.frombytes(sizes)
            self.locations.extend(locations)
        while len(self.keys) > REFERENCES and self.shift < 63:
            self.thin(self.shift + 1)

    def thin(self, shift: int) -> None:
        """Follows only one chunk in 2^shift from now on."""
        if shift <= self.shift:
            return
        self.shift, self._groups = shift, None
        selected = bytearray(len(self.keys))
        for row in array("Q", select_chunks(self.keys, SALT, shift)):
            selected[row] = 1
        self.keys = array("Q", compress(self.keys, selected))
        self.sizes = array("Q", compress(self.sizes, selected))
        self.locations = array("I", compress(self.locations, selected))

    def thinned(self, shift: int) -> ChunkReferences:
        """A copy that follows one chunk in 2^shift."""
        copy = ChunkReferences()
        copy.keys, copy.sizes, copy.locations = self.keys[:], self.sizes[:], self.locations[:]
        copy.shift = self.shift
        copy.thin(shift)
        return copy

    def repeated(self) -> Iterator[tuple[int, list[int]]]:
        """Every chunk that occurs twice or more, in an order of their keys: its bytes, and the location of
        every occurrence."""
        if self._groups is None:
            self._groups = equal_groups(self.keys, 8)
        for rows in self._groups:
            yield self.sizes[rows[0]], [self.locations[row] for row in rows]
