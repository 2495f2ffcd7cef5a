"""One end of a session without I/O: it turns messages into bytes and bytes into messages, and enforces every
rule.

The peer's mistakes raise ProtocolError or IncompatiblePeerError. This side's mistakes raise
LocalProtocolError.
"""

from __future__ import annotations

from collections import deque

import msgpack

from rdc.errors import ExitCode, IncompatiblePeerError, ProtocolError, RdcError, StreamError, printable
from rdc.lean.records import Record
from rdc.limits import ROUND_LIMIT, SIZE_LIMIT
from rdc.model.entries import Kind, Listing
from rdc.model.runs import MessageCost, Purpose
from rdc.protocol import messages
from rdc.protocol.messages import (
    Describe,
    Hello,
    Message,
    Open,
    Refused,
    Role,
    State,
    decode,
    encode_parts,
    message_kinds,
)
from rdc.protocol.messages.uniting import Subject
from rdc.protocol.sequence import SequenceRules
from rdc.protocol.wire.codec import Illegal
from rdc.protocol.wire.options import (
    ADDED_OPTIONS,
    RULE_PARTS,
    SELECTION,
    UNITED_ACLS,
    UNITED_LINKS,
    UNITED_XATTRS,
)
from rdc.protocol.wire.stream import (
    PLAIN,
    RAW,
    BlockReader,
    BlockWriter,
    CompressionLevel,
    Frame,
    FrameReader,
    frame_head,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from rdc.protocol.pending import AskedRanges


# What a program speaks, and what two programs agree on: a version of the protocol, and features.
#
# Each side's Hello names the oldest and the newest version that it speaks, and its features. Both sides come
# to the same agreement without a further message: the newest version that both speak, and the features that
# both have.


class Dialect(Record):
    """The versions of the protocol that a program speaks.

    A message's form never changes: a changed form is a new message with a number of its own. So a version is
    a set of messages.
    """

    oldest: int
    newest: int
    features: Mapping[str, tuple[type[Message], ...]]
    """Name of each feature, and the messages that only sessions with it have. A side that lacks a feature
    neither sends nor accepts these messages."""
    since: Mapping[type[Message], int]
    """The first version of each message that is younger than `oldest`."""
    until: Mapping[type[Message], int]
    """The last version of each message that is older than `newest`."""

    def absent(self, version: int, features: frozenset[str]) -> frozenset[type[Message]]:
        """Return the messages that a session of this version with these features does not have."""
        gone = {message for message, first in self.since.items() if version < first}
        gone |= {message for message, last in self.until.items() if version > last}
        for name, kinds in self.features.items():
            if name not in features:
                gone.update(kinds)
        return frozenset(gone)

    def shared_with(self, hello: Hello) -> Dialect:
        """Return what a program speaks that passes on only what the sender of `hello` speaks, too.

        IncompatiblePeerError if that is no version at all.
        """
        oldest = max(self.oldest, hello.version if hello.oldest is None else hello.oldest)
        newest = min(self.newest, hello.version)
        if oldest > newest:
            spoken = _range(hello.version if hello.oldest is None else hello.oldest, hello.version)
            raise IncompatiblePeerError(
                f"{hello.software} speaks {spoken} of the protocol, the other side"
                f" {_range(self.oldest, self.newest)}; update the older one"
            )
        features = {name: kinds for name, kinds in self.features.items() if knows(hello, name)}
        never = {
            message: oldest - 1 for name in self.features.keys() - features for message in self.features[name]
        }
        return Dialect(oldest, newest, features, self.since, {**self.until, **never})

    def hello(self, software: str, params: bytes) -> Hello:
        """Return the Hello of a program that speaks this."""
        oldest = None if self.oldest == self.newest else self.oldest
        return Hello(self.newest, software, params, oldest, " ".join(sorted(self.features)) or None)


READS_FRESH = "fresh"
"""The feature of a source that answers an Open which needs it only from what it reads in that session. It
neither asks nor fills a catalog then."""

SPECIALS = "nodes"
"""The feature of a side that knows fifos, sockets and devices as kinds of entries. Without it on both sides
they are announced as SPECIAL, and left alone."""


def _features(*without_messages: str) -> dict[str, tuple[type[Message], ...]]:
    """Return the features that messages name, and those that have none."""
    found: dict[str, tuple[type[Message], ...]] = dict.fromkeys(without_messages, ())
    for kind in message_kinds().values():
        if kind.place.feature is not None:
            found[kind.place.feature] = (*found.get(kind.place.feature, ()), kind)
    return found


DIALECT = Dialect(
    oldest=9,
    newest=9,
    features=_features(READS_FRESH, SPECIALS),
    since={kind: kind.place.since for kind in message_kinds().values() if kind.place.since is not None},
    until={},
)
"""The protocol versions of this rdc."""


class Agreement(Record):
    """The version and features that both sides of a session speak."""

    version: int
    features: frozenset[str]
    absent: frozenset[type[Message]]
    """Messages that this session does not have."""


def knows(hello: Hello | None, feature: str) -> bool:
    """Return whether the remote side has a feature. `hello`: what it sent; None in one process, where both
    are this program."""
    return hello is None or feature in (hello.features or "").split(" ")


def agree(dialect: Dialect, ours: Hello, peer: Hello) -> Agreement:
    """Return the agreement of two Hellos. Raises IncompatiblePeerError, which names the side to update, or
    other parameters."""
    version = min(dialect.newest, peer.version)
    if version < dialect.oldest:
        raise IncompatiblePeerError(
            f"the remote side ({peer.software}) speaks version {peer.version} of the protocol, this rdc"
            f" ({ours.software}) speaks {_range(dialect.oldest, dialect.newest)}; update rdc on the"
            " remote side"
        )
    oldest = peer.version if peer.oldest is None else peer.oldest
    if version < oldest:
        raise IncompatiblePeerError(
            f"the remote side ({peer.software}) speaks {_range(oldest, peer.version)} of the protocol, this"
            f" rdc ({ours.software}) only {_range(dialect.oldest, dialect.newest)}; update rdc on this side"
        )
    if peer.params != ours.params:
        raise IncompatiblePeerError(
            f"the remote side ({peer.software}) cuts files with other parameters than this rdc"
            f" ({ours.software}); install the same version on both sides"
        )
    features = dialect.features.keys() & set((peer.features or "").split(" "))
    return Agreement(version, frozenset(features), dialect.absent(version, frozenset(features)))


def _range(oldest: int, newest: int) -> str:
    return f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"


MAGIC = b"RDC"

NEGOTIATING = 8
"""The last byte of the preamble. It stays: from here on, Hello names the versions that a side speaks."""

_QUOTE_BYTES = 60


class LocalProtocolError(RuntimeError):
    """This side tried to break the protocol: a bug in rdc, never the peer's fault."""


class Received(Record):
    message: Message
    round: int


class Connection:
    """One end of a connection, driven by its caller.

    dialler: this side opened the connection and sends Open. hello: this side's Hello. compress: False sends
    everything raw; the peer decides for its own direction. dialect: what `hello` says that this side speaks.
    """

    def __init__(
        self, dialler: bool, hello: Hello, compress: bool = True, dialect: Dialect = DIALECT
    ) -> None:
        self.dialler = dialler
        self.agreement: Agreement | None = None
        """The version that both sides speak; None until the remote side's Hello arrives."""
        self.peer: Hello | None = None
        """The remote side's Hello; None until it arrives."""
        self.bytes_sent = 0
        """Bytes that data_to_send() has returned."""
        self.bytes_received = 0
        """Bytes that receive_data() has taken."""
        self.decoded_limit = SIZE_LIMIT
        """Decompressed bytes that the remote side may send in total. May change at any time."""
        self.entries = EntriesAccount()
        """The memory that announced entries may take."""
        self._decoded = 0
        self._hello = hello
        self._dialect = dialect
        # Until the remote side's Hello is there, a message must be one of every version that may be agreed
        # on.
        self._absent = frozenset(dialect.since) | frozenset(dialect.until)
        self._rules = SequenceRules(dialler)
        self._costs = Costs()
        self._packer = msgpack.Packer(use_bin_type=True)
        self._greeting = bytearray()
        """Received bytes of a preamble that is not complete."""
        self._preamble_seen = False
        self._blocks_in = BlockReader(self._costs.received.block)
        self._frames_in = FrameReader()
        self._eof = False
        self._failure: RdcError | None = None
        self._preamble: bytes = MAGIC + bytes((NEGOTIATING,))
        self._blocks_out = BlockWriter(RAW, self._costs.sent.block)
        self.send(hello, 0)
        self._blocks_out.flush()
        self._compress = compress
        self.set_compression(PLAIN)

    @property
    def role(self) -> Role | None:
        """This side's role in the current turn; None until Open states it."""
        return self._rules.role

    # Sending

    def set_compression(self, compression: CompressionLevel) -> None:
        """Set the compression of what follows, unless compression is off. A change starts with an empty
        window."""
        if self._compress:
            self._blocks_out.compression = compression

    def send(self, message: Message, round: int) -> None:  # noqa: A002 - the protocol's word
        """Queue a message. LocalProtocolError if the rules forbid it now or it exceeds a limit."""
        us, them = self._rules.us, self._rules.them
        if not 0 <= round <= them.highest_round + 1 or round > ROUND_LIMIT:
            raise LocalProtocolError(
                f"{message.name} in round {round}, the remote side is in {them.highest_round}"
            )
        if type(message) in self._absent:
            raise LocalProtocolError(f"{message.name} is not in the version or features agreed on")
        try:
            payload, content = encode_parts(message, self._packer)
            self._rules.say(message)
        except (Illegal, ValueError) as problem:
            raise LocalProtocolError(f"{message.name} in state {us.state.value}: {problem}") from problem
        if isinstance(message, Describe):
            self.entries.begin()
        us.highest_round = max(us.highest_round, round)
        length = len(payload) + len(content)
        head = frame_head(message.kind, round, length) + payload
        if content:
            self._costs.sent.frame(message.name, len(head) + len(content))
            self._blocks_out.write_content(head, content)
        else:
            self._costs.sent.frame(message.name, len(head))
            self._blocks_out.write(head)

    def beat(self) -> None:
        """Queue a keepalive: an empty block without meaning."""
        self._blocks_out.put_raw(b"")

    @property
    def can_refuse(self) -> bool:
        """Return whether the remote side would accept and understand Refused: it has sent its preamble, and
        the session is open."""
        return self._preamble_seen and Refused in self._rules.us.allowed

    @property
    def pending(self) -> int:
        """Bytes queued and not yet taken. Bytes not yet compressed count in full."""
        return len(self._preamble) + len(self._blocks_out)

    def flush(self) -> None:
        """Make everything queued available to data_to_send()."""
        self._blocks_out.flush()

    def data_to_send(self) -> bytes:
        """Take the bytes that are ready. A last piece below the block size becomes ready only after
        flush()."""
        return b"".join(self.parts_to_send())

    def parts_to_send(self) -> list[bytes | memoryview]:
        """Return the data of data_to_send() in pieces, so that file content is not copied."""
        parts = self._blocks_out.take_parts()
        if self._preamble:
            parts.insert(0, self._preamble)
            self._preamble = b""
        self.bytes_sent += sum(map(len, parts))
        return parts

    # Receiving

    @property
    def buffered(self) -> int:
        """Bytes received and not yet decoded. The caller stops reading at INBOUND_BYTES."""
        return len(self._blocks_in)

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the transport. Only the preamble is decoded here: IncompatiblePeerError at the
        first byte that differs from it."""
        self.bytes_received += len(data)
        if self._preamble_seen:
            self._blocks_in.feed(data)
        else:
            self._greeting += data
            self._read_preamble()

    def receive_eof(self) -> None:
        """Note that the remote side closed its direction of the transport."""
        self._eof = True

    @property
    def finished(self) -> bool:
        """Return whether the stream may end here: the remote side has sent all it had to."""
        return self._rules.them.state in {State.DONE, State.WATCHING, State.CLOSED}

    def next(self) -> Received | None:
        """Return the next message. None: more bytes are needed, or the stream ended where it may.

        Raises ProtocolError, IncompatiblePeerError, or StreamError if the stream ended early. Each later call
        raises the same error.
        """
        if self._failure is not None:
            raise self._failure
        try:
            while True:
                frame = self._frames_in.next()
                if frame is not None:
                    return self._receive(frame)
                data = self._blocks_in.next()
                if data is None:
                    break
                self._decoded += len(data)
                if self._decoded > self.decoded_limit:
                    raise RdcError(
                        f"more than {self.decoded_limit} bytes, decompressed, came in one session, which is"
                        " all that it may bring; run again to continue",
                        code=ExitCode.BUSY,
                    )
                self._frames_in.feed(data)
            if self._eof:
                self._check_end()
        except RdcError as error:
            self._failure = error
            # The error's traceback keeps this object alive, so release the window and the buffers now.
            self._blocks_in, self._frames_in = BlockReader(), FrameReader()
            raise
        return None

    # Counters

    @property
    def outstanding(self) -> int:
        """Requests without a complete answer."""
        return self._rules.outstanding

    @property
    def ranges(self) -> AskedRanges | None:
        """Return what the oldest request without a complete answer asks for, if that is ranges; the same
        object until it is answered."""
        return self._rules.ranges

    @property
    def max_round(self) -> int:
        """The highest round that either side used."""
        return max(self._rules.us.highest_round, self._rules.them.highest_round)

    @property
    def costs(self) -> tuple[MessageCost, ...]:
        """Costs per kind of message in both directions, the most bytes first. They add up to all bytes sent
        and received."""
        return self._costs.rows(self.bytes_sent + self.bytes_received)

    # Inside

    def _read_preamble(self) -> None:
        expected = MAGIC[: len(self._greeting)]
        if self._greeting[: len(MAGIC)] != expected:
            quote = printable(bytes(self._greeting[:_QUOTE_BYTES]))
            self._failure = IncompatiblePeerError(
                f'the remote side is not rdc: it began with "{quote}" (a login script that prints, or'
                " another program?)"
            )
            raise self._failure
        if len(self._greeting) <= len(MAGIC):
            return
        version = self._greeting[len(MAGIC)]
        if version != NEGOTIATING:
            why = "which cannot negotiate" if version < NEGOTIATING else "which no rdc speaks"
            self._failure = IncompatiblePeerError(
                f"the remote side speaks version {version} of the protocol, {why}; this rdc speaks version"
                f" {self._hello.version}; update rdc on the remote side"
            )
            raise self._failure
        self._preamble_seen = True
        self._blocks_in.feed(bytes(self._greeting[len(MAGIC) + 1 :]))
        self._greeting.clear()

    def _receive(self, frame: Frame) -> Received:
        us, them = self._rules.us, self._rules.them
        if frame.round > us.highest_round + 1:
            raise ProtocolError(
                f"the remote side sent round {frame.round}, more than {us.highest_round} can cause"
            )
        message = decode(frame.kind, frame.payload)
        self._costs.received.frame(message.name, frame.size)
        if type(message) in self._absent:
            raise ProtocolError(
                f"the remote side sent {message.name}, which is not in the version or features agreed on"
            )
        try:
            self._rules.hear(message)
        except Illegal as problem:
            raise ProtocolError(
                f"the remote side sent {message.name} in state {them.state.value}: {problem}"
            ) from problem
        if isinstance(message, Hello):
            self._greet(message)
        elif isinstance(message, Open) and message.needs is not None:
            self._check_needs(message.needs)
        self.entries.take(message)
        them.highest_round = max(them.highest_round, frame.round)
        return Received(message, frame.round)

    def _greet(self, hello: Hello) -> None:
        self.agreement = agree(self._dialect, self._hello, hello)
        self._absent = self.agreement.absent
        self.peer = hello

    def _check_needs(self, needs: str) -> None:
        """IncompatiblePeerError if this side lacks a feature or an option that the dialler needs."""
        names = {RULE_PARTS, SELECTION, UNITED_ACLS, UNITED_LINKS, UNITED_XATTRS}
        known = self._dialect.features.keys() | ADDED_OPTIONS.keys() | names
        unknown = sorted(set(needs.split(" ")) - known)
        if unknown:
            raise IncompatiblePeerError(
                f"this rdc ({self._hello.software}) lacks what the session needs: {', '.join(unknown)};"
                " update rdc on this side"
            )

    def _check_end(self) -> None:
        if self._rules.them.state is State.GREETING:
            raise StreamError("the remote side ended the stream before it said hello", before_hello=True)
        if not self.finished or len(self._blocks_in) or len(self._frames_in):
            raise StreamError("the remote side ended the stream early")


# Accounts of a connection: bytes that each kind of message costs, and memory that announced entries need.
#
# Costs include framing and compression. A block's bytes, header included, are divided among the frames in it
# in proportion to their share of its content. A block mostly holds messages sent between two waits, so few
# kinds share it. Preambles and keepalives belong to no frame and form a row of their own, so the rows add up
# to all bytes.
#
# Entries are counted before any of them is kept. The figures are upper bounds on what a destination keeps of
# an entry until the session or the turn ends. tests/session/destination/test_entries_memory.py measures them.

FRAMING = "Preamble"
"""The row of bytes that belong to no message."""

_PURPOSE = {message.name: message.place.purpose for message in messages.message_kinds().values()}


def purpose_of(name: str) -> Purpose:
    """Return the purpose of a kind of message."""
    return _PURPOSE.get(name, Purpose.OVERHEAD)


def cost_of(name: str, count: int, size: int, plain: int) -> MessageCost:
    return MessageCost(name, count, size, plain, purpose_of(name))


class _KindTotals(Record, frozen=False):
    count: int = 0
    bytes: int = 0
    plain: int = 0


class _Frame(Record, frozen=False):
    kind: _KindTotals
    left: int
    """Bytes of the frame that no block has covered yet."""


class _Block(Record, frozen=False):
    content: int
    """Bytes of frames in the block that no frame has claimed yet."""
    size: int
    """Bytes on the wire that these frames share."""


class Lane:
    """One direction: frames and blocks in the order in which they pass. Either may run ahead of the other."""

    __slots__ = ("_blocks", "_frames", "_totals")

    def __init__(self, totals: dict[str, _KindTotals]) -> None:
        self._totals = totals
        self._frames: deque[_Frame] = deque()
        self._blocks: deque[_Block] = deque()

    def frame(self, name: str, size: int) -> None:
        """Record a whole frame of `size` bytes."""
        kind = self._totals.get(name)
        if kind is None:
            kind = self._totals[name] = _KindTotals()
        kind.count += 1
        kind.plain += size
        frames = self._frames
        if frames and frames[-1].kind is kind:
            # Adjacent frames of a kind count as one.
            frames[-1].left += size
        else:
            frames.append(_Frame(kind, size))
        if self._blocks:
            self._distribute()

    def block(self, content: int, size: int) -> None:
        """Record a block of `size` bytes with the next `content` bytes of frames."""
        if content:
            self._blocks.append(_Block(content, size))
            if self._frames:
                self._distribute()

    def _distribute(self) -> None:
        frames, blocks = self._frames, self._blocks
        while frames and blocks:
            frame, block = frames[0], blocks[0]
            part = min(frame.left, block.content)
            # The rest of a block is divided again each time, so rounding loses nothing.
            share = block.size * part // block.content
            frame.kind.bytes += share
            block.content -= part
            block.size -= share
            frame.left -= part
            if not frame.left:
                frames.popleft()
            if not block.content:
                blocks.popleft()


class Costs:
    """The costs of both directions of a connection."""

    def __init__(self) -> None:
        self._totals: dict[str, _KindTotals] = {}
        self.sent = Lane(self._totals)
        self.received = Lane(self._totals)

    def rows(self, passed: int) -> tuple[MessageCost, ...]:
        """One row per kind of message, the most bytes first. passed: bytes in both directions, the sum of the
        rows."""
        totals = self._totals.items()
        rows = [cost_of(name, kind.count, kind.bytes, kind.plain) for name, kind in totals]
        rest = passed - sum(row.bytes for row in rows)
        return dearest_first((*rows, cost_of(FRAMING, 2, rest, rest)))


def dearest_first(rows: Iterable[MessageCost]) -> tuple[MessageCost, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.name)))


# Memory

ENTRY_BYTES = 200
"""Bytes per entry of a listing: its manifest row, and the record of a file until the file is committed."""

OPEN_BYTES = 350
"""Further bytes per entry of the current directory, which is unpacked, compared and decided on."""

DIRECTORY_BYTES = 600
"""Further bytes per entry that is a directory: its metadata until the end of the run."""

LISTED_BYTES = 400
"""Bytes per listed directory, besides its path."""

PATH_COPIES = 4
"""Copies of a directory's path: in the manifest's text, in its list, and in two tables by path."""

SET_BYTES = 400
"""Bytes per set of extended attributes, besides its content."""

LINK_BYTES = 32
"""Bytes per hard link, or per entry with extended attributes."""

PATH_BYTES = 150
"""Bytes per mount point or rename, besides its path."""

OWNER_BYTES = 250
"""Bytes per user or group with a name, and what it becomes."""

NODE_BYTES = 250
"""Bytes per manifest node during the comparison of the trees."""

PAGE_COPIES = 16
"""Bytes that one byte of a page takes once it is rows: measured 9 to 14 with short names."""

ROWS_BYTES = 900
"""Bytes per node whose rows one message holds, besides the rows."""


_MEETINGS = frozenset({Subject.MEET, Subject.MET})
"""Pages that begin a further run of a session that stays open: what the last one told is forgotten."""


class EntriesAccount:
    """Counts the bytes that a destination needs for the entries of one description of a tree, or of one
    turn."""

    def __init__(self) -> None:
        self.limit = SIZE_LIMIT
        """Limit in bytes, which may change at any time."""
        self.begin()

    def begin(self) -> None:
        """Start the account of a new description or turn, which replaces the last one."""
        self._entries = 0
        self._counted = 0
        self._open = 0
        self._directory = b""
        """The directory of the last entries; `_open` counts its entries."""

    @property
    def size(self) -> int:
        """Bytes counted now."""
        return self._counted + self._open

    def take(self, message: messages.Message) -> None:
        """Count a message's entries before any of them is kept. Raises RdcError if they exceed the limit."""
        if isinstance(message, messages.Turn) or (
            isinstance(message, messages.Page) and message.subject in _MEETINGS and message.last
        ):
            self.begin()
        # Most messages have no entries: they cost one look-up here.
        measure = _MEASURES.get(type(message))
        if measure is None:
            return
        self._counted += measure(message)
        if isinstance(message, (messages.ListingPart, messages.Changed)):
            self._enter(message.path, len(message.listing))
        elif isinstance(message, messages.RowsPart):
            for segment in message.rows.segments:
                self._enter(segment.path, segment.count)
        if self.size > self.limit:
            raise RdcError(
                f"the source told of {self._entries:,} entries, for which the destination needs more than the"
                f" {self.limit >> 20:,} MiB of memory that it may use; raise --max-memory there (in a"
                " daemon's settings: memory), or sync parts of the tree by themselves",
                code=ExitCode.FILE_IO,
            )

    def _enter(self, path: bytes, entries: int) -> None:
        if path != self._directory:
            self._directory, self._open = path, 0
        self._open += entries * OPEN_BYTES
        self._entries += entries


def _listing(path: bytes, listing: Listing) -> int:
    return (
        len(path) * PATH_COPIES
        + LISTED_BYTES
        + len(listing) * ENTRY_BYTES
        + listing.kinds.count(Kind.DIRECTORY) * DIRECTORY_BYTES
        + 2 * (sum(map(len, listing.names)) + sum(map(len, listing.targets)))
    )


def _rows(message: messages.RowsPart) -> int:
    rows = message.rows
    named = sum(len(one.path) * PATH_COPIES + 2 * len(one.names + one.targets) for one in rows.segments)
    return (
        len(message.counts) * ROWS_BYTES
        + len(rows.segments) * LISTED_BYTES
        + rows.count * ENTRY_BYTES
        + rows.kinds.count(Kind.DIRECTORY) * DIRECTORY_BYTES
        + named
    )


def _attributes(message: messages.EntryAttributes) -> int:
    sets = sum(map(len, message.sets)) + len(message.sets) * SET_BYTES
    return sets + len(message.entries) * LINK_BYTES


def _owners(message: messages.Owners) -> int:
    names = (*message.user_names, *message.group_names)
    return sum(map(len, names)) + len(names) * OWNER_BYTES


_MEASURES: dict[type[messages.Message], Callable[[Any], int]] = {
    messages.ListingPart: lambda part: _listing(part.path, part.listing),
    messages.Changed: lambda changed: _listing(changed.path, changed.listing) + 2 * len(changed.gone),
    messages.RowsPart: _rows,
    messages.TierAnswer: lambda tier: sum(tier.counts) * NODE_BYTES,
    messages.HardLinks: lambda links: len(links.files) * LINK_BYTES,
    messages.EntryAttributes: _attributes,
    messages.MountPoints: lambda mounts: sum(map(len, mounts.paths)) + len(mounts.paths) * PATH_BYTES,
    messages.Owners: _owners,
    messages.Renamed: lambda renamed: 2 * (len(renamed.old) + len(renamed.new) + PATH_BYTES),
    messages.Page: lambda page: PAGE_COPIES * len(page.part),
}
