"""Comparison of one file's new version with its bases, from the tree's nodes down to blocks.

The nodes tell which chunks the bases have. The block search then finds parts of the other chunks, as long as
it pays. The result is a recipe: what to copy from where, and what to fetch.
"""

from __future__ import annotations

import mmap
from array import array
from collections import deque
from contextlib import suppress
from itertools import accumulate
from operator import sub

from rdc.errors import FileError, ProtocolError
from rdc.kernel import fill_offsets, match_blocks, match_runs, run_spans, search_gaps
from rdc.limits.chunks import BLOCK_SIZE_MAX
from rdc.limits.wire import NODES_PER_MESSAGE
from rdc.plan.block_search import NOWHERE, BlockSearch
from rdc.plan.descent import Descent, Fetch, literal_rows
from rdc.protocol.messages import BlockRequest, NodeRequest, TreeRequest
from rdc.protocol.messages.comparison import LEAF_WIDTH
from rdc.session.binaries.filters import looks_like, mask_ranges, mask_ranges_into
from rdc.session.runtime.commands import Send
from rdc.signature.records import SHORT_REFERENCE_BYTES, decode_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.plan.block_search import GapSearch
    from rdc.plan.descent import Part
    from rdc.plan.large_gaps import Step, Window
    from rdc.protocol.messages import NodeAnswer, TreeAnswer
    from rdc.session.delta.bases import SignedFile
    from rdc.session.landing.transfer_context import TransferContext
    from rdc.session.runtime.commands import Conversation

__all__ = ["FEW_FILES", "LEAF_BLOCK", "MASKING_BYTES", "FileComparison", "FileGaps", "Gaps"]

ROUND_TRIPS = 10
"""Round trips that a session should take at most."""

ROUND_TRIPS_FOR_FEW = 8
FEW_FILES = 4
FEW_BYTES = 64 << 10
"""A file with at most FEW_BYTES unmatched, in a session that has at most FEW_FILES in work, takes at most
ROUND_TRIPS_FOR_FEW: a further round trip could save little."""


def rounds_left(round_: int, trips: int = ROUND_TRIPS) -> int:
    """Returns how many requests may follow, from this round on, before the literals are requested."""
    # A message and its answer are two rounds; the literals take two more, and Done the last.
    return max(0, (2 * trips - 2 - round_) // 2)


def rounds_left_for_few(round_: int) -> int:
    """Does what `rounds_left` does for few files and few unmatched bytes."""
    return rounds_left(round_, ROUND_TRIPS_FOR_FEW)


SEARCH_BYTES = 32 << 20
"""Bytes of a base searched at a time, in memory. Each search builds its table of fingerprints anew, which
takes 3 ms for a hundred thousand."""

SPAN_BYTES = 1 << 20
"""Bytes of a base read at a time for unmatched runs that lie close together. A longer run is read alone."""

CLOSE_BYTES = 16 << 10
"""Bytes between two such runs that cost less to read than to start another search."""

MASKING_BYTES = 128 << 10
"""Mask x86 displacements only if at least this many bytes are unmatched. Below that, resending displacements
costs more than the extra matches save. Measured: at 64 KiB program packages shrink by up to 9 % but kernel
modules grow by 4 %; at 256 KiB programs grow by up to 20 %."""


class Gaps:
    """One search for blocks of a file or of a bundle."""

    def __init__(
        self, file: int, secret: bytes, search: GapSearch, open_base: Callable[[int], SourceFile]
    ) -> None:
        """`file`: number of the file or bundle. `open_base`: opens a base by its number, for the caller to
        close. It raises MismatchError if the base changed since it was signed."""
        self._file = file
        self._secret = secret
        self._search = search
        self._open_base = open_base
        self._asked = False
        self._memory: memoryview | None = None
        """One buffer for all long windows. A new one for each would cost three times what reading costs."""
        self.masked = False
        """The file is x86 code, compared with masked displacements."""

    def ask(self, round_: int) -> Conversation[int]:
        """Sends the next requests and returns their number. After 0, `parts` has all that can be found."""
        questions = self._search.questions()
        if questions and not self._asked:
            self.masked = self._search.unknown >= MASKING_BYTES and self._is_x86()
            if self.masked:
                self._search.mask_displacements()
        self._asked = True
        for ask in questions:
            request = BlockRequest.of(self._file, ask.pairs, ask.size, ask.width, blank=self.masked)
            yield Send(request, round_)
        return len(questions)

    def take(self, fingerprints: bytes) -> None:
        """Searches for the fingerprints that answer the oldest request, or came with the tree.

        Raises FileError if a base cannot be read, and what `open_base` raises.
        """
        opened: dict[int, SourceFile] = {}

        def open_once(base: int) -> SourceFile:
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
            segments: array[int],
            wanted: bytes,
        ) -> tuple[bytes, bytes, bytes]:
            source = open_once(base)
            windows: Buffer
            if self.masked:
                rows = array("Q", bytes(len(gaps) // 2 * 8))
                rows[0::2], rows[1::2] = gaps[0::4], gaps[1::4]
                windows = mask_ranges(source, rows)
            else:
                windows = b"".join(map(source.peek, gaps[0::4], gaps[1::4]))
            return search_gaps(self._secret, windows, size, width, smaller, gaps, ranges, segments, wanted)

        def find(window: Window, size: int, width: int, wanted: bytes) -> Sequence[int]:
            return self._find(open_once(window.base), window, size, width, wanted)

        def near(base: int, step: Step, width: int, runs: array[int], wanted: bytes) -> array[int]:
            return self._near(open_once(base), step, width, runs, wanted)

        try:
            self._search.take(fingerprints, search, find, near)
        finally:
            for source in opened.values():
                source.close()

    def _is_x86(self) -> bool:
        """Tells whether the old version is x86 code; the new one is likely to be what the old one is."""
        try:
            with self._open_base(0) as source:
                return looks_like(source)
        except FileError:
            return False  # the search meets the same error and raises it

    def _find(
        self, source: SourceFile, window: Window, size: int, width: int, wanted: bytes
    ) -> Sequence[int]:
        """Returns the offset in the base of each wanted block, NOWHERE for those not found."""
        found = array("Q", [NOWHERE]) * (len(wanted) // width)
        end = window.offset + window.length
        # Spans overlap by a block less one byte, so every offset is searched exactly once.
        for at in range(window.offset, end - size + 1, SEARCH_BYTES):
            with self._window(source, at, min(SEARCH_BYTES + size - 1, end - at)) as data:
                offsets = match_blocks(self._secret, data, size, width, wanted)
            found = array("Q", fill_offsets(found, offsets, at))
        return found

    def _window(self, source: SourceFile, at: int, length: int) -> memoryview:
        """Returns bytes of a base as they are compared, valid until the next call."""
        if length <= SPAN_BYTES and not self.masked:
            return memoryview(source.pread(at, length))
        content, starts = self._windows(source, array("Q", (at, length)))
        return content[starts[0] : starts[0] + length]

    def _windows(self, source: SourceFile, rows: array[int]) -> tuple[memoryview, array[int]]:
        """Returns memory with ranges of a base as they are compared, and where each range begins in it.

        `rows`: (offset, length). The memory is valid until the next call.
        """
        memory = self._buffer()
        if self.masked:
            starts = mask_ranges_into(memory, source, rows)
            return memory[: starts[-1] + rows[-1]], starts
        content = memory[: sum(rows[1::2])]
        source.read_ranges_into(content, rows)
        return content, array("Q", accumulate(rows[1:-1:2], initial=0))

    def _buffer(self) -> memoryview:
        """Returns memory for the longest window."""
        if self._memory is None:
            # The system allocates a page when it is first written to.
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            memory = mmap.mmap(-1, SEARCH_BYTES + BLOCK_SIZE_MAX, flags=flags)
            with suppress(OSError):  # only advice: huge pages allocate 32 MiB in 3 ms, small ones in 13 ms
                memory.madvise(mmap.MADV_HUGEPAGE)
            self._memory = memoryview(memory)
        return self._memory

    def _near(
        self, source: SourceFile, step: Step, width: int, runs: array[int], wanted: bytes
    ) -> array[int]:
        """Searches for unmatched runs near their neighbours in the base, runs that lie close to each other
        together."""
        found = array("Q")
        spans = array("Q", run_spans(runs, step.size, step.reach, CLOSE_BYTES, SPAN_BYTES))
        # A span ends at the base's end. A span longer than the buffer is cut: blocks near the second
        # neighbour of its run are not found.
        starts = array("Q", [min(start, source.size) for start in spans[1::4]])
        stops = [min(stop, source.size) for stop in spans[2::4]]
        lengths = array("Q", [min(max(0, length), SEARCH_BYTES) for length in map(sub, stops, starts)])
        first = at = 0
        for row, stop in _batches(lengths, SPAN_BYTES):
            ranges = array("Q", bytes(16 * (stop - row)))
            ranges[0::2], ranges[1::2] = starts[row:stop], lengths[row:stop]
            content, starts_in_memory = self._windows(source, ranges)
            windows = spans[4 * row : 4 * stop]
            last, end = first + sum(windows[0::4]), at + width * sum(windows[3::4])
            windows[1::4], windows[2::4], windows[3::4] = ranges[0::2], starts_in_memory, ranges[1::2]
            part, prints = runs[4 * first : 4 * last], wanted[at:end]
            found.frombytes(
                match_runs(self._secret, content, windows, step.size, width, step.reach, part, prints)
            )
            first, at = last, end
        return found


def _batches(lengths: array[int], most: int) -> Iterator[tuple[int, int]]:
    """Yields slices (first, stop) of `lengths` that sum up to at most `most`, or hold one longer length."""
    row = total = 0
    for stop, length in enumerate(lengths):
        if stop > row and total + length > most:
            yield row, stop
            row, total = stop, 0
        total += length
    if row < len(lengths):
        yield row, len(lengths)


class FileGaps(Gaps):
    """The block search of one file, over all its unmatched ranges."""

    def __init__(
        self,
        file: int,
        root: Root,
        secret: bytes,
        parts: Sequence[Part],
        bases: Sequence[SignedFile],
        rounds: int,
    ) -> None:
        """`bases`: numbered as in `parts`. `rounds`: the round trips that the search may take."""
        self._blocks = BlockSearch(parts, [base.tree for base in bases], rounds)
        super().__init__(file, secret, self._blocks, lambda base: bases[base].open(root))

    def begin(self, size: int, fingerprints: bytes) -> None:
        """Searches for all blocks of a file whose fingerprints came with its tree; raises what `take` does.

        `size`: bytes of a block.
        """
        self._blocks.begin(size, LEAF_WIDTH)
        self.take(fingerprints)

    def parts(self) -> tuple[Part, ...]:
        """Returns the parts of the file with the matches put in.

        Matches in repeated chunks are left out if displacements were masked: they would stay unverified.
        """
        return self._blocks.parts(single=self.masked)


LEAF_BLOCK = 1024
"""Bytes of the first blocks asked for, together with a file's tree."""

LEAF_REQUEST = TreeRequest((0,), SHORT_REFERENCE_BYTES, LEAF_BLOCK)


class FileComparison:
    """One file between the answer to its TreeRequest and its recipe.

    Call `ask_nodes` until it asks for nothing more, then `begin_blocks` once, then `ask_blocks` until it asks
    for nothing more. After that `parts` is complete.
    """

    __slots__ = (
        "_bases",
        "_context",
        "_descent",
        "_file",
        "_fingerprints",
        "_search",
        "_size",
        "_width",
        "asked_nodes",
        "masked",
        "parts",
    )

    def __init__(
        self, context: TransferContext, message: TreeAnswer, width: int, bases: Sequence[SignedFile]
    ) -> None:
        """`width`: bytes of a reference. `bases`: at least one. Raises ProtocolError for a malformed tree."""
        self._context = context
        self._file = message.file
        self._size = message.size
        self._width = width
        self._bases = bases
        self._descent: Descent | None = None
        self._fingerprints = message.fingerprints
        """Fingerprints of all blocks of the file; empty once nodes are requested."""
        self.asked_nodes: deque[int] = deque()
        """The last node of each open request."""
        self._search: FileGaps | None = None
        self.parts: tuple[Part, ...] = ()
        """The parts of the recipe, as far as they are known."""
        self.masked = False
        """Blocks were matched with masked x86 displacements."""
        if message.fingerprints and not message.records:
            if message.height or message.size > context.signer.params.max_size:
                raise ProtocolError(
                    f"a tree of file {message.file}, of {message.size} bytes, without records"
                )
            # The file is one chunk, and has no reference to compare.
            self.parts = (Fetch(b"", message.size, 1),)
        else:
            trees = [base.tree for base in bases]
            self._descent = Descent(trees, context.secret, width, message.size)
            self._descent.start(message.height, decode_records(message.records, width))

    def ask_nodes(self, round_: int) -> Conversation[bool]:
        """Requests the nodes of the next level. Returns False if there are none: all chunks are compared."""
        if self._descent is None:
            return False
        asking = self._descent.asking
        if not asking:
            self.parts, self._descent = self._descent.recipe(), None
            return False
        self._fingerprints = b""
        for i in range(0, len(asking), NODES_PER_MESSAGE):
            nodes = tuple(asking[i : i + NODES_PER_MESSAGE])
            self.asked_nodes.append(nodes[-1])
            yield Send(NodeRequest(self._file, self._descent.level, nodes, self._width), round_)
        return True

    def take_nodes(self, message: NodeAnswer) -> bool:
        """Compares nodes. Returns whether the level is complete. Raises ProtocolError if none were asked."""
        if self._descent is None or not self.asked_nodes:
            raise ProtocolError(f"nodes of file {message.file} that were not asked for")
        if message.nodes[-1] == self.asked_nodes[0]:
            self.asked_nodes.popleft()
        records = [decode_records(data, self._width) for data in message.records]
        return self._descent.answer(message.level, message.nodes, records)

    def begin_blocks(self, round_: int, *, few_files: bool) -> None:
        """Starts the block search in chunks that no base has.

        Raises FileError if a base has changed or is gone, ProtocolError if the fingerprints do not fit.
        """
        few = few_files and sum(literal_rows(self.parts)[1::2]) <= FEW_BYTES
        rounds = rounds_left_for_few(round_) if few else rounds_left(round_)
        context = self._context
        search = FileGaps(self._file, context.root, context.secret, self.parts, self._bases, rounds)
        self._search = search
        known = self.parts[0] if len(self.parts) == 1 else None
        if not (self._fingerprints and isinstance(known, Fetch) and known.count == 1):
            return
        block = LEAF_REQUEST.block_of(self._size)
        if len(self._fingerprints) != -(-self._size // block) * LEAF_WIDTH:
            raise ProtocolError(f"{len(self._fingerprints)} bytes of fingerprints for a file of {self._size}")
        search.begin(block, self._fingerprints)

    def ask_blocks(self, round_: int) -> Conversation[int]:
        """Requests smaller blocks of what is unmatched. Returns the number of requests, 0 if no more pay."""
        if self._search is None:
            return 0
        asked = yield from self._search.ask(round_)
        if not asked:
            self.parts, self.masked, self._search = self._search.parts(), self._search.masked, None
        return asked

    def take_blocks(self, fingerprints: bytes) -> None:
        """Takes the answer to the oldest block request. Raises FileError if a base has changed or is gone."""
        if self._search is None:
            raise ProtocolError(f"blocks of file {self._file} that were not asked for")
        self._search.take(fingerprints)
