"""Range requests: they ask for the ranges that no base has, and claim what the matched blocks contain."""

from __future__ import annotations

from array import array
from itertools import islice

from rdc.errors import printable
from rdc.kernel.recipe_rows import assemble, plan_reads
from rdc.limits.wire import CELLS_PER_MESSAGE, PACKED_BYTES, RANGES_PER_MESSAGE
from rdc.plan.base_reads import by_base
from rdc.plan.check_blocks import check_block_digests, divided, divided_wholly, unverified_check_blocks
from rdc.plan.descent import literal_rows
from rdc.plan.known_context import context_rows, known_matches
from rdc.protocol.messages.claims import Claims
from rdc.protocol.messages.registry import RangeRequest
from rdc.protocol.wire.context_compression import unpack
from rdc.records import dataclass
from rdc.session.binaries.filters import LOOK_AHEAD, LOOK_BACK, RangeOffsets, masked_blocks
from rdc.session.delta.corrections import Corrections
from rdc.session.trees.errors import MismatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.files.root.source_file import SourceFile
    from rdc.session.delta.recipe import Recipe
    from rdc.session.landing.transfer_context import TransferContext

__all__ = ["KNOWN_PER_PACKED", "AskedRanges", "literal_requests", "range_requests", "unpacked"]

CLOSE_BYTES = 1 << 10
"""Bytes of a base between two copies that cost less to read than another system call. With 4 KiB there would
be a fifth fewer reads. But the 512 KiB that are rebuilt at once could then need 32 MiB of reads, and as much
masking: copies of 64 bytes, all 4 KiB apart."""

KNOWN_PER_PACKED = 0.5
"""Literals are compressed with the known bytes around them if there is half a known byte per literal byte.
With fewer they go into the stream, where the literals of other files help more: a reindented source tree
takes 11 % fewer bytes so."""


@dataclass(frozen=True, slots=True)
class AskedRanges:
    """The range requests of a file, and what its answers are read with."""

    requests: list[RangeRequest]
    """Empty if there is nothing to ask."""
    offsets: RangeOffsets
    """Where the literals belong in the file."""
    known: array[int]
    """The ranges that the literals are compressed with, as rows (offset, length)."""
    corrections: Corrections
    """What takes the source's corrections."""
    mask_bytes: int
    """Bytes of masks that stay in memory until the source has answered."""


def literal_requests(
    recipe: Recipe,
    ranges: array[int],
    context: TransferContext,
    room: int,
    open_base: Callable[[int], SourceFile],
) -> AskedRanges:
    """Makes requests for `ranges`, with claims about all that was copied as blocks.

    `ranges`: rows (offset, length), in bytes. `room`: bytes of masks that may stay in memory until the
    answers come. `open_base`: opens a base when the answers come. Raises FileError if a base has changed.
    """
    claims, masks = _claims_and_masks(recipe, context, room)
    corrections = Corrections(recipe.size, _masks(recipe, masks, open_base))
    known = array("Q")
    if context.pack and not recipe.masked:
        known = _worth_packing_with(recipe, ranges, len(claims.cells))
    requests, asked = [], array("Q")
    for some, rows in (divided_wholly if recipe.masked else divided)(ranges, claims.cells):
        part = claims.part(rows)
        masked = recipe.masked and bool(part.cells)
        requests.append(RangeRequest.of(recipe.file, some, pack=bool(known), claims=part, blank=masked))
        corrections.ask(requests[-1])
        asked += some
    return AskedRanges(requests, RangeOffsets(asked), known, corrections, sum(len(bits) for _, bits in masks))


def range_requests(file: int, ranges: array[int]) -> list[RangeRequest]:
    """Makes requests for these ranges, rows (offset, length), without claims."""
    most = 2 * RANGES_PER_MESSAGE
    return [RangeRequest.of(file, ranges[at : at + most]) for at in range(0, len(ranges), most)]


_Mask: TypeAlias = "tuple[tuple[int, ...], bytes]"
"""Numbers of check blocks, and their mask: one bit for each byte, set for displacements."""


def _claims_and_masks(recipe: Recipe, context: TransferContext, room: int) -> tuple[Claims, list[_Mask]]:
    """Returns the claims about what was copied as blocks, and the first masks, as many as `room` bytes hold.

    Raises FileError if a base has changed.
    """
    opened: dict[int, SourceFile] = {}

    def open_once(base: int) -> SourceFile:
        if base not in opened:
            opened[base] = recipe.bases[base].open(context.root)
        return opened[base]

    claimed: list[int] = []
    digests: list[bytes] = []
    masks: list[_Mask] = []
    try:
        for numbers, copies in _unverified(recipe):
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


def _masks(recipe: Recipe, kept: Sequence[_Mask], open_base: Callable[[int], SourceFile]) -> Iterator[_Mask]:
    """Yields the masks of all check blocks: first the `kept` ones, then the others, which are made again."""
    yield from kept
    for numbers, copies in islice(_unverified(recipe), len(kept), None):
        yield numbers, _assembled(recipe, copies, open_base)[1]


def _unverified(recipe: Recipe) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """Yields numbers of check blocks with matched blocks in them, and their copy instructions."""
    return unverified_check_blocks(recipe.parts, recipe.trees, recipe.size)


def _assembled(
    recipe: Recipe, copies: bytes, open_base: Callable[[int], SourceFile]
) -> tuple[bytes | bytearray, bytes]:
    """Returns what copy instructions make, with zeros for literals, and its mask if the recipe is masked."""
    sizes = array("Q", [base.tree.size for base in recipe.bases])
    around = (LOOK_BACK, LOOK_AHEAD, sizes) if recipe.masked else ()
    literal_bytes, packed, sources = plan_reads(copies, CLOSE_BYTES, *around)
    reads = array("Q", packed)
    content = b"".join([open_base(base).read_ranges(rows) for base, rows in by_base(reads)])
    if not recipe.masked:
        return assemble(sources, content, bytes(literal_bytes)), b""
    return masked_blocks(sources, content, reads[2::3])


def _worth_packing_with(recipe: Recipe, ranges: array[int], claimed: int) -> array[int]:
    """Returns the known ranges to compress `ranges` with, or none if that does not pay.

    `claimed`: the number of claimed check blocks.
    """
    none = array("Q")
    if not ranges or len(ranges) > 2 * RANGES_PER_MESSAGE or claimed > CELLS_PER_MESSAGE:
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
    """Returns the literals that were compressed with the `known` ranges around them, rows (offset, length).

    Raises MismatchError if they cannot be unpacked: a matched block is wrong. Raises FileError if a base
    cannot be read.
    """
    pieces = known_matches(recipe.parts, recipe.trees, known) or ()
    context = b"".join(
        _amended(corrections, at, open_base(base).pread(offset, length))
        for at, base, offset, length in pieces
    )
    size = sum(literal_rows(recipe.parts)[1::2])
    try:
        return unpack(packed, context, size)
    except ValueError as error:
        raise MismatchError(recipe.path, f"{printable(recipe.path)}: {error}") from error


def _amended(corrections: Corrections | None, at: int, content: bytes) -> bytes | bytearray:
    return content if corrections is None else corrections.amend(at, content)[0]
