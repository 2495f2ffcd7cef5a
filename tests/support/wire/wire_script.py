"""A recorded session with every kind of message: sender, round and message."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from rdc.errors import ExitCode
from rdc.lean.records import replace
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.preserved import Preserved
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.protocol import messages
from rdc.protocol.connection import DIALECT, NEGOTIATING, Connection
from rdc.protocol.messages.field_types import Claims, Rows, Segment
from rdc.protocol.wire.fields import encode_varint
from rdc.protocol.wire.stream import frame_head

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
    message: messages.Message
    round: int


def opening(answerer: messages.Role = messages.Role.SOURCE) -> messages.Open:
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"), FilterRule(RuleAction.INCLUDE, b"/src/"))
    return messages.Open(
        answerer, b"/srv/data", b"s" * 16, SyncOptions(delete=True, max_delete=9, rules=rules)
    )


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

AFTER_OPENING: tuple[tuple[messages.Role, messages.Message, int], ...] = (
    (messages.Role.DESTINATION, messages.Follow(600, b""), 1),
    (
        messages.Role.SOURCE,
        messages.Condition(messages.SourceState.LIMITED, "fs.inotify.max_user_watches", 10),
        2,
    ),
    (messages.Role.DESTINATION, messages.Describe(False, Preserved(True)), 1),
    (messages.Role.SOURCE, messages.Watch(False, b"o" * 16), 2),
    (messages.Role.SOURCE, messages.Start(b"", Kind.DIRECTORY, Metadata(0o755, -5, 0, 0)), 2),
    (messages.Role.SOURCE, messages.Owners((0, 1000), (b"root", b"ann"), (), ()), 2),
    (messages.Role.SOURCE, messages.MountPoints((b"mnt/a", b"mnt/b")), 2),
    (messages.Role.SOURCE, messages.Manifest(b"m" * 32, 5000, 3, 3000, 1, Preserved(True), b"further!"), 2),
    (messages.Role.SOURCE, messages.TopTier(1, b"r" * 80), 2),
    (messages.Role.DESTINATION, messages.TierRequest(2, (), 7), 3),
    (messages.Role.SOURCE, messages.TierAnswer(1, (0,), (20,), b"r" * 280), 4),
    (messages.Role.DESTINATION, messages.TierRequest(0, (3, 8), 4), 5),
    (messages.Role.DESTINATION, messages.RowsRequest(1, (5, 19), 7), 5),
    (messages.Role.SOURCE, messages.TierAnswer(0, (40, 130), (16, 9), b"t" * 100), 6),
    (messages.Role.SOURCE, messages.RowsPart((2, 1), False, NAMED), 6),
    (messages.Role.SOURCE, messages.RowsPart((3,), True, NAMED), 6),
    (messages.Role.DESTINATION, messages.Describe(True, Preserved(True)), 7),
    (messages.Role.SOURCE, messages.ListingPart(0, b"", 0, False, listing(b"a", b"b")), 8),
    (messages.Role.SOURCE, messages.HardLinks((2,), (0,)), 8),
    (messages.Role.SOURCE, messages.EntryAttributes((3, 4), (0, 0), (b"\6user.a\1\0\0\0x",)), 8),
    (
        messages.Role.SOURCE,
        messages.ListingPart(0, b"", 2, True, listing(b"c", b"link", kind=Kind.SYMLINK)),
        8,
    ),
    (messages.Role.SOURCE, messages.ListingPart(1, b"sub/dir", 4, True, listing(b"a")), 8),
    (messages.Role.SOURCE, messages.ListingPart(2, b"sub/empty", 5, True, listing()), 8),
    (messages.Role.DESTINATION, messages.RootRequest((0, 1, 4)), 9),
    (messages.Role.SOURCE, messages.ListingEnd(3, 5, 3, 3000, 1), 8),
    (messages.Role.DESTINATION, messages.TreeRequest((0,), 8), 9),
    (messages.Role.DESTINATION, messages.DigestRequest((1, 4)), 9),
    (messages.Role.DESTINATION, messages.TraitsRequest((4,)), 9),
    (messages.Role.DESTINATION, messages.Plan(3, 3000, 0), 9),
    (messages.Role.SOURCE, messages.RootAnswer((0, 4), (1000, 1024), b"r" * 64), 10),
    (messages.Role.SOURCE, messages.FileFailed(1, ExitCode.VANISHED, "b: vanished"), 10),
    (messages.Role.SOURCE, messages.TreeAnswer(0, 1000, b"r" * 32, 2, None, b"records" * 20), 10),
    (messages.Role.SOURCE, messages.DigestAnswer(b"d" * 32), 10),
    (messages.Role.SOURCE, messages.TraitsAnswer((4,), (1024,), b"r" * 8, b"t" * 9), 10),
    (messages.Role.DESTINATION, messages.LikelyRequest(5, 8, 1024), 9),
    (messages.Role.SOURCE, messages.LikelyBlocks((0, 1), b"b" * 9), 10),
    (messages.Role.SOURCE, messages.LikelyAnswer((4,)), 10),
    (messages.Role.SOURCE, messages.TreeAnswer(4, 1024, b"r" * 32, 0, None, b"", b"p" * 12), 10),
    (messages.Role.DESTINATION, messages.BundleRequest(5, (1, 4), 1024), 9),
    (messages.Role.SOURCE, messages.BundleAnswer(5, (0,), b"d" * 32, b"f" * 9), 10),
    (messages.Role.DESTINATION, messages.NodeRequest(0, 1, (0, 3, 700), 6), 11),
    (messages.Role.SOURCE, messages.NodeAnswer(0, 1, (0, 3), (b"one", b"three")), 12),
    (messages.Role.SOURCE, messages.Notice(ExitCode.OK, b"sub/socket", "skipping a socket"), 12),
    (messages.Role.SOURCE, messages.NodeAnswer(0, 1, (700,), (b"",)), 12),
    (messages.Role.DESTINATION, messages.BlockRequest.of(0, array("Q", (5, 40, 500, 16)), 16, 5), 13),
    (messages.Role.DESTINATION, messages.BlockRequest.of(5, array("Q", (700, 32)), 16, 2), 13),
    (messages.Role.DESTINATION, messages.RangeRequest.of(0, array("Q", (5, 20, 500, 100))), 13),
    (
        messages.Role.DESTINATION,
        messages.RangeRequest.of(2, array("Q", (3, 20)), pack=True, claims=Claims((0, 2), b"abcd")),
        13,
    ),
    (
        messages.Role.DESTINATION,
        messages.RangeRequest.of(1, array("Q"), claims=Claims((1,), b"ab"), blank=True),
        13,
    ),
    (messages.Role.DESTINATION, messages.FileRequest((0, 1, 2, 4)), 13),
    (messages.Role.SOURCE, messages.BlockAnswer(0, b"12345" * 4), 14),
    (messages.Role.SOURCE, messages.BlockAnswer(5, b"1234"), 14),
    (messages.Role.SOURCE, messages.Data(0, PAYLOAD[:90]), 14),
    (messages.Role.SOURCE, messages.Table(0, 24, PAYLOAD[:10]), 14),
    (messages.Role.SOURCE, messages.Code(0, PAYLOAD[:20]), 14),
    (messages.Role.SOURCE, messages.FileEnd(0, 120), 14),
    (messages.Role.SOURCE, messages.Correction(2, (2,), b"right"), 14),
    (messages.Role.SOURCE, messages.Literals(2, b"packed"), 14),
    (messages.Role.SOURCE, messages.Targets(1, b"there"), 14),
    (messages.Role.SOURCE, messages.FileEnd(1, 0), 14),
    (messages.Role.SOURCE, messages.FileBatch((1, 2), (5, 0), b"d" * 32, b"small"), 14),
    (messages.Role.SOURCE, messages.Resized(4, 3072), 14),
    (messages.Role.SOURCE, messages.Holes(4, 1024, (0,), (1024,)), 14),
    (messages.Role.SOURCE, messages.Data(4, PAYLOAD), 14),
    (messages.Role.DESTINATION, messages.Items(">f+++++++++" * 2, (b"sub/dir/a", b"b")), 15),
    (
        messages.Role.DESTINATION,
        messages.Items("cL+++++++++.f..t......", (b"link", b"c"), (b"../target", b"")),
        15,
    ),
    (messages.Role.SOURCE, messages.Data(4, PAYLOAD), 14),
    (messages.Role.SOURCE, messages.FileEnd(4, 3072, b"R" * 32), 14),
    (messages.Role.SOURCE, messages.Data(0, b"part"), 14),
    (messages.Role.SOURCE, messages.FileFailed(0, ExitCode.VANISHED, "a: changed while it was read"), 14),
    (messages.Role.DESTINATION, messages.Progress("transfer", 2048, None), 15),
    (messages.Role.DESTINATION, messages.Notice(ExitCode.PARTIAL, b"a", "a: no space"), 15),
    (messages.Role.DESTINATION, messages.Landed((1, 2), b"d" * 16), 15),
    (messages.Role.SOURCE, messages.Removed(1), 16),
    (messages.Role.DESTINATION, messages.Done(2, 0, 0, 2048, 12, 1, ExitCode.PARTIAL), 17),
    (messages.Role.SOURCE, messages.Turn(False), 0),
    (
        messages.Role.SOURCE,
        messages.Renamed(b"a", b"sub/b", Kind.FILE, 1000, Metadata(0o644, 10**18, 0, 0)),
        0,
    ),
    (
        messages.Role.SOURCE,
        messages.Changed(b"sub", Metadata(0o755, 7, 0, 0), 0, b"old\0x\0", listing(b"b", b"c"), (1,)),
        0,
    ),
    (
        messages.Role.SOURCE,
        messages.Changed(b"sub/new", Metadata(0o755, 8, 0, 0), 2, b"", listing(b"d"), ()),
        0,
    ),
    (messages.Role.SOURCE, messages.TurnEnd(7, 5, 0), 0),
    (messages.Role.DESTINATION, messages.FileRequest((1, 2)), 1),
    (messages.Role.SOURCE, messages.FileBatch((1, 2), (5, 0), b"d" * 32, b"small"), 2),
    (messages.Role.DESTINATION, messages.Done(4, 1, 0, 5, 0, 0, ExitCode.OK), 3),
    (messages.Role.SOURCE, messages.Turn(True), 0),
    (messages.Role.DESTINATION, messages.Describe(False, Preserved(True)), 1),
    (messages.Role.SOURCE, messages.Start(b"", Kind.DIRECTORY, Metadata(0o755, -5, 0, 0)), 2),
    (messages.Role.SOURCE, messages.Manifest(b"m" * 32, 7, 3, 3000, 0, Preserved(True)), 2),
    (messages.Role.DESTINATION, messages.Done(0, 0, 0, 0, 0, 0, ExitCode.OK), 3),
)


def script(dialler: messages.Role) -> tuple[Line, ...]:
    """A whole session after the two Hellos, dialled by either side."""
    return (
        Line(True, replace(opening(dialler.other), needs="rule_parts"), 0),
        Line(True, messages.Rules((FilterRule(RuleAction.EXCLUDE, b"*.o"),), False), 0),
        Line(True, messages.Rules((FilterRule(RuleAction.INCLUDE, b"a"),), True), 0),
        Line(True, messages.Selected(b"/srv", (b"a/b", b"./c/"), True), 0),
        Line(False, messages.Opened(), 1),
        *(Line(role is dialler, message, number) for role, message, number in AFTER_OPENING),
    )


def frame(message: messages.Message, number: int) -> bytes:
    payload = messages.encode(message)
    return frame_head(message.kind, number, len(payload)) + payload


def raw_block(stream: bytes) -> bytes:
    return encode_varint(len(stream) << 1 | 1) + stream


def raw(message: messages.Message, number: int = 0) -> bytes:
    """A message in a raw block of its own."""
    return raw_block(frame(message, number))


def connections(compress: bool = True) -> tuple[Connection, Connection]:
    """Dialler and answerer."""
    return Connection(True, HELLO, compress), Connection(False, HELLO, compress)
