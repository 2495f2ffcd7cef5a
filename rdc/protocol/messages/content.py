"""Messages that compare two versions of a file, and messages with the content of files."""

from __future__ import annotations

from array import array

from rdc import limits
from rdc.lean.records import Record
from rdc.lean.typed import Annotated
from rdc.model.runs import Purpose
from rdc.protocol.messages.field_types import (
    CHECK_BLOCK_BYTES,
    DIGEST_BYTES,
    NO_CLAIMS,
    REFERENCE_WIDTHS,
    ROOT_BYTES,
    AboutFile,
    AboutFiles,
    Claimed,
    Claims,
    Digest,
    Failure,
    Files,
    Level,
    Line,
    Mtime,
    Nodes,
    Ordinal,
    Ranged,
    Root,
    Size,
    Width,
    columns_of,
)
from rdc.protocol.wire.codec import (
    ANSWERING,
    ASKING,
    DESTINATION,
    SERVING,
    SOURCE,
    Message,
    message,
    message_kinds,
)
from rdc.protocol.wire.fields import Blob, Column, Content, Flag, Gaps, Integer, Parts, Time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


# Messages that compare two versions of a file: roots, nodes of signature trees, fingerprints of blocks.
#
# A new file is looked for among the destination's: one digest over many roots finds copies, and traits find
# similar files. A bundle is many changed files that are compared as one.

FINGERPRINT_WIDTHS = (2, 8)
LEAF_WIDTH = 3
"""Bytes of a fingerprint that comes with a tree: a chunk has few blocks, and few positions to search for
them."""
SHORTEN = 4
"""Divisor of the block size in short files."""
LONG_FILE_BYTES = 64 << 10
LENGTHEN = 4
"""Factor of the block size in files longer than LONG_FILE_BYTES: their edits are farther apart."""
KEYED_WIDTH = 8
"""Widest keyed hash in bytes; a wider reference is the whole digest."""


def block_size(size: int, block: int) -> int:
    """Bytes of a block in a file of `size` bytes, where `block` was asked for. Short files have shorter
    blocks, or they would have hardly two."""
    if size > LONG_FILE_BYTES:
        return block * LENGTHEN
    return block if size >= 2 * block else block // SHORTEN


@message(6, by=DESTINATION, when=ASKING, asks="files", purpose=Purpose.ROOTS)
class RootRequest(AboutFiles, Message, Record):
    """D: asks for references of the root digests of these files."""

    files: Files
    width: Width = ROOT_BYTES
    """Bytes of a reference in the answer: 4 to 8 under the session's key, or the 32 of the root itself."""
    group: Annotated[int, Integer(1, limits.FILES_PER_GROUP)] = 1
    """Files that share one reference. Above 1, the answer has no sizes."""

    def check(self) -> str | None:
        return _wrong_width(self.width)


@message(7, by=SOURCE, when=ANSWERING, answers=RootRequest, purpose=Purpose.ROOTS)
class RootAnswer(Message, Record):
    """S: some or all files of the oldest RootRequest. A file that failed comes as FileFailed instead."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(limits.FILES_PER_MESSAGE)]
    """One size per file with whole roots; empty with references, which cover the size."""
    roots: Annotated[bytes, Blob(REFERENCE_WIDTHS[0], ROOT_BYTES * limits.FILES_PER_MESSAGE)]
    """A reference of the requested width per file or per group, in the order of `files`."""
    group: Annotated[int, Integer(1, limits.FILES_PER_GROUP)] = 1

    @property
    def references(self) -> int:
        """Number of references."""
        return -(-len(self.files) // self.group)

    @property
    def width(self) -> int:
        return len(self.roots) // self.references

    @property
    def whole(self) -> bool:
        """Return whether `roots` holds whole roots rather than references."""
        return self.group == 1 and self.width == ROOT_BYTES

    def root(self, row: int) -> bytes:
        """Return the reference of the file, or of the group, with this number."""
        return self.roots[row * self.width : (row + 1) * self.width]

    def check(self) -> str | None:
        if len(self.roots) % self.references or not REFERENCE_WIDTHS[0] <= self.width <= ROOT_BYTES:
            return f"roots: {len(self.roots)} bytes for {len(self.files)} files"
        if len(self.sizes) != (len(self.files) if self.whole else 0):
            return f"sizes: {len(self.sizes)} for {len(self.files)} files"
        return None


def _wrong_width(width: int) -> str | None:
    if KEYED_WIDTH < width < REFERENCE_WIDTHS[1]:
        return f"width: {width} is neither in {REFERENCE_WIDTHS[0]}..{KEYED_WIDTH} nor {REFERENCE_WIDTHS[1]}"
    return None


@message(8, by=DESTINATION, when=ASKING, asks="files", purpose=Purpose.NODES)
class TreeRequest(AboutFiles, Message, Record):
    """D: asks for the top of the signature trees of these files."""

    files: Files
    width: Width
    """Bytes of a reference in the answers."""
    block: Annotated[int, Integer(0, limits.BLOCK_SIZE_MAX)] = 0
    """Bytes of a block: files of one chunk come with the fingerprints of their blocks. 0: without
    fingerprints."""

    def check(self) -> str | None:
        if 0 < self.block < SHORTEN * limits.BLOCK_SIZE_MIN:
            return f"block: {self.block}, the least is {SHORTEN * limits.BLOCK_SIZE_MIN}"
        return _wrong_width(self.width)

    def block_of(self, size: int) -> int:
        """Bytes of a block in a file of `size` bytes."""
        return block_size(size, self.block)


@message(9, by=SOURCE, when=ANSWERING, answers=TreeRequest, purpose=Purpose.NODES)
class TreeAnswer(Message, Record):
    """S: one file of the oldest TreeRequest."""

    file: Ordinal
    size: Size
    root: Root
    height: Level
    mtime_ns: Mtime
    records: Annotated[bytes, Blob(0, limits.RECORDS_BYTES)]
    """Records in the signature format, opaque to the protocol. Empty if fingerprints are given."""
    fingerprints: Annotated[bytes, Blob(0, limits.RECORDS_BYTES)] = b""
    """Keyed fingerprints of a file of one chunk, LEAF_WIDTH bytes per block, in order, if `block` asked for
    them."""


@message(71, by=DESTINATION, when=ASKING, asks="newest", purpose=Purpose.NODES)
class LikelyRequest(Message, Record):
    """D: asks for the trees of files that S takes for changed, before D knows which they are."""

    newest: Annotated[int, Time()]
    """The newest mtime that D has where the two trees differ: later ones are unknown to D."""
    width: Width
    """Bytes of a reference in the answers."""
    block: Annotated[int, Integer(SHORTEN * limits.BLOCK_SIZE_MIN, limits.BLOCK_SIZE_MAX)]
    """The block size, as in TreeRequest."""

    def check(self) -> str | None:
        return _wrong_width(self.width)


@message(72, by=SOURCE, when=SERVING, answers=LikelyRequest, purpose=Purpose.NODES)
class LikelyAnswer(Message, Record):
    """S: the files that it takes for changed. It answers next as if D had asked for their trees."""

    files: Annotated[tuple[int, ...], Gaps(limits.LIKELY_FILES, limits.ORDINAL_LIMIT, may_be_empty=True)]

    def asked(self, request: LikelyRequest) -> TreeRequest | None:
        """Return what counts as asked by D from now on; None for nothing."""
        return TreeRequest(self.files, request.width, request.block) if self.files else None


@message(10, by=DESTINATION, when=ASKING, asks="nodes", purpose=Purpose.NODES)
class NodeRequest(AboutFile, Message, Record):
    """D: asks for the children of these nodes of a file's tree."""

    file: Ordinal
    level: Level
    nodes: Nodes
    width: Width
    """Bytes of a reference in the answer."""

    def check(self) -> str | None:
        return _wrong_width(self.width)


@message(11, by=SOURCE, when=ANSWERING, answers=NodeRequest, purpose=Purpose.NODES)
class NodeAnswer(Message, Record):
    """S: the next nodes of the oldest NodeRequest, in its order."""

    file: Ordinal
    level: Level
    nodes: Nodes
    records: Annotated[tuple[bytes, ...], Parts(limits.NODES_PER_MESSAGE, limits.NODE_BYTES)]
    """Opaque records, one item per node."""

    def check(self) -> str | None:
        if len(self.records) != len(self.nodes):
            return f"records: {len(self.records)} for {len(self.nodes)} nodes"
        return None


@message(31, by=DESTINATION, when=ASKING, asks="file", purpose=Purpose.BLOCKS)
class BlockRequest(Ranged, Message, Record):
    """D: asks for fingerprints of the blocks in these ranges of a file."""

    file: Ordinal
    gaps: Annotated[tuple[int, ...], Column(limits.RANGES_PER_MESSAGE)]
    lengths: Annotated[tuple[int, ...], Column(limits.RANGES_PER_MESSAGE, lowest=1)]
    size: Annotated[int, Integer(limits.BLOCK_SIZE_MIN, limits.BLOCK_SIZE_MAX)]
    """Bytes of a block, counted from the start of each range. The last block of a range may be shorter."""
    width: Annotated[int, Integer(*FINGERPRINT_WIDTHS)]
    """Bytes of a fingerprint."""
    blank: Annotated[bool, Flag()] = False
    """True if x86 operands are masked before the fingerprints are computed."""

    @classmethod
    def of(cls, file: int, rows: array[int], size: int, width: int, *, blank: bool = False) -> BlockRequest:
        """Return a request for increasing, disjoint ranges: offset and length by turns (typecode 'Q')."""
        return cls(file, *columns_of(rows), size, width, blank)

    @property
    def blocks(self) -> int:
        """Number of fingerprints in the answer."""
        size = self.size
        return sum([-(-length // size) for length in self.lengths])

    def check(self) -> str | None:
        problem = self.check_ranges()
        if problem is None and not self.lengths:
            return "lengths: none"
        # Each range has at most one block more than whole ones. Most requests are far below the limit.
        most = sum(self.lengths) // self.size + len(self.lengths)
        if problem is None and most > limits.BLOCKS_PER_MESSAGE and self.blocks > limits.BLOCKS_PER_MESSAGE:
            return f"lengths: {self.blocks} blocks, the limit is {limits.BLOCKS_PER_MESSAGE}"
        return problem


@message(32, by=SOURCE, when=ANSWERING, answers=BlockRequest, purpose=Purpose.BLOCKS)
class BlockAnswer(Message, Record):
    """S: the whole answer to the oldest BlockRequest."""

    file: Ordinal
    fingerprints: Annotated[
        bytes, Blob(FINGERPRINT_WIDTHS[0], FINGERPRINT_WIDTHS[1] * limits.BLOCKS_PER_MESSAGE)
    ]
    """Keyed fingerprints, `width` bytes per block, in order."""


# Local copies of new files, and similar ones

SHORT_ROOT_BYTES = 8
TRAITS_BYTES = 9
NO_TRAITS = b"\xff" * TRAITS_BYTES

COARSE_FROM, COARSE_BELOW = 24 << 10, 64 << 10
"""Sizes of files with coarse traits: from COARSE_FROM to below COARSE_BELOW. Larger files have other
features. Smaller ones are at most three eighths of such a larger file."""


@message(40, by=DESTINATION, when=ASKING, asks="files", purpose=Purpose.ROOTS)
class DigestRequest(AboutFiles, Message, Record):
    """D: asks for one digest over the roots of these files."""

    files: Files


@message(41, by=SOURCE, when=ANSWERING, answers=DigestRequest, purpose=Purpose.ROOTS)
class DigestAnswer(Message, Record):
    """S: the digest of the oldest DigestRequest's files, except those that failed in a FileFailed before."""

    digest: Root
    """BLAKE3 of their 32-byte roots, concatenated in the order of the request."""


@message(42, by=DESTINATION, when=ASKING, asks="files", purpose=Purpose.ROOTS)
class TraitsRequest(AboutFiles, Message, Record):
    """D: asks for short references of the roots of these files, and for their traits."""

    files: Files


@message(43, by=SOURCE, when=ANSWERING, answers=TraitsRequest, purpose=Purpose.ROOTS)
class TraitsAnswer(Message, Record):
    """S: some or all files of the oldest TraitsRequest. A file that failed comes as FileFailed instead."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(limits.FILES_PER_MESSAGE)]
    roots: Annotated[bytes, Blob(SHORT_ROOT_BYTES, SHORT_ROOT_BYTES * limits.FILES_PER_MESSAGE)]
    """8 bytes per file under the session's key."""
    traits: Annotated[bytes, Blob(TRAITS_BYTES, TRAITS_BYTES * limits.FILES_PER_MESSAGE)]
    """9 bytes per file; all ones for a file without features."""
    coarse: Annotated[bytes, Blob(0, TRAITS_BYTES * limits.FILES_PER_MESSAGE)] = b""
    """Traits in the form of a larger file, for each file of COARSE_FROM to COARSE_BELOW - 1 bytes."""

    def root(self, row: int) -> bytes:
        return self.roots[row * SHORT_ROOT_BYTES : (row + 1) * SHORT_ROOT_BYTES]

    def traits_of(self, row: int) -> bytes:
        """Return the traits of a file; b'' for a file without features."""
        traits = self.traits[row * TRAITS_BYTES : (row + 1) * TRAITS_BYTES]
        return b"" if traits == NO_TRAITS else traits

    def coarse_traits(self) -> dict[int, bytes]:
        """Coarse traits by row, for rows that have them."""
        rows = [row for row, size in enumerate(self.sizes) if COARSE_FROM <= size < COARSE_BELOW]
        cut = (self.coarse[at : at + TRAITS_BYTES] for at in range(0, len(self.coarse), TRAITS_BYTES))
        return {row: traits for row, traits in zip(rows, cut, strict=True) if traits != NO_TRAITS}

    def check(self) -> str | None:
        count = len(self.files)
        if (len(self.sizes), len(self.roots), len(self.traits)) != (
            count,
            count * SHORT_ROOT_BYTES,
            count * TRAITS_BYTES,
        ):
            return f"columns: they are not of {count} files"
        near = sum(COARSE_FROM <= size < COARSE_BELOW for size in self.sizes)
        if len(self.coarse) != near * TRAITS_BYTES:
            return f"coarse: {len(self.coarse)} bytes for {near} files"
        return None


# Bundles: many changed files that are described together and compared as one file

BUNDLE_BLOCK_MIN = 256
"""Bytes of the smallest block. The fingerprints of a whole bundle then fit one message, even those of short
files, whose blocks are a quarter as long."""

_FINGERPRINTS = (limits.BUNDLE_BYTES * SHORTEN // BUNDLE_BLOCK_MIN + 2 * limits.BUNDLE_FILES) * LEAF_WIDTH


@message(44, by=DESTINATION, when=ASKING, asks="files", feature="bundle", purpose=Purpose.NODES)
class BundleRequest(AboutFiles, Message, Record):
    """D: asks for the description of these files, as listed, as one bundle."""

    bundle: Ordinal
    """The bundle's number from now on: bundles are numbered after all entries."""
    files: Annotated[tuple[int, ...], Gaps(limits.BUNDLE_FILES, limits.ORDINAL_LIMIT)]
    block: Annotated[int, Integer(BUNDLE_BLOCK_MIN, limits.BLOCK_SIZE_MAX)]
    """Bytes of a block; see `block_size`."""


@message(45, by=SOURCE, when=SERVING, answers=BundleRequest, feature="bundle", purpose=Purpose.NODES)
class BundleAnswer(Message, Record):
    """S: the answer to the oldest BundleRequest."""

    bundle: Ordinal
    without: Annotated[tuple[int, ...], Gaps(limits.BUNDLE_FILES, limits.BUNDLE_FILES - 1, may_be_empty=True)]
    """Files left out of the bundle, by their position in the request: they are unreadable or differ from
    their listing."""
    digest: Digest
    """BLAKE3 of the bundle's whole content."""
    fingerprints: Annotated[bytes, Blob(0, _FINGERPRINTS)]
    """Keyed fingerprints of the blocks of its files, LEAF_WIDTH bytes per block, in the bundle's order."""


@message(73, by=SOURCE, when=SERVING, answers=LikelyRequest, feature="blocks", purpose=Purpose.NODES)
class LikelyBlocks(Message, Record):
    """S: files that it takes for changed, with fingerprints of their blocks, before its LikelyAnswer."""

    files: Annotated[tuple[int, ...], Gaps(limits.BUNDLE_FILES, limits.ORDINAL_LIMIT)]
    fingerprints: Annotated[bytes, Blob(0, _FINGERPRINTS)]
    """Keyed fingerprints of the blocks of each file in this order, LEAF_WIDTH bytes per block. `block_size`
    has the bytes of a block; the listed size counts."""


TABLE_WORD = 4
"""Bytes of a number in a table."""


@message(12, by=DESTINATION, when=ASKING, asks="file", purpose=Purpose.LITERALS)
class RangeRequest(Ranged, Message, Record):
    """D: asks for these bytes of a file, in this order. Without ranges only the claims are checked."""

    file: Ordinal
    gaps: Annotated[tuple[int, ...], Column(limits.RANGES_PER_MESSAGE)]
    """Bytes between the end of the previous range (or the file's start) and each range. The ranges are thus
    increasing and disjoint."""
    lengths: Annotated[tuple[int, ...], Column(limits.RANGES_PER_MESSAGE, lowest=1)]
    pack: Annotated[bool, Flag()] = False
    """True if the bytes may come as Literals: D has everything around them."""
    claims: Annotated[Claims, Claimed()] = NO_CLAIMS
    """The content that D expects elsewhere in the file. A Correction precedes the answer wherever that is
    wrong."""
    blank: Annotated[bool, Flag()] = False
    """True if the claims are about content with masked x86 operands, which S sends as Targets."""

    @classmethod
    def of(
        cls,
        file: int,
        rows: array[int],
        *,
        pack: bool = False,
        claims: Claims = NO_CLAIMS,
        blank: bool = False,
    ) -> RangeRequest:
        """Return a request for increasing, disjoint ranges: offset and length by turns (typecode 'Q')."""
        return cls(file, *columns_of(rows), pack, claims, blank)

    def check(self) -> str | None:
        if self.pack and sum(self.lengths) > limits.PACKED_BYTES:
            return f"pack: {sum(self.lengths)} bytes, the limit is {limits.PACKED_BYTES}"
        if not self.lengths and (self.pack or not self.claims.cells):
            return "lengths: none"
        if self.blank and (self.pack or not self.claims.cells):
            return "blank: without claims, or to be packed"
        return self.check_ranges()


@message(37, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Correction(Message, Record):
    """S, before the answer to a RangeRequest: the content of check blocks with a wrong claim, without the
    requested ranges."""

    file: Ordinal
    cells: Annotated[
        tuple[int, ...], Gaps(limits.CHECK_BLOCKS_PER_ANSWER, limits.SIZE_LIMIT // CHECK_BLOCK_BYTES)
    ]
    payload: Annotated[bytes | memoryview, Content(0, limits.CHECK_BLOCKS_PER_ANSWER * CHECK_BLOCK_BYTES)]
    """The content of all these check blocks, in order."""

    def check(self) -> str | None:
        if len(self.payload) > len(self.cells) * CHECK_BLOCK_BYTES:
            return f"payload: {len(self.payload)} bytes of {len(self.cells)} cells"
        return None


@message(38, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Targets(Message, Record):
    """S, before the answer to a RangeRequest: the masked x86 operands in the next check blocks, except
    corrected ones."""

    file: Ordinal
    payload: Annotated[bytes | memoryview, Content(1, limits.CHECK_BLOCKS_PER_ANSWER * CHECK_BLOCK_BYTES)]


@message(35, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Literals(Message, Record):
    """S: the whole answer to a RangeRequest with `pack`."""

    file: Ordinal
    packed: Annotated[bytes, Blob(1, 2 * limits.PACKED_BYTES)]
    """A zstd frame without magic number. Its prefix is the content around the ranges."""


@message(13, by=DESTINATION, when=ASKING, asks="files", purpose=Purpose.LITERALS)
class FileRequest(AboutFiles, Message, Record):
    """D: asks for these files whole."""

    files: Files
    packing: Annotated[int, Integer(0, 2)] = 0
    """The effort of S's compression. 0: as S finds best; 1: quick; 2: none, because D has measured a
    line that is faster than that."""


@message(46, by=SOURCE, when=ANSWERING, answers=FileRequest, purpose=Purpose.LITERALS)
class Resized(Message, Record):
    """S, before the content of a file whose size differs from its listing: the new size."""

    file: Ordinal
    size: Size
    """Bytes of the file now. The rest of the answer has exactly as many."""


@message(70, by=SOURCE, when=ANSWERING, answers=(TreeRequest, FileRequest), purpose=Purpose.LITERALS)
class Holes(Message, Record):
    """S, before the TreeAnswer or the content of a file that has holes: what it takes, and where they are."""

    file: Ordinal
    data: Size
    """Bytes of the file outside of its holes. About: it only says what room they need."""
    gaps: Annotated[tuple[int, ...], Column(limits.HOLES_PER_MESSAGE)] = ()
    """Bytes of Data between the end of the previous hole (or what came so far) and each hole. Without holes
    before a TreeAnswer."""
    lengths: Annotated[tuple[int, ...], Column(limits.HOLES_PER_MESSAGE, lowest=1)] = ()
    """Bytes of each hole."""

    def check(self) -> str | None:
        if len(self.gaps) != len(self.lengths):
            return f"lengths: {len(self.lengths)} for {len(self.gaps)} holes"
        if sum(self.gaps) + sum(self.lengths) > limits.SIZE_LIMIT:
            return f"lengths: the last hole ends past {limits.SIZE_LIMIT}"
        return None


@message(14, by=SOURCE, when=ANSWERING, answers=(RangeRequest, FileRequest), purpose=Purpose.LITERALS)
class Data(Message, Record):
    """S: the next bytes of a file or of its ranges."""

    file: Ordinal
    payload: Annotated[bytes | memoryview, Content(1, limits.DATA_BYTES)]


@message(36, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Code(Message, Record):
    """S: the next bytes of a file's ranges, through the x86 filter (operands are absolute)."""

    file: Ordinal
    payload: Annotated[bytes | memoryview, Content(1, limits.DATA_BYTES)]


@message(39, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Table(Message, Record):
    """S: the next bytes of a file's ranges, through the number table filter (numbers are differences between
    rows)."""

    file: Ordinal
    stride: Annotated[int, Integer(TABLE_WORD, limits.TABLE_STRIDE_MAX)]
    """Bytes of a row."""
    payload: Annotated[bytes | memoryview, Content(1, limits.DATA_BYTES)]

    def check(self) -> str | None:
        return f"stride: {self.stride} bytes" if self.stride % TABLE_WORD else None


@message(30, by=SOURCE, when=ANSWERING, answers=FileRequest, purpose=Purpose.LITERALS)
class FileBatch(Message, Record):
    """S: small files of the oldest FileRequest that still agree with their listing."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(limits.FILES_PER_MESSAGE, highest=limits.DATA_BYTES)]
    digest: Digest
    """BLAKE3 of the payload."""
    payload: Annotated[bytes | memoryview, Content(0, limits.DATA_BYTES)]
    """The contents of the files, concatenated."""

    def check(self) -> str | None:
        if len(self.sizes) != len(self.files):
            return f"sizes: {len(self.sizes)} for {len(self.files)} files"
        if sum(self.sizes) != len(self.payload):
            return f"payload: {len(self.payload)} bytes for files of {sum(self.sizes)}"
        return None


@message(15, by=SOURCE, when=ANSWERING, answers=(RangeRequest, FileRequest), purpose=Purpose.LITERALS)
class FileEnd(Message, Record):
    """S: ends the Data of the request for this file."""

    file: Ordinal
    size: Size
    """Bytes of Data since the request. For a whole file this is its size, as last announced."""
    digest: Annotated[bytes, Blob(0, DIGEST_BYTES)] = b""
    """BLAKE3 of the content for a whole file; empty for ranges."""
    mtime_ns: Mtime = None
    like: Annotated[int | None, Integer(highest=limits.ORDINAL_LIMIT, optional=True)] = None
    """A file sent whole before that has the same content; no Data came for this one."""

    def check(self) -> str | None:
        if len(self.digest) not in {0, DIGEST_BYTES}:
            return f"digest: {len(self.digest)} bytes"
        if self.like is not None and (not self.digest or self.like == self.file):
            return f"like: file {self.like}, without a digest or itself"
        return None


ABOUT_FILES = tuple(kind for kind in message_kinds().values() if issubclass(kind, (AboutFile, AboutFiles)))
"""All such requests; they are declared above."""


@message(16, by=SOURCE, when=ANSWERING, answers=ABOUT_FILES, purpose=Purpose.LITERALS)
class FileFailed(Message, Record):
    """S: the failure of this file, in place of an answer."""

    file: Ordinal
    code: Failure
    message: Line


FileMessage: TypeAlias = (
    "TreeAnswer | NodeAnswer | BlockAnswer | Correction | Targets | Literals | Data | Code | Table"
    " | FileEnd | FileFailed | Holes"
)
"""Answers about one file that comes by delta. Each names it by its row in the source's manifest."""
