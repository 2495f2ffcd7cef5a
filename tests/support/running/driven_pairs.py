"""Conversations run against each other by the driver, over every kind of link."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from typing import Any

from rdc.errors import RdcError
from rdc.protocol.connection import Connection, Received
from rdc.protocol.messages import Message, Role
from rdc.session.runtime.commands import Command, Conversation, Receive, Send
from rdc.session.runtime.driver import run
from rdc.transport.base import Exchange, Transport
from rdc.transport.pipes import PipeTransport
from tests.support.wire.memory_transport import pair
from tests.support.wire.wire_script import HELLO, script

__all__ = ["LIMIT", "LINKS", "Meter", "Recorded", "Talk", "both_threads", "follow", "pipes", "wanted"]

LIMIT = 120.0
Talk = Generator[Command, Received | None, Any]


def wanted(received: Received | None) -> Message:
    assert received is not None
    return received.message


def follow(dialler: Role, dials: bool) -> Generator[Command, Received | None, int]:
    """One end of the written session; every message must be the expected one. Returns how many came."""
    assert wanted((yield Receive())) == HELLO
    came = 1
    for line in script(dialler):
        if line.by_dialler is dials:
            yield Send(line.message, line.round)
        else:
            assert (yield Receive()) == Received(line.message, line.round)
            came += 1
    return came


def both_threads(
    first: Conversation[Any], second: Conversation[Any], ends: tuple[Transport, Transport]
) -> tuple[Any, Any]:
    """Dialler and answerer, each in a thread: values or errors."""
    results: list[Any] = [None, None]

    def one(row: int, conversation: Conversation[Any]) -> None:
        try:
            results[row] = run(conversation, Connection(row == 0, HELLO), ends[row], timeout=LIMIT)
        except RdcError as error:
            results[row] = error
        finally:
            ends[row].close()

    thread = threading.Thread(target=one, args=(1, second))
    thread.start()
    one(0, first)
    thread.join(LIMIT)
    assert not thread.is_alive()
    return results[0], results[1]


def pipes() -> tuple[Transport, Transport]:
    there, back = os.pipe(), os.pipe()
    return PipeTransport(back[0], there[1]), PipeTransport(there[0], back[1])


LINKS: dict[str, Callable[[], tuple[Transport, Transport]]] = {
    "memory": pair,
    "narrow memory": lambda: pair(10),
    "pipes": pipes,
}


class Meter:
    """A transport that takes everything and says nothing, and notes how much it was offered at once."""

    def __init__(self) -> None:
        self.largest = 0
        self.taken = 0

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        self.largest = max(self.largest, len(outgoing))
        written = min(len(outgoing), 40_000)
        self.taken += written
        if not written and timeout != 0:
            return Exchange(0, b"", True)
        return Exchange(written, b"", False)

    def close_write(self) -> None: ...

    def close(self) -> None: ...


class Recorded:
    """A transport that gives back what was recorded, then ends; what is written disappears."""

    def __init__(self, data: bytes, step: int = 1 << 20) -> None:
        self.data = data
        self.step = step

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        part = self.data[: self.step] if want_input else b""
        self.data = self.data[len(part) :]
        return Exchange(len(outgoing), part, want_input and not part)

    def close_write(self) -> None: ...

    def close(self) -> None: ...
