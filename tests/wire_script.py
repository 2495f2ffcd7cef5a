"""A session written down, with every kind of message in it: who says what in which round."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from rdc.errors import ExitCode
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.sync import FilterRule, RuleAction, SyncOptions
from rdc.protocol.connection import Connection
from rdc.protocol.frames import frame_head
from rdc.protocol.messages import (
    Bye,
    Data,
    Done,
    FileEnd,
    FileFailed,
    FileRequest,
    Hello,
    Item,
    ListingEnd,
    ListingPart,
    Message,
    NodeAnswer,
    NodeRequest,
    Notice,
    Open,
    Opened,
    Plan,
    Progress,
    RangeRequest,
    Role,
    RootAnswer,
    RootRequest,
    Start,
    TreeAnswer,
    TreeRequest,
    encode,
)
from rdc.protocol.varint import encode_varint

HELLO = Hello(1, "rdc test", b"p" * 32)
PREAMBLE = b"RDC\1"


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

AFTER_OPENING: tuple[tuple[Role, Message, int], ...] = (
    (Role.SOURCE, Start(b"", Kind.DIRECTORY, Metadata(0o755, -5, 0, 0)), 1),
    (Role.SOURCE, ListingPart(0, b"", 0, False, listing(b"a", b"b")), 1),
    (Role.SOURCE, ListingPart(0, b"", 2, True, listing(b"c", b"link", kind=Kind.SYMLINK)), 1),
    (Role.SOURCE, ListingPart(1, b"sub/dir", 4, True, listing(b"a")), 1),
    (Role.SOURCE, ListingPart(2, b"sub/empty", 5, True, listing()), 1),
    (Role.DESTINATION, RootRequest((0, 1, 4)), 2),
    (Role.SOURCE, ListingEnd(3, 5, 3, 3000, 1), 1),
    (Role.DESTINATION, TreeRequest((0,), 8), 2),
    (Role.DESTINATION, Plan(3, 3000, 0), 2),
    (Role.SOURCE, RootAnswer((0, 4), (1000, 1024), b"r" * 64), 2),
    (Role.SOURCE, FileFailed(1, ExitCode.VANISHED, "b: vanished"), 2),
    (Role.SOURCE, TreeAnswer(0, 1000, b"r" * 32, 2, None, b"records" * 20), 2),
    (Role.DESTINATION, NodeRequest(0, 1, (0, 3, 700), 6), 3),
    (Role.SOURCE, NodeAnswer(0, 1, (0, 3), (b"one", b"three")), 3),
    (Role.SOURCE, Notice(ExitCode.OK, b"sub/socket", "skipping a socket"), 3),
    (Role.SOURCE, NodeAnswer(0, 1, (700,), (b"",)), 3),
    (Role.DESTINATION, RangeRequest.of(0, ((5, 20), (500, 100))), 4),
    (Role.DESTINATION, FileRequest((0, 4)), 4),
    (Role.SOURCE, Data(0, PAYLOAD[:120]), 4),
    (Role.SOURCE, FileEnd(0, 120), 4),
    (Role.SOURCE, Data(4, PAYLOAD, (1000, 24)), 4),
    (Role.DESTINATION, Item(">f+++++++++", b"sub/dir/a"), 4),
    (Role.DESTINATION, Item("cL+++++++++", b"link", b"../target"), 4),
    (Role.SOURCE, Data(4, PAYLOAD, (1024,)), 4),
    (Role.SOURCE, FileEnd(4, 2048, b"R" * 32), 4),
    (Role.SOURCE, Data(0, b"part", (4,)), 4),
    (Role.SOURCE, FileFailed(0, ExitCode.VANISHED, "a: changed while it was read"), 4),
    (Role.DESTINATION, Progress("transfer", 2048, None), 4),
    (Role.DESTINATION, Notice(ExitCode.PARTIAL, b"a", "a: no space"), 4),
    (Role.DESTINATION, Done(2, 0, 2048, 12, 1, ExitCode.PARTIAL), 4),
    (Role.SOURCE, Bye(1, ExitCode.VANISHED), 4),
)


def script(dialler: Role) -> tuple[Line, ...]:
    """A whole session after the two Hellos, dialled by either side."""
    return (
        Line(True, opening(dialler.other), 1),
        Line(False, Opened(Kind.DIRECTORY, True), 1),
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
