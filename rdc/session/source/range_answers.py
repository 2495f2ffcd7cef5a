"""The source's answers about ranges of a file: fingerprints of their blocks, and their bytes.

Before the bytes it answers claims: it checks the check blocks and sends those that are wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from itertools import accumulate, chain, islice
from operator import add

from blake3 import blake3

from rdc.errors import FileChangedError, FileError, ProtocolError
from rdc.files.bulk.open_many import Snapshot, SnapshotContent, look
from rdc.files.root.source_file import SPAN_BYTES, SourceFile
from rdc.kernel import (
    assemble,
    block_fingerprints,
    instructions_of_range,
    plan_reads,
    range_reads,
    take_ranges,
)
from rdc.lean.records import Record
from rdc.limits import (
    BUNDLE_BYTES,
    BUNDLED_FILE_BYTES,
    BUNDLES_CACHED_BYTES,
    BUNDLES_IN_FLIGHT,
    CHECK_BLOCKS_PER_ANSWER,
    DATA_BYTES,
    HOLES_PER_MESSAGE,
)
from rdc.model.entries import Kind
from rdc.plan.bundle import BundleLayout
from rdc.plan.check_blocks import check_block_digests, check_block_ranges, context_rows
from rdc.protocol import messages
from rdc.protocol.messages import BundleAnswer, Data, Holes, LikelyBlocks
from rdc.protocol.messages.content import LEAF_WIDTH, block_size
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, CHECK_BLOCK_DIGEST_BYTES, rests
from rdc.protocol.wire.stream import pack_literals
from rdc.session.binaries import (
    LOOK_AHEAD,
    LOOK_BACK,
    RangeOffsets,
    cut_displacements,
    encode,
    mask,
    mask_ranges,
    masked_reader,
)
from rdc.session.runtime.commands import Content, Conversation, Send, SetCompression
from rdc.session.source.tree_description import CLOSE_BYTES
from rdc.signature.tree import HollowDigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.files.root.root import Root
    from rdc.protocol.messages import BlockRequest, BundleRequest, RangeRequest
    from rdc.tree.manifest import Manifest


class _CheckBlocks(Record):
    """Check blocks back to back, as the destination's claims have them: with zeros for the requested ranges,
    and with masked displacements if the request is masked."""

    numbers: tuple[int, ...]
    content: bytes | bytearray
    displacements: bytes = b""
    """The displacements outside of the requested ranges, as they are sent."""
    counts: bytes = b""
    """Bytes of displacements per check block, 64-bit numbers."""

    def displacements_without(self, wrong: Sequence[int]) -> bytes:
        """Return the displacements except those of the check blocks in these rows."""
        if not wrong:
            return self.displacements
        ends = array("Q", accumulate(array("Q", self.counts), initial=0))
        return b"".join(
            self.displacements[ends[row] : ends[row + 1]]
            for row in range(len(self.numbers))
            if row not in wrong
        )


def corrections(
    source: SourceFile, message: messages.RangeRequest, secret: bytes
) -> Iterator[messages.Correction | messages.Targets]:
    """Yield what answers the claims of `message`, before its ranges are sent. `secret`: the session's.

    Check blocks that lie wholly in requested ranges have no claim. Raises FileChangedError if the file is
    shorter by now.
    """
    claims, at = message.claims, 0
    for blocks in _claimed_blocks(source, message):
        digests = check_block_digests(secret, blocks.content)
        claimed = claims.digests[at : at + len(digests)]
        at += len(digests)
        wrong = []
        if claimed != digests:
            wrong = [
                row
                for row, start in enumerate(range(0, len(claimed), CHECK_BLOCK_DIGEST_BYTES))
                if claimed[start : start + CHECK_BLOCK_DIGEST_BYTES]
                != digests[start : start + CHECK_BLOCK_DIGEST_BYTES]
            ]
            yield from _correction(source, message, [blocks.numbers[row] for row in wrong])
        displacements = blocks.displacements_without(wrong) if blocks.displacements else b""
        if displacements:
            yield messages.Targets(message.file, displacements)


def _claimed_blocks(source: SourceFile, message: messages.RangeRequest) -> Iterator[_CheckBlocks]:
    """Yield all claimed check blocks, CHECK_BLOCKS_PER_ANSWER at a time."""
    ends = array("Q", (0, *accumulate(map(add, message.gaps, message.lengths))))
    known = array("Q", bytes(32 * len(ends)))
    known[0::4] = known[2::4] = ends
    known[3::4] = array("Q", (*message.gaps, source.size - ends[-1]))
    around = (LOOK_BACK, LOOK_AHEAD, array("Q", (source.size,))) if message.blank else ()
    for first in range(0, len(message.claims.cells), CHECK_BLOCKS_PER_ANSWER):
        numbers = message.claims.cells[first : first + CHECK_BLOCKS_PER_ANSWER]
        copies = b"".join(
            instructions_of_range(known, start, min(stop, source.size) - start)
            for start, stop in check_block_ranges(numbers)
        )
        requested, reads, sources = plan_reads(copies, CHECK_BLOCK_BYTES, *around)
        rows = array("Q", reads)
        del rows[0::3]  # the number of the base, which is always the file itself
        content = source.read_ranges(rows)
        if message.blank:
            yield _CheckBlocks(numbers, *cut_displacements(sources, content, rows[1::2], numbers))
        else:
            yield _CheckBlocks(numbers, assemble(sources, content, bytes(requested)))


def _correction(
    source: SourceFile, message: messages.RangeRequest, wrong: list[int]
) -> Iterator[messages.Correction]:
    """Yield one correction for the `wrong` check blocks, or none if there is nothing to correct."""
    found = list(rests(message.rows, wrong, source.size))
    numbers = tuple(sorted({number for number, _, _ in found}))
    if numbers:
        payload = b"".join(source.pread(offset, length) for _, offset, length in found)
        yield messages.Correction(message.file, numbers, payload)


HARD_BYTES = 128 << 10
"""Literals of one file are compressed at a higher level from this many bytes on. They are most of what is
sent. 444 KB of a new TypeScript became 349 KB, for 15 ms of CPU time (measured)."""

RANGES_AT_ONCE = 2048
"""Ranges masked at a time. Each needs at most 1.1 KB of surroundings: little more than 2 MB in total."""


def end_of(message: messages.BlockRequest | messages.RangeRequest) -> int:
    """Return the smallest size in bytes of a file that has all that the request names."""
    end = message.end
    if isinstance(message, messages.RangeRequest) and message.claims.cells:
        end = max(end, message.claims.cells[-1] * CHECK_BLOCK_BYTES + 1)
    return end


def cached_fingerprints(content: bytes, message: messages.BlockRequest, secret: bytes) -> bytes:
    """Return the requested fingerprints of a file that is in memory. `secret`: the session's."""
    rows = message.rows
    if message.blank:
        whole = bytearray(content)
        mask(whole)
        content = bytes(whole)
    ranges = take_ranges(rows, 0, content)
    return block_fingerprints(secret, ranges, message.size, message.width, rows[1::2])


def read_fingerprints(source: SourceFile, message: messages.BlockRequest, secret: bytes) -> bytes:
    """Return the requested fingerprints of an open file. `secret`: the session's.

    This function and those below raise FileChangedError if the file changed since it was opened.
    """
    size, width = message.size, message.width
    fingerprints = bytearray()
    # A long range is read in whole blocks: only its last block may be shorter.
    most = DATA_BYTES // size * size
    masked = message.blank
    contents = _masked(source, message.rows, most) if masked else _contents(source.peek, message.rows, most)
    for content, lengths in contents:
        fingerprints += block_fingerprints(secret, content, size, width, lengths)
    source.check_unchanged()
    return bytes(fingerprints)


def packed_ranges(
    source: SourceFile, message: messages.RangeRequest, secret: bytes, round_: int
) -> Conversation[None]:
    """Send all ranges in one message, compressed with the bytes around them, which the destination has."""
    answers = list(corrections(source, message, secret))
    literals, context = (
        b"".join([content for content, _ in _contents(source.peek, rows, DATA_BYTES)])
        for rows in (message.rows, context_rows(message.rows, source.size))
    )
    source.check_unchanged()
    for answer in answers:
        yield Send(answer, round_)
    yield Send(messages.Literals(message.file, pack_literals(literals, context)), round_)


def ranges(
    source: SourceFile,
    message: messages.RangeRequest,
    secret: bytes,
    round_: int,
    *,
    code: bool,
    listen: Callable[[], Conversation[None]],
) -> Conversation[None]:
    """Send the ranges back to back in as few messages as possible: many are shorter than a message header.

    `code`: content may be encoded by the filters for x86 code and number tables. `listen`: takes events that
    the destination sends meanwhile.
    """
    total = sum(message.lengths)
    if message.blank:
        yield SetCompression(Content.CODE, total)
    elif total >= HARD_BYTES:
        yield SetCompression(Content.TEXT)
    rows = message.rows
    offsets = RangeOffsets(rows) if code else None
    for answer in corrections(source, message, secret):
        yield Send(answer, round_)
        yield from listen()
    unsent = bytearray()
    for content, _ in _contents(source.peek, rows, DATA_BYTES):
        unsent += content
        if len(unsent) >= DATA_BYTES:
            yield Send(_data(message.file, unsent[:DATA_BYTES], offsets), round_)
            yield from listen()
            del unsent[:DATA_BYTES]
    source.check_unchanged()
    if unsent:
        yield Send(_data(message.file, unsent, offsets), round_)
    # There is no digest: the destination knows the root.
    yield Send(messages.FileEnd(message.file, total), round_)


def _data(
    file: int, content: bytearray, offsets: RangeOffsets | None
) -> messages.Data | messages.Code | messages.Table:
    """Return the next bytes of ranges as a message, encoded if there are `offsets`."""
    if offsets is None:
        return messages.Data(file, memoryview(content))
    return encode(file, content, offsets.take(len(content)))


def _masked(source: SourceFile, ranges: array[int], most: int) -> Iterator[tuple[Buffer, array[int]]]:
    """Do what `_contents` does, with masked displacements. Reads nothing between ranges."""
    read = masked_reader(source)
    ends = array("Q", accumulate(ranges[1::2]))
    first = done = 0
    while first < len(ends):
        stop = min(bisect_right(ends, done + most, first), first + RANGES_AT_ONCE)
        if stop > first + 1:
            some = ranges[2 * first : 2 * stop]
            yield mask_ranges(source, some), some[1::2]
        else:
            stop = first + 1
            start, length = ranges[2 * first], ranges[2 * first + 1]
            for at in range(0, length, most):
                part = min(most, length - at)
                yield read(start + at, part), array("Q", (part,))
        first, done = stop, ends[stop - 1]


def _contents(
    read: Callable[[int, int], bytes | memoryview], ranges: array[int], most: int
) -> Iterator[tuple[Buffer, array[int]]]:
    """Yield the content of ranges back to back, at most `most` bytes at a time, and the length of each part.

    `ranges`: rows (offset, length). Close ranges are read at once. `read` takes offset and length.
    """
    reads = iter(array("Q", range_reads(ranges, CLOSE_BYTES, most)))
    first = 0
    for count, start, length in zip(reads, reads, reads, strict=True):
        some = ranges[2 * first : 2 * (first + count)]
        first += count
        if count > 1:
            yield take_ranges(some, start, read(start, length)), some[1::2]
            continue
        for at in range(0, length, most):
            part = min(most, length - at)
            yield read(start + at, part), array("Q", (part,))


# The source's bundles: it describes many small changed files at once, and answers about all as about one.


class BundleAnswers:
    """The last BUNDLES_IN_FLIGHT requested bundles, with BUNDLES_CACHED_BYTES of content in memory.

    Further content is read again when it is needed.
    """

    def __init__(self, root: Root, secret: bytes) -> None:
        """`secret`: the session's, 16 bytes."""
        self._root = root
        self._secret = secret
        self._bundles: OrderedDict[int, Snapshot] = OrderedDict()
        self._cached = 0
        self._told: frozenset[int] = frozenset()
        """Files whose blocks the destination knows, of `_told_block` bytes as in a BundleRequest."""
        self._told_block = 0

    def tell_blocks(self, files: Sequence[int], block: int, manifest: Manifest) -> LikelyBlocks | None:
        """Return the fingerprints of the blocks of these regular files; None if none is as it was listed."""
        sizes, mtimes, paths = manifest.sizes_of(files), manifest.mtimes_of(files), manifest.paths(files)
        found = look(self._root, paths)
        rows = [
            row
            for row, identity in enumerate(found.identities)
            if identity is not None and (identity.size, identity.mtime_ns) == (sizes[row], mtimes[row])
        ]
        if len(rows) < len(files):
            found = found.chosen(rows)
        self._told, self._told_block = frozenset([files[row] for row in rows]), block
        if not rows:
            return None
        lengths = array("Q", [sizes[row] for row in rows])
        prints, at = [], 0
        for length in lengths:
            content = found.content[at : at + length]
            prints.append(block_fingerprints(self._secret, content, block_size(length, block), LEAF_WIDTH))
            at += length
        return LikelyBlocks(tuple(sorted(self._told)), b"".join(prints))

    def forget_told(self) -> None:
        """Forget what `tell_blocks` told: from now on answers have the fingerprints of all files."""
        self._told = frozenset()

    def describe(self, request: BundleRequest, manifest: Manifest) -> BundleAnswer:
        """Read, sign and remember a bundle. Raises ProtocolError for a wrong number, entries that are no
        regular files, and sizes that no bundle may have."""
        # long because it handles many files at once, and a call for each would cost more than the work
        files = request.files
        if request.bundle < len(manifest):
            raise ProtocolError(f"a bundle named {request.bundle}, which is an entry")
        if files[-1] >= len(manifest) or any(manifest.kinds[file] != Kind.FILE for file in files):
            raise ProtocolError(f"bundle {request.bundle} has an entry that is no listed regular file")
        sizes, mtimes, names = manifest.sizes_of(files), manifest.mtimes_of(files), manifest.paths(files)
        if sum(sizes) > BUNDLE_BYTES or not 0 < min(sizes) <= max(sizes) <= BUNDLED_FILE_BYTES:
            raise ProtocolError(
                f"bundle {request.bundle} has {sum(sizes)} bytes, or none or too many of a file"
            )
        layout = BundleLayout.of(range(len(files)), sizes, request.block)
        paths = [names[row] for row in layout.order]
        found = look(self._root, paths)
        left_out = [
            row
            for row, identity in zip(layout.order, found.identities, strict=True)
            if identity is None or (identity.size, identity.mtime_ns) != (sizes[row], mtimes[row])
        ]
        if left_out:
            left = [index for index, row in enumerate(layout.order) if row not in left_out]
            found, paths = found.chosen(left), [paths[index] for index in left]
            remaining = [row for row in range(len(files)) if row not in left_out]
            layout = BundleLayout.of(remaining, [sizes[row] for row in remaining], request.block)
        identities = [identity for identity in found.identities if identity is not None]
        self._remember(request.bundle, Snapshot(self._root, paths, identities, found.content))
        digest, prints = blake3(found.content).digest(), b""
        if request.block != self._told_block or not self._told.issuperset(files):
            prints = self._fingerprints(layout, found.content)
        return BundleAnswer(request.bundle, tuple(sorted(left_out)), digest, prints)

    def open(self, message: BlockRequest | RangeRequest) -> SnapshotContent:
        """Return the bundle that this is about. Raises FileError where it is not remembered, cannot be read
        again, or is shorter than what is asked for."""
        bundle = self._bundles.get(message.file)
        if bundle is None:
            raise FileError(b"", f"bundle {message.file} is forgotten; its files are to be asked for singly")
        content = bundle.content()
        if content is None or end_of(message) > len(content):
            raise FileChangedError(b"", f"a file of bundle {message.file} changed while it was synced")
        return SnapshotContent(self._root, content)

    def forget(self, number: int) -> None:
        """Forget a bundle: no more requests about it follow."""
        bundle = self._bundles.pop(number, None)
        if bundle is not None:
            self._cached -= bundle.cached_bytes

    def _remember(self, number: int, bundle: Snapshot) -> None:
        self.forget(number)
        if self._cached + bundle.cached_bytes > BUNDLES_CACHED_BYTES:
            bundle.drop()
        self._cached += bundle.cached_bytes
        self._bundles[number] = bundle
        while len(self._bundles) > BUNDLES_IN_FLIGHT:
            self.forget(next(iter(self._bundles)))

    def _fingerprints(self, layout: BundleLayout, content: bytes) -> bytes:
        """Return the fingerprints of all files."""
        found = b""
        for first, stop, block in layout.likes:
            some = content[layout.starts[first] : layout.starts[stop]]
            found += block_fingerprints(self._secret, some, block, LEAF_WIDTH, layout.sizes[first:stop])
        return found


HOLLOW_BYTES = 16 << 10
"""Bytes that a file must take less than its size, to be looked at for holes."""


def has_holes(source: SourceFile) -> bool:
    """Return whether the file has a hole, and takes so much less than its size that it pays to look."""
    if source.allocated + HOLLOW_BYTES > source.size:
        return False
    from rdc.files.facts.extents import holes  # only hollow files need it

    return any(holes(source.fileno(), source.size))


def announced_holes(file: int, source: SourceFile) -> Holes | None:
    """Return what precedes the TreeAnswer of the file; None if it has no holes."""
    if not has_holes(source):
        return None
    from rdc.files.facts.extents import data_bytes

    return Holes(file, data_bytes(source.fileno(), source.size, source.allocated))


def digest_of(source: SourceFile, *, hollow: bool) -> bytes:
    """Return the digest of the whole content: the HollowDigest if the file is `hollow`, else BLAKE3. Raises
    FileError."""
    if not hollow:
        hasher = blake3()
        for span in source.spans():
            hasher.update(span)
        return hasher.digest()
    from rdc.files.facts.extents import holes

    source.rest()
    digest, at = HollowDigest(), 0
    for start, end in chain(holes(source.fileno(), source.size), [(source.size, source.size)]):
        while at < start:
            span = source.pread(at, min(start - at, SPAN_BYTES))
            digest.update(span)
            at += len(span)
        digest.skip(end - start)
        at = end
    return digest.digest()


class SentContent:
    """The content of one file, as messages, and its digest.

    Where its holes are is asked while it is read, and holds for what is read: the caller calls
    `source.check_unchanged` afterwards.
    """

    def __init__(self, file: int, source: SourceFile, name: bytes | None = None) -> None:
        """`file`: its number in messages. `name`: the source's `content_name`, if that may take the place of
        the digest. Nothing is hashed then."""
        self._file = file
        self._source = source
        self.hollow = name is None and has_holes(source)
        """It comes with Holes."""
        self._name = name
        self._hasher = HollowDigest() if self.hollow else blake3()

    def digest(self) -> bytes:
        """Return the digest of everything that was yielded, or the name: once, at the end."""
        return self._hasher.digest() if self._name is None else self._name

    def messages(self) -> Iterator[Holes | Data]:
        """Yield the content in order. Raises FileError."""
        if isinstance(self._hasher, HollowDigest):
            yield from self._with_holes(self._hasher)
            return
        for piece in self._source.pieces(DATA_BYTES):
            if self._name is None:
                self._hasher.update(piece)
            yield Data(self._file, piece)

    def _with_holes(self, hasher: HollowDigest) -> Iterator[Holes | Data]:
        from rdc.files.facts.extents import data_bytes, holes

        source = self._source
        source.rest()
        data = data_bytes(source.fileno(), source.size, source.allocated)
        found, at = holes(source.fileno(), source.size), 0
        while some := list(islice(found, HOLES_PER_MESSAGE)):
            ends = [at, *(end for _, end in some)]
            gaps = [start - end for (start, _), end in zip(some, ends, strict=False)]
            yield Holes(self._file, data, tuple(gaps), tuple([end - start for start, end in some]))
            yield from self._data_before(some, at, hasher)
            at = ends[-1]
        yield from self._data_before([(source.size, source.size)], at, hasher)

    def _data_before(self, ends: Sequence[tuple[int, int]], at: int, hasher: HollowDigest) -> Iterator[Data]:
        """Yield the content before each of these holes, from `at` on, in as few messages as possible."""
        parts, room = list[bytes](), DATA_BYTES
        for start, end in ends:
            while at < start:
                part = self._source.pread(at, min(start - at, room))
                hasher.update(part)
                parts.append(part)
                at, room = at + len(part), room - len(part)
                if not room:
                    yield Data(self._file, b"".join(parts) if len(parts) > 1 else part)
                    parts, room = [], DATA_BYTES
            hasher.skip(end - start)
            at = end
        if parts:
            yield Data(self._file, b"".join(parts))
