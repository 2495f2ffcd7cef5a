"""The first stage of a file by delta: `compare` finds out which parts of the new version the bases have.

It descends from the tree's nodes, which tell which chunks the bases have, to blocks of the other chunks, as
long as a round trip pays. The result is the recipe: what to copy from where, and what to fetch. `AskedFile`
is what the stages of a file share.
"""

from __future__ import annotations

import mmap
from array import array
from collections import deque
from contextlib import suppress
from functools import partial
from itertools import accumulate, repeat
from operator import attrgetter, sub

from rdc.errors import FileError, ProtocolError
from rdc.kernel import fill_offsets, match_blocks, match_runs, run_spans, search_gaps
from rdc.lean.records import Record
from rdc.lean.typed import TypeVar
from rdc.limits import (
    BLOCK_SIZE_MAX,
    BUNDLED_FILE_BYTES,
    NODES_PER_MESSAGE,
    TOP_RECORDS,
    TREES_IN_FLIGHT,
    TREES_IN_FLIGHT_BYTES,
)
from rdc.plan.descent import Descent, Fetch, Part
from rdc.plan.search import NOWHERE, SPARE_BYTES, BlockSearch, GapSearch, Step, Window
from rdc.protocol.messages import BlockAnswer, BlockRequest, NodeAnswer, NodeRequest, TreeRequest
from rdc.protocol.messages.content import LEAF_WIDTH, FileMessage
from rdc.session.binaries import looks_like, mask_ranges, mask_ranges_into
from rdc.session.runtime.commands import Command, Send
from rdc.session.transfer.bases import ChangedBaseError, base_of
from rdc.session.transfer.destination import LEAF_BLOCK
from rdc.signature.codec import SHORT_REFERENCE_BYTES, decode_records
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import TypeAlias

    from typing_extensions import Buffer

    from rdc.files.root.source_file import SourceFile
    from rdc.protocol.connection import Received
    from rdc.protocol.messages import RangeRequest, TreeAnswer
    from rdc.session.transfer.bases import FileBases, SignedFile
    from rdc.session.transfer.destination import Destination

T = TypeVar("T")


class NextAnswer(Record):
    """The command that a file yields to wait for the next message about it."""


NEXT_ANSWER = NextAnswer()

Steps: TypeAlias = "Generator[Command | NextAnswer, FileMessage | Received | None, T]"
"""A part of a file's way: NEXT_ANSWER is answered by a message about the file, a command as in a
conversation."""


class Room:
    """The room for files in comparison: at most TREES_IN_FLIGHT of them with trees of TREES_IN_FLIGHT_BYTES,
    or one file of any size."""

    __slots__ = ("files", "spare", "used")

    def __init__(self) -> None:
        self.files = 0
        self.spare: float = SPARE_BYTES
        """Bytes that the searches of further files may cost more to save round trips."""
        self.used = 0
        """Bytes, as estimated."""

    @property
    def has_room(self) -> bool:
        """Return whether one more file may enter."""
        return not self.files or (self.files < TREES_IN_FLIGHT and self.used < TREES_IN_FLIGHT_BYTES)

    def count(self, files: int, size: int) -> None:
        """Count files that enter with trees of `size` bytes; both are negative for files that leave."""
        self.files += files
        self.used += size


ROUND_TRIPS = 10
"""Round trips that a session should take at most."""


def rounds_left(round_: int) -> int:
    """Return how many requests may follow, from this round on, before the literals are requested."""
    # A message and its answer are two rounds; the literals take two more, and Done the last.
    return max(0, (2 * ROUND_TRIPS - 2 - round_) // 2)


SEARCH_BYTES = 32 << 20
"""Bytes of a base searched at a time, in memory. Each search builds its own table of fingerprints, which
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
        self,
        file: int,
        secret: bytes,
        search: GapSearch,
        open_base: Callable[[dict[int, SourceFile], int], SourceFile],
    ) -> None:
        """`file`: number of the file or bundle. `open_base`: returns a base by its number, from those that
        are open or opened now, for the caller to close. It raises MismatchError if the base changed since it
        was signed."""
        self._file = file
        self._secret = secret
        self._search = search
        self._open_base = open_base
        self._asked = False
        self._memory: memoryview | None = None
        """One buffer for all long windows. A new one for each would cost three times what reading costs."""
        self.masked = False
        """The file is x86 code, compared with masked displacements."""

    def requests(self) -> list[BlockRequest]:
        """Return the next requests. After none, the search has all that can be found."""
        questions = self._search.questions()
        if questions and not self._asked:
            self.masked = self._search.unknown >= MASKING_BYTES and self._is_x86()
            if self.masked:
                self._search.mask_displacements()
        self._asked = True
        requests = []
        for ask in questions:
            request = BlockRequest.of(self._file, ask.ranges, ask.size, ask.width, blank=self.masked)
            requests.append(request)
        return requests

    def take(self, fingerprints: bytes) -> None:
        """Search for the fingerprints that answer the oldest request, or came with the tree.

        Raises FileError if a base cannot be read, and what `open_base` raises.
        """
        opened: dict[int, SourceFile] = {}
        open_once = partial(self._open_base, opened)

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
        """Tell whether the old version is x86 code; the new one is likely to be what the old one is."""
        try:
            with self._open_base({}, 0) as source:
                return looks_like(source)
        except FileError:
            return False  # the search meets the same error and raises it

    def _find(
        self, source: SourceFile, window: Window, size: int, width: int, wanted: bytes
    ) -> Sequence[int]:
        """Return the offset in the base of each wanted block, NOWHERE for those not found."""
        found = array("Q", [NOWHERE]) * (len(wanted) // width)
        end = window.offset + window.length
        # Spans overlap by a block less one byte, so every offset is searched exactly once.
        for at in range(window.offset, end - size + 1, SEARCH_BYTES):
            with self._window(source, at, min(SEARCH_BYTES + size - 1, end - at)) as data:
                offsets = match_blocks(self._secret, data, size, width, wanted)
            found = array("Q", fill_offsets(found, offsets, at))
        return found

    def _window(self, source: SourceFile, at: int, length: int) -> memoryview:
        """Return bytes of a base as they are compared, valid until the next call."""
        if length <= SPAN_BYTES and not self.masked:
            return memoryview(source.pread(at, length))
        content, starts = self._windows(source, array("Q", (at, length)))
        return content[starts[0] : starts[0] + length]

    def _windows(self, source: SourceFile, rows: array[int]) -> tuple[memoryview, array[int]]:
        """Return memory with ranges of a base as they are compared, and where each range begins in it.

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
        """Return memory for the longest window."""
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
        """Search for unmatched runs near their neighbours in the base, runs that lie close to each other
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
    """Yield slices (first, stop) of `lengths` that sum up to at most `most`, or hold one longer length."""
    row = total = 0
    for stop, length in enumerate(lengths):
        if stop > row and total + length > most:
            yield row, stop
            row, total = stop, 0
        total += length
    if row < len(lengths):
        yield row, len(lengths)


SAMPLE_BYTES = 4 << 10
"""Bytes of an old version that show whether its content compresses."""


def _compresses(bases: Sequence[SignedFile], context: Destination, window: Window) -> bool:
    """Return whether content around the start of this window loses a tenth when it is compressed."""
    from zlib import compress  # a destination has loaded it for its temporary names

    try:
        with base_of(bases, context.root, {}, window.base) as source:
            sample = source.pread(window.offset, min(window.length, SAMPLE_BYTES))
    except FileError:
        return True  # the search meets the same error and raises it
    return len(compress(sample, 1)) < 0.9 * len(sample)


LEAF_REQUEST = TreeRequest((0,), SHORT_REFERENCE_BYTES, LEAF_BLOCK)


class AskedFile:
    """A file about which the source is asked: what its stages share."""

    __slots__ = ("bases", "estimate", "file", "path", "room", "round", "unanswered", "width")

    def __init__(
        self, file: int, path: bytes, bases: FileBases, room: Room, *, width: int, estimate: int
    ) -> None:
        """`width`: bytes of a reference in the first attempt. `estimate`: bytes that its trees take in
        memory."""
        self.file = file
        self.path = path
        self.bases = bases
        self.width = width
        self.room = room
        self.estimate = estimate
        self.round = 0
        """The round in which requests that follow from the last message are sent."""
        self.unanswered: deque[int | None] = deque()
        """The requests that are open, in order: the last node of a NodeRequest, None for any other."""
        room.count(1, estimate)

    def ask(self, request: BlockRequest | RangeRequest) -> Send:
        """Note a request. The caller yields what this returns."""
        self.unanswered.append(None)
        return Send(request, self.round)

    def changed(self, error: FileError) -> ChangedBaseError:
        """Return the error for a base that cannot be read: it has changed or is gone."""
        return ChangedBaseError(self.path, str(error))

    def unexpected(self, message: object, expected: str) -> ProtocolError:
        """Return the error for an answer of another kind."""
        return ProtocolError(f"expected {expected} of file {self.file}, found {type(message).__name__}")


def compare(one: AskedFile, context: Destination, tree: TreeAnswer) -> Steps[tuple[tuple[Part, ...], bool]]:
    """Compare a file's new version with its bases. Returns the parts of its recipe, and whether blocks were
    matched with masked x86 displacements.

    `tree`: the answer to its TreeRequest. Raises ProtocolError for an answer that does not fit, and
    ChangedBaseError if a base has changed or is gone.
    """
    # long because it is one descent: each loop needs what the one before has found
    bases, width, fingerprints = one.bases.signed, one.width, tree.fingerprints
    trees = list(map(attrgetter("tree"), bases))
    parts: tuple[Part, ...] = (Fetch(b"", tree.size, 1),)
    if fingerprints and not tree.records:
        # The file is described by its blocks alone.
        if tree.height or tree.size > BUNDLED_FILE_BYTES:
            raise ProtocolError(f"a tree of file {one.file}, of {tree.size} bytes, without records")
    else:
        descent = Descent(trees, context.secret, width, tree.size)
        descent.start(tree.height, decode_records(tree.records, width, TOP_RECORDS))
        while asking := descent.asking:
            fingerprints = b""
            for i in range(0, len(asking), NODES_PER_MESSAGE):
                nodes = tuple(asking[i : i + NODES_PER_MESSAGE])
                one.unanswered.append(nodes[-1])
                yield Send(NodeRequest(one.file, descent.level, nodes, width), one.round)
            is_complete = False
            while not is_complete:
                message = yield NEXT_ANSWER
                if not isinstance(message, NodeAnswer):
                    raise one.unexpected(message, "nodes")
                if not one.unanswered:
                    raise ProtocolError(f"nodes of file {one.file} that were not asked for")
                if message.nodes[-1] == one.unanswered[0]:
                    one.unanswered.popleft()
                records = map(decode_records, message.records, repeat(width))
                is_complete = descent.answer(message.level, message.nodes, records)
        parts = descent.recipe()
    if width == DIGEST_BYTES:
        return parts, False  # the second attempt matches no blocks: one of them was wrong in the first
    spare = 0.0 if fingerprints else one.room.spare
    compresses = partial(_compresses, bases, context)
    blocks = BlockSearch(parts, trees, rounds_left(one.round), spare, compresses)
    one.room.spare -= blocks.spent
    search = Gaps(one.file, context.secret, blocks, partial(base_of, bases, context.root))
    try:
        if fingerprints and len(parts) == 1 and isinstance(parts[0], Fetch) and parts[0].count == 1:
            block = LEAF_REQUEST.block_of(tree.size)
            if len(fingerprints) != -(-tree.size // block) * LEAF_WIDTH:
                raise ProtocolError(f"{len(fingerprints)} bytes of fingerprints for a file of {tree.size}")
            blocks.begin(block, LEAF_WIDTH)
            search.take(fingerprints)
    except FileError as error:
        raise one.changed(error) from error
    while requests := search.requests():
        for request in requests:
            yield one.ask(request)
        while one.unanswered:
            message = yield NEXT_ANSWER
            if not isinstance(message, BlockAnswer):
                raise one.unexpected(message, "blocks")
            one.unanswered.popleft()
            try:
                search.take(message.fingerprints)
            except FileError as error:
                raise one.changed(error) from error
    # With masked displacements, matches in repeated chunks are left out: they would stay unverified.
    return blocks.parts(single=search.masked), search.masked
