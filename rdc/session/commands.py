"""What a conversation asks for: to send, to receive, to wait, to keep to a pace.

A conversation is a generator that yields commands and returns a value. It never touches a transport, so the
same one runs over ssh, between two threads, or against a script in a test.
"""

from __future__ import annotations

from collections.abc import Generator

from rdc.protocol.connection import Received
from rdc.records import dataclass
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from rdc.protocol.messages import Message
    from rdc.session.pressure import Content

__all__ = ["Command", "Conversation", "Flush", "Idle", "Pace", "Press", "Receive", "Send"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Send:
    """Queue a message; the answer is None. It leaves at the next Receive(wait=True) at the latest."""

    message: Message
    round: int


@dataclass(frozen=True, slots=True)
class Receive:
    """The next message as Received. With wait=False None when none is there yet; what was queued then stays
    queued until it fills a block."""

    wait: bool = True


@dataclass(frozen=True, slots=True)
class Flush:
    """Hand everything queued to the transport, as far as it takes it, before long work without messages; the
    answer is None."""


@dataclass(frozen=True, slots=True)
class Pace:
    """From here on the connection keeps to these limits, 0 being none; the answer is None."""

    bandwidth: int
    """Bytes a second that this side writes."""
    timeout: int
    """Seconds without a byte moving, either way, after which the session ends."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The next message, in a session that stays open between its turns: there may be none for days.

    None without one: the far side ended the stream, as it then may. With a `bell` None only says that it rang
    or that `seconds` passed, and the end of the stream is a StreamError. Under a time limit both sides give
    signs of life meanwhile, and one that has none of the other's for so long ends the session.
    """

    bell: int | None = None
    """A descriptor; it rings by becoming readable."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Press:
    """How hard what is sent from here on is compressed, where it is; the answer is None."""

    content: Content
    size: int = 0
    """Bytes of it, if it is code."""


Command: TypeAlias = Send | Receive | Flush | Pace | Press | Idle
Conversation: TypeAlias = Generator[Command, Received | None, T]
