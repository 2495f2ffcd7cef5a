"""The conversation below the chunk: asks for blocks of a file's gaps and looks for them in the bases here."""

from __future__ import annotations

import mmap
from array import array
from contextlib import suppress
from itertools import accumulate
from operator import sub

from rdc.errors import FileError
from rdc.kernel import blank_targets, match_blocks, match_runs
from rdc.kernel.gaps import search_gaps
from rdc.kernel.pieces import fill_places, run_spans
from rdc.limits import BLOCK_SIZE_MAX
from rdc.plan.blocks import NOWHERE, BlockSearch
from rdc.protocol.comparison import LEAF_WIDTH
from rdc.protocol.messages import BlockRequest
from rdc.session.blanks import LOOK_AHEAD, LOOK_BACK, SOUGHT, blanked_into, blanked_ranges, is_code
from rdc.session.commands import Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.plan.blocks import GapSearch
    from rdc.plan.descent import Part
    from rdc.plan.regions import Step, Window
    from rdc.session.commands import Conversation
    from rdc.session.signed_file import SignedFile

__all__ = ["BLANK_BYTES", "FileGaps", "Gaps"]

SEARCH_BYTES = 32 << 20
"""Bytes of a base looked through at a time: what a window takes in memory. Each time the table of
fingerprints is made anew, of a hundred thousand of them in 3 ms."""

SPAN_BYTES = 1 << 20
"""Bytes of a base read at a time for runs that lie close to each other, longer ones aside."""

CLOSE_BYTES = 16 << 10
"""Bytes between two such runs that cost less to read than another search costs to begin."""


BLANK_BYTES = 128 << 10
"""Bytes of code in unknown chunks from which on these are looked for without their targets: of fewer, those
that come again cost more than they save where a few bytes were changed in place. With 64 KiB packages of
programs took up to 9 % less and those of kernel modules 4 % more, with 256 KiB programs up to 20 % more
(measured)."""


class Gaps:
    """One search for blocks. `file`: what they are of, a bundle perhaps. `open_base`: gives the base with a
    number, to be closed; MismatchError when it is not what was signed."""

    def __init__(
        self, file: int, secret: bytes, search: GapSearch, open_base: Callable[[int], SourceFile]
    ) -> None:
        self._file = file
        self._secret = secret
        self._search = search
        self._open_base = open_base
        self._asked = False
        self._memory: memoryview | None = None
        """For long windows: new memory for each would cost three times what reading it does."""
        self.blank = False
        """It is machine code, whose targets are left out of what is compared."""

    def ask(self, round_: int) -> Conversation[int]:
        """Sends the next requests; how many there were. None: `parts` has all that can be found."""
        asks = self._search.asks()
        if asks and not self._asked:
            self.blank = self._search.unknown >= BLANK_BYTES and self._is_code()
            if self.blank:
                self._search.leave_targets_out()
        self._asked = True
        for ask in asks:
            request = BlockRequest.of(self._file, ask.pairs, ask.size, ask.width, blank=self.blank)
            yield Send(request, round_)
        return len(asks)

    def take(self, fingerprints: bytes) -> None:
        """Takes the answer to the oldest request, or what came unasked; raises what `open_base` does."""
        opened: dict[int, SourceFile] = {}

        def source(base: int) -> SourceFile:
            if base not in opened:
                opened[base] = self._open_base(base)
            return opened[base]

        def search(
            base: int,
            size: int,
            width: int,
            smaller: int,
            gaps: array[int],
            ranges: array[int],
            pieces: array[int],
            wanted: bytes,
        ) -> tuple[bytes, bytes, bytes]:
            held = source(base)
            windows: Buffer
            if self.blank:
                rows = array("Q", bytes(len(gaps) // 2 * 8))
                rows[0::2], rows[1::2] = gaps[0::4], gaps[1::4]
                windows = blanked_ranges(held, SOUGHT, rows)
            else:
                windows = b"".join(map(held.peek, gaps[0::4], gaps[1::4]))
            return search_gaps(self._secret, windows, size, width, smaller, gaps, ranges, pieces, wanted)

        def find(window: Window, size: int, width: int, wanted: bytes) -> Sequence[int]:
            return self._find(source(window.base), window, size, width, wanted)

        def near(base: int, step: Step, width: int, runs: array[int], wanted: bytes) -> array[int]:
            return self._near(source(base), step, width, runs, wanted)

        try:
            self._search.take(fingerprints, search, find, near)
        finally:
            for held in opened.values():
                held.close()

    def _is_code(self) -> bool:
        """Of the version that is there, which says what the new one is."""
        try:
            with self._open_base(0) as source:
                return is_code(source)
        except FileError:
            return False  # as whoever looks for blocks in it will see

    def _find(
        self, source: SourceFile, window: Window, size: int, width: int, wanted: bytes
    ) -> Sequence[int]:
        found = array("Q", [NOWHERE]) * (len(wanted) // width)
        end = window.offset + window.length
        # Spans overlap by a block less one byte: no offset is left out, and none looked at twice.
        for at in range(window.offset, end - size + 1, SEARCH_BYTES):
            with self._window(source, at, min(SEARCH_BYTES + size - 1, end - at)) as data:
                places = match_blocks(self._secret, data, size, width, wanted)
            found = array("Q", fill_places(found, places, at))
        return found

    def _window(self, source: SourceFile, at: int, length: int) -> memoryview:
        """Bytes of a base, as they are compared, until the next call."""
        if self.blank:
            start = max(0, at - LOOK_BACK)
            held = self._held(source, start, min(source.size, at + length + LOOK_AHEAD) - start)
            blank_targets(held, SOUGHT)
            return held[at - start : at - start + length]
        if length <= SPAN_BYTES:
            return memoryview(source.pread(at, length))
        return self._held(source, at, length)

    def _windows(self, source: SourceFile, rows: array[int]) -> tuple[memoryview, array[int]]:
        """Ranges of a base, offset and length by turns and SPAN_BYTES in all, as they are compared, until the
        next call: somewhere in memory, and where each begins in it."""
        memory = self._room()
        if self.blank:
            places = blanked_into(memory, source, SOUGHT, rows)
            return memory[: places[-1] + rows[-1]], places
        held = memory[: sum(rows[1::2])]
        source.read_ranges_into(held, rows)
        return held, array("Q", accumulate(rows[1:-1:2], initial=0))

    def _held(self, source: SourceFile, at: int, length: int) -> memoryview:
        """Bytes of a base, to be changed as one likes, until the next call."""
        held = self._room()[:length]
        source.read_into(held, at)
        return held

    def _room(self) -> memoryview:
        if self._memory is None:
            # Pages are there once they are written to: as many as the longest window has.
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            memory = mmap.mmap(-1, SEARCH_BYTES + BLOCK_SIZE_MAX, flags=flags)
            with suppress(OSError):  # advice only: 32 MiB are there in 3 ms then, and take 13 by single pages
                memory.madvise(mmap.MADV_HUGEPAGE)
            self._memory = memoryview(memory)
        return self._memory

    def _near(
        self, source: SourceFile, step: Step, width: int, runs: array[int], wanted: bytes
    ) -> array[int]:
        """Runs whose surroundings in the base are close to each other are looked for together."""
        found = array("Q")
        spans = array("Q", run_spans(runs, step.size, step.reach, CLOSE_BYTES, SPAN_BYTES))
        # What a run may need beyond the base's end is in no base; and where its neighbours are further apart
        # than there is memory, what is near the second one is not found.
        starts = array("Q", [min(start, source.size) for start in spans[1::4]])
        stops = [min(stop, source.size) for stop in spans[2::4]]
        lengths = array("Q", [min(max(0, length), SEARCH_BYTES) for length in map(sub, stops, starts)])
        first = at = 0
        for row, stop in _batches(lengths, SPAN_BYTES):
            ranges = array("Q", bytes(16 * (stop - row)))
            ranges[0::2], ranges[1::2] = starts[row:stop], lengths[row:stop]
            held, places = self._windows(source, ranges)
            windows = spans[4 * row : 4 * stop]
            last, end = first + sum(windows[0::4]), at + width * sum(windows[3::4])
            windows[1::4], windows[2::4], windows[3::4] = ranges[0::2], places, ranges[1::2]
            part, prints = runs[4 * first : 4 * last], wanted[at:end]
            found.frombytes(
                match_runs(self._secret, held, windows, step.size, width, step.reach, part, prints)
            )
            first, at = last, end
        return found


def _batches(lengths: array[int], most: int) -> Iterator[tuple[int, int]]:
    """Rows from and to which lengths follow each other that are `most` together, or a longer one alone."""
    row = total = 0
    for stop, length in enumerate(lengths):
        if stop > row and total + length > most:
            yield row, stop
            row, total = stop, 0
        total += length
    if row < len(lengths):
        yield row, len(lengths)


class FileGaps(Gaps):
    """All gaps of one file. `bases`: numbered as in `parts`. `rounds`: how many round trips it may take."""

    def __init__(
        self,
        file: int,
        root: Root,
        secret: bytes,
        parts: Sequence[Part],
        bases: Sequence[SignedFile],
        rounds: int,
    ) -> None:
        self._blocks = BlockSearch(parts, [held.tree for held in bases], rounds)
        super().__init__(file, secret, self._blocks, lambda base: bases[base].open(root))

    def begin(self, size: int, fingerprints: bytes) -> None:
        """Takes the fingerprints of the whole file, a single gap, that came with its tree; as `take`."""
        self._blocks.begin(size, LEAF_WIDTH)
        self.take(fingerprints)

    def parts(self) -> tuple[Part, ...]:
        """The file's, with what was found put in. Without targets of chunks that repeat, what is found of
        these is not known to be right."""
        return self._blocks.parts(single=self.blank)
