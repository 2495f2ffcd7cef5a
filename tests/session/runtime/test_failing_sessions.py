"""Sessions that fail: both sides learn why, whoever went first, and nobody waits for the other."""

from __future__ import annotations

from collections.abc import Callable
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
from rdc.protocol.connection import Connection, LocalProtocolError
from rdc.protocol.messages import Done, Notice, Refused, Role
from rdc.session.runtime.commands import Receive, Send
from rdc.session.runtime.driver import run
from rdc.transport.base import Exchange
from tests.support.running.driven_pairs import LIMIT, LINKS, Meter, Recorded, Talk, both_threads, follow
from tests.support.running.run_pair import run_pair
from tests.support.share import share
from tests.support.wire.memory_transport import pair
from tests.support.wire.wire_script import HELLO, PREAMBLE, opening, raw


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

        near.data_to_send = spy  # type: ignore[method-assign] # of this object alone
        run_pair(follow(dialler, True), first, follow(dialler, False), second)
        streams.append(b"".join(parts))
    return streams[0], streams[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dialler", list(Role))
@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dials", [True, False])
def test_a_stream_cut_anywhere_is_a_stream_error(dialler: Role, compress: bool, dials: bool) -> None:
    """One end follows the script against the other's recorded bytes, cut at every offset or a share."""
    stream = recorded(dialler, compress)[1 if dials else 0]
    assert len(stream) > 250
    hello = len(PREAMBLE + raw(HELLO))
    for end in sorted({*share(range(len(stream))), hello - 1, hello}):
        with pytest.raises(StreamError) as caught:
            run(follow(dialler, dials), Connection(dials, HELLO, compress), Recorded(stream[:end]))
        assert caught.value.code == 12
        assert type(caught.value) is StreamError
        assert caught.value.before_hello is (end < hello)
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
    assert str(near) == f"the remote side: {error}"
    assert near.code == error.code
    assert log == [near, "cleaned up"]


def test_a_pair_raises_the_first_error() -> None:
    log: list[Any] = []
    error = OutOfSpaceError("disk full")
    with pytest.raises(OutOfSpaceError) as caught:
        run_pair(patient(log), Connection(True, HELLO), failing(error), Connection(False, HELLO))
    assert caught.value is error
    assert str(log[0]) == "the remote side: disk full"
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
    monkeypatch.setattr("rdc.session.runtime.driver.REFUSE_SECONDS", 0.1)
    near, far = pair(100)
    far.exchange(memoryview(PREAMBLE + raw(HELLO)), False, 1)
    far.exchange(memoryview(raw(opening(), 1)), False, 1)

    def talk() -> Talk:
        yield Receive()
        raise OutOfSpaceError("disk full" * 50)

    with pytest.raises(OutOfSpaceError):
        run(talk(), Connection(False, HELLO), near)


def test_a_reason_is_found_behind_a_broken_pipe() -> None:
    """The remote side refuses and goes away while we are sending: its reason counts, not the broken pipe."""

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
        with pytest.raises(RdcError, match="the remote side: read-only") as caught:
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
        yield Send(Done(0, 0, 0, 0, 0, 0, ExitCode.OK), 1)

    with pytest.raises(LocalProtocolError, match="Done in state opening"):
        run(talk(), Connection(True, HELLO), pair()[0])
