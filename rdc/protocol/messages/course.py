"""Messages of a session's course: its opening, the description of the source's tree, its turns, its end."""

from __future__ import annotations

from operator import le

from rdc import limits
from rdc.lean.enums import IntEnum
from rdc.lean.records import Record, replace
from rdc.lean.typed import Annotated
from rdc.model.entries import Kind, Listing, Metadata, strings
from rdc.model.preserved import EVERYTHING, UNREADABLE, Preserved, unpack_attributes
from rdc.model.runs import Purpose
from rdc.model.selection import DirectoryRules, FilterRule, check_name
from rdc.model.sync import SyncOptions
from rdc.protocol.messages.field_types import (
    Code,
    Count,
    Failure,
    Files,
    Further,
    GroupSet,
    Level,
    Line,
    ListingColumns,
    Ordinal,
    Root,
    RowColumns,
    Rows,
    Size,
    TierNodes,
    TotalSize,
)
from rdc.protocol.wire.codec import (
    ANSWERING,
    ASKING,
    CLOSED,
    DESTINATION,
    DONE,
    EITHER,
    GREETING,
    LISTING,
    OPENING,
    SERVING,
    SOURCE,
    UNTIL_CLOSED,
    WATCHING,
    WORKING,
    Message,
    Role,
    message,
)
from rdc.protocol.wire.fields import (
    Blob,
    Codes,
    Column,
    Flag,
    Gaps,
    Integer,
    Member,
    Parts,
    Path,
    Strings,
    Text,
    Total,
    Word,
    increasing,
)
from rdc.protocol.wire.options import (
    DISPENSABLE,
    RULE_PARTS,
    SELECTION,
    AddedOptions,
    MetadataItems,
    NamedValues,
    Options,
    PreservedCode,
    RulePart,
    added_values,
    rule_bytes,
    with_added,
)

# Messages that open a session: greetings, its subject, and the kind of description.

PARAMETER_ID_BYTES = 32
SECRET_BYTES = 16


@message(
    0, by=EITHER, when=GREETING, then=OPENING, keys=("v", "s", "p", "o", "f"), longest=limits.HELLO_BYTES
)
class Hello(Message, Record):
    """Both sides, first, in the preamble's raw block. Unknown keys are ignored."""

    version: Annotated[int, Integer(0, 65_535)]
    """The newest version of the protocol that the sender speaks."""
    software: Annotated[str, Text(limits.SOFTWARE_BYTES)]
    """Name and version of the program, only for display."""
    params: Annotated[bytes, Blob(PARAMETER_ID_BYTES, PARAMETER_ID_BYTES)]
    """Id of all parameters of chunking and signatures. Roots and records are comparable only under the same
    parameters."""
    oldest: Annotated[int | None, Integer(0, 65_535, optional=True)] = None
    """The oldest version that the sender speaks; None: only `version`."""
    features: Annotated[str | None, Text(limits.FEATURES_BYTES, optional=True)] = None
    """Names of features that the sender has, separated by single spaces; None for none."""

    def check(self) -> str | None:
        if self.oldest is not None and self.oldest > self.version:
            return f"oldest: {self.oldest} is newer than {self.version}"
        return None


@message(1, by=EITHER, when=OPENING, then=WORKING, grows=True)
class Open(Message, Record):
    """Dialler, right after its Hello without a wait: the session's subject. Further items are ignored."""

    role: Annotated[Role, Member(Role)]
    """The role that the answerer takes."""
    path: Annotated[bytes, Path()]
    """The answerer's root, as its user would write it; b'' is its working directory."""
    secret: Annotated[bytes, Blob(SECRET_BYTES, SECRET_BYTES)]
    """Key of the short references in this session."""
    options: Annotated[SyncOptions, Options()]
    needs: Annotated[str | None, Text(limits.FEATURES_BYTES, optional=True)] = None
    """Names of features and added options without which the dialler does not want the session, separated by
    single spaces."""
    added: Annotated[NamedValues | None, AddedOptions()] = None
    """The added options that differ from their defaults."""

    @staticmethod
    def asking(
        role: Role, path: bytes, secret: bytes, options: SyncOptions, *, selects: bool = False
    ) -> Open:
        """Return an Open that asks for all of `options`. `selects`: Selected messages follow. Rules that have
        no room in it follow, too (`rules_follow`)."""
        names = []
        if options.rules and sum(map(rule_bytes, options.rules)) > limits.RULES_BYTES:
            options = replace(options, rules=())
            names.append(RULE_PARTS)
        added = added_values(options)
        if added is not None:
            names += [name for name, _ in added.items if name not in DISPENSABLE]
        if selects:
            names.append(SELECTION)
        return Open(role, path, secret, options, " ".join(names) or None, added)

    @property
    def selects(self) -> bool:
        """Return whether Selected messages follow."""
        return SELECTION in (self.needs or "").split(" ")

    @property
    def rules_follow(self) -> bool:
        """Return whether Rules messages follow, before anything else."""
        return RULE_PARTS in (self.needs or "").split(" ")

    @property
    def asked(self) -> SyncOptions:
        """All options that the dialler asks for."""
        return with_added(self.options, self.added)


@message(66, by=EITHER, when=(LISTING, ASKING))
class Rules(Message, Record):
    """Dialler, right after an Open that needs `rule_parts`: filter rules, in their order."""

    rules: Annotated[tuple[FilterRule | DirectoryRules, ...], RulePart()]
    last: Annotated[bool, Flag()]
    """True if no other Rules follow."""


@message(60, by=EITHER, when=(OPENING, LISTING, ASKING))
class Selected(Message, Record):
    """Dialler, right after an Open that needs `selection`: paths of the source that take part."""

    origin: Annotated[bytes, Path()]
    """The directory that they are below, as the answerer's user would write it; b'' if the dialler is S."""
    names: Annotated[tuple[bytes, ...], Strings(limits.SELECTED_PER_MESSAGE, limits.SELECTED_MESSAGE_BYTES)]
    """The values of rdc.model.selection."""
    last: Annotated[bool, Flag()]
    """True if no other Selected follows."""

    def check(self) -> str | None:
        for name in self.names:
            try:
                check_name(name)
            except ValueError as error:
                return f"names: {error}"
        return None


@message(2, by=EITHER, when=OPENING, then=WORKING)
class Opened(Message, Record):
    """Answerer, after its Hello: accepts the role."""


@message(3, by=EITHER, when=UNTIL_CLOSED, then=CLOSED)
class Refused(Message, Record):
    """Either side, at any time: ends the session, with a reason."""

    code: Failure
    message: Line


@message(24, by=DESTINATION, when=ASKING, moves=(SERVING, LISTING))
class Describe(Message, Record):
    """D: the kind of description that S is to send. It is D's first request; it may come again for a listing
    if a manifest does not pay."""

    whole: Annotated[bool, Flag()]
    """True if S lists every directory as it walks. Otherwise S sends a Manifest, about which D asks."""
    kept: Annotated[Preserved, PreservedCode()]
    """The metadata that D preserves. The manifest's digests cover it, without what S's Start excludes."""


# Messages that describe the source's tree: its listing, or its manifest and the answers about it.

TOP_REFERENCE_BYTES = 4
ID_LIMIT = 0xFFFF_FFFF
OWNERS_BYTES = limits.OWNERS_PER_MESSAGE * (limits.OWNER_NAME_BYTES + 1)


STORE_HEAD_BYTES = 68


@message(23, by=SOURCE, when=LISTING, grows=True)
class Start(Message, Record):
    """S, before any description: the subject of the description."""

    only: Annotated[bytes, Path(inside=True)]
    """Name of the only entry in the root's listing; b'' if the root's contents are listed."""
    entry: Annotated[Kind, Member(Kind)]
    """Kind of that entry, or of the root."""
    metadata: Annotated[Metadata, MetadataItems()]
    kept: Annotated[Preserved, PreservedCode()] = EVERYTHING
    """The metadata that the source's file system preserves."""
    store: Annotated[bytes | None, Blob(STORE_HEAD_BYTES, STORE_HEAD_BYTES, optional=True)] = None
    """The head of the store that the root, or that entry, is; None: it is none."""

    def check(self) -> str | None:
        if b"/" in self.only:
            return f"only: {len(self.only)} bytes with a '/'"
        if not self.only and self.entry is not Kind.DIRECTORY:
            return "entry: the root is no directory"
        if self.store is not None and self.entry is not Kind.DIRECTORY:
            return "store: the entry is no directory"
        return None


@message(4, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class ListingPart(Message, Record):
    """S: some or all entries of one directory, in order."""

    directory: Ordinal
    """Number of the directory: directories count from 0 in the order of their listings, and 0 is the root."""
    path: Annotated[bytes, Path(inside=True)]
    """Path of the directory relative to the root."""
    first: Ordinal
    """Ordinal of the first entry of this part: entries count from 0 over all listings of the session."""
    last: Annotated[bool, Flag()]
    """True if the directory is complete."""
    listing: Annotated[Listing, ListingColumns()]

    def check(self) -> str | None:
        if not self.listing and not self.last:
            return "last: a part without entries that is not the last"
        if self.first + len(self.listing) > limits.ORDINAL_LIMIT:
            return f"first: {len(self.listing)} entries from {self.first} pass {limits.ORDINAL_LIMIT}"
        return None


@message(5, by=SOURCE, when=LISTING, then=SERVING, purpose=Purpose.MANIFEST)
class ListingEnd(Message, Record):
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
class Manifest(Message, Record):
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
        return (
            None if len(self.further) in (0, limits.FURTHER_BYTES) else f"further: {len(self.further)} bytes"
        )


@message(57, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class MountPoints(Message, Record):
    """S, with the option one_file_system: directories on other file systems that it skipped. Their content is
    unknown."""

    paths: Annotated[tuple[bytes, ...], Strings(limits.ITEMS_PER_MESSAGE, limits.ITEMS_BYTES)]
    """Paths relative to the root."""


@message(58, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class HardLinks(Message, Record):
    """S, with the option hard_links, before the entries: the next entries that are further names of earlier
    files."""

    files: Annotated[tuple[int, ...], Gaps(limits.FILES_PER_MESSAGE, limits.ORDINAL_LIMIT)]
    firsts: Annotated[tuple[int, ...], Column(limits.FILES_PER_MESSAGE)]
    """For each one, the first entry of the same file."""

    def check(self) -> str | None:
        if len(self.files) != len(self.firsts):
            return f"firsts: {len(self.firsts)} for {len(self.files)} files"
        if any(map(le, self.files, self.firsts)):
            return "firsts: one is not before its file"
        return None


@message(59, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class EntryAttributes(Message, Record):
    """S, with the options acls or xattrs, before the entries: extended attributes of entries that come next.
    Other entries have none."""

    entries: Annotated[tuple[int, ...], Gaps(limits.FILES_PER_MESSAGE, limits.ORDINAL_LIMIT)]
    """Ordinal + 1 of each entry; 0 is the root."""
    numbers: Annotated[tuple[int, ...], Column(limits.FILES_PER_MESSAGE)]
    """For each entry, the number of its set in `sets`."""
    sets: Annotated[tuple[bytes, ...], Parts(limits.FILES_PER_MESSAGE, limits.ATTRIBUTE_SET_BYTES)]
    """Packed attribute sets (rdc.model.preserved); UNREADABLE leaves the entry's attributes unchanged."""

    def check(self) -> str | None:
        if len(self.numbers) != len(self.entries):
            return f"numbers: {len(self.numbers)} for {len(self.entries)} entries"
        if max(self.numbers, default=0) >= len(self.sets):
            return f"numbers: {max(self.numbers)} of {len(self.sets)} sets"
        if sum(map(len, self.sets)) > limits.ATTRIBUTE_MESSAGE_BYTES or not all(self.sets):
            return "sets: too much, or an empty one"
        for packed in self.sets:
            if packed != UNREADABLE:
                try:
                    unpack_attributes(packed)
                except ValueError as error:
                    return f"sets: {error}"
        return None


@message(61, by=SOURCE, when=LISTING)
class Owners(Message, Record):
    """S, with options that map owners, before the entries: the names of their users and groups. Once right
    behind Start, about the root or the only entry."""

    users: Annotated[tuple[int, ...], Gaps(limits.OWNERS_PER_MESSAGE, ID_LIMIT, may_be_empty=True)]
    user_names: Annotated[
        tuple[bytes, ...], Strings(limits.OWNERS_PER_MESSAGE, OWNERS_BYTES, limits.OWNER_NAME_BYTES)
    ]
    """The name of each user; b"" for none."""
    groups: Annotated[tuple[int, ...], Gaps(limits.OWNERS_PER_MESSAGE, ID_LIMIT, may_be_empty=True)]
    group_names: Annotated[
        tuple[bytes, ...], Strings(limits.OWNERS_PER_MESSAGE, OWNERS_BYTES, limits.OWNER_NAME_BYTES)
    ]

    def check(self) -> str | None:
        if len(self.users) != len(self.user_names):
            return f"user_names: {len(self.user_names)} for {len(self.users)} users"
        if len(self.groups) != len(self.group_names):
            return f"group_names: {len(self.group_names)} for {len(self.groups)} groups"
        return None


@message(33, by=SOURCE, when=(LISTING, SERVING, WATCHING), purpose=Purpose.MANIFEST)
class TopTier(Message, Record):
    """S, after a Manifest of more than SMALL_MANIFEST entries: its finest tier of few nodes, sent unasked."""

    level: Level
    references: Annotated[bytes, Blob(TOP_REFERENCE_BYTES, TOP_REFERENCE_BYTES * limits.TOP_NODES)]
    """Opaque references, one per node, over all its columns."""

    def check(self) -> str | None:
        if len(self.references) % TOP_REFERENCE_BYTES:
            return f"references: {len(self.references)} bytes"
        return None


@message(26, by=DESTINATION, when=ASKING, asks="nodes", purpose=Purpose.MANIFEST)
class TierRequest(Message, Record):
    """D: asks for the children, in tier `level`, of these nodes of the tier above. Without nodes: the whole
    tier, or the top tier."""

    level: Level
    nodes: Annotated[tuple[int, ...], Gaps(limits.TIER_NODES, limits.ORDINAL_LIMIT, may_be_empty=True)]
    groups: GroupSet
    """Column groups whose references are requested."""


@message(27, by=SOURCE, when=SERVING, answers=TierRequest, purpose=Purpose.MANIFEST)
class TierAnswer(Message, Record):
    """S: the answer to the oldest TierRequest, one entry per requested node (one for a whole tier)."""

    level: Level
    firsts: Annotated[tuple[int, ...], Column(limits.TIER_NODES)]
    """Number of each node's first child."""
    counts: Annotated[tuple[int, ...], Column(limits.TIER_NODES, lowest=1)]
    references: Annotated[bytes, Blob(1, limits.FRAME_BYTES)]
    """Opaque references of all children in order, for each requested group."""

    def check(self) -> str | None:
        if len(self.firsts) != len(self.counts):
            return f"counts: {len(self.counts)} for {len(self.firsts)} nodes"
        return None


@message(28, by=DESTINATION, when=ASKING, asks="nodes", purpose=Purpose.MANIFEST)
class RowsRequest(Message, Record):
    """D: asks for the entries below these nodes of tier `level`."""

    level: Level
    nodes: TierNodes
    groups: GroupSet


@message(29, by=SOURCE, when=SERVING, answers=RowsRequest, purpose=Purpose.MANIFEST)
class RowsPart(Message, Record):
    """S: the next entries below the next nodes of the oldest RowsRequest."""

    counts: Annotated[tuple[int, ...], Column(limits.TIER_NODES, lowest=1)]
    """Entries per node in this part. The first node may continue from the last part."""
    last: Annotated[bool, Flag()]
    """True if the last node is complete."""
    rows: Annotated[Rows, RowColumns()]

    def check(self) -> str | None:
        return None if self.rows.splits(self.counts) else "counts: they do not divide the rows"


# Messages of a session's course: what its sides report, what may leave the source, its end, and its turns.
#
# A session that stays open has turns: after a Done, S announces what changed.

CODE_LENGTH = 11
"""Characters of a change's code."""

MARK_BYTES = 16
"""Bytes of the mark of a directory."""


@message(17, by=EITHER, when=(*ANSWERING, WATCHING, ASKING))
class Notice(Message, Record):
    """Either side: a problem with one path that the other side's user must see. The session goes on."""

    code: Code
    """The problem's exit code; OK leaves the exit code unchanged."""
    path: Annotated[bytes, Path()]
    message: Line


@message(18, by=DESTINATION, when=ASKING)
class Items(Message, Record):
    """D: entries that were changed, or would be in a dry run."""

    changes: Annotated[str, Codes(CODE_LENGTH, limits.ITEMS_PER_MESSAGE)]
    """The codes of the changes, concatenated."""
    paths: Annotated[tuple[bytes, ...], Strings(limits.ITEMS_PER_MESSAGE, limits.ITEMS_BYTES)]
    targets: Annotated[tuple[bytes, ...], Strings(limits.ITEMS_PER_MESSAGE, limits.ITEMS_BYTES)] = ()
    """The target of each symbolic link, an empty string for each other entry. Empty if there is no link at
    all."""

    def check(self) -> str | None:
        count = len(self.changes) // CODE_LENGTH
        if len(self.paths) != count:
            return f"paths: {len(self.paths)} for {count} changes"
        if len(self.targets) not in {0, count}:
            return f"targets: {len(self.targets)} for {count} changes"
        return None

    @property
    def codes(self) -> list[str]:
        """One code per item."""
        return [self.changes[at : at + CODE_LENGTH] for at in range(0, len(self.changes), CODE_LENGTH)]


@message(19, by=DESTINATION, when=ASKING)
class Progress(Message, Record):
    """D: its progress."""

    phase: Annotated[str, Word(choices=("compare", "transfer", "delete"))]
    done: TotalSize
    total: Annotated[int | None, Total(optional=True)]


@message(20, by=DESTINATION, when=ASKING)
class Plan(Message, Record):
    """D: the work that lies ahead."""

    files: Count
    bytes: TotalSize
    deletes: Count


@message(62, by=DESTINATION, when=ASKING, asks="files")
class Landed(Message, Record):
    """D: these entries of one directory are at the destination, equal to their listing and durable."""

    files: Files
    """Entries of any kind but directories."""
    mark: Annotated[bytes, Blob(MARK_BYTES, MARK_BYTES)]
    """The identity of the directory of D that they are in (rdc.files.facts.file_facts)."""


@message(63, by=SOURCE, when=SERVING, answers=Landed)
class Removed(Message, Record):
    """S: it has removed what it could of the oldest Landed. Each entry that stays came as a Notice."""

    count: Annotated[int, Integer(0, limits.FILES_PER_MESSAGE)]
    """Entries that are gone."""


@message(21, by=DESTINATION, when=ASKING, then=DONE, needs=SERVING, moves=(SERVING, CLOSED), grows=True)
class Done(Message, Record):
    """D: its result, in the last message of a session."""

    changed: Count
    """Created, changed and moved entries."""
    deleted: Count
    moved: Count
    literal_bytes: TotalSize
    reused_bytes: TotalSize
    errors: Count
    code: Code
    created: Annotated[int | None, Integer(optional=True)] = None
    """The changed entries that D did not have; None: there are none."""


# Turns of a session that stays open

ORIGIN_BYTES = 16

UNVERIFIED_FILES = 32_768
"""More entries than a listing of half a frame has, at 29 bytes or more each; their gaps take two bytes
each."""


@message(50, by=SOURCE, when=LISTING)
class Watch(Message, Record):
    """S, before Start: it watches its tree, and the session goes on after Done."""

    again: Annotated[bool, Flag()]
    """True if S watched before and D then had everything. An empty destination then means a different
    tree."""
    origin: Annotated[bytes, Blob(ORIGIN_BYTES, ORIGIN_BYTES)]
    """Opaque id of the directory that S watches; it differs for another directory at the same path."""


@message(51, by=SOURCE, when=WATCHING, then=LISTING, moves=(DONE, ASKING))
class Turn(Message, Record):
    """S, after Done: begins a turn. Requests, ordinals and rounds start again from 0."""

    whole: Annotated[bool, Flag()]
    """True if the trees are compared as at the start of a session. Otherwise S announces changes."""


@message(52, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class Renamed(Message, Record):
    """S: an entry moved since the last announcement from `old` to `new`, where no entry was."""

    old: Annotated[bytes, Path(inside=True)]
    new: Annotated[bytes, Path(inside=True)]
    entry: Annotated[Kind, Member(Kind)]
    size: Size
    """Bytes as last announced; 0 unless a regular file."""
    metadata: Annotated[Metadata, MetadataItems()]
    """Metadata as last announced."""

    def check(self) -> str | None:
        if not self.old or not self.new:
            return "old, new: the root"
        if self.new == self.old or self.new.startswith(self.old + b"/"):
            return "new: it is at or below the old path"
        if self.entry not in (Kind.FILE, Kind.DIRECTORY):
            return f"entry: a {self.entry.name.lower()}"
        return None


@message(53, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class Changed(Message, Record):
    """S: the changes in one directory since the last announcement. Parents come before children."""

    path: Annotated[bytes, Path(inside=True)]
    metadata: Annotated[Metadata, MetadataItems()]
    """Metadata of the directory."""
    first: Ordinal
    """Ordinal of the first entry of this part: entries count from 0 over all Changed of the turn."""
    gone: Annotated[bytes, Blob(0, limits.GONE_BYTES)]
    """Removed names, strictly increasing, each followed by NUL."""
    listing: Annotated[Listing, ListingColumns()]
    """New or different entries only."""
    doubtful: Annotated[tuple[int, ...], Gaps(UNVERIFIED_FILES, UNVERIFIED_FILES, may_be_empty=True)]
    """Rows of `listing`: files whose content may differ even with an equal size and mtime."""

    def check(self) -> str | None:
        if self.first + len(self.listing) > limits.ORDINAL_LIMIT:
            return f"first: {len(self.listing)} entries from {self.first} pass {limits.ORDINAL_LIMIT}"
        if self.gone and self.gone[-1]:
            return "gone: no NUL at the end"
        if self.doubtful and self.doubtful[-1] >= len(self.listing):
            return f"doubtful: row {self.doubtful[-1]} of {len(self.listing)}"
        if any(self.listing.kinds[row] != Kind.FILE for row in self.doubtful):
            return "doubtful: one is no file"
        names = strings(self.gone)
        if any(
            not 0 < len(name) <= limits.NAME_BYTES or b"/" in name or name in (b".", b"..") for name in names
        ):
            return "gone: one is no name"
        if not increasing(tuple(names)):
            return "gone: not strictly increasing"
        return None


@message(54, by=SOURCE, when=LISTING, then=SERVING, purpose=Purpose.MANIFEST)
class TurnEnd(Message, Record):
    """S: all changes are announced; totals of the tree."""

    entries: Count
    """Entries of the whole tree."""
    files: Count
    """Regular files of the whole tree."""
    read_errors: Count
    """Directories that are unreadable."""


@message(55, by=DESTINATION, when=ASKING)
class Follow(Message, Record):
    """D as the dialler, right after Open: S is to watch its tree and send Watch when it can."""

    rescan: Annotated[int, Integer(0, limits.RESCAN_SECONDS)]
    """Seconds between two comparisons of the whole trees; 0 for never."""
    origin: Annotated[bytes, Blob(0, ORIGIN_BYTES)]
    """The origin of Watch in an earlier session whose tree had entries; empty if there was none."""

    def check(self) -> str | None:
        return None if len(self.origin) in (0, ORIGIN_BYTES) else f"origin: {len(self.origin)} bytes"


class SourceState(IntEnum):
    """The condition of S's watch."""

    FOLLOWED = 0
    HALTED = 1
    """Nothing is announced until the tree is back."""
    LIMITED = 2
    """The tree is followed, but some of it without events."""


@message(56, by=SOURCE, when=(LISTING, WATCHING))
class Condition(Message, Record):
    """S, after Follow: whether its tree can be watched."""

    state: Annotated[SourceState, Member(SourceState)]
    reason: Line
    seconds: Annotated[int, Integer(0, limits.RESCAN_SECONDS)]
    """For LIMITED: seconds between two scans."""
