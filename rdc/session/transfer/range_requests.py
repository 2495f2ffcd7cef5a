"""Range requests: they ask for the ranges that no base has, and claim what the matched blocks contain.

`Corrections` keeps what the source answers about the claims, until the rebuild has used it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from functools import partial
from itertools import accumulate, chain, islice
from operator import attrgetter

from rdc.errors import ProtocolError, printable
from rdc.kernel import assemble, plan_reads
from rdc.lean.records import Record
from rdc.limits import CHECK_BLOCKS_PER_MESSAGE, PACKED_BYTES, RANGES_PER_MESSAGE, SIZE_LIMIT
from rdc.plan.check_blocks import (
    by_base,
    check_block_digests,
    context_rows,
    divided,
    divided_wholly,
    known_matches,
    unverified_check_blocks,
)
from rdc.plan.descent import literal_rows
from rdc.protocol.messages import RangeRequest
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, Claims, rests
from rdc.protocol.wire.stream import unpack_literals
from rdc.session.binaries import (
    LOOK_AHEAD,
    LOOK_BACK,
    MASK_BYTES,
    Displacements,
    RangeOffsets,
    displacement_counts,
    masked_blocks,
)
from rdc.session.transfer.bases import base_of
from rdc.session.trees.sites import MismatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.files.root.source_file import SourceFile
    from rdc.protocol.messages import Correction, RangeRequest, Targets
    from rdc.session.transfer.bases import Recipe
    from rdc.session.transfer.destination import Destination


class Corrections:
    """The corrections of one file, for its range requests, which are answered in order.

    Blocks before offset `corrected_up_to` are right, or their right bytes are here. Memory holds what at most
    two requests claim, and an eighth more for the masks of x86 code.
    """

    __slots__ = (
        "_displacements",
        "_masks",
        "_offsets",
        "_parts",
        "_payload",
        "_ranges_began",
        "_requests",
        "_size",
        "_wrong",
        "corrected_up_to",
    )

    def __init__(self, size: int, masks: Iterator[tuple[tuple[int, ...], bytes]] | None = None) -> None:
        """`size`: bytes of the file.

        `masks`: iterates over the check blocks that the requests will claim, in file order. Each item is
        (block numbers, bitmap); a set bit marks a byte that belongs to a masked x86 displacement.
        """
        self._size = size
        self._masks = iter(()) if masks is None else masks
        self._payload = bytearray()
        """Displacements that answer the oldest request, as they came."""
        self._wrong: set[int] = set()
        """Check blocks of the oldest request that were corrected."""
        self._displacements: deque[Displacements] = deque()
        """Displacements in file order, not yet behind what is written."""
        self._requests: deque[RangeRequest] = deque()
        """Requests that are not answered completely."""
        self._ranges_began = False
        """The ranges of the oldest request have begun to come."""
        self._offsets: list[int] = []
        self._parts: list[bytes] = []
        """Offsets in the file and right bytes of what was corrected, in file order."""
        self.corrected_up_to = SIZE_LIMIT

    def ask(self, request: RangeRequest) -> None:
        """Note a request before it is sent. Later requests are about later parts of the file."""
        self._requests.append(request)
        self._update()

    def take(self, message: Correction) -> None:
        """Take right bytes. Raises ProtocolError if their number differs from what they correct."""
        found = list(rests(self._requests[0].rows, message.cells, self._size))
        expected = sum(length for _, _, length in found)
        if expected != len(message.payload):
            raise ProtocolError(
                f"a correction of file {message.file} with {len(message.payload)} bytes, expected {expected}"
            )
        payload, at = bytes(message.payload), 0
        for _, offset, length in found:
            self._offsets.append(offset)
            self._parts.append(payload[at : at + length])
            at += length
        self._wrong.update(message.cells)

    def take_displacements(self, message: Targets) -> None:
        """Take displacements. They are located once all wrong check blocks of the request are known."""
        self._payload += message.payload

    def mark_corrected(self) -> None:
        """Note that the ranges of the oldest request begin to come: all its corrections are here.

        Raises FileError if `masks` cannot read a base.
        """
        if not self._ranges_began and self._requests and self._requests[0].blank:
            self._locate_displacements(self._requests[0])
        self._ranges_began = True
        self._update()

    def end(self, written: int) -> None:
        """Note that the oldest request is answered, and forget what is before offset `written`.

        Raises FileError if `masks` cannot read a base.
        """
        if self._requests:
            request = self._requests.popleft()
            if not self._ranges_began and request.blank:
                self._locate_displacements(request)
        self._ranges_began = False
        gone = 0
        while gone < len(self._parts) and self._offsets[gone] + len(self._parts[gone]) <= written:
            gone += 1
        del self._offsets[:gone], self._parts[:gone]
        while self._displacements and self._displacements[0].stop <= written:
            self._displacements.popleft()
        self._update()

    def amend(self, start: int, content: bytes | bytearray) -> tuple[bytes | bytearray, int]:
        """Correct `content`, which was copied for offset `start`. Changes a bytearray in place.

        Returns the right content and how many of its bytes were corrected.
        """
        row = max(0, bisect_right(self._offsets, start) - 1)
        end = start + len(content)
        amended, count = content if isinstance(content, bytearray) else bytearray(), 0
        while row < len(self._offsets) and self._offsets[row] < end:
            begin = max(start, self._offsets[row])
            stop = min(end, self._offsets[row] + len(self._parts[row]))
            if begin < stop:
                amended = amended or bytearray(content)
                part = self._parts[row]
                amended[begin - start : stop - start] = part[
                    begin - self._offsets[row] : stop - self._offsets[row]
                ]
                count += stop - begin
            row += 1
        for displacements in self._displacements:
            if displacements.start >= end:
                break
            if displacements.stop > start:
                amended = amended or bytearray(content)
                count += displacements.put(amended, start)
        return amended or content, count

    def _locate_displacements(self, request: RangeRequest) -> None:
        """Find the place of each displacement of the oldest request, whose claims are about masked code.

        Their number is wrong only if a wrong check block has the right digest by chance. Some chunks do not
        fit their digests then, and are repaired.
        """
        came, at, row = memoryview(self._payload), 0, 0
        numbers = request.claims.cells
        while row < len(numbers):
            some, bits = self._next_masks(len(numbers) - row)
            row += len(some)
            for wrong in self._wrong.intersection(some):
                first = some.index(wrong) * MASK_BYTES
                none = bytes(len(bits[first : first + MASK_BYTES]))
                bits = bits[:first] + none + bits[first + MASK_BYTES :]
            ends = array("Q", accumulate(displacement_counts(bits), initial=0))
            here = bytes(came[at : at + ends[-1]]).ljust(ends[-1], b"\0")
            at += ends[-1]
            if here:
                self._displacements.append(Displacements(some, bits, here, ends))
        self._payload = bytearray()
        self._wrong.clear()

    def _next_masks(self, most: int) -> tuple[tuple[int, ...], bytes]:
        """Take the masks of at most `most` check blocks."""
        numbers, bits = next(self._masks)
        if len(numbers) > most:
            self._masks = chain([(numbers[most:], bits[most * MASK_BYTES :])], self._masks)
            numbers, bits = numbers[:most], bits[: most * MASK_BYTES]
        return numbers, bits

    def _update(self) -> None:
        """Set `corrected_up_to`: the first claimed check block with outstanding corrections, if any."""
        self.corrected_up_to = SIZE_LIMIT
        for number, request in enumerate(self._requests):
            if request.claims.cells and (number or not self._ranges_began):
                self.corrected_up_to = request.claims.cells[0] * CHECK_BLOCK_BYTES
                return


CLOSE_BYTES = 1 << 10
"""Bytes of a base between two copies that cost less to read than another system call. With 4 KiB there would
be a fifth fewer reads. But the 512 KiB that are rebuilt at once could then need 32 MiB of reads, and as much
masking: copies of 64 bytes, all 4 KiB apart."""

KNOWN_PER_PACKED = 0.5
"""Literals are compressed with the known bytes around them if there is half a known byte per literal byte.
With fewer they go into the stream, where the literals of other files help more: a reindented source tree
takes 11 % fewer bytes so."""


class AskedRanges(Record):
    """The range requests of a file, and what its answers are read with."""

    requests: list[RangeRequest]
    """Empty if there is nothing to ask."""
    offsets: RangeOffsets
    """The positions of the literals in the file."""
    known: array[int]
    """The ranges that the literals are compressed with, as rows (offset, length)."""
    corrections: Corrections
    """The function that takes the source's corrections."""
    mask_bytes: int
    """Bytes of masks that stay in memory until the source has answered."""
    claimed: int
    """Check blocks that the requests have claims about."""


def literal_requests(
    recipe: Recipe,
    ranges: array[int],
    context: Destination,
    room: int,
    open_base: Callable[[int], SourceFile],
) -> AskedRanges:
    """Make requests for `ranges`, with claims about all that was copied as blocks.

    `ranges`: rows (offset, length), in bytes. `room`: bytes of masks that may stay in memory until the
    answers come. `open_base`: opens a base when the answers come. Raises FileError if a base has changed.
    """
    claims, masks = _claims_and_masks(recipe, context, room)
    corrections = Corrections(recipe.size, _masks(recipe, masks, open_base))
    known = array("Q")
    if context.pack and not recipe.masked:
        known = _worth_packing_with(recipe, ranges, len(claims.cells))
    requests, asked, claimed = [], array("Q"), 0
    for some, rows in (divided_wholly if recipe.masked else divided)(ranges, claims.cells):
        part = claims.part(rows)
        masked = recipe.masked and bool(part.cells)
        requests.append(RangeRequest.of(recipe.file, some, pack=bool(known), claims=part, blank=masked))
        corrections.ask(requests[-1])
        asked += some
        claimed += len(part.cells)
    mask_bytes = 0
    for _, bits in masks:
        mask_bytes += len(bits)
    return AskedRanges(requests, RangeOffsets(asked), known, corrections, mask_bytes, claimed)


def range_requests(file: int, ranges: array[int]) -> list[RangeRequest]:
    """Make requests for these ranges, rows (offset, length), without claims."""
    most = 2 * RANGES_PER_MESSAGE
    return [RangeRequest.of(file, ranges[at : at + most]) for at in range(0, len(ranges), most)]


_Mask: TypeAlias = "tuple[tuple[int, ...], bytes]"
"""Numbers of check blocks, and their mask: one bit for each byte, set for displacements."""


def _claims_and_masks(recipe: Recipe, context: Destination, room: int) -> tuple[Claims, list[_Mask]]:
    """Return the claims about what was copied as blocks, and the first masks, as many as `room` bytes hold.

    Raises FileError if a base has changed.
    """
    opened: dict[int, SourceFile] = {}
    open_once = partial(base_of, recipe.bases, context.root, opened)
    claimed: list[int] = []
    digests: list[bytes] = []
    masks: list[_Mask] = []
    try:
        for numbers, copies in unverified_check_blocks(recipe.parts, recipe.trees, recipe.size):
            blocks, mask = _assembled(recipe, copies, open_once)
            if recipe.masked and len(mask) <= room:
                masks.append((numbers, mask))
                room -= len(mask)
            else:
                room = 0
            claimed += numbers
            digests.append(check_block_digests(context.secret, blocks))
    finally:
        for base in opened.values():
            base.close()
    return Claims(tuple(claimed), b"".join(digests)), masks


def _masks(recipe: Recipe, made: Sequence[_Mask], open_base: Callable[[int], SourceFile]) -> Iterator[_Mask]:
    """Yield the masks of all check blocks: first those already `made`, then the others."""
    yield from made
    found = unverified_check_blocks(recipe.parts, recipe.trees, recipe.size)
    for numbers, copies in islice(found, len(made), None):
        yield numbers, _assembled(recipe, copies, open_base)[1]


def _assembled(
    recipe: Recipe, copies: bytes, open_base: Callable[[int], SourceFile]
) -> tuple[bytes | bytearray, bytes]:
    """Return what copy instructions make, with zeros for literals, and its mask if the recipe is masked."""
    sizes = array("Q", map(attrgetter("size"), recipe.trees))
    around = (LOOK_BACK, LOOK_AHEAD, sizes) if recipe.masked else ()
    literal_bytes, packed, sources = plan_reads(copies, CLOSE_BYTES, *around)
    reads = array("Q", packed)
    parts = []
    for base, rows in by_base(reads):
        parts.append(open_base(base).read_ranges(rows))
    content = b"".join(parts)
    if not recipe.masked:
        return assemble(sources, content, bytes(literal_bytes)), b""
    return masked_blocks(sources, content, reads[2::3])


def _worth_packing_with(recipe: Recipe, ranges: array[int], claimed: int) -> array[int]:
    """Return the known ranges to compress `ranges` with, or none if that does not pay.

    `claimed`: the number of claimed check blocks.
    """
    none = array("Q")
    if not ranges or len(ranges) > 2 * RANGES_PER_MESSAGE or claimed > CHECK_BLOCKS_PER_MESSAGE:
        return none
    unknown = sum(ranges[1::2])
    if unknown > PACKED_BYTES:
        return none
    known = context_rows(ranges, recipe.size)
    if sum(known[1::2]) < KNOWN_PER_PACKED * unknown:
        return none
    return known if known_matches(recipe.parts, recipe.trees, known) is not None else none


def unpacked(
    recipe: Recipe,
    packed: bytes,
    known: array[int],
    open_base: Callable[[int], SourceFile],
    corrections: Corrections | None,
) -> bytes:
    """Return the literals that were compressed with the `known` ranges around them, rows (offset, length).

    Raises MismatchError if they cannot be unpacked: a matched block is wrong. Raises FileError if a base
    cannot be read.
    """
    parts = known_matches(recipe.parts, recipe.trees, known) or ()
    context = b"".join(
        _amended(corrections, at, open_base(base).pread(offset, length)) for at, base, offset, length in parts
    )
    size = sum(literal_rows(recipe.parts)[1::2])
    try:
        return unpack_literals(packed, context, size)
    except ValueError as error:
        raise MismatchError(recipe.path, f"{printable(recipe.path)}: {error}") from error


def _amended(corrections: Corrections | None, at: int, content: bytes) -> bytes | bytearray:
    return content if corrections is None else corrections.amend(at, content)[0]
