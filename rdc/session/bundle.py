"""One bundle at the destination: many changed files looked for, put together and verified at once."""

from __future__ import annotations

from array import array
from operator import or_

from blake3 import blake3

from rdc.errors import ProtocolError
from rdc.files.snapshot import SnapshotContent
from rdc.kernel import short_references
from rdc.kernel.pieces import LITERAL, fetched_ranges, put_tiles, take_ranges, tile_range
from rdc.limits import PACKED_BYTES
from rdc.plan.bundle import BundleLayout, BundleSearch, chunk_copies
from rdc.plan.cells import cell_digests, stretches
from rdc.plan.context import context_rows
from rdc.protocol.claims import CELL_BYTES, Claims
from rdc.protocol.comparison import LEAF_WIDTH, SHORTEN
from rdc.protocol.messages import RangeRequest
from rdc.protocol.packed import unpack
from rdc.records import dataclass
from rdc.session.code import Places
from rdc.session.corrections import Corrections
from rdc.session.gaps import Gaps
from rdc.session.literal_requests import KNOWN_PER_PACKED
from rdc.session.literals import literals_of
from rdc.session.mismatch import MismatchError
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.short import sign_short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.chunking.params import ChunkParams
    from rdc.files.snapshot import Snapshot
    from rdc.protocol.messages import BundleAnswer, BundleRequest, Code, Correction, Data, Table
    from rdc.session.commands import Conversation

__all__ = ["Bundle", "Rebuilt"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A verified bundle."""

    files: tuple[int, ...]
    sizes: array[int]
    content: bytes
    """Of these files, one behind another."""
    literals: int
    """Bytes of it that came from the source."""


class Bundle:
    """Between its BundleRequest and its end."""

    def __init__(
        self,
        request: BundleRequest,
        sizes: Sequence[int],
        base: Snapshot,
        secret: bytes,
        params: ChunkParams,
    ) -> None:
        """`sizes`: in bytes, of the new versions, in the order of the request. `base`: the old ones, in the
        order of the layout."""
        self.request = request
        self.sizes = sizes
        self.base = base
        self.layout = BundleLayout.of(request.files, sizes, params.max_size, request.block)
        """Of all files asked for, and of those that are in it once it is described."""
        self.digest = b""
        self.open_requests = 0
        """Answers about blocks to come."""
        self.failed = False
        self._secret = secret
        self._params = params
        self._search: BundleSearch | None = None
        self._gaps: Gaps | None = None
        self._copies = array("Q")
        """The kernel's rows of chunks that the base has, then of everything."""
        self._corrections: Corrections | None = None
        self._places: Places | None = None
        self._ranges = array("Q")
        """What is asked for: rows (offset, length)."""
        self._context = array("Q")
        """What is known around these, the same."""
        self._sources = array("Q")
        """What to put it together from, as the kernel says it, once its literals are asked for."""
        self._literals = bytearray()

    def take(self, message: BundleAnswer, rounds: int) -> None:
        """The description. FileError where the base is not what it was any more, ProtocolError where the
        description does not fit the files. `rounds`: how many more round trips there may be for blocks."""
        if message.without:
            self._leave_out(set(message.without))
        layout = self.layout
        self.digest = message.digest
        if sum(message.lengths) != layout.starts[layout.chunked]:
            raise ProtocolError(
                f"a bundle's chunks of {sum(message.lengths)} bytes that do not fit its files"
            )
        long, short = (
            sum([-(-size // block) for size in sizes]) * LEAF_WIDTH
            for sizes, block in (
                (layout.sizes[layout.chunked : layout.shorter], self.request.block),
                (layout.sizes[layout.shorter :], self.request.block // SHORTEN),
            )
        )
        if len(message.fingerprints) != long + short:
            raise ProtocolError(f"{len(message.fingerprints)} bytes of fingerprints, expected {long + short}")
        old = [identity.size for identity in self.base.identities]
        self._copies = self._find_chunks(message, old)
        search = BundleSearch(layout, old, self._copies, self.request.block, LEAF_WIDTH, rounds)
        self._search, self._gaps = search, Gaps(self.request.bundle, self._secret, search, self._open_base)
        for prints in (message.fingerprints[:long], message.fingerprints[long:]):
            if prints:
                self._gaps.take(prints)

    def _leave_out(self, without: set[int]) -> None:
        """These files of the request are not in it."""
        gone = {self.request.files[row] for row in without}
        self.base = self.base.chosen([row for row, file in enumerate(self.layout.order) if file not in gone])
        rows = [row for row in range(len(self.sizes)) if row not in without]
        self.sizes = [self.sizes[row] for row in rows]
        files = [self.request.files[row] for row in rows]
        self.layout = BundleLayout.of(files, self.sizes, self._params.max_size, self.request.block)

    def _find_chunks(self, message: BundleAnswer, old: list[int]) -> array[int]:
        if not message.lengths:
            return array("Q")
        sizes = array("Q", old[: self.layout.chunked])
        content = memoryview(self._content())[: sum(sizes)]
        held = sign_short(content, sizes, self._params, plain=True)
        width = self.request.width
        references = short_references(self._secret, held.digests, DIGEST_BYTES, width)
        return chunk_copies(message.references, message.lengths, references, held.lengths)

    def _content(self) -> bytes:
        content = self.base.content()
        if content is None:
            raise MismatchError(b"", "old versions of a bundle's files changed while they were used")
        return content

    def _open_base(self, _: int) -> SnapshotContent:
        return SnapshotContent(self.base.root, self._content())

    def ask(self, round_: int) -> Conversation[int]:
        """Sends the next questions about blocks; how many there were."""
        return 0 if self._gaps is None else (yield from self._gaps.ask(round_))

    def take_blocks(self, fingerprints: bytes) -> None:
        """An answer to the oldest of them. FileError where the base changed."""
        if self._gaps is None or self._places is not None:
            raise ProtocolError(f"blocks of bundle {self.request.bundle} that were not asked for")
        self._gaps.take(fingerprints)

    def range_request(self, *, pack: bool) -> RangeRequest | None:
        """What is to be asked for once there are no more questions; None: all of it is here."""
        if self._search is None:
            return None
        found = self._search.copies()
        size = self.layout.size
        copies = _joined(self._copies, found)
        tiles = tile_range(copies, 0, size)
        self._ranges = array("Q", fetched_ranges(tiles, 0))
        wanted = sum(self._ranges[1::2])
        self._sources = _sources(tiles)
        self._search = self._gaps = None
        self._copies = array("Q")
        self._places = Places(self._ranges)
        self._corrections = Corrections(size)
        cells = _cells(found)
        if not (self._ranges or cells):
            return None
        digests = self._digests(cells, copies)
        if self._ranges:
            self._context = context_rows(self._ranges, size)
        known = sum(self._context[1::2])
        packs = pack and bool(self._ranges) and wanted <= PACKED_BYTES and known >= KNOWN_PER_PACKED * wanted
        request = RangeRequest.of(
            self.request.bundle, self._ranges, pack=packs, claims=Claims(tuple(cells), digests)
        )
        self._corrections.ask(request)
        return request

    def _digests(self, cells: Sequence[int], copies: array[int]) -> bytes:
        """Of these cells, with zeros for what is to come."""
        if not cells:
            return b""
        size = self.layout.size
        tiles = [tile_range(copies, start, min(stop, size) - start) for start, stop in stretches(cells)]
        sources = _sources(b"".join(tiles))
        missing = sum(
            [length for at, length in zip(sources[0::2], sources[1::2], strict=True) if at == LITERAL]
        )
        content = put_tiles(sources, self._content(), bytes(missing))
        return cell_digests(self._secret, content)

    def take_correction(self, message: Correction) -> None:
        if self._corrections is None:
            raise ProtocolError(f"a correction of bundle {message.file} where nothing was claimed")
        self._corrections.take(message)

    def take_data(self, message: Data | Code | Table) -> None:
        """Some literals, in order."""
        self._literals += literals_of(message, self._places)

    def unpack(self, packed: bytes) -> None:
        """All literals. MismatchError where they cannot be unpacked: what is known around them is wrong."""
        wanted = sum(self._ranges[1::2])
        image, _ = self._put_together(bytes(wanted))
        context = take_ranges(self._context, 0, image)
        try:
            self._literals += unpack(packed, context, wanted)
        except ValueError as error:
            raise MismatchError(b"", str(error)) from error

    def finish(self) -> Rebuilt:
        """All of it, verified. MismatchError where it is not what its digest says."""
        content, corrected = self._put_together(bytes(self._literals))
        if blake3(content).digest() != self.digest:
            raise MismatchError(b"", "the bundle put together does not have the announced digest")
        return Rebuilt(self.layout.order, self.layout.sizes, bytes(content), len(self._literals) + corrected)

    def _put_together(self, literals: bytes) -> tuple[bytes | bytearray, int]:
        """With these literals, and how much of the rest was corrected, in bytes."""
        content = put_tiles(self._sources, self._content(), literals)
        return (content, 0) if self._corrections is None else self._corrections.amend(0, content)


def _joined(first: array[int], second: array[int]) -> array[int]:
    """Rows of copies of both, in order; none overlap."""
    if not first or not second:
        return first or second
    rows = [tuple(copies[at : at + 4]) for copies in (first, second) for at in range(0, len(copies), 4)]
    return array("Q", [number for row in sorted(rows) for number in row])


def _sources(tiles: bytes) -> array[int]:
    """Tiles as the kernel puts them together, of a base that is in memory: rows (offset there, length)."""
    numbers = array("Q", tiles)
    sources = array("Q", bytes(len(tiles) // 3 * 2))
    # The only base is 0, and LITERAL all ones.
    sources[0::2] = array("Q", map(or_, numbers[0::3], numbers[1::3]))
    sources[1::2] = numbers[2::3]
    return sources


def _cells(copies: array[int]) -> list[int]:
    """The cells into which these copies go."""
    cells: set[int] = set()
    for offset, length in zip(copies[0::4], copies[3::4], strict=True):
        cells.update(range(offset // CELL_BYTES, (offset + length - 1) // CELL_BYTES + 1))
    return sorted(cells)
