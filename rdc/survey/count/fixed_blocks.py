"""FixedBlocks: cuts blocks at fixed offsets, as block-based stores do, and hashes them with XXH3-128."""

from __future__ import annotations

from array import array

from xxhash import xxh3_128_intdigest

from rdc.survey.count.holes import NO_HOLES, Holes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FixedBlocks"]

_HIGH = 64


class FixedBlocks:
    """Cuts one file from its start. Spans end at multiples of every block size or at the end of the file."""

    __slots__ = ("_at", "_columns", "sizes")

    def __init__(self, sizes: tuple[int, ...]) -> None:
        """`sizes`: bytes per block."""
        self.sizes = sizes
        self._at = 0
        self._columns = {size: (array("Q"), array("Q"), array("Q")) for size in sizes}

    def span(self, data: bytes) -> None:
        """Adds the next bytes, which contain no hole."""
        self.cut(data, self._at)
        self._at += len(data)

    def cut(self, data: bytes, offset: int, holes: Holes = NO_HOLES) -> None:
        """Cuts `data`, which lies at `offset`, a multiple of every size. Blocks in holes are left out."""
        view = memoryview(data)
        for size in self.sizes:
            keys, lengths, offsets = self._columns[size]
            for begin in range(0, len(view), size):
                block = view[begin : begin + size]
                if holes and holes.cover(offset + begin, offset + begin + len(block)):
                    continue
                keys.append(xxh3_128_intdigest(block) >> _HIGH)
                lengths.append(len(block))
                offsets.append(offset + begin)

    def take(self) -> Iterator[tuple[int, bytes, bytes, array[int]]]:
        """The blocks since the last call, one item per size: the size, and their keys, lengths and
        offsets."""
        columns, self._columns = (
            self._columns,
            {size: (array("Q"), array("Q"), array("Q")) for size in self.sizes},
        )
        for size, (keys, lengths, offsets) in columns.items():
            yield size, keys.tobytes(), lengths.tobytes(), offsets
