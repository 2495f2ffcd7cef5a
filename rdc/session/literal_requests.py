"""What is asked for of a file in the end: ranges that no base has, with claims about what blocks made."""

from __future__ import annotations

from array import array
from itertools import islice

from rdc.errors import printable
from rdc.kernel import hide, target_bits
from rdc.kernel.pieces import put_images, put_tiles, tile_reads
from rdc.limits import CELLS_PER_MESSAGE, PACKED_BYTES, RANGES_PER_MESSAGE
from rdc.plan.base_reads import by_base
from rdc.plan.cells import cell_digests, divided, divided_wholly, doubtful
from rdc.plan.context import context_rows, known_pieces
from rdc.plan.descent import literal_rows
from rdc.protocol.claims import Claims
from rdc.protocol.messages import RangeRequest
from rdc.protocol.packed import unpack
from rdc.records import dataclass
from rdc.session.blanks import CLAIMED, LOOK_AHEAD, LOOK_BACK
from rdc.session.code import Places
from rdc.session.corrections import Corrections
from rdc.session.mismatch import MismatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.files.source import SourceFile
    from rdc.session.file_fetch import FileFetch
    from rdc.session.transfer_context import TransferContext

__all__ = ["KNOWN_PER_PACKED", "Asked", "literal_requests", "range_requests", "unpacked"]

CLOSE_BYTES = 1 << 10
"""Bytes of a base between two copies that are rather read than made a reason for another system call. With
4 KiB there would be a fifth fewer reads; but copies of 64 bytes, all as far apart as they may be, would then
be 32 MiB of reads, and as much of masks, for the 512 KiB that are put together at once."""

KNOWN_PER_PACKED = 0.5
"""Bytes known around a file's literals for each of them, from which on they are packed with these. With fewer
they go into the stream, where those of other files help more: 11 % of a source tree indented anew."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests for what is missing of a file, and what it takes to understand their answers."""

    requests: list[RangeRequest]
    """None where there is nothing to ask."""
    places: Places
    """Where the literals belong."""
    known: array[int]
    """What they are packed with, where they are: offset and length by turns."""
    corrections: Corrections
    """What the source is going to say of what was found."""
    mask_bytes: int
    """Kept in memory until it has."""


def literal_requests(fetch: FileFetch, ranges: array[int], context: TransferContext, room: int) -> Asked:
    """Asks for these ranges, offset and length by turns, in bytes, and whether what blocks were found for is
    right. `room`: bytes that may be kept until the answers come. FileError when a base has changed."""
    claims, masks = _claims(fetch, context, room)
    corrections = Corrections(fetch.size, _masks(fetch, masks))
    known = array("Q")
    if context.pack and not fetch.blank:
        known = _worth_packing_with(fetch, ranges, len(claims.cells))
    requests, asked = [], array("Q")
    for some, rows in (divided_wholly if fetch.blank else divided)(ranges, claims.cells):
        part = claims.part(rows)
        blank = fetch.blank and bool(part.cells)
        requests.append(RangeRequest.of(fetch.file, some, pack=bool(known), claims=part, blank=blank))
        corrections.ask(requests[-1])
        asked += some
    return Asked(requests, Places(asked), known, corrections, sum(len(bits) for _, bits in masks))


def range_requests(file: int, ranges: array[int]) -> list[RangeRequest]:
    """These ranges alone."""
    most = 2 * RANGES_PER_MESSAGE
    return [RangeRequest.of(file, ranges[at : at + most]) for at in range(0, len(ranges), most)]


_Mask: TypeAlias = "tuple[tuple[int, ...], bytes]"
"""Some cells, and where targets are to come in these, a bit for each byte."""


def _claims(fetch: FileFetch, context: TransferContext, room: int) -> tuple[Claims, list[_Mask]]:
    """What was put together from blocks, and the first masks, as many as there is room for. FileError when a
    base has changed."""
    opened: dict[int, SourceFile] = {}

    def source(base: int) -> SourceFile:
        if base not in opened:
            opened[base] = fetch.held[base].open(context.root)
        return opened[base]

    claimed: list[int] = []
    digests: list[bytes] = []
    masks: list[_Mask] = []
    try:
        for cells, tiles in _doubtful(fetch):
            images, mask = _put_together(fetch, tiles, source)
            if fetch.blank and len(mask) <= room:
                masks.append((cells, mask))
                room -= len(mask)
            else:
                room = 0
            claimed += cells
            digests.append(cell_digests(context.secret, images))
    finally:
        for held in opened.values():
            held.close()
    return Claims(tuple(claimed), b"".join(digests)), masks


def _masks(fetch: FileFetch, kept: Sequence[_Mask]) -> Iterator[_Mask]:
    """Where targets are to come. What there was no room for is found once more."""
    yield from kept
    for cells, tiles in islice(_doubtful(fetch), len(kept), None):
        yield cells, _put_together(fetch, tiles, fetch.sources.__getitem__)[1]


def _doubtful(fetch: FileFetch) -> Iterator[tuple[tuple[int, ...], bytes]]:
    return doubtful(fetch.parts, [held.tree for held in fetch.held], fetch.size)


def _put_together(
    fetch: FileFetch, tiles: bytes, source: Callable[[int], SourceFile]
) -> tuple[bytes | bytearray, bytes]:
    """What `tiles` say, with zeros for what is to be fetched; if targets are left out with blanks for these,
    and their mask, else without one. `source`: gives a base."""
    sizes = array("Q", [held.tree.size for held in fetch.held])
    around = (LOOK_BACK, LOOK_AHEAD, sizes) if fetch.blank else ()
    wanted, packed, sources = tile_reads(tiles, CLOSE_BYTES, *around)
    reads = array("Q", packed)
    held = b"".join([source(base).read_ranges(rows) for base, rows in by_base(reads)])
    if not fetch.blank:
        return put_tiles(sources, held, bytes(wanted)), b""
    images, mask = put_images(sources, held, target_bits(held, reads[2::3]))
    hide(images, mask, CLAIMED)
    return images, mask


def _worth_packing_with(fetch: FileFetch, ranges: array[int], cells: int) -> array[int]:
    """What is known around these ranges; nothing where they are not to be packed with it."""
    none = array("Q")
    if not ranges or len(ranges) > 2 * RANGES_PER_MESSAGE or cells > CELLS_PER_MESSAGE:
        return none
    unknown = sum(ranges[1::2])
    if unknown > PACKED_BYTES:
        return none
    known = context_rows(ranges, fetch.size)
    if sum(known[1::2]) < KNOWN_PER_PACKED * unknown:
        return none
    return known if known_pieces(fetch.parts, [held.tree for held in fetch.held], known) is not None else none


def unpacked(fetch: FileFetch, packed: bytes) -> bytes:
    """The literals that were packed with what is around them. MismatchError where it cannot be: a block that
    was found is not what it seemed."""
    trees = [held.tree for held in fetch.held]
    pieces = known_pieces(fetch.parts, trees, fetch.known) or ()
    context = b"".join(
        _amended(fetch, at, fetch.sources[base].pread(offset, length)) for at, base, offset, length in pieces
    )
    size = sum(literal_rows(fetch.parts)[1::2])
    try:
        return unpack(packed, context, size)
    except ValueError as error:
        raise MismatchError(fetch.path, f"{printable(fetch.path)}: {error}") from error


def _amended(fetch: FileFetch, at: int, content: bytes) -> bytes | bytearray:
    return content if fetch.corrections is None else fetch.corrections.amend(at, content)[0]
