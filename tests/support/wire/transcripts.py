"""Recorded sessions: what both ends wrote, in order, and an end that does it again in place of a live one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import msgpack

from rdc.errors import RdcError
from rdc.protocol.connection import DIALECT, Connection
from rdc.protocol.messages import Hello, Literals, Open, message_kinds
from rdc.protocol.wire.stream import BlockReader, FrameReader

__all__ = ["Line", "RecordedEnd", "Recording", "read_transcript", "write_transcript"]

PREAMBLE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Line:
    """The bytes that one end wrote before it waited for the other."""

    by_dialler: bool
    data: bytes
    last: bool = False
    """This end's stream ends here."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One message as it is on the wire."""

    kind: int
    round: int
    payload: bytes


class Decoder:
    """Splits one direction of a session into messages."""

    def __init__(self) -> None:
        self._preamble = PREAMBLE_BYTES
        self._blocks, self._frames = BlockReader(), FrameReader()

    def feed(self, data: bytes) -> list[Sent]:
        skipped = min(self._preamble, len(data))
        self._preamble -= skipped
        self._blocks.feed(data[skipped:])
        found: list[Sent] = []
        while (content := self._blocks.next()) is not None:
            self._frames.feed(content)
            while (frame := self._frames.next()) is not None:
                found.append(Sent(frame.kind, frame.round, bytes(frame.payload)))
        return found


# Files


def write_transcript(path: Path, lines: Iterable[Line]) -> None:
    """A line of the file for each line: who wrote, the bytes, and the messages that they complete."""
    names = message_kinds()
    decoders = {True: Decoder(), False: Decoder()}
    texts: list[str] = []
    for line in lines:
        messages = " ".join(names[sent.kind].__name__ for sent in decoders[line.by_dialler].feed(line.data))
        who = "dialler" if line.by_dialler else "answerer"
        texts.append(f"{who}{'.' if line.last else ''} {line.data.hex() or '-'} {messages}".rstrip())
    path.write_text("\n".join(texts) + "\n")


def read_transcript(path: Path) -> list[Line]:
    found: list[Line] = []
    for text in path.read_text().splitlines():
        who, data, *_ = text.split(" ")
        found.append(
            Line(who.rstrip(".") == "dialler", b"" if data == "-" else bytes.fromhex(data), who[-1] == ".")
        )
    return found


class Recording(Connection):
    """A connection that adds to `lines` what it sends. The remote side's must add to the same list."""

    def __init__(self, lines: list[Line], dialler: bool, hello: Hello, *, compress: bool) -> None:
        super().__init__(dialler, hello, compress)
        self._lines = lines

    def data_to_send(self) -> bytes:
        data = super().data_to_send()
        if data:
            self._lines.append(Line(self.dialler, data))
        return data

    def receive_eof(self) -> None:
        super().receive_eof()
        end = Line(not self.dialler, b"", last=True)
        if self._lines and self._lines[-1].by_dialler is end.by_dialler:
            end = Line(end.by_dialler, self._lines.pop().data, last=True)
        self._lines.append(end)


# Replay


class RecordedEnd:
    """One end of a recorded session, in the place of a Runner and of its Connection at once.

    It writes what it wrote then, each line when everything before it has come. It fails if the other end
    writes other messages than then. What may grow are Hello and Open.
    """

    def __init__(self, lines: list[Line], *, dialler: bool, packed: bool) -> None:
        """packed: the session was compressed, so that other bytes may mean the same messages."""
        self._lines = deque(lines)
        self._dialler = dialler
        self._expected = b"".join(line.data for line in lines if line.by_dialler is not dialler)
        self._decoders = Decoder(), Decoder()
        """The decoders of what is expected, and of what arrives."""
        self._awaited: deque[Sent] = deque()
        self._came: deque[Sent] = deque()
        self._bytes = bytearray()
        self._exact = not packed
        """True if the bytes are those that were recorded, as far as they came."""
        self.connection = self
        self.over = False
        self.rested = False
        self.value = None
        self.can_refuse = False
        self.max_round = 0

    # As a Runner

    @property
    def waits(self) -> bool:
        return not self._lines

    def advance(self, polled: bool) -> None:
        self._skip_ends()
        if not self._lines or (self._mine and self._lines[0].last):
            self.over = True

    def fail(self, error: RdcError) -> NoReturn:
        raise error

    # As a Connection

    def flush(self) -> None: ...

    def send(self, message: object, round: int) -> None:  # noqa: A002 - a Connection's
        raise AssertionError("a recorded end has nothing else to say")

    def data_to_send(self) -> bytes:
        return self._lines.popleft().data if self._lines and self._mine else b""

    def receive_data(self, data: bytes) -> None:
        if not data:
            return
        self._bytes += data
        self._came += self._decoders[1].feed(data)
        while self._came:
            while not self._awaited:
                assert self._lines, f"more than was recorded: {self._came[0]}"
                assert not self._mine, f"before its turn: {self._came[0]}"
                self._awaited += self._decoders[0].feed(self._lines.popleft().data)
            expected, came = self._awaited.popleft(), self._came.popleft()
            check_message(expected, came)
            self._exact &= came == expected

    def receive_eof(self) -> None:
        assert not self._awaited, "it ended early"

    # At the end

    def check_end(self) -> None:
        """All that was recorded happened, to the byte where neither compression nor growth forbids that."""
        self._skip_ends()
        assert not self._lines, f"{len(self._lines)} lines did not happen"
        assert not self._awaited, f"it ended before {self._awaited[0]}"
        if self._exact:
            assert bytes(self._bytes) == self._expected

    @property
    def _mine(self) -> bool:
        return self._lines[0].by_dialler is self._dialler

    def _skip_ends(self) -> None:
        while self._lines and not self._mine and not self._lines[0].data:
            self._lines.popleft()


def check_message(expected: Sent, came: Sent) -> None:
    """Check that a message is the recorded one, or one that the rules for later versions allow instead."""
    assert (came.kind, came.round) == (expected.kind, expected.round)
    if came.payload == expected.payload or came.kind == Literals.kind:
        return  # literals are compressed, and zstd may get better
    one, other = (msgpack.unpackb(sent.payload, raw=False, strict_map_key=True) for sent in (expected, came))
    if came.kind == Hello.kind:
        features = {
            name: set(str(hello.pop("f", "")).split()) for name, hello in (("old", one), ("new", other))
        }
        assert features["old"] <= features["new"]
        assert one.pop("v") <= other.pop("v") == DIALECT.newest
        assert other.pop("o", DIALECT.oldest) <= DIALECT.newest
        one.pop("o", None)
        assert one.items() <= other.items()
    else:
        assert came.kind == Open.kind, f"expected {expected}, found {came}"
        assert other[: len(one)] == one
