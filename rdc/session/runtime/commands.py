"""The commands that a conversation yields, and the compression level that a connection can afford."""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum

from rdc.lean.records import dataclass
from rdc.lean.typed import TypeVar
from rdc.protocol.connection import Received
from rdc.protocol.wire.stream import HARD, PLAIN, QUICK, QUICKEST, CompressionLevel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from rdc.protocol.messages import Message


# Chooses the compression level. Text and the first bytes of code always get the high level; more code and new
# files get it only on a slow link.

HARD_FIRST = 512 << 10
"""Bytes of code per session that get the high level on any link. Measured: that saves some 10 KB in 4 ms; the
next 1.5 MiB would save 12 to 50 KB in 14 ms."""

SLOW = 4 << 20
"""Bytes per second below which a link is slow. Measured on 25 MB of literals of libraries: the high level
saves 0.5 MB and takes 0.17 s more, as long as a link of 3 MB/s needs for 0.5 MB."""


FAST = 32 << 20
"""Bytes per second above which a link is fast. Measured on the literals of three rebuilt packages: the lowest
level adds 0.6 MB and saves 0.03 s on both sides, as long as a link of 20 MB/s needs for 0.6 MB."""


class Content(Enum):
    """The kinds of content that a session sends."""

    NEW = "files of which nothing is there"
    TEXT = "what no base has of a file that is no code"
    """The high level shrinks text by a tenth or more and code by a twentieth. For text it pays on every
    link."""
    CODE = "what no base has of machine code"


class CompressionPolicy:
    """The compression policy for one direction of a session."""

    __slots__ = ("_carried", "_code", "_limit", "_seconds")

    def __init__(self) -> None:
        self._code = 0
        self._limit = 0
        self._carried = 0
        self._seconds = 0.0

    def limit(self, bandwidth: int) -> None:
        """No more than so many bytes a second are to be sent; 0: as many as the link takes."""
        self._limit = bandwidth

    def note_delay(self, carried: int, seconds: float) -> None:
        """For so long there was more to send than the link took, which was so many bytes."""
        self._carried += carried
        self._seconds += seconds

    @property
    def slow(self) -> bool:
        """Whether the link, as measured so far, is slow enough for the high level to pay."""
        return 0 < self._limit < SLOW or self._carried < SLOW * self._seconds

    @property
    def fast(self) -> bool:
        """Whether the link, as measured so far, is so fast that compression hardly pays."""
        return not 0 < self._limit < FAST and self._carried >= FAST * self._seconds

    def compression(self, content: Content, size: int = 0) -> CompressionLevel:
        """The level for the next content. `size`: its bytes, if it is code."""
        if content is Content.NEW:
            return HARD if self.slow else PLAIN
        if content is Content.TEXT:
            return HARD
        self._code += size
        if self._code <= HARD_FIRST or self.slow:
            return HARD
        return QUICKEST if self.fast else QUICK


# The commands that a conversation yields: send, receive, flush, wait, set limits, set compression.
#
# A conversation is a generator that yields commands and returns a value. It never touches a transport. It can
# therefore run over ssh, between two threads, or against a script in a test.

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Send:
    """Queues a message; the answer is None. The message leaves at the next Receive(wait=True) at the
    latest."""

    message: Message
    round: int


@dataclass(frozen=True, slots=True)
class Receive:
    """Asks for the next message; the answer is a Received.

    With wait=False the answer is None if no message is there yet, and queued messages stay queued until they
    fill a block.
    """

    wait: bool = True


@dataclass(frozen=True, slots=True)
class Flush:
    """Hands queued messages to the transport, as far as it takes them; the answer is None.

    A conversation flushes before long work without messages.
    """


@dataclass(frozen=True, slots=True)
class Pace:
    """Sets the connection's limits; 0 is no limit. The answer is None."""

    bandwidth: int
    """Bytes per second that this side may write."""
    timeout: int
    """Seconds without a byte in either direction after which the session ends."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Asks for the next message between two turns of an open session. It may take days.

    The answer None means that the far side ended the stream. With a `bell` it means that the bell rang or
    `seconds` passed; the end of the stream then raises StreamError. Under a time limit both sides send signs
    of life; a side that receives none for that long ends the session.
    """

    bell: int | None = None
    """A file descriptor that rings by becoming readable."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SetCompression:
    """Announces the content of the next messages, which decides their compression level; the answer is
    None."""

    content: Content
    size: int = 0
    """Bytes of the content, if it is code."""


@dataclass(slots=True)
class AskAgreement:
    """Asks for what both sides speak, after the far side's Hello; the answer is None, and `features` is
    set."""

    features: frozenset[str] = frozenset()


Command: TypeAlias = Send | Receive | Flush | Pace | SetCompression | AskAgreement | Idle
Conversation: TypeAlias = Generator[Command, Received | None, T]


def agreed_features() -> Conversation[frozenset[str]]:
    """The features that both sides have."""
    question = AskAgreement()
    yield question
    return question.features
