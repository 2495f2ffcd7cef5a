"""One end of a session without I/O: messages in, bytes out, and back, under every rule of the protocol.

Their fault raises ProtocolError or IncompatiblePeerError; ours raises LocalProtocolError, a bug.
"""

from __future__ import annotations

import msgpack  # type: ignore[import-untyped]

from rdc.errors import ExitCode, IncompatiblePeerError, ProtocolError, RdcError, StreamError, printable
from rdc.limits import ROUND_LIMIT, SIZE_LIMIT
from rdc.model.sync import MessageCost
from rdc.protocol.blocks import BlockReader, BlockWriter
from rdc.protocol.census import Census
from rdc.protocol.costs import Costs
from rdc.protocol.frames import Frame, FrameReader, frame_head
from rdc.protocol.ledger import Ledger
from rdc.protocol.messages import (
    PROTOCOL_VERSION,
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
    FileBatch,
    FileEnd,
    FileFailed,
    FileRequest,
    Follow,
    HardLinks,
    Hello,
    ListingEnd,
    ListingPart,
    Literals,
    Manifest,
    Message,
    MountPoints,
    NodeAnswer,
    NodeRequest,
    Open,
    Opened,
    RangeRequest,
    Refused,
    Renamed,
    Role,
    RootAnswer,
    RootRequest,
    RowsPart,
    RowsRequest,
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
    decode,
    encode_parts,
)
from rdc.protocol.pressing import PLAIN, RAW, Pressing
from rdc.protocol.states import NEEDS, RECALLS, TRANSITIONS, Illegal, State
from rdc.records import dataclass

__all__ = ["MAGIC", "Connection", "LocalProtocolError", "Received"]

MAGIC = b"RDC"
_QUOTE_BYTES = 60

_ANSWERS = (
    BlockAnswer, BundleAnswer, Literals, TreeAnswer, RootAnswer, DigestAnswer, TraitsAnswer, NodeAnswer, Data,
    FileBatch, FileEnd, FileFailed, Code, Correction, Targets, Table,
)  # fmt: skip
_FILE_REQUESTS = (BlockRequest, RangeRequest, NodeRequest)
_FILES_REQUESTS = (RootRequest, DigestRequest, TraitsRequest, TreeRequest, BundleRequest, FileRequest)


class LocalProtocolError(RuntimeError):
    """This side was about to break the protocol: a bug in rdc, never the peer's doing."""


@dataclass(frozen=True, slots=True)
class Received:
    message: Message
    round: int


class _End:
    """Where one of the two sides stands."""

    def __init__(self, role: Role) -> None:
        # Until Open has said it, the role is a guess that changes nothing: the tables agree up to there.
        self.role = role
        self.state = State.GREETING
        self.highest_round = 0
        self.allowed = TRANSITIONS[role][self.state]

    def enter(self, state: State, role: Role | None = None) -> None:
        self.role = self.role if role is None else role
        self.state = state
        self.allowed = TRANSITIONS[self.role][state]
        """What it may say, and the states it is in then."""


class Connection:
    """`dialler`: opened the connection (sends Open); `hello`: what to say of ourselves; `compress`: False
    sends everything raw (the peer chooses for its own direction)."""

    def __init__(self, dialler: bool, hello: Hello, compress: bool = True) -> None:
        self.dialler = dialler
        self.peer: Hello | None = None
        """The far side's Hello, once it came."""
        self.role: Role | None = None
        """Ours, once Open said it."""
        self.bytes_sent = 0
        """Every byte that data_to_send() handed out."""
        self.bytes_received = 0
        """Every byte that receive_data() took."""
        self.decoded_limit = SIZE_LIMIT
        """How many bytes, decompressed, the far side may send in all; may change at any time."""
        self._decoded = 0
        self._hello = hello
        self._us = _End(Role.SOURCE if dialler else Role.DESTINATION)
        self._them = _End(self._us.role.other)
        self._ledger = Ledger()
        self._census = Census()
        self._stays = False
        """S watches: the session goes on after Done."""
        self._follows = False
        """D asked S to watch, and hears how that goes."""
        self._costs = Costs()
        self._packer = msgpack.Packer(use_bin_type=True)
        self._greeting = bytearray()
        """Bytes before the peer's preamble is complete."""
        self._preamble_seen = False
        self._blocks_in = BlockReader(self._costs.received)
        self._frames_in = FrameReader()
        self._eof = False
        self._failure: RdcError | None = None
        self._preamble: bytes = MAGIC + bytes((PROTOCOL_VERSION,))
        self._blocks_out = BlockWriter(RAW, self._costs.sent)
        self.send(hello, 0)
        self._blocks_out.flush()
        self._compress = compress
        self.press(PLAIN)

    # Sending

    def press(self, pressing: Pressing) -> None:
        """How hard what follows is compressed, if it is. A change starts with an empty window."""
        if self._compress:
            self._blocks_out.pressing = pressing

    def send(self, message: Message, round: int) -> None:  # noqa: A002 - the protocol's word
        """Queue a message. LocalProtocolError when it is not allowed now or breaks a limit."""
        us = self._us
        if not 0 <= round <= self._them.highest_round + 1 or round > ROUND_LIMIT:
            raise LocalProtocolError(
                f"{message.name} in round {round}, the far side is in {self._them.highest_round}"
            )
        try:
            payload, content = encode_parts(message, self._packer)
            self._step(us, self._them, message)
        except (Illegal, ValueError) as problem:
            raise LocalProtocolError(
                f"{message.name} in state {self._us.state.value}: {problem}"
            ) from problem
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
        """Queue a sign of life: an empty block, which means nothing."""
        self._blocks_out.put_raw(b"")

    @property
    def can_refuse(self) -> bool:
        """Refused would be legal and understood: the session is open and the far side has spoken rdc."""
        return self._preamble_seen and Refused in TRANSITIONS[self._us.role][self._us.state]

    @property
    def pending(self) -> int:
        """Bytes queued and not yet taken; those not yet compressed count in full."""
        return len(self._preamble) + len(self._blocks_out)

    def flush(self) -> None:
        """Make everything queued ready for data_to_send()."""
        self._blocks_out.flush()

    def data_to_send(self) -> bytes:
        """Takes the bytes that are ready; a last short piece only after flush()."""
        return b"".join(self.parts_to_send())

    def parts_to_send(self) -> list[bytes | memoryview]:
        """As data_to_send(), in pieces: the content of files is not copied into one with what surrounds
        it."""
        parts = self._blocks_out.take_parts()
        if self._preamble:
            parts.insert(0, self._preamble)
            self._preamble = b""
        self.bytes_sent += sum(map(len, parts))
        return parts

    # Receiving

    @property
    def buffered(self) -> int:
        """Bytes received and not yet decoded; the caller stops reading at INBOUND_BYTES."""
        return len(self._blocks_in)

    def receive_data(self, data: bytes) -> None:
        """Takes bytes from the transport. Nothing is decoded but the preamble: IncompatiblePeerError at the
        first byte that is not rdc's."""
        self.bytes_received += len(data)
        if self._preamble_seen:
            self._blocks_in.feed(data)
        else:
            self._greeting += data
            self._read_preamble()

    def receive_eof(self) -> None:
        """The far side will send no more."""
        self._eof = True

    @property
    def finished(self) -> bool:
        """The far side has said all it had to: an end of the stream is fine."""
        return self._them.state in {State.DONE, State.WATCHING, State.CLOSED}

    def next(self) -> Received | None:
        """The next message; None when more bytes are needed, or when the stream ended where it may.

        Raises ProtocolError, IncompatiblePeerError, or StreamError when the stream ended early; the same
        again on every later call.
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
                        " all that it may bring; run again to go on",
                        code=ExitCode.BUSY,
                    )
                self._frames_in.feed(data)
            if self._eof:
                self._check_end()
        except RdcError as error:
            self._failure = error
            # The error's traceback holds this object: give the window and the rest back at once.
            self._blocks_in, self._frames_in = BlockReader(), FrameReader()
            raise
        return None

    # Counters

    @property
    def outstanding(self) -> int:
        """Requests not wholly answered."""
        return len(self._ledger)

    @property
    def max_round(self) -> int:
        """The highest round either side used."""
        return max(self._us.highest_round, self._them.highest_round)

    @property
    def costs(self) -> tuple[MessageCost, ...]:
        """Messages of each kind, both ways, the most bytes first; together what was sent and received."""
        return self._costs.rows(self.bytes_sent + self.bytes_received)

    # Inside

    def _read_preamble(self) -> None:
        expected = MAGIC[: len(self._greeting)]
        if self._greeting[: len(MAGIC)] != expected:
            quote = printable(bytes(self._greeting[:_QUOTE_BYTES]))
            self._failure = IncompatiblePeerError(
                f'the far side is not rdc: it began with "{quote}" (a login script that prints, or another '
                "program?)"
            )
            raise self._failure
        if len(self._greeting) <= len(MAGIC):
            return
        version = self._greeting[len(MAGIC)]
        if version != PROTOCOL_VERSION:
            self._failure = IncompatiblePeerError(
                f"the far side speaks version {version} of the protocol, this rdc version "
                f"{PROTOCOL_VERSION}; install the same version on both sides"
            )
            raise self._failure
        self._preamble_seen = True
        self._blocks_in.feed(bytes(self._greeting[len(MAGIC) + 1 :]))
        self._greeting.clear()

    def _receive(self, frame: Frame) -> Received:
        if frame.round > self._us.highest_round + 1:
            raise ProtocolError(
                f"the far side sent round {frame.round}, more than {self._us.highest_round} can cause"
            )
        message = decode(frame.kind, frame.payload)
        self._costs.received.frame(message.name, frame.size)
        try:
            self._step(self._them, self._us, message)
        except Illegal as problem:
            raise ProtocolError(
                f"the far side sent {message.name} in state {self._them.state.value}: {problem}"
            ) from problem
        if isinstance(message, Hello):
            self._greet(message)
        self._them.highest_round = max(self._them.highest_round, frame.round)
        return Received(message, frame.round)

    def _greet(self, hello: Hello) -> None:
        if hello.version != PROTOCOL_VERSION:
            raise ProtocolError(f"the far side's Hello says version {hello.version}, its preamble another")
        if hello.params != self._hello.params:
            raise IncompatiblePeerError(
                f"the far side ({hello.software}) cuts files with other parameters than this rdc "
                f"({self._hello.software}); install the same version on both sides"
            )
        self.peer = hello

    def _step(self, sender: _End, other: _End, message: Message) -> None:
        """Applies every rule on order to `message` of `sender`; after Illegal the session is over."""
        after = sender.allowed.get(type(message))
        if after is None:
            raise Illegal("not allowed now")
        if after is sender.state and self._passed(message):
            return
        need = NEEDS.get(type(message))
        if need is not None and other.state is not need:
            raise Illegal(f"the other side is not yet in state {need.value}")
        match message:
            case Describe() if self.outstanding:
                raise Illegal(f"{self.outstanding} requests are unanswered")
            case Describe():
                if self._census.describe(message):
                    other.enter(State.SERVING)
                    sender.enter(after)
                    return
            case Follow() if self._follows or self._census.described:
                raise Illegal("it came already, or after Describe")
            case Follow():
                self._follows = True
            case Watch() if self._stays or self._census.started:
                raise Illegal("it came already, or after Start")
            case Watch():
                self._stays = True
            case Condition() if not self._follows:
                raise Illegal("nobody said Follow")
            case Turn():
                # Both sides are between messages: nothing of the last turn can still be under way.
                self._census = Census(message)
                sender.highest_round = other.highest_round = 0
            case Changed():
                self._census.change(message)
            case Renamed() | TurnEnd():
                self._census.change(None)
            case Start():
                self._census.start(message)
            case ListingPart():
                self._census.add(message)
            case Manifest() if not self._census.offer(message):
                after = sender.state
            case TierRequest() | RowsRequest():
                self._census.look()
                self._ledger.ask(message)
            case TierAnswer() | RowsPart():
                self._ledger.answer(message)
            case TopTier():
                self._census.top()
            case MountPoints():
                self._census.leave_out(message)
            case HardLinks():
                self._census.link(message)
            case ListingEnd():
                self._census.end(message)
            case Done() if self.outstanding:
                raise Illegal(f"{self.outstanding} requests are unanswered")
            case Open() | Opened():
                after = self._open(sender, other, message)
        sender.enter(after)
        before, recalled = RECALLS.get(type(message), (None, None))
        if recalled is not None and other.state is before:
            stays = self._stays and recalled is State.CLOSED
            other.enter(State.WATCHING if stays else recalled)

    def _passed(self, message: Message) -> bool:
        """Takes what is said about files, which most messages are, and changes nobody's state."""
        if isinstance(message, _FILE_REQUESTS):
            if isinstance(message, NodeRequest) or not self._census.is_bundle(message.file):
                self._listed(message.file)
            self._ledger.ask(message)
        elif isinstance(message, _ANSWERS):
            self._ledger.answer(message)
        elif isinstance(message, _FILES_REQUESTS):
            self._listed(message.files[-1])
            if isinstance(message, BundleRequest):
                if State.LISTING in (self._us.state, self._them.state):
                    raise Illegal("there may be more entries, whose ordinals a bundle must not have")
                self._census.bundle(message.bundle)
            self._ledger.ask(message)
        else:
            return False
        return True

    def _open(self, sender: _End, other: _End, message: Open | Opened) -> State:
        if isinstance(message, Open) != ((sender is self._us) == self.dialler):
            raise Illegal("the dialler sends Open, the answerer Opened")
        if isinstance(message, Open):
            sender.enter(sender.state, message.role.other)
            other.enter(other.state, message.role)
            self._census.may_offer = sender.role is Role.SOURCE
            self.role = self._us.role
        elif self.role is None:
            raise Illegal("there was no Open")
        return sender.allowed[type(message)]

    def _listed(self, file: int) -> None:
        if file >= self._census.known:
            raise Illegal(f"file {file} was not listed, only {self._census.known} entries were")

    def _check_end(self) -> None:
        if self._them.state is State.GREETING:
            raise StreamError("the far side ended the stream before it said hello", before_hello=True)
        if not self.finished or len(self._blocks_in) or len(self._frames_in):
            raise StreamError("the far side ended the stream early")
