"""One bundle at the destination: many small changed files that are compared, rebuilt and verified as one."""

from __future__ import annotations

from array import array
from operator import or_

from blake3 import blake3

from rdc.errors import ProtocolError
from rdc.files.bulk.snapshot import SnapshotContent
from rdc.kernel import LITERAL, assemble, fetched_ranges, instructions_of_range, short_references, take_ranges
from rdc.lean.records import dataclass
from rdc.limits.wire import PACKED_BYTES
from rdc.plan.bundle import BundleLayout, BundleSearch, chunk_copies
from rdc.plan.check_blocks import check_block_digests, check_block_ranges
from rdc.plan.known_context import context_rows
from rdc.protocol.messages import RangeRequest
from rdc.protocol.messages.content import LEAF_WIDTH, SHORTEN
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, Claims
from rdc.protocol.wire.stream import unpack_literals
from rdc.session.binaries.filters import RangeOffsets, decode
from rdc.session.transfer.compare import Gaps
from rdc.session.transfer.range_requests import KNOWN_PER_PACKED, Corrections
from rdc.session.trees.errors import MismatchError
from rdc.signature.codec import sign_short
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.chunking import ChunkParams
    from rdc.files.bulk.snapshot import Snapshot
    from rdc.protocol.messages import BlockRequest, BundleAnswer, BundleRequest, Code, Correction, Data, Table

__all__ = ["Bundle", "Rebuilt"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The new content of a verified bundle."""

    files: tuple[int, ...]
    sizes: array[int]
    """Bytes of each file."""
    content: bytes
    """The content of these files, back to back."""
    literals: int
    """How many of its bytes came from the source."""


class Bundle:
    """One bundle between its BundleRequest and its commit."""

    def __init__(
        self,
        request: BundleRequest,
        sizes: Sequence[int],
        base: Snapshot,
        secret: bytes,
        params: ChunkParams,
    ) -> None:
        """`sizes`: bytes of each new version, in the order of the request. `base`: the old versions, in the
        order of the layout. `secret`: the session's. `params`: chunk sizes."""
        self.request = request
        self.sizes = sizes
        self.base = base
        self.layout = BundleLayout.of(request.files, sizes, params.max_size, request.block)
        """The order of the requested files; after `take` of those that the source put into the bundle."""
        self.digest = b""
        self.open_requests = 0
        """Block requests that are not answered yet."""
        self.failed = False
        self._secret = secret
        self._params = params
        self._search: BundleSearch | None = None
        self._gaps: Gaps | None = None
        self._copies = array("Q")
        """Chunks that the base has: the kernel's rows of copies."""
        self._corrections: Corrections | None = None
        self._offsets: RangeOffsets | None = None
        self._ranges = array("Q")
        """The requested ranges, as rows (offset, length)."""
        self._context = array("Q")
        """The known ranges around the requested ones, as rows (offset, length)."""
        self._sources = array("Q")
        """What the content is assembled from, as rows of assemble(), once literals are requested."""
        self._literals = bytearray()

    def take(self, message: BundleAnswer, rounds: int) -> None:
        """Takes the description and compares it with the old versions.

        `rounds`: the round trips that the block search may take. Raises FileError if an old version changed,
        ProtocolError if the description does not fit the files.
        """
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
        """Leaves out the requested files in these rows: the source did not put them into the bundle."""
        gone = {self.request.files[row] for row in without}
        self.base = self.base.chosen([row for row, file in enumerate(self.layout.order) if file not in gone])
        rows = [row for row in range(len(self.sizes)) if row not in without]
        self.sizes = [self.sizes[row] for row in rows]
        files = [self.request.files[row] for row in rows]
        self.layout = BundleLayout.of(files, self.sizes, self._params.max_size, self.request.block)

    def _find_chunks(self, message: BundleAnswer, old: list[int]) -> array[int]:
        """Returns rows of copies for the chunks that the old versions have. `old`: their sizes in bytes."""
        if not message.lengths:
            return array("Q")
        sizes = array("Q", old[: self.layout.chunked])
        content = memoryview(self._content())[: sum(sizes)]
        signed = sign_short(content, sizes, self._params, plain=True)
        width = self.request.width
        references = short_references(self._secret, signed.digests, DIGEST_BYTES, width)
        return chunk_copies(message.references, message.lengths, references, signed.lengths)

    def _content(self) -> bytes:
        """Returns the old versions, back to back. Raises MismatchError if one changed."""
        content = self.base.content()
        if content is None:
            raise MismatchError(b"", "old versions of a bundle's files changed while they were used")
        return content

    def _open_base(self, _: int) -> SnapshotContent:
        return SnapshotContent(self.base.root, self._content())

    def block_requests(self) -> list[BlockRequest]:
        """Makes the next block requests."""
        return [] if self._gaps is None else self._gaps.requests()

    def take_blocks(self, fingerprints: bytes) -> None:
        """Takes the answer to the oldest block request. Raises FileError if an old version changed."""
        if self._gaps is None or self._offsets is not None:
            raise ProtocolError(f"blocks of bundle {self.request.bundle} that were not asked for")
        self._gaps.take(fingerprints)

    def range_request(self, *, pack: bool) -> RangeRequest | None:
        """Makes the request for literals, once there are no more block requests.

        Returns None if everything is here. Raises FileError if an old version changed.
        """
        if self._search is None:
            return None
        found = self._search.copies()
        size = self.layout.size
        copies = _joined(self._copies, found)
        instructions = instructions_of_range(copies, 0, size)
        self._ranges = array("Q", fetched_ranges(instructions, 0))
        wanted = sum(self._ranges[1::2])
        self._sources = _sources(instructions)
        self._search = self._gaps = None
        self._copies = array("Q")
        self._offsets = RangeOffsets(self._ranges)
        self._corrections = Corrections(size)
        claimed = _check_blocks(found)
        if not (self._ranges or claimed):
            return None
        digests = self._digests(claimed, copies)
        if self._ranges:
            self._context = context_rows(self._ranges, size)
        known = sum(self._context[1::2])
        packs = pack and bool(self._ranges) and wanted <= PACKED_BYTES and known >= KNOWN_PER_PACKED * wanted
        request = RangeRequest.of(
            self.request.bundle, self._ranges, pack=packs, claims=Claims(tuple(claimed), digests)
        )
        self._corrections.ask(request)
        return request

    def _digests(self, numbers: Sequence[int], copies: array[int]) -> bytes:
        """Returns the digests of these check blocks, with zeros for literals."""
        if not numbers:
            return b""
        size = self.layout.size
        instructions = [
            instructions_of_range(copies, start, min(stop, size) - start)
            for start, stop in check_block_ranges(numbers)
        ]
        sources = _sources(b"".join(instructions))
        missing = sum(
            [length for at, length in zip(sources[0::2], sources[1::2], strict=True) if at == LITERAL]
        )
        content = assemble(sources, self._content(), bytes(missing))
        return check_block_digests(self._secret, content)

    def take_correction(self, message: Correction) -> None:
        if self._corrections is None:
            raise ProtocolError(f"a correction of bundle {message.file} where nothing was claimed")
        self._corrections.take(message)

    def take_data(self, message: Data | Code | Table) -> None:
        """Takes some literals; they come in order."""
        self._literals += decode(message, self._offsets)

    def unpack(self, packed: bytes) -> None:
        """Takes all literals in one message. Raises MismatchError if they cannot be unpacked: what is known
        around them is wrong."""
        wanted = sum(self._ranges[1::2])
        image, _ = self._assemble(bytes(wanted))
        context = take_ranges(self._context, 0, image)
        try:
            self._literals += unpack_literals(packed, context, wanted)
        except ValueError as error:
            raise MismatchError(b"", str(error)) from error

    def finish(self) -> Rebuilt:
        """Returns the verified content. Raises MismatchError if it does not have the announced digest."""
        content, corrected = self._assemble(bytes(self._literals))
        if blake3(content).digest() != self.digest:
            raise MismatchError(b"", "the bundle put together does not have the announced digest")
        return Rebuilt(self.layout.order, self.layout.sizes, bytes(content), len(self._literals) + corrected)

    def _assemble(self, literals: bytes) -> tuple[bytes | bytearray, int]:
        """Returns the content, and how many bytes of it were corrected."""
        content = assemble(self._sources, self._content(), literals)
        return (content, 0) if self._corrections is None else self._corrections.amend(0, content)


def _joined(first: array[int], second: array[int]) -> array[int]:
    """Merges rows of copies in file order; none overlap."""
    if not first or not second:
        return first or second
    rows = [tuple(copies[at : at + 4]) for copies in (first, second) for at in range(0, len(copies), 4)]
    return array("Q", [number for row in sorted(rows) for number in row])


def _sources(instructions: bytes) -> array[int]:
    """Turns copy instructions into rows of assemble(): (offset, length) in the only base, in memory."""
    numbers = array("Q", instructions)
    sources = array("Q", bytes(len(instructions) // 3 * 2))
    # The number of the only base is 0, and LITERAL has all bits set: `or` keeps offsets and marks literals.
    sources[0::2] = array("Q", map(or_, numbers[0::3], numbers[1::3]))
    sources[1::2] = numbers[2::3]
    return sources


def _check_blocks(copies: array[int]) -> list[int]:
    """Returns the numbers of the check blocks that these copies touch."""
    numbers: set[int] = set()
    for offset, length in zip(copies[0::4], copies[3::4], strict=True):
        numbers.update(range(offset // CHECK_BLOCK_BYTES, (offset + length - 1) // CHECK_BLOCK_BYTES + 1))
    return sorted(numbers)
