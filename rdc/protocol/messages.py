"""Every message of the protocol: its fields, their form on the wire, and its type number.

A field's annotation carries its codec; decode() checks everything once and returns a frozen value that the
rest of rdc trusts. "S" is the source's side, "D" the destination's, whoever of them dialled.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import msgpack  # type: ignore[import-untyped]

from rdc.errors import ExitCode
from rdc.limits import (
    BLOCK_SIZE_MAX,
    BLOCK_SIZE_MIN,
    BLOCKS_PER_MESSAGE,
    CHUNK_MIN_LIMIT,
    DATA_BYTES,
    FILES_PER_MESSAGE,
    FRAME_BYTES,
    MESSAGE_BYTES,
    NODE_BYTES,
    NODES_PER_MESSAGE,
    ORDINAL_LIMIT,
    RANGES_PER_MESSAGE,
    RECORDS_BYTES,
    SIZE_LIMIT,
    SOFTWARE_BYTES,
    TIER_NODES,
    TREE_HEIGHT,
)
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.sync import SyncOptions
from rdc.protocol.codec import WireMessage, decode_payload, encode_payload, registered, wire
from rdc.protocol.fields import (
    Blob,
    Column,
    Flag,
    Gaps,
    Integer,
    Member,
    MetadataItems,
    Options,
    Parts,
    Path,
    Text,
    Word,
)
from rdc.protocol.listings import ListingColumns
from rdc.protocol.rows import ALL_GROUPS, RowColumns, Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "PROTOCOL_VERSION",
    "BlockAnswer",
    "BlockRequest",
    "Bye",
    "Data",
    "Describe",
    "Done",
    "FileBatch",
    "FileEnd",
    "FileFailed",
    "FileRequest",
    "Hello",
    "Item",
    "ListingEnd",
    "ListingPart",
    "Manifest",
    "Message",
    "NodeAnswer",
    "NodeRequest",
    "Notice",
    "Open",
    "Opened",
    "Plan",
    "Progress",
    "RangeRequest",
    "Refused",
    "Role",
    "RootAnswer",
    "RootRequest",
    "RowsPart",
    "RowsRequest",
    "Start",
    "TierAnswer",
    "TierRequest",
    "TreeAnswer",
    "TreeRequest",
    "decode",
    "encode",
    "message_kinds",
]

PROTOCOL_VERSION = 1
"""Sent in the preamble and in Hello. Any change that an older rdc would not understand raises it."""

PARAMETER_ID_BYTES = 32
SECRET_BYTES = 16
ROOT_BYTES = 32
REFERENCE_WIDTHS = (4, 32)
FINGERPRINT_WIDTHS = (4, 8)
KEYED_WIDTH = 8
"""A keyed hash has no more bytes; what is wider is the whole digest."""


Ordinal: TypeAlias = Annotated[int, Integer(highest=ORDINAL_LIMIT)]
Size: TypeAlias = Annotated[int, Integer()]
Count: TypeAlias = Annotated[int, Integer()]
Root: TypeAlias = Annotated[bytes, Blob(ROOT_BYTES, ROOT_BYTES)]
Files: TypeAlias = Annotated[tuple[int, ...], Gaps(FILES_PER_MESSAGE, ORDINAL_LIMIT)]
Nodes: TypeAlias = Annotated[tuple[int, ...], Gaps(NODES_PER_MESSAGE, ORDINAL_LIMIT)]
Line: TypeAlias = Annotated[str, Text(MESSAGE_BYTES)]
Code: TypeAlias = Annotated[ExitCode, Member(ExitCode)]
Failure: TypeAlias = Annotated[ExitCode, Member(ExitCode, without=(ExitCode.OK,))]
TierNodes: TypeAlias = Annotated[tuple[int, ...], Gaps(TIER_NODES, ORDINAL_LIMIT)]
GroupSet: TypeAlias = Annotated[int, Integer(1, ALL_GROUPS)]
Width: TypeAlias = Annotated[int, Integer(*REFERENCE_WIDTHS)]
Mtime: TypeAlias = Annotated[int | None, Integer(-SIZE_LIMIT - 1, SIZE_LIMIT, optional=True)]
"""Nanoseconds; None: the listed one. A file that was changed after its listing travels with its new mtime."""
Level: TypeAlias = Annotated[int, Integer(0, TREE_HEIGHT)]


class Role(IntEnum):
    """Which end of the copy a side is."""

    SOURCE = 0
    DESTINATION = 1

    @property
    def other(self) -> Role:
        return Role(1 - self)


@wire(0, keys=("v", "s", "p"))
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hello(WireMessage):
    """Both sides, first, in the preamble's raw block; unknown keys are ignored."""

    version: Annotated[int, Integer(0, 255)]
    """The protocol's, as in the preamble."""
    software: Annotated[str, Text(SOFTWARE_BYTES)]
    """Name and version of the program, to be shown only."""
    params: Annotated[bytes, Blob(PARAMETER_ID_BYTES, PARAMETER_ID_BYTES)]
    """Id of all chunking and signature parameters: roots and records compare only under the same."""


@wire(1)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Open(WireMessage):
    """Dialler, right after its Hello without waiting: what the session is about."""

    role: Annotated[Role, Member(Role)]
    """The one the answerer takes."""
    path: Annotated[bytes, Path()]
    """The answerer's root, as its user would write it; b'' is the directory it was started in."""
    secret: Annotated[bytes, Blob(SECRET_BYTES, SECRET_BYTES)]
    """Key of the short references in this session."""
    options: Annotated[SyncOptions, Options()]


@wire(2)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Opened(WireMessage):
    """Answerer, after its Hello: it takes the role."""

    root_kind: Annotated[Kind | None, Member(Kind, optional=True)]
    """None: nothing is at the path."""
    own_euid_is_root: Annotated[bool, Flag()]


@wire(3)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Refused(WireMessage):
    """Either side, any time: the session is over, for this reason."""

    code: Failure
    message: Line


@wire(4)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListingPart(WireMessage):
    """S: some or all entries of one directory, in order."""

    directory: Ordinal
    """Directories count from 0 in the order of their listings; 0 is the root."""
    path: Annotated[bytes, Path(inside=True)]
    """Of the directory, relative to the root."""
    first: Ordinal
    """Ordinal of the first entry here: entries count from 0 over all listings of the session."""
    last: Annotated[bool, Flag()]
    """The directory is complete."""
    listing: Annotated[Listing, ListingColumns()]

    def check(self) -> str | None:
        if not self.listing and not self.last:
            return "last: a part without entries that is not the last"
        if self.first + len(self.listing) > ORDINAL_LIMIT:
            return f"first: {len(self.listing)} entries from {self.first} pass {ORDINAL_LIMIT}"
        return None


@wire(5)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListingEnd(WireMessage):
    """S: every directory was listed; the totals of what was."""

    directories: Count
    entries: Count
    files: Count
    """Regular files."""
    bytes: Size
    """Sum of their sizes."""
    read_errors: Count
    """Directories and entries that could not be read and are missing from the listing."""


@wire(6)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RootRequest(WireMessage):
    """D: references of the root digests of these files."""

    files: Files
    width: Width = ROOT_BYTES
    """Bytes of a reference in the answer: as short as 4 under the session's key, or the root itself."""


@wire(7)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RootAnswer(WireMessage):
    """S: some or all files of the oldest RootRequest; those that failed come as FileFailed."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE)]
    roots: Annotated[bytes, Blob(REFERENCE_WIDTHS[0], ROOT_BYTES * FILES_PER_MESSAGE)]
    """As many bytes a file as were asked for, in the order of `files`."""

    @property
    def width(self) -> int:
        return len(self.roots) // len(self.files)

    def root(self, row: int) -> bytes:
        return self.roots[row * self.width : (row + 1) * self.width]

    def check(self) -> str | None:
        if len(self.sizes) != len(self.files):
            return f"sizes: {len(self.sizes)} for {len(self.files)} files"
        if len(self.roots) % len(self.files) or not REFERENCE_WIDTHS[0] <= self.width <= ROOT_BYTES:
            return f"roots: {len(self.roots)} bytes for {len(self.files)} files"
        return None


def _wrong_width(width: int) -> str | None:
    if KEYED_WIDTH < width < REFERENCE_WIDTHS[1]:
        return f"width: {width} is neither in {REFERENCE_WIDTHS[0]}..{KEYED_WIDTH} nor {REFERENCE_WIDTHS[1]}"
    return None


@wire(8)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeRequest(WireMessage):
    """D: the top of the signature trees of these files."""

    files: Files
    width: Width
    """Bytes of a reference in the answers."""

    def check(self) -> str | None:
        return _wrong_width(self.width)


@wire(9)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeAnswer(WireMessage):
    """S: one file of the oldest TreeRequest."""

    file: Ordinal
    size: Size
    root: Root
    height: Level
    mtime_ns: Mtime
    records: Annotated[bytes, Blob(0, RECORDS_BYTES)]
    """Opaque here: the signature format says what they hold."""


@wire(10)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NodeRequest(WireMessage):
    """D: the children of these nodes of a file's tree."""

    file: Ordinal
    level: Level
    nodes: Nodes
    width: Width
    """Bytes of a reference in the answer."""

    def check(self) -> str | None:
        return _wrong_width(self.width)


@wire(11)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NodeAnswer(WireMessage):
    """S: the next nodes of the oldest NodeRequest, in its order."""

    file: Ordinal
    level: Level
    nodes: Nodes
    records: Annotated[tuple[bytes, ...], Parts(NODES_PER_MESSAGE, NODE_BYTES)]
    """Opaque, one a node."""

    def check(self) -> str | None:
        if len(self.records) != len(self.nodes):
            return f"records: {len(self.records)} for {len(self.nodes)} nodes"
        return None


class _Ranged:
    """Increasing, disjoint byte ranges of a file, by the gaps before them and their lengths."""

    __slots__ = ()

    file: int
    gaps: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """(offset, length) pairs."""
        found = []
        end = 0
        for gap, length in zip(self.gaps, self.lengths, strict=True):
            found.append((end + gap, length))
            end += gap + length
        return tuple(found)

    def _check_ranges(self) -> str | None:
        if not self.gaps or len(self.gaps) != len(self.lengths):
            return f"lengths: {len(self.lengths)} for {len(self.gaps)} offsets"
        if sum(self.gaps) + sum(self.lengths) > SIZE_LIMIT:
            return f"lengths: the last range ends past {SIZE_LIMIT}"
        return None


def _gaps(ranges: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    gaps = []
    end = 0
    for offset, length in ranges:
        gaps.append(offset - end)
        end = offset + length
    return tuple(gaps)


@wire(12)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeRequest(_Ranged, WireMessage):
    """D: these bytes of a file, in this order."""

    file: Ordinal
    gaps: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE)]
    """Bytes between the end of the range before (or the file's start) and each range: increasing and disjoint
    by construction."""
    lengths: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE, lowest=1)]

    @classmethod
    def of(cls, file: int, ranges: Sequence[tuple[int, int]]) -> RangeRequest:
        """From increasing, disjoint (offset, length) pairs."""
        return cls(file, _gaps(ranges), tuple(length for _, length in ranges))

    def check(self) -> str | None:
        return self._check_ranges()


@wire(13)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileRequest(WireMessage):
    """D: these files whole."""

    files: Files


@wire(14)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Data(WireMessage):
    """S: the next bytes of a file or of its ranges."""

    file: Ordinal
    payload: Annotated[bytes, Blob(1, DATA_BYTES)]
    chunks: Annotated[tuple[int, ...], Column(DATA_BYTES // CHUNK_MIN_LIMIT + 1, lowest=1)] = ()
    """Whole files: the lengths of the chunks that make up the payload. Ranges: empty."""

    def check(self) -> str | None:
        if self.chunks and sum(self.chunks) != len(self.payload):
            return f"chunks: lengths add up to {sum(self.chunks)}, the payload has {len(self.payload)} bytes"
        return None


@wire(15)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileEnd(WireMessage):
    """S: all Data of the request for this file was sent."""

    file: Ordinal
    size: Size
    """Bytes of Data since the request: of a whole file, its size."""
    root: Annotated[bytes, Blob(0, ROOT_BYTES)] = b""
    """Whole files: the root digest of what was sent. Ranges: empty."""
    mtime_ns: Mtime = None

    def check(self) -> str | None:
        if len(self.root) not in {0, ROOT_BYTES}:
            return f"root: {len(self.root)} bytes"
        return None


@wire(16)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileFailed(WireMessage):
    """S, in place of an answer about this file."""

    file: Ordinal
    code: Failure
    message: Line


@wire(17)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Notice(WireMessage):
    """Either side: a problem with one path that the other side's user must see; the session goes on."""

    code: Code
    """OK: does not change the exit code."""
    path: Annotated[bytes, Path()]
    message: Line


@wire(18)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Item(WireMessage):
    """D: an entry was changed (or would be)."""

    change: Annotated[str, Word(length=11)]
    path: Annotated[bytes, Path()]
    target: Annotated[bytes | None, Path(optional=True)] = None


@wire(19)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Progress(WireMessage):
    """D: how far it is."""

    phase: Annotated[str, Word(choices=("compare", "transfer", "delete"))]
    done: Count
    total: Annotated[int | None, Integer(optional=True)]


@wire(20)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(WireMessage):
    """D: what it will do."""

    files: Count
    bytes: Size
    deletes: Count


@wire(21)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Done(WireMessage):
    """D: nothing more is wanted; its result."""

    changed: Count
    deleted: Count
    literal_bytes: Size
    reused_bytes: Size
    errors: Count
    code: Code


@wire(22)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bye(WireMessage):
    """S: the last message, after Done."""

    read_errors: Count
    code: Code


@wire(23)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Start(WireMessage):
    """S, before any listing: what is going to be listed."""

    only: Annotated[bytes, Path(inside=True)]
    """Name of the one entry that the root's listing holds; b'': the root's contents are listed."""
    entry: Annotated[Kind, Member(Kind)]
    """Kind of that entry, or of the root."""
    metadata: Annotated[Metadata, MetadataItems()]

    def check(self) -> str | None:
        if b"/" in self.only:
            return f"only: {len(self.only)} bytes with a '/'"
        if not self.only and self.entry is not Kind.DIRECTORY:
            return "entry: the root is no directory"
        return None


@wire(24)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Describe(WireMessage):
    """D: how S is to describe its tree; first of all, and once more where the manifest does not pay."""

    whole: Annotated[bool, Flag()]
    """The listing of every directory, as it is walked; otherwise only its Manifest, to be looked into."""
    owner: Annotated[bool, Flag()]
    """D keeps owners: they count in the manifest's digests."""


@wire(25)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Manifest(WireMessage):
    """S, after Start, where no listing was asked for: the tree's digest and totals."""

    root: Root
    """Digest of all that is kept of all entries."""
    entries: Ordinal
    files: Count
    """Regular files."""
    bytes: Size
    """Sum of their sizes."""
    read_errors: Count
    """Directories that could not be read and are missing."""


@wire(26)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TierRequest(WireMessage):
    """D: the children, in tier `level`, of these nodes of the tier above; without nodes the whole tier, or
    the topmost there is."""

    level: Level
    nodes: Annotated[tuple[int, ...], Gaps(TIER_NODES, ORDINAL_LIMIT, may_be_empty=True)]
    groups: GroupSet
    """Column groups whose references are wanted."""


@wire(27)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TierAnswer(WireMessage):
    """S: the answer to the oldest TierRequest, one entry a node asked for (one for a whole tier)."""

    level: Level
    firsts: Annotated[tuple[int, ...], Column(TIER_NODES)]
    """Number of each one's first child."""
    counts: Annotated[tuple[int, ...], Column(TIER_NODES, lowest=1)]
    references: Annotated[bytes, Blob(1, FRAME_BYTES)]
    """Opaque: for each group asked for, the references of all children in order."""

    def check(self) -> str | None:
        if len(self.firsts) != len(self.counts):
            return f"counts: {len(self.counts)} for {len(self.firsts)} nodes"
        return None


@wire(28)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowsRequest(WireMessage):
    """D: the entries below these nodes of tier `level`."""

    level: Level
    nodes: TierNodes
    groups: GroupSet


@wire(29)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowsPart(WireMessage):
    """S: the next entries below the next nodes of the oldest RowsRequest."""

    counts: Annotated[tuple[int, ...], Column(TIER_NODES, lowest=1)]
    """Entries of each of these nodes here; the first may go on where the last part ended."""
    last: Annotated[bool, Flag()]
    """The last of them is complete."""
    rows: Annotated[Rows, RowColumns()]

    def check(self) -> str | None:
        return None if self.rows.splits(self.counts) else "counts: they do not divide the rows"


@wire(30)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileBatch(WireMessage):
    """S: small files of the oldest FileRequest, each of one chunk, unchanged since they were listed."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE, highest=DATA_BYTES)]
    payload: Annotated[bytes, Blob(0, DATA_BYTES)]
    """Their contents, one after the other."""
    digest: Root
    """BLAKE3 of their roots, one after the other."""

    def check(self) -> str | None:
        if len(self.sizes) != len(self.files):
            return f"sizes: {len(self.sizes)} for {len(self.files)} files"
        if sum(self.sizes) != len(self.payload):
            return f"payload: {len(self.payload)} bytes for files of {sum(self.sizes)}"
        return None


@wire(31)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BlockRequest(_Ranged, WireMessage):
    """D: fingerprints of the blocks that these ranges of a file are made of."""

    file: Ordinal
    gaps: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE)]
    lengths: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE, lowest=1)]
    size: Annotated[int, Integer(BLOCK_SIZE_MIN, BLOCK_SIZE_MAX)]
    """Bytes of a block, counted from each range's start; the rest of a range is a shorter one."""
    width: Annotated[int, Integer(*FINGERPRINT_WIDTHS)]
    """Bytes of a fingerprint."""

    @classmethod
    def of(cls, file: int, ranges: Sequence[tuple[int, int]], size: int, width: int) -> BlockRequest:
        """From increasing, disjoint (offset, length) pairs."""
        return cls(file, _gaps(ranges), tuple(length for _, length in ranges), size, width)

    @property
    def blocks(self) -> int:
        """How many fingerprints answer it."""
        return sum(-(-length // self.size) for length in self.lengths)

    def check(self) -> str | None:
        problem = self._check_ranges()
        if problem is None and self.blocks > BLOCKS_PER_MESSAGE:
            return f"lengths: {self.blocks} blocks, the limit is {BLOCKS_PER_MESSAGE}"
        return problem


@wire(32)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BlockAnswer(WireMessage):
    """S: the whole answer to the oldest BlockRequest."""

    file: Ordinal
    fingerprints: Annotated[bytes, Blob(FINGERPRINT_WIDTHS[0], FINGERPRINT_WIDTHS[1] * BLOCKS_PER_MESSAGE)]
    """Keyed, `width` bytes a block, in order."""


Message: TypeAlias = (
    Hello
    | FileBatch
    | BlockRequest
    | BlockAnswer
    | Describe
    | Manifest
    | TierRequest
    | TierAnswer
    | RowsRequest
    | RowsPart
    | Open
    | Opened
    | Refused
    | ListingPart
    | ListingEnd
    | RootRequest
    | RootAnswer
    | TreeRequest
    | TreeAnswer
    | NodeRequest
    | NodeAnswer
    | RangeRequest
    | FileRequest
    | Data
    | FileEnd
    | FileFailed
    | Notice
    | Item
    | Progress
    | Plan
    | Done
    | Bye
    | Start
)


def message_kinds() -> dict[int, type[Message]]:
    """Type number to class, for every message."""
    return cast("dict[int, type[Message]]", registered())


def encode(message: Message, packer: msgpack.Packer | None = None) -> bytes:
    """The payload. ValueError when the message breaks the protocol's bounds: the caller's mistake."""
    return encode_payload(message, packer)


def decode(kind: int, payload: bytes) -> Message:
    """The message, every field checked. Raises ProtocolError that names message and field."""
    return cast("Message", decode_payload(kind, payload))
