"""Corpus: all documents of several parts, numbered in the order of path and row.

The numbers do not depend on how the documents were divided among the parts, or on the order of the parts.
Every later step works on numbers in this order, and its result depends on the documents alone.
"""

from __future__ import annotations

import heapq
from array import array
from itertools import groupby

from rdc.documents.parts.part_file import DIGEST_BYTES, SAMPLE_BYTES, Block
from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple
from rdc.model.similar import Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.documents.parts.open_parts import OpenParts


READ_ROWS = 256
"""Documents of a block read at a time, where blocks are merged or names are needed."""

WINDOWS = 128
"""So many times READ_ROWS names are in memory."""

_ROW = (1 << 32) - 1
"""The part of a position that says where in its block a document is."""


class _Entry(NamedTuple):
    """A document, comparable by its order."""

    path: bytes
    row: int
    digest: bytes
    old: bool
    position: int

    @property
    def id(self) -> tuple[bytes, int]:
        return self.path, self.row


class Run(Record):
    """Documents that lie one after another in one block."""

    block: Block
    first: int
    """The position of the first one in the block."""
    count: int


class Names(Record):
    """The names of the documents of a run."""

    paths: list[bytes]
    sources: array[int]
    """The number of the path of each document."""
    rows: array[int]


class _Window(NamedTuple):
    sources: array[int]
    rows: array[int]
    sizes: array[int]
    paths: list[bytes]
    """From the first of the sources on."""


class _Span(NamedTuple):
    run: Run
    """From the first to the last of some documents of a block."""
    rows: list[int]
    """Their positions in the block."""


class Corpus:
    """Eight bytes a document, and what each block takes."""

    def __init__(self, parts: OpenParts, blocks: Sequence[Block], old: frozenset[int] = frozenset()) -> None:
        """`old`: the numbers of the parts of an older corpus."""
        self._parts = parts
        self._old = old
        self._blocks = blocks
        self._positions = array("Q")
        """One number for each document: that of its block times 2^32, plus its position there."""
        self._windows: dict[int, _Window] = {}
        self._order()

    def __len__(self) -> int:
        return len(self._positions)

    def _order(self) -> None:
        """Fill the positions. Blocks whose ranges of documents overlap are merged."""
        ranges = []
        for number, block in enumerate(self._blocks):
            first = next(self._entries(number, 0, 1))
            last = next(self._entries(number, block.layout.documents - 1, 1))
            ranges.append((first.id, last.id, number))
        ranges.sort()
        at = 0
        while at < len(ranges):
            end, reached = at + 1, ranges[at][1]
            while end < len(ranges) and ranges[end][0] <= reached:
                reached = max(reached, ranges[end][1])
                end += 1
            self._append([number for _, _, number in ranges[at:end]])
            at = end

    def _append(self, numbers: list[int]) -> None:
        if len(numbers) == 1:
            start = numbers[0] << 32
            self._positions.extend(range(start, start + self._blocks[numbers[0]].layout.documents))
            return
        # A document that two parts hold is one. One path may name different texts on two machines, and the
        # same document may be in the older corpus.
        before: _Entry | None = None
        for entry in self._merged(numbers):
            if before is None or entry[:4] != before[:4]:
                self._positions.append(entry.position)
            before = entry

    def _merged(self, numbers: list[int]) -> Iterator[_Entry]:
        """Yield the documents of blocks, which come by their first ones. A block is read from when its first
        document is due, so that only blocks that overlap there are in memory."""
        heap: list[tuple[_Entry, int, Iterator[_Entry]]] = []
        for at, number in enumerate(numbers):
            entries = self._all_entries(number)
            first = next(entries)
            while heap and heap[0][0].id < first.id:
                yield from self._least(heap)
            heapq.heappush(heap, (first, at, entries))
        while heap:
            yield from self._least(heap)

    def _least(self, heap: list[tuple[_Entry, int, Iterator[_Entry]]]) -> Iterator[_Entry]:
        """Take the least document of several blocks."""
        entry, at, entries = heap[0]
        after = next(entries, None)
        if after is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (after, at, entries))
        yield entry

    def _all_entries(self, number: int) -> Iterator[_Entry]:
        for first in range(0, self._blocks[number].layout.documents, READ_ROWS):
            yield from self._entries(number, first, READ_ROWS)

    def _entries(self, number: int, first: int, count: int) -> Iterator[_Entry]:
        block = self._blocks[number]
        layout = block.layout
        count = min(count, layout.documents - first)
        read = self._parts.numbers
        sources = read(block, "I", layout.source_of, first, count)
        rows = self._rows(block, first, count)
        digests = self._parts.bytes(block, layout.digests + DIGEST_BYTES * first, DIGEST_BYTES * count)
        paths = self._paths(block, sources[0], sources[-1] + 1)
        for at, row in enumerate(rows):
            digest = digests[DIGEST_BYTES * at : DIGEST_BYTES * (at + 1)]
            position = number << 32 | first + at
            yield _Entry(paths[sources[at] - sources[0]], row, digest, block.part in self._old, position)

    def _paths(self, block: Block, first: int, end: int) -> list[bytes]:
        """Return the sources of a block from the `first` to before `end`."""
        layout = block.layout
        before = max(first - 1, 0)
        ends = self._parts.numbers(block, "Q", layout.name_ends, before, end - before)
        bounds = [0, *ends] if first == 0 else list(ends)
        names = self._parts.bytes(block, layout.names + bounds[0], bounds[-1] - bounds[0])
        base = bounds[0]
        return [names[bounds[at] - base : bounds[at + 1] - base] for at in range(end - first)]

    def _rows(self, block: Block, first: int, count: int) -> array[int]:
        rows = self._parts.numbers(block, "Q", block.layout.rows, first, count)
        before = block.rows_before
        return array("Q", [row + before for row in rows]) if before else rows

    def runs(self) -> Iterator[Run]:
        """Yield all documents, in order."""
        positions, at = self._positions, 0
        while at < len(positions):
            position = positions[at]
            block = self._blocks[position >> 32]
            start = position & _ROW
            most = min(block.layout.documents - start, len(positions) - at)
            count = most
            if positions[at + most - 1] != position + most - 1:
                count = 1
                while positions[at + count] == position + count:
                    count += 1
            yield Run(block, start, count)
            at += count

    def column(self, run: Run, typecode: str, column: int) -> array[int]:
        """Return a column of the documents of a run. `column`: where it starts in the block."""
        return self._parts.numbers(run.block, typecode, column, run.first, run.count)

    def names(self, run: Run) -> Names:
        """Return the paths and rows of the documents of a run."""
        sources = self.column(run, "I", run.block.layout.source_of)
        paths = self._paths(run.block, sources[0], sources[-1] + 1)
        rows = self._rows(run.block, run.first, run.count)
        return Names(paths, array("I", [source - sources[0] for source in sources]), rows)

    def samples(self, run: Run) -> bytes:
        """Return the samples of the documents of a run."""
        at = run.block.layout.samples + SAMPLE_BYTES * run.first
        return self._parts.bytes(run.block, at, SAMPLE_BYTES * run.count)

    def samples_of(self, number: int) -> bytes:
        """Return the samples of one document."""
        position = self._positions[number]
        block = self._blocks[position >> 32]
        at = block.layout.samples + SAMPLE_BYTES * (position & _ROW)
        return self._parts.bytes(block, at, SAMPLE_BYTES)

    def digests(self, run: Run) -> bytes:
        """Return the digests of the documents of a run."""
        at = run.block.layout.digests + DIGEST_BYTES * run.first
        return self._parts.bytes(run.block, at, DIGEST_BYTES * run.count)

    def digest_of(self, number: int) -> bytes:
        """Return the digest of one document."""
        position = self._positions[number]
        block = self._blocks[position >> 32]
        at = block.layout.digests + DIGEST_BYTES * (position & _ROW)
        return self._parts.bytes(block, at, DIGEST_BYTES)

    def shingle_bounds(self, run: Run) -> array[int]:
        """Return where the shingles of each document of a run start, and where the last one's end."""
        if run.first:
            return self._parts.numbers(
                run.block, "Q", run.block.layout.shingle_ends, run.first - 1, run.count + 1
            )
        return array("Q", [0]) + self.column(run, "Q", run.block.layout.shingle_ends)

    def shingles(self, block: Block, start: int, end: int) -> bytes:
        """Shingles of a block by their positions there: u32, little-endian, in the order of the texts."""
        return self._parts.bytes(block, block.layout.sets + 4 * start, 4 * (end - start))

    def read_ranges(self, part: int, ranges: array[int], room: memoryview) -> None:
        """Fill `room` with some bytes of a part. `ranges`: offset and size of each range by turns."""
        self._parts.read_ranges(part, ranges, room)

    def spans(self, numbers: Sequence[int]) -> Iterator[_Span]:
        """Yield the documents of these numbers, which increase, by block."""
        found = map(self._positions.__getitem__, numbers)
        for number, group in groupby(found, (32).__rrshift__):
            rows = [position & _ROW for position in group]
            yield _Span(Run(self._blocks[number], rows[0], rows[-1] - rows[0] + 1), rows)

    def document(self, number: int) -> Document:
        """Return the name and size of one document."""
        position = self._positions[number]
        row = position & _ROW
        window = self._windows.get(position - row % READ_ROWS)
        if window is None:
            window = self._window(position - row % READ_ROWS)
        at = row % READ_ROWS
        return Document(
            window.paths[window.sources[at] - window.sources[0]], window.rows[at], window.sizes[at]
        )

    def _window(self, start: int) -> _Window:
        """Read what document() needs of some documents side by side, and keep it for others."""
        block, first = self._blocks[start >> 32], start & _ROW
        layout = block.layout
        count = min(READ_ROWS, layout.documents - first)
        sources = self._parts.numbers(block, "I", layout.source_of, first, count)
        found = _Window(
            sources,
            self._rows(block, first, count),
            self._parts.numbers(block, "Q", layout.sizes, first, count),
            self._paths(block, sources[0], sources[-1] + 1),
        )
        if len(self._windows) == WINDOWS:
            del self._windows[next(iter(self._windows))]
        self._windows[start] = found
        return found

    def is_old(self, number: int) -> bool:
        """Return whether a document is of the older corpus."""
        return self._blocks[self._positions[number] >> 32].part in self._old
