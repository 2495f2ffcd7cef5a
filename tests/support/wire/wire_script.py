"""A recorded session with every kind of message: sender, round and message."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from rdc.errors import ExitCode
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.preserved import Preserved
from rdc.model.sync import FilterRule, RuleAction, SyncOptions
from rdc.protocol.messages.claims import Claims
from rdc.protocol.messages.registry import (
    BlockAnswer,
    BlockRequest,
    BundleAnswer,
    BundleRequest,
    Changed,
    Code,
    Condition,
    Correction,
    Data,
    Describe,
    DigestAnswer,
    DigestRequest,
    Done,
    EntryAttributes,
    FileBatch,
    FileEnd,
    FileFailed,
    FileRequest,
    Follow,
    HardLinks,
    Holes,
    Items,
    Landed,
    ListingEnd,
    ListingPart,
    Literals,
    Manifest,
    Message,
    MountPoints,
    NodeAnswer,
    NodeRequest,
    Notice,
    Open,
    Opened,
    Owners,
    Plan,
    Progress,
    RangeRequest,
    Removed,
    Renamed,
    Resized,
    Role,
    RootAnswer,
    RootRequest,
    RowsPart,
    RowsRequest,
    Rules,
    Selected,
    SourceState,
    Start,
    Table,
    Targets,
    TierAnswer,
    TierRequest,
    TopTier,
    TraitsAnswer,
    TraitsRequest,
    TreeAnswer,
    TreeRequest,
    Turn,
    TurnEnd,
    Watch,
    encode,
)
from rdc.protocol.messages.rows import Rows, Segment
from rdc.protocol.rules.connection import NEGOTIATING, Connection
from rdc.protocol.rules.dialect import DIALECT
from rdc.protocol.wire.frames import frame_head
from rdc.protocol.wire.varint import encode_varint
from rdc.records import replace

HELLO = DIALECT.hello("rdc test", b"p" * 32)
PREAMBLE = b"RDC" + bytes((NEGOTIATING,))


def listing(*names: bytes, kind: Kind = Kind.FILE) -> Listing:
    count = len(names)
    return Listing(
        names,
        bytes((kind,)) * count,
        array("H", [0o644]) * count,
        array("Q", [1000 * (kind == Kind.FILE)]) * count,
        array("q", [10**18]) * count,
        array("I", [0]) * count,
        array("I", [0]) * count,
        (b"../target",) * count if kind == Kind.SYMLINK else (),
    )


@dataclass(frozen=True, slots=True)
class Line:
    by_dialler: bool
    message: Message
    round: int


def opening(answerer: Role = Role.SOURCE) -> Open:
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"), FilterRule(RuleAction.INCLUDE, b"/src/"))
    return Open(answerer, b"/srv/data", b"s" * 16, SyncOptions(delete=True, max_delete=9, rules=rules))


PAYLOAD = bytes(range(256)) * 4

NAMED = Rows(
    3,
    (Segment(b"", 2, b"a\0link\0", b"../target\0"), Segment(b"sub", 1, b"x\0", b"")),
    bytes((Kind.FILE, Kind.SYMLINK, Kind.FILE)),
    bytes(6),
    bytes(24),
    bytes(12),
    bytes(12),
    bytes(24),
)
"""All columns of three entries."""

TIMES = Rows(2, (), b"", b"", b"", b"", b"", bytes(16))
"""Only the mtimes of two."""

AFTER_OPENING: tuple[tuple[Role, Message, int], ...] = (
    (Role.DESTINATION, Follow(600, b""), 1),
    (Role.SOURCE, Condition(SourceState.LIMITED, "fs.inotify.max_user_watches", 10), 2),
    (Role.DESTINATION, Describe(False, Preserved(True)), 1),
    (Role.SOURCE, Watch(False, b"o" * 16), 2),
    (Role.SOURCE, Start(b"", Kind.DIRECTORY, Metadata(0o755, -5, 0, 0)), 2),
    (Role.SOURCE, Owners((0, 1000), (b"root", b"ann"), (), ()), 2),
    (Role.SOURCE, MountPoints((b"mnt/a", b"mnt/b")), 2),
    (Role.SOURCE, Manifest(b"m" * 32, 5000, 3, 3000, 1, Preserved(True), b"further!"), 2),
    (Role.SOURCE, TopTier(1, b"r" * 80), 2),
    (Role.DESTINATION, TierRequest(2, (), 7), 3),
    (Role.SOURCE, TierAnswer(1, (0,), (20,), b"r" * 280), 4),
    (Role.DESTINATION, TierRequest(0, (3, 8), 4), 5),
    (Role.DESTINATION, RowsRequest(1, (5, 19), 7), 5),
    (Role.SOURCE, TierAnswer(0, (40, 130), (16, 9), b"t" * 100), 6),
    (Role.SOURCE, RowsPart((2, 1), False, NAMED), 6),
    (Role.SOURCE, RowsPart((3,), True, NAMED), 6),
    (Role.DESTINATION, Describe(True, Preserved(True)), 7),
    (Role.SOURCE, ListingPart(0, b"", 0, False, listing(b"a", b"b")), 8),
    (Role.SOURCE, HardLinks((2,), (0,)), 8),
    (Role.SOURCE, EntryAttributes((3, 4), (0, 0), (b"\6user.a\1\0\0\0x",)), 8),
    (Role.SOURCE, ListingPart(0, b"", 2, True, listing(b"c", b"link", kind=Kind.SYMLINK)), 8),
    (Role.SOURCE, ListingPart(1, b"sub/dir", 4, True, listing(b"a")), 8),
    (Role.SOURCE, ListingPart(2, b"sub/empty", 5, True, listing()), 8),
    (Role.DESTINATION, RootRequest((0, 1, 4)), 9),
    (Role.SOURCE, ListingEnd(3, 5, 3, 3000, 1), 8),
    (Role.DESTINATION, TreeRequest((0,), 8), 9),
    (Role.DESTINATION, DigestRequest((1, 4)), 9),
    (Role.DESTINATION, TraitsRequest((4,)), 9),
    (Role.DESTINATION, Plan(3, 3000, 0), 9),
    (Role.SOURCE, RootAnswer((0, 4), (1000, 1024), b"r" * 64), 10),
    (Role.SOURCE, FileFailed(1, ExitCode.VANISHED, "b: vanished"), 10),
    (Role.SOURCE, TreeAnswer(0, 1000, b"r" * 32, 2, None, b"records" * 20), 10),
    (Role.SOURCE, DigestAnswer(b"d" * 32), 10),
    (Role.SOURCE, TraitsAnswer((4,), (1024,), b"r" * 8, b"t" * 9), 10),
    (Role.DESTINATION, BundleRequest(5, (1, 4), 6, 1024), 9),
    (Role.SOURCE, BundleAnswer(5, (0,), b"d" * 32, (700, 40), b"r" * 12, b"f" * 9), 10),
    (Role.DESTINATION, NodeRequest(0, 1, (0, 3, 700), 6), 11),
    (Role.SOURCE, NodeAnswer(0, 1, (0, 3), (b"one", b"three")), 12),
    (Role.SOURCE, Notice(ExitCode.OK, b"sub/socket", "skipping a socket"), 12),
    (Role.SOURCE, NodeAnswer(0, 1, (700,), (b"",)), 12),
    (Role.DESTINATION, BlockRequest.of(0, ((5, 40), (500, 16)), 16, 5), 13),
    (Role.DESTINATION, BlockRequest.of(5, ((700, 32),), 16, 2), 13),
    (Role.DESTINATION, RangeRequest.of(0, array("Q", (5, 20, 500, 100))), 13),
    (
        Role.DESTINATION,
        RangeRequest.of(2, array("Q", (3, 20)), pack=True, claims=Claims((0, 2), b"abcd")),
        13,
    ),
    (Role.DESTINATION, RangeRequest.of(1, array("Q"), claims=Claims((1,), b"ab"), blank=True), 13),
    (Role.DESTINATION, FileRequest((0, 1, 2, 4)), 13),
    (Role.SOURCE, BlockAnswer(0, b"12345" * 4), 14),
    (Role.SOURCE, BlockAnswer(5, b"1234"), 14),
    (Role.SOURCE, Data(0, PAYLOAD[:90]), 14),
    (Role.SOURCE, Table(0, 24, PAYLOAD[:10]), 14),
    (Role.SOURCE, Code(0, PAYLOAD[:20]), 14),
    (Role.SOURCE, FileEnd(0, 120), 14),
    (Role.SOURCE, Correction(2, (2,), b"right"), 14),
    (Role.SOURCE, Literals(2, b"packed"), 14),
    (Role.SOURCE, Targets(1, b"there"), 14),
    (Role.SOURCE, FileEnd(1, 0), 14),
    (Role.SOURCE, FileBatch((1, 2), (5, 0), b"d" * 32, b"small"), 14),
    (Role.SOURCE, Resized(4, 3072), 14),
    (Role.SOURCE, Holes(4, 1024, (0,), (1024,)), 14),
    (Role.SOURCE, Data(4, PAYLOAD), 14),
    (Role.DESTINATION, Items(">f+++++++++" * 2, (b"sub/dir/a", b"b")), 15),
    (Role.DESTINATION, Items("cL+++++++++.f..t......", (b"link", b"c"), (b"../target", b"")), 15),
    (Role.SOURCE, Data(4, PAYLOAD), 14),
    (Role.SOURCE, FileEnd(4, 3072, b"R" * 32), 14),
    (Role.SOURCE, Data(0, b"part"), 14),
    (Role.SOURCE, FileFailed(0, ExitCode.VANISHED, "a: changed while it was read"), 14),
    (Role.DESTINATION, Progress("transfer", 2048, None), 15),
    (Role.DESTINATION, Notice(ExitCode.PARTIAL, b"a", "a: no space"), 15),
    (Role.DESTINATION, Landed((1, 2), b"d" * 16), 15),
    (Role.SOURCE, Removed(1), 16),
    (Role.DESTINATION, Done(2, 0, 0, 2048, 12, 1, ExitCode.PARTIAL), 17),
    (Role.SOURCE, Turn(False), 0),
    (Role.SOURCE, Renamed(b"a", b"sub/b", Kind.FILE, 1000, Metadata(0o644, 10**18, 0, 0)), 0),
    (Role.SOURCE, Changed(b"sub", Metadata(0o755, 7, 0, 0), 0, b"old\0x\0", listing(b"b", b"c"), (1,)), 0),
    (Role.SOURCE, Changed(b"sub/new", Metadata(0o755, 8, 0, 0), 2, b"", listing(b"d"), ()), 0),
    (Role.SOURCE, TurnEnd(7, 5, 0), 0),
    (Role.DESTINATION, FileRequest((1, 2)), 1),
    (Role.SOURCE, FileBatch((1, 2), (5, 0), b"d" * 32, b"small"), 2),
    (Role.DESTINATION, Done(4, 1, 0, 5, 0, 0, ExitCode.OK), 3),
    (Role.SOURCE, Turn(True), 0),
    (Role.DESTINATION, Describe(False, Preserved(True)), 1),
    (Role.SOURCE, Start(b"", Kind.DIRECTORY, Metadata(0o755, -5, 0, 0)), 2),
    (Role.SOURCE, Manifest(b"m" * 32, 7, 3, 3000, 0, Preserved(True)), 2),
    (Role.DESTINATION, Done(0, 0, 0, 0, 0, 0, ExitCode.OK), 3),
)


def script(dialler: Role) -> tuple[Line, ...]:
    """A whole session after the two Hellos, dialled by either side."""
    return (
        Line(True, replace(opening(dialler.other), needs="rule_parts"), 0),
        Line(True, Rules((FilterRule(RuleAction.EXCLUDE, b"*.o"),), False), 0),
        Line(True, Rules((FilterRule(RuleAction.INCLUDE, b"a"),), True), 0),
        Line(True, Selected(b"/srv", (b"a/b", b"./c/"), True), 0),
        Line(False, Opened(), 1),
        *(Line(role is dialler, message, number) for role, message, number in AFTER_OPENING),
    )


def frame(message: Message, number: int) -> bytes:
    payload = encode(message)
    return frame_head(message.kind, number, len(payload)) + payload


def raw_block(stream: bytes) -> bytes:
    return encode_varint(len(stream) << 1 | 1) + stream


def raw(message: Message, number: int = 0) -> bytes:
    """A message in a raw block of its own."""
    return raw_block(frame(message, number))


def connections(compress: bool = True) -> tuple[Connection, Connection]:
    """Dialler and answerer."""
    return Connection(True, HELLO, compress), Connection(False, HELLO, compress)
