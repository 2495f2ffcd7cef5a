"""The driver: the same conversations in turns, between threads and processes; ends that fail or vanish."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest

from rdc.errors import (
    ExitCode,
    FileError,
    IncompatiblePeerError,
    OutOfSpaceError,
    ProtocolError,
    RdcError,
    StreamError,
)
from rdc.limits import DATA_BYTES, INBOUND_BYTES
from rdc.model.entries import Kind, Metadata
from rdc.model.kept import Kept
from rdc.protocol.connection import Connection, LocalProtocolError, Received
from rdc.protocol.messages import (
    Data,
    Describe,
    Done,
    FileEnd,
    FileRequest,
    ListingEnd,
    ListingPart,
    Message,
    Notice,
    Opened,
    Refused,
    Role,
    Start,
)
from rdc.session.commands import Command, Conversation, Flush, Receive, Send
from rdc.session.driver import run
from rdc.transport.base import Exchange, Transport
from rdc.transport.memory import pair
from rdc.transport.pipes import PipeTransport
from rdc.transport.stdio import ChildTransport
from tests.run_pair import run_pair
from tests.wire_script import HELLO, PAYLOAD, PREAMBLE, listing, opening, raw, script

LIMIT = 20.0
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


@pytest.mark.parametrize("dialler", list(Role))
def test_a_pair_in_turns(dialler: Role) -> None:
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
        run_pair(follow(Role.SOURCE, True), first, follow(Role.SOURCE, False), second)
        return first.bytes_sent, second.bytes_sent

    assert once() == once()


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("dialler", list(Role))
def test_two_threads(link: str, dialler: Role) -> None:
    near, far = both_threads(follow(dialler, True), follow(dialler, False), LINKS[link]())
    assert (near, far) == run_pair(
        follow(dialler, True), Connection(True, HELLO), follow(dialler, False), Connection(False, HELLO)
    )


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from test_session_driver import follow
from tests.wire_script import HELLO
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Role
from rdc.session.driver import run
from rdc.transport.stdio import StdioTransport
transport = StdioTransport()
run(follow(Role.DESTINATION, False), Connection(False, HELLO), transport)
transport.close()
sys.exit(5)
"""


def test_two_processes() -> None:
    transport = ChildTransport([sys.executable, "-c", CHILD, os.path.dirname(__file__)])
    assert run(follow(Role.DESTINATION, True), Connection(True, HELLO), transport, timeout=LIMIT) > 1
    assert transport.wait() == 5
    transport.close()


# Large transfers


def source(count: int, poll: bool) -> Talk:
    """Dials as the source, sends one file of `count` full messages; returns what it heard meanwhile."""
    yield Send(opening(Role.DESTINATION), 1)
    assert wanted((yield Receive())) == HELLO
    assert isinstance(wanted((yield Receive())), Opened)
    assert isinstance(wanted((yield Receive())), Describe)
    yield Send(Start(b"", Kind.DIRECTORY, Metadata(0o755, 0, 0, 0)), 1)
    yield Send(ListingPart(0, b"", 0, True, listing(b"big")), 1)
    yield Send(ListingEnd(1, 1, 1, 1000, 0), 1)
    assert isinstance(wanted((yield Receive())), FileRequest)
    heard = 0
    for _ in range(count):
        yield Send(Data(0, bytes(DATA_BYTES)), 1)
        if poll and (yield Receive(wait=False)) is not None:
            heard += 1
    yield Send(FileEnd(0, count * DATA_BYTES, bytes(32)), 1)
    while not isinstance(wanted((yield Receive())), Done):
        heard += 1
    return heard


def destination(count: int, notices: int) -> Talk:
    """Answers, asks for the file, and has `notices` to tell before it takes the first byte."""
    assert wanted((yield Receive())) == HELLO
    yield Receive()
    yield Send(Opened(), 1)
    yield Send(Describe(True, Kept(True)), 1)
    while not isinstance(wanted((yield Receive())), ListingEnd):
        pass
    yield Send(FileRequest((0,)), 1)
    for row in range(notices):
        yield Send(Notice(ExitCode.OK, b"%d" % row, "x" * 4000), 1)
    size = 0
    while isinstance(message := wanted((yield Receive())), Data):
        size += len(message.payload)
    assert size == count * DATA_BYTES
    yield Send(Done(1, 0, size, 0, 0, ExitCode.OK), 1)
    return size


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


def test_what_is_queued_is_bounded_and_leaves_before_a_wait() -> None:
    def talk() -> Talk:
        yield Send(opening(Role.DESTINATION), 1)
        for row in range(200):
            yield Send(Notice(ExitCode.OK, b"d" * row, "n" * 200), 1)
            yield Send(Notice(ExitCode.OK, b"x" * 60_000, ""), 1)
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
        yield Send(opening(Role.DESTINATION), 1)
        for _ in range(20):
            yield Send(Notice(ExitCode.OK, b"x" * 60_000, ""), 1)
            assert connection.buffered <= INBOUND_BYTES + 300_000
        assert connection.buffered >= INBOUND_BYTES
        return "sent"

    connection = Connection(True, HELLO, compress=False)
    assert run(talk(), connection, Flood()) == "sent"


# Ends that fail


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


def recorded(dialler: Role, compress: bool) -> tuple[bytes, bytes]:
    """What dialler and answerer put on the wire."""
    streams = []
    for dials in (True, False):
        parts: list[bytes] = []
        first, second = Connection(True, HELLO, compress), Connection(False, HELLO, compress)
        near = first if dials else second
        take = near.data_to_send

        def spy(take: Callable[[], bytes] = take, parts: list[bytes] = parts) -> bytes:
            parts.append(take())
            return parts[-1]

        near.data_to_send = spy  # type: ignore[method-assign]
        run_pair(follow(dialler, True), first, follow(dialler, False), second)
        streams.append(b"".join(parts))
    return streams[0], streams[1]


@pytest.mark.parametrize("dialler", list(Role))
@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dials", [True, False])
def test_a_stream_cut_anywhere_is_a_stream_error(dialler: Role, compress: bool, dials: bool) -> None:
    """One end follows the script against the other's recorded bytes, cut at every offset."""
    stream = recorded(dialler, compress)[1 if dials else 0]
    assert len(stream) > 250
    for end in range(len(stream)):
        with pytest.raises(StreamError) as caught:
            run(follow(dialler, dials), Connection(dials, HELLO, compress), Recorded(stream[:end]))
        assert caught.value.code == 12
        assert type(caught.value) is StreamError
        assert caught.value.before_hello is (end < len(PREAMBLE + raw(HELLO)))
    for step in (1, 3, 1 << 20):
        run(follow(dialler, dials), Connection(dials, HELLO, compress), Recorded(stream, step))


def test_a_banner_is_incompatible_and_gets_no_answer() -> None:
    def talk() -> Talk:
        yield Send(opening(), 1)
        yield Receive()

    connection = Connection(True, HELLO)
    with pytest.raises(IncompatiblePeerError, match="Welcome to example"):
        run(talk(), connection, Recorded(b"Welcome to example!\n"))
    assert "Refused" not in {cost.name for cost in connection.costs}


def failing(error: BaseException) -> Talk:
    yield Receive()
    yield Receive()
    raise error


def patient(log: list[Any]) -> Talk:
    """Dials, waits for ever, notes how it ended."""
    yield Send(opening(), 1)
    try:
        while True:
            yield Receive()
    except RdcError as error:
        log.append(error)
        raise
    finally:
        log.append("cleaned up")


@pytest.mark.parametrize("link", ["memory", "pipes"])
@pytest.mark.parametrize(
    "error",
    [
        OutOfSpaceError("/srv: disk full"),
        FileError(b"/srv", "/srv: not a directory"),
        RdcError("no", code=ExitCode.USAGE),
    ],
)
def test_the_far_side_learns_why_we_stop(link: str, error: RdcError) -> None:
    log: list[Any] = []
    near, far = both_threads(patient(log), failing(error), LINKS[link]())
    assert far is error
    assert isinstance(near, RdcError)
    assert str(near) == f"the far side: {error}"
    assert near.code == error.code
    assert log == [near, "cleaned up"]


def test_a_pair_raises_the_first_error() -> None:
    log: list[Any] = []
    error = OutOfSpaceError("disk full")
    with pytest.raises(OutOfSpaceError) as caught:
        run_pair(patient(log), Connection(True, HELLO), failing(error), Connection(False, HELLO))
    assert caught.value is error
    assert str(log[0]) == "the far side: disk full"
    assert log[0].code == ExitCode.FILE_IO


def test_our_reason_is_the_last_thing_said() -> None:
    sent = bytearray()

    class Tap(Recorded):
        def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
            sent.extend(outgoing)
            return super().exchange(outgoing, want_input, timeout)

    stream = PREAMBLE + raw(HELLO) + raw(opening(), 1)
    with pytest.raises(OutOfSpaceError):
        run(failing(OutOfSpaceError("disk full")), Connection(False, HELLO), Tap(stream))
    assert bytes(sent).endswith(raw(Refused(ExitCode.FILE_IO, "disk full"), 0))


def test_a_garbled_stream_is_refused_aloud() -> None:
    log: list[Any] = []

    class Tap(Recorded):
        def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
            log.append(bytes(outgoing))
            return super().exchange(outgoing, want_input, timeout)

    connection = Connection(False, HELLO)
    with pytest.raises(ProtocolError):
        run(patient([]), Connection(True, HELLO), Tap(PREAMBLE + raw(HELLO) + b"\xff" * 100))
    with pytest.raises(ProtocolError):
        run(failing(RdcError("never")), connection, Tap(PREAMBLE + raw(HELLO) + raw(HELLO)))
    assert [cost.count for cost in connection.costs if cost.name == "Refused"] == [1]
    assert b"Hello in state opening" in log[-1]


def test_a_far_side_that_is_stuck_does_not_hold_our_error_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdc.session.byte_link.REFUSE_SECONDS", 0.1)
    near, far = pair(100)
    far.exchange(memoryview(PREAMBLE + raw(HELLO)), False, 1)
    far.exchange(memoryview(raw(opening(), 1)), False, 1)

    def talk() -> Talk:
        yield Receive()
        raise OutOfSpaceError("disk full" * 50)

    with pytest.raises(OutOfSpaceError):
        run(talk(), Connection(False, HELLO), near)


def test_a_reason_is_found_behind_a_broken_pipe() -> None:
    """The far side refuses and goes away while we are sending: its reason counts, not the broken pipe."""

    def talk() -> Talk:
        yield Send(opening(Role.DESTINATION), 1)
        for _ in range(1000):
            yield Send(Notice(ExitCode.OK, b"x" * 60_000, ""), 1)
        raise AssertionError("sent 60 MB to nobody")

    for link in ("memory", "pipes"):
        near, far = LINKS[link]()
        far.exchange(
            memoryview(PREAMBLE + raw(HELLO) + raw(Refused(ExitCode.FILE_IO, "read-only"), 1)), False, 1
        )
        far.close()
        with pytest.raises(RdcError, match="the far side: read-only") as caught:
            run(talk(), Connection(True, HELLO, compress=False), near, timeout=LIMIT)
        assert caught.value.code == ExitCode.FILE_IO
        near.close()


def test_silence_ends_after_the_timeout() -> None:
    near, _ = pair()
    log: list[Any] = []
    with pytest.raises(RdcError) as caught:
        run(patient(log), Connection(True, HELLO), near, timeout=0.05)
    assert caught.value.code == ExitCode.TIMEOUT
    assert log == [caught.value, "cleaned up"]


def test_a_bug_or_an_interrupt_closes_the_conversation() -> None:
    for error in (KeyboardInterrupt(), ZeroDivisionError()):
        log: list[str] = []

        def talk(error: BaseException = error, log: list[str] = log) -> Talk:
            try:
                yield Send(opening(), 1)
                raise error
            finally:
                log.append("cleaned up")

        with pytest.raises(type(error)):
            run(talk(), Connection(True, HELLO), pair()[0])
        assert log == ["cleaned up"]

    class Interrupting(Meter):
        def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
            raise KeyboardInterrupt

    cleaned: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        run(patient(cleaned), Connection(True, HELLO), Interrupting())
    assert cleaned == ["cleaned up"]


def test_our_own_misuse_is_no_one_elses_fault() -> None:
    def talk() -> Talk:
        yield Send(Done(0, 0, 0, 0, 0, ExitCode.OK), 1)

    with pytest.raises(LocalProtocolError, match="Done in state opening"):
        run(talk(), Connection(True, HELLO), pair()[0])


def test_a_pair_that_waits_for_each_other_is_noticed() -> None:
    def talk() -> Talk:
        yield Receive()
        yield Receive()

    with pytest.raises(RuntimeError, match="both sides wait"):
        run_pair(talk(), Connection(True, HELLO), talk(), Connection(False, HELLO))


def test_a_glance_sees_what_is_there_and_does_not_wait() -> None:
    def talk() -> Talk:
        yield Send(opening(), 1)
        seen: list[Message] = []
        while len(seen) < 2:
            received = yield Receive(wait=False)
            if received is not None:
                seen.append(received.message)
        assert (yield Receive(wait=False)) is None
        return seen

    stream = PREAMBLE + raw(HELLO) + raw(Opened(), 1)

    class Slow(Recorded):
        def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
            if timeout == 0 and not self.data:
                return Exchange(len(outgoing), b"", False)
            return super().exchange(outgoing, want_input, timeout)

    assert run(talk(), Connection(True, HELLO), Slow(stream, 5)) == [HELLO, Opened()]


@pytest.mark.parametrize("link", ["memory", "pipes"])
def test_a_flush_lets_the_far_side_begin_before_long_work(link: str) -> None:
    """Nothing is received between what was sent and the work, and yet the far side has it by then."""
    heard = threading.Event()

    def working() -> Talk:
        yield Send(opening(Role.DESTINATION), 0)
        yield Flush()
        return heard.wait(LIMIT)

    def listening() -> Talk:
        assert wanted((yield Receive())) == HELLO
        assert wanted((yield Receive())) == opening(Role.DESTINATION)
        heard.set()
        return None

    near, far = both_threads(working(), listening(), LINKS[link]())
    assert near is True
    assert far is None


def test_a_flush_in_turns_has_nothing_to_wait_for() -> None:
    def talk(dials: bool) -> Talk:
        if dials:
            yield Send(opening(Role.DESTINATION), 0)
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
