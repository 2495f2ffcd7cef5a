"""The driver: the same conversations in turns, between threads and processes, within their bounds."""

from __future__ import annotations

import random
import sys
import threading
from typing import Any

import pytest

from rdc.errors import ExitCode, StreamError
from rdc.limits import DATA_BYTES, INBOUND_BYTES
from rdc.protocol import messages
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Data
from rdc.session.runtime.commands import Flush, Receive, Send
from rdc.session.runtime.driver import PENDING_HIGH, QUEUED_HIGH, run
from rdc.transport.base import Exchange, Transport
from rdc.transport.pipes import ChildTransport
from tests.session.runtime import plain_conversations
from tests.session.runtime.plain_conversations import destination, source
from tests.support.project_paths import TOP
from tests.support.running.driven_pairs import (
    LIMIT,
    LINKS,
    Meter,
    Recorded,
    Talk,
    both_threads,
    follow,
    pipes,
    wanted,
)
from tests.support.running.run_pair import run_pair
from tests.support.wire.memory_transport import pair
from tests.support.wire.wire_script import HELLO, PAYLOAD, PREAMBLE, opening, raw, script


@pytest.mark.parametrize("dialler", list(messages.Role))
def test_a_pair_in_turns(dialler: messages.Role) -> None:
    first, second = Connection(True, HELLO), Connection(False, HELLO)
    came = run_pair(follow(dialler, True), first, follow(dialler, False), second)
    lines = script(dialler)
    assert came == (
        1 + sum(not line.by_dialler for line in lines),
        1 + sum(line.by_dialler for line in lines),
    )
    assert first.bytes_sent == second.bytes_received
    assert second.bytes_sent == first.bytes_received


def test_a_pair_is_deterministic() -> None:
    def once() -> tuple[int, int]:
        first, second = Connection(True, HELLO), Connection(False, HELLO)
        run_pair(follow(messages.Role.SOURCE, True), first, follow(messages.Role.SOURCE, False), second)
        return first.bytes_sent, second.bytes_sent

    assert once() == once()


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("dialler", list(messages.Role))
def test_two_threads(link: str, dialler: messages.Role) -> None:
    near, far = both_threads(follow(dialler, True), follow(dialler, False), LINKS[link]())
    assert (near, far) == run_pair(
        follow(dialler, True), Connection(True, HELLO), follow(dialler, False), Connection(False, HELLO)
    )


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.support.running.driven_pairs import follow
from tests.support.wire.wire_script import HELLO
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Role
from rdc.session.runtime.driver import run
from rdc.transport.pipes import StdioTransport
transport = StdioTransport()
run(follow(Role.DESTINATION, False), Connection(False, HELLO), transport)
transport.close()
sys.exit(5)
"""


def test_two_processes() -> None:
    transport = ChildTransport([sys.executable, "-c", CHILD, str(TOP)])
    assert run(follow(messages.Role.DESTINATION, True), Connection(True, HELLO), transport, timeout=LIMIT) > 1
    assert transport.wait() == 5
    transport.close()


# Large transfers


@pytest.mark.parametrize("link", ["memory", "pipes"])
@pytest.mark.parametrize("poll", [True, False])
def test_both_ends_send_megabytes_at_once(link: str, poll: bool) -> None:
    """More than pipes and INBOUND_BYTES hold one way, and much the other way before anything is read."""
    count = (2 * INBOUND_BYTES + (8 << 20)) // DATA_BYTES
    ends = LINKS[link]()
    results: list[Any] = []

    def serve() -> None:
        results.append(run(destination(count, 800), Connection(False, HELLO, False), ends[1], timeout=LIMIT))

    thread = threading.Thread(target=serve)
    thread.start()
    near = Connection(True, HELLO, compress=False)
    assert run(source(count, poll), near, ends[0], timeout=LIMIT) == 800
    thread.join(LIMIT)
    assert results == [count * DATA_BYTES]
    assert near.bytes_sent > count * DATA_BYTES
    assert near.bytes_received > 800 * 4000
    for end in ends:
        end.close()


def test_what_is_queued_is_bounded_and_leaves_before_a_wait() -> None:
    def talk() -> Talk:
        yield Send(opening(messages.Role.DESTINATION), 1)
        for row in range(200):
            yield Send(messages.Notice(ExitCode.OK, b"d" * row, "n" * 200), 1)
            yield Send(messages.Notice(ExitCode.OK, b"x" * 60_000, ""), 1)
            assert connection.pending <= (256 << 10) + 70_000
        yield Receive()

    meter = Meter()
    connection = Connection(True, HELLO, compress=False)
    with pytest.raises(StreamError):
        run(talk(), connection, meter)
    assert meter.taken == connection.bytes_sent > 200 * 60_000
    assert meter.largest < 512 << 10
    assert connection.pending == 0


class Flood(Meter):
    """Offers input without end."""

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        if want_input:
            self.taken += 1
            return Exchange(0, b"\xff\xff\x0f" * 100_000 if self.taken > 1 else PREAMBLE + raw(HELLO), False)
        return Exchange(len(outgoing), b"", False)


def test_input_is_left_alone_past_its_bound() -> None:
    def talk() -> Talk:
        yield Send(opening(messages.Role.DESTINATION), 1)
        for _ in range(20):
            yield Send(messages.Notice(ExitCode.OK, b"x" * 60_000, ""), 1)
            assert connection.buffered <= INBOUND_BYTES + 300_000
        assert connection.buffered >= INBOUND_BYTES
        return "sent"

    connection = Connection(True, HELLO, compress=False)
    assert run(talk(), connection, Flood()) == "sent"


def test_a_pair_that_waits_for_each_other_is_noticed() -> None:
    def talk() -> Talk:
        yield Receive()
        yield Receive()

    with pytest.raises(RuntimeError, match="both sides wait"):
        run_pair(talk(), Connection(True, HELLO), talk(), Connection(False, HELLO))


def test_a_glance_sees_what_is_there_and_does_not_wait() -> None:
    def talk() -> Talk:
        yield Send(opening(), 1)
        seen: list[messages.Message] = []
        while len(seen) < 2:
            received = yield Receive(wait=False)
            if received is not None:
                seen.append(received.message)
        assert (yield Receive(wait=False)) is None
        return seen

    stream = PREAMBLE + raw(HELLO) + raw(messages.Opened(), 1)

    class Slow(Recorded):
        def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
            if timeout == 0 and not self.data:
                return Exchange(len(outgoing), b"", False)
            return super().exchange(outgoing, want_input, timeout)

    assert run(talk(), Connection(True, HELLO), Slow(stream, 5)) == [HELLO, messages.Opened()]


@pytest.mark.parametrize("link", ["memory", "pipes"])
def test_a_flush_lets_the_far_side_begin_before_long_work(link: str) -> None:
    """Nothing is received between what was sent and the work, and yet the remote side has it by then."""
    heard = threading.Event()

    def working() -> Talk:
        yield Send(opening(messages.Role.DESTINATION), 0)
        yield Flush()
        return heard.wait(LIMIT)

    def listening() -> Talk:
        assert wanted((yield Receive())) == HELLO
        assert wanted((yield Receive())) == opening(messages.Role.DESTINATION)
        heard.set()
        return None

    near, far = both_threads(working(), listening(), LINKS[link]())
    assert near is True
    assert far is None


@pytest.mark.parametrize("link", ["memory", "pipes"])
def test_a_flush_right_after_input_hands_over_what_it_queued(link: str) -> None:
    """The exchange that brought the input has not seen what was sent since."""
    heard = threading.Event()

    def working() -> Talk:
        assert wanted((yield Receive())) == HELLO
        yield Send(opening(messages.Role.DESTINATION), 0)
        yield Flush()
        return heard.wait(LIMIT)

    def listening() -> Talk:
        assert wanted((yield Receive())) == HELLO
        assert wanted((yield Receive())) == opening(messages.Role.DESTINATION)
        heard.set()
        return None

    near, far = both_threads(working(), listening(), LINKS[link]())
    assert near is True
    assert far is None


def test_a_flush_in_turns_has_nothing_to_wait_for() -> None:
    def talk(dials: bool) -> Talk:
        if dials:
            yield Send(opening(messages.Role.DESTINATION), 0)
        yield Flush()
        yield Flush()
        return wanted((yield Receive()))

    ends = Connection(True, HELLO), Connection(False, HELLO)
    assert run_pair(talk(True), ends[0], talk(False), ends[1]) == (HELLO, HELLO)


def test_the_value_is_the_conversations() -> None:
    def talk() -> Talk:
        return PAYLOAD
        yield Receive()

    assert run(talk(), Connection(True, HELLO), pair()[0]) is PAYLOAD


class Tight:
    """A transport that takes nothing from a writer that does not wait."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.written = 0

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        if timeout == 0:
            return self._inner.exchange(memoryview(b""), True, 0) if want_input else Exchange(0, b"", False)
        moved = self._inner.exchange(outgoing, want_input, timeout)
        self.written += moved.written
        return moved

    def close_write(self) -> None:
        self._inner.close_write()

    def close(self) -> None:
        self._inner.close()


def test_a_sender_that_looks_for_input_does_not_run_ahead_of_its_transport(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size, noise = 100_000, random.Random(1)
    monkeypatch.setattr(plain_conversations, "DATA_BYTES", size)
    near, far = pipes()
    tight = Tight(near)
    sent, ahead = 0, 0

    def noisy(conversation: Talk) -> Talk:
        nonlocal sent, ahead
        command = next(conversation)
        while True:
            if isinstance(command, Send) and isinstance(command.message, Data):
                command = Send(Data(0, noise.randbytes(size)), command.round)
                sent += size
                ahead = max(ahead, sent - tight.written)
            answer = yield command
            try:
                command = conversation.send(answer)
            except StopIteration as stop:
                return int(stop.value)

    both_threads(noisy(source(150, True)), destination(150, 0), (tight, far))
    assert ahead <= QUEUED_HIGH + PENDING_HIGH + 2 * size
