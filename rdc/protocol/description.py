"""The source's tree in messages: its listing, or its manifest and what is asked about that."""

from __future__ import annotations

from operator import le

from rdc.limits import (
    ATTRIBUTE_MESSAGE_BYTES,
    ATTRIBUTE_SET_BYTES,
    FILES_PER_MESSAGE,
    FRAME_BYTES,
    FURTHER_BYTES,
    ITEMS_BYTES,
    ITEMS_PER_MESSAGE,
    ORDINAL_LIMIT,
    TIER_NODES,
    TOP_NODES,
)
from rdc.model.attributes import UNREADABLE, unpack_attributes
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.kept import EVERYTHING, Kept
from rdc.protocol.codec import WireMessage, wire
from rdc.protocol.field_types import (
    Count,
    Further,
    GroupSet,
    Level,
    Ordinal,
    Root,
    Size,
    TierNodes,
)
from rdc.protocol.fields import (
    Blob,
    Column,
    Flag,
    Gaps,
    KeptCode,
    Member,
    MetadataItems,
    Parts,
    Path,
    Strings,
)
from rdc.protocol.listings import ListingColumns
from rdc.protocol.rows import RowColumns, Rows
from rdc.records import dataclass
from rdc.typed import Annotated

__all__ = [
    "EntryAttributes",
    "HardLinks",
    "ListingEnd",
    "ListingPart",
    "Manifest",
    "MountPoints",
    "RowsPart",
    "RowsRequest",
    "Start",
    "TierAnswer",
    "TierRequest",
    "TopTier",
]

TOP_REFERENCE_BYTES = 4


@wire(23)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Start(WireMessage):
    """S, before any listing: what is going to be listed."""

    only: Annotated[bytes, Path(inside=True)]
    """Name of the one entry that the root's listing holds; b'': the root's contents are listed."""
    entry: Annotated[Kind, Member(Kind)]
    """Kind of that entry, or of the root."""
    metadata: Annotated[Metadata, MetadataItems()]
    kept: Annotated[Kept, KeptCode()] = EVERYTHING
    """What the source's file system keeps."""

    def check(self) -> str | None:
        if b"/" in self.only:
            return f"only: {len(self.only)} bytes with a '/'"
        if not self.only and self.entry is not Kind.DIRECTORY:
            return "entry: the root is no directory"
        return None


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
    kept: Annotated[Kept, KeptCode()]
    """What counts in the digests: what both sides keep, or, where it was not asked for, a guess at that."""
    further: Further = b""
    """The first bytes of a digest of hard links and extended attributes by path, where any are kept; `root`
    covers all of it."""

    def check(self) -> str | None:
        return None if len(self.further) in (0, FURTHER_BYTES) else f"further: {len(self.further)} bytes"


@wire(57)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MountPoints(WireMessage):
    """S, with the option one_file_system: directories that it has, on other file systems, and did not go
    into. What is below them is not known."""

    paths: Annotated[tuple[bytes, ...], Strings(ITEMS_PER_MESSAGE, ITEMS_BYTES)]
    """Relative to the root."""


@wire(58)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HardLinks(WireMessage):
    """S, with the option hard_links, before the entries: which of those that come next are names of files
    that have another name before."""

    files: Annotated[tuple[int, ...], Gaps(FILES_PER_MESSAGE, ORDINAL_LIMIT)]
    firsts: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE)]
    """Of each, the first entry of the same file."""

    def check(self) -> str | None:
        if len(self.files) != len(self.firsts):
            return f"firsts: {len(self.firsts)} for {len(self.files)} files"
        if any(map(le, self.files, self.firsts)):
            return "firsts: one is not before its file"
        return None


@wire(59)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EntryAttributes(WireMessage):
    """S, with the options acls or xattrs, before the entries: the extended attributes of some that come next.
    Those that are not named have none."""

    entries: Annotated[tuple[int, ...], Gaps(FILES_PER_MESSAGE, ORDINAL_LIMIT)]
    """Ordinals, each and 1; 0 is the root."""
    numbers: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE)]
    """Of each, which of `sets` it has."""
    sets: Annotated[tuple[bytes, ...], Parts(FILES_PER_MESSAGE, ATTRIBUTE_SET_BYTES)]
    """Packed (rdc.model.attributes); UNREADABLE where they are to be left alone."""

    def check(self) -> str | None:
        if len(self.numbers) != len(self.entries):
            return f"numbers: {len(self.numbers)} for {len(self.entries)} entries"
        if max(self.numbers, default=0) >= len(self.sets):
            return f"numbers: {max(self.numbers)} of {len(self.sets)} sets"
        if sum(map(len, self.sets)) > ATTRIBUTE_MESSAGE_BYTES or not all(self.sets):
            return "sets: too much, or an empty one"
        for packed in self.sets:
            if packed != UNREADABLE:
                try:
                    unpack_attributes(packed)
                except ValueError as error:
                    return f"sets: {error}"
        return None


@wire(33)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopTier(WireMessage):
    """S, after a Manifest of more than SMALL_MANIFEST entries: its finest tier of few nodes, unasked."""

    level: Level
    references: Annotated[bytes, Blob(TOP_REFERENCE_BYTES, TOP_REFERENCE_BYTES * TOP_NODES)]
    """Opaque: one a node, over all its columns."""

    def check(self) -> str | None:
        if len(self.references) % TOP_REFERENCE_BYTES:
            return f"references: {len(self.references)} bytes"
        return None


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
