"""The commands that a conversation yields: send, receive, flush, wait, set limits, set compression.

A conversation is a generator that yields commands and returns a value. It never touches a transport. It can
therefore run over ssh, between two threads, or against a script in a test.
"""

from __future__ import annotations

from collections.abc import Generator

from rdc.lean.records import dataclass
from rdc.lean.typed import TypeVar
from rdc.protocol.connection import Received

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from rdc.protocol.messages import Message
    from rdc.session.runtime.compression_policy import Content

__all__ = [
    "AskAgreement",
    "Command",
    "Conversation",
    "Flush",
    "Idle",
    "Pace",
    "Receive",
    "Send",
    "SetCompression",
    "agreed_features",
]

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
