"""Messages that describe the source's tree: its listing, or its manifest and the answers about it."""

from __future__ import annotations

from operator import le

from rdc.lean.typed import Annotated
from rdc.limits.wire import (
    ATTRIBUTE_MESSAGE_BYTES,
    ATTRIBUTE_SET_BYTES,
    FILES_PER_MESSAGE,
    FRAME_BYTES,
    FURTHER_BYTES,
    ITEMS_BYTES,
    ITEMS_PER_MESSAGE,
    ORDINAL_LIMIT,
    OWNER_NAME_BYTES,
    OWNERS_PER_MESSAGE,
    TIER_NODES,
    TOP_NODES,
)
from rdc.model.attributes import UNREADABLE, unpack_attributes
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.preserved import EVERYTHING, Preserved
from rdc.model.sync_report import Purpose
from rdc.protocol.messages.field_types import (
    Count,
    Further,
    GroupSet,
    Level,
    Ordinal,
    Root,
    TierNodes,
    TotalSize,
)
from rdc.protocol.messages.listings import ListingColumns, RowColumns, Rows
from rdc.protocol.wire.codec import ASKING, DESTINATION, LISTING, SERVING, SOURCE, WATCHING, Message, message
from rdc.protocol.wire.fields import Blob, Column, Flag, Gaps, Member, Parts, Path, Strings
from rdc.protocol.wire.record_fields import MetadataItems, PreservedCode

TOP_REFERENCE_BYTES = 4
ID_LIMIT = 0xFFFF_FFFF
OWNERS_BYTES = OWNERS_PER_MESSAGE * (OWNER_NAME_BYTES + 1)


@message(23, by=SOURCE, when=LISTING)
class Start(Message):
    """S, before any description: the subject of the description."""

    only: Annotated[bytes, Path(inside=True)]
    """Name of the only entry in the root's listing; b'' if the root's contents are listed."""
    entry: Annotated[Kind, Member(Kind)]
    """Kind of that entry, or of the root."""
    metadata: Annotated[Metadata, MetadataItems()]
    kept: Annotated[Preserved, PreservedCode()] = EVERYTHING
    """The metadata that the source's file system preserves."""

    def check(self) -> str | None:
        if b"/" in self.only:
            return f"only: {len(self.only)} bytes with a '/'"
        if not self.only and self.entry is not Kind.DIRECTORY:
            return "entry: the root is no directory"
        return None


@message(4, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class ListingPart(Message):
    """S: some or all entries of one directory, in order."""

    directory: Ordinal
    """Number of the directory: directories count from 0 in the order of their listings, and 0 is the root."""
    path: Annotated[bytes, Path(inside=True)]
    """Path of the directory relative to the root."""
    first: Ordinal
    """Ordinal of the first entry of this part: entries count from 0 over all listings of the session."""
    last: Annotated[bool, Flag()]
    """Whether the directory is complete."""
    listing: Annotated[Listing, ListingColumns()]

    def check(self) -> str | None:
        if not self.listing and not self.last:
            return "last: a part without entries that is not the last"
        if self.first + len(self.listing) > ORDINAL_LIMIT:
            return f"first: {len(self.listing)} entries from {self.first} pass {ORDINAL_LIMIT}"
        return None


@message(5, by=SOURCE, when=LISTING, then=SERVING, purpose=Purpose.MANIFEST)
class ListingEnd(Message):
    """S: every directory is listed; the totals of the listing."""

    directories: Count
    entries: Count
    files: Count
    """Number of regular files."""
    bytes: TotalSize
    """Sum of their sizes."""
    read_errors: Count
    """Directories and entries that are unreadable and missing from the listing."""


@message(25, by=SOURCE, when=LISTING, then=SERVING, purpose=Purpose.MANIFEST)
class Manifest(Message):
    """S, after Start and in place of a listing: the digest and totals of the tree."""

    root: Root
    """Digest of all preserved metadata of all entries."""
    entries: Ordinal
    files: Count
    """Number of regular files."""
    bytes: TotalSize
    """Sum of their sizes."""
    read_errors: Count
    """Unreadable directories, which are missing."""
    kept: Annotated[Preserved, PreservedCode()]
    """The metadata in the digests: what both sides preserve. In a manifest sent unasked it is a guess at
    that."""
    further: Further = b""
    """First bytes of a digest of hard links and extended attributes by path, if any are preserved. `root`
    covers the whole digest."""

    def check(self) -> str | None:
        return None if len(self.further) in (0, FURTHER_BYTES) else f"further: {len(self.further)} bytes"


@message(57, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class MountPoints(Message):
    """S, with the option one_file_system: directories on other file systems that it skipped. Their content is
    unknown."""

    paths: Annotated[tuple[bytes, ...], Strings(ITEMS_PER_MESSAGE, ITEMS_BYTES)]
    """Paths relative to the root."""


@message(58, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class HardLinks(Message):
    """S, with the option hard_links, before the entries: the next entries that are further names of earlier
    files."""

    files: Annotated[tuple[int, ...], Gaps(FILES_PER_MESSAGE, ORDINAL_LIMIT)]
    firsts: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE)]
    """For each one, the first entry of the same file."""

    def check(self) -> str | None:
        if len(self.files) != len(self.firsts):
            return f"firsts: {len(self.firsts)} for {len(self.files)} files"
        if any(map(le, self.files, self.firsts)):
            return "firsts: one is not before its file"
        return None


@message(59, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class EntryAttributes(Message):
    """S, with the options acls or xattrs, before the entries: extended attributes of entries that come next.
    Other entries have none."""

    entries: Annotated[tuple[int, ...], Gaps(FILES_PER_MESSAGE, ORDINAL_LIMIT)]
    """Ordinal + 1 of each entry; 0 is the root."""
    numbers: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE)]
    """For each entry, the number of its set in `sets`."""
    sets: Annotated[tuple[bytes, ...], Parts(FILES_PER_MESSAGE, ATTRIBUTE_SET_BYTES)]
    """Packed attribute sets (rdc.model.attributes); UNREADABLE leaves the entry's attributes unchanged."""

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


@message(61, by=SOURCE, when=LISTING)
class Owners(Message):
    """S, with options that map owners, before the entries: the names of their users and groups. Once right
    behind Start, about the root or the only entry."""

    users: Annotated[tuple[int, ...], Gaps(OWNERS_PER_MESSAGE, ID_LIMIT, may_be_empty=True)]
    user_names: Annotated[tuple[bytes, ...], Strings(OWNERS_PER_MESSAGE, OWNERS_BYTES, OWNER_NAME_BYTES)]
    """The name of each user; b"" for none."""
    groups: Annotated[tuple[int, ...], Gaps(OWNERS_PER_MESSAGE, ID_LIMIT, may_be_empty=True)]
    group_names: Annotated[tuple[bytes, ...], Strings(OWNERS_PER_MESSAGE, OWNERS_BYTES, OWNER_NAME_BYTES)]

    def check(self) -> str | None:
        if len(self.users) != len(self.user_names):
            return f"user_names: {len(self.user_names)} for {len(self.users)} users"
        if len(self.groups) != len(self.group_names):
            return f"group_names: {len(self.group_names)} for {len(self.groups)} groups"
        return None


@message(33, by=SOURCE, when=(LISTING, SERVING, WATCHING), purpose=Purpose.MANIFEST)
class TopTier(Message):
    """S, after a Manifest of more than SMALL_MANIFEST entries: its finest tier of few nodes, sent unasked."""

    level: Level
    references: Annotated[bytes, Blob(TOP_REFERENCE_BYTES, TOP_REFERENCE_BYTES * TOP_NODES)]
    """Opaque references, one per node, over all its columns."""

    def check(self) -> str | None:
        if len(self.references) % TOP_REFERENCE_BYTES:
            return f"references: {len(self.references)} bytes"
        return None


@message(26, by=DESTINATION, when=ASKING, asks="nodes", purpose=Purpose.MANIFEST)
class TierRequest(Message):
    """D: asks for the children, in tier `level`, of these nodes of the tier above. Without nodes: the whole
    tier, or the top tier."""

    level: Level
    nodes: Annotated[tuple[int, ...], Gaps(TIER_NODES, ORDINAL_LIMIT, may_be_empty=True)]
    groups: GroupSet
    """Column groups whose references are requested."""


@message(27, by=SOURCE, when=SERVING, answers=TierRequest, purpose=Purpose.MANIFEST)
class TierAnswer(Message):
    """S: the answer to the oldest TierRequest, one entry per requested node (one for a whole tier)."""

    level: Level
    firsts: Annotated[tuple[int, ...], Column(TIER_NODES)]
    """Number of each node's first child."""
    counts: Annotated[tuple[int, ...], Column(TIER_NODES, lowest=1)]
    references: Annotated[bytes, Blob(1, FRAME_BYTES)]
    """Opaque references of all children in order, for each requested group."""

    def check(self) -> str | None:
        if len(self.firsts) != len(self.counts):
            return f"counts: {len(self.counts)} for {len(self.firsts)} nodes"
        return None


@message(28, by=DESTINATION, when=ASKING, asks="nodes", purpose=Purpose.MANIFEST)
class RowsRequest(Message):
    """D: asks for the entries below these nodes of tier `level`."""

    level: Level
    nodes: TierNodes
    groups: GroupSet


@message(29, by=SOURCE, when=SERVING, answers=RowsRequest, purpose=Purpose.MANIFEST)
class RowsPart(Message):
    """S: the next entries below the next nodes of the oldest RowsRequest."""

    counts: Annotated[tuple[int, ...], Column(TIER_NODES, lowest=1)]
    """Entries per node in this part. The first node may continue from the last part."""
    last: Annotated[bool, Flag()]
    """Whether the last node is complete."""
    rows: Annotated[Rows, RowColumns()]

    def check(self) -> str | None:
        return None if self.rows.splits(self.counts) else "counts: they do not divide the rows"
