"""Connections: whole sessions between two, greetings, and damaged bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, IncompatiblePeerError, ProtocolError, StreamError
from rdc.protocol.connection import DIALECT, NEGOTIATING, Connection, LocalProtocolError, Received
from rdc.protocol.messages import Hello, Open, Opened, Refused, Role, message_kinds
from tests.support.wire.dialogues import ROLES, everything, move
from tests.support.wire.wire_script import (
    HELLO,
    PREAMBLE,
    connections,
    frame,
    opening,
    raw,
    raw_block,
    script,
)


@pytest.mark.parametrize("dialler", ROLES)
@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("step", [None, 1, 7])
def test_a_session_arrives_as_it_was_said(dialler: Role, compress: bool, step: int | None) -> None:
    near, far = connections(compress)
    assert move(near, far, step) == move(far, near, step) == [Received(HELLO, 0)]
    for line in script(dialler):
        sender, receiver = (near, far) if line.by_dialler else (far, near)
        sender.send(line.message, line.round)
        assert move(sender, receiver, step) == [Received(line.message, line.round)]
    assert (near.role, far.role) == (dialler, dialler.other)
    assert near.peer == far.peer == HELLO
    assert near.finished
    assert far.finished
    assert near.max_round == far.max_round == 3  # of the last turn: each begins anew
    assert near.bytes_sent == far.bytes_received > 0
    assert far.bytes_sent == near.bytes_received > 0
    assert near.pending == far.pending == near.buffered == far.buffered == 0
    assert near.outstanding == far.outstanding == 0
    for end in (near, far):
        end.receive_eof()
        assert end.next() is None


def test_the_script_has_every_message() -> None:
    said = {type(line.message) for line in script(Role.SOURCE)} | {Hello, Refused}
    meeting = {kind for kind in message_kinds().values() if kind.place.feature == "unite"}
    assert said | meeting == set(message_kinds().values())  # tests/protocol/test_meeting.py has those


def test_costs_count_every_frame() -> None:
    near, far = connections()
    move(near, far)
    move(far, near)
    expected: dict[str, list[int]] = {"Hello": [len(frame(HELLO, 0))] * 2}
    for line in script(Role.DESTINATION):
        sender, receiver = (near, far) if line.by_dialler else (far, near)
        sender.send(line.message, line.round)
        move(sender, receiver)
        expected.setdefault(line.message.name, []).append(len(frame(line.message, line.round)))
    for end in (near, far):
        framing = {"Preamble": (2, 8)}
        assert {cost.name: (cost.count, cost.plain) for cost in end.costs} == framing | {
            name: (len(sizes), sum(sizes)) for name, sizes in expected.items()
        }
        assert sum(cost.bytes for cost in end.costs) == end.bytes_sent + end.bytes_received
        assert [cost.bytes for cost in end.costs] == sorted((cost.bytes for cost in end.costs), reverse=True)


def test_an_opening_is_small() -> None:
    near, far = (
        Connection(True, DIALECT.hello("rdc 0.1.0", b"p" * 32)),
        Connection(False, DIALECT.hello("rdc 0.1.0", b"q" * 32)),
    )
    far = Connection(False, DIALECT.hello("rdc 0.1.0", b"p" * 32))
    near.send(Open(Role.SOURCE, b"/srv/backup/home", b"s" * 16, opening().options), 1)
    move(near, far)
    far.send(Opened(), 1)
    move(far, near)
    assert near.bytes_sent + near.bytes_received < 270


def test_nothing_leaves_before_a_flush_or_a_full_piece() -> None:
    near, _ = connections(compress=False)
    near.data_to_send()
    near.send(opening(), 1)
    assert near.data_to_send() == b""
    assert near.pending == len(frame(opening(), 1))
    near.flush()
    assert near.pending == len(near.data_to_send())
    assert near.pending == 0


# Greetings


@pytest.mark.parametrize(
    "banner",
    [
        b"Welcome to host!\nLast login: today\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"RDX\1",
        b"\x1b[31mred",
        b"\0",
        b"x" * 100_000,
    ],
)
@pytest.mark.parametrize("step", [None, 1])
def test_another_program_is_quoted(banner: bytes, step: int | None) -> None:
    _, end = connections()
    with pytest.raises(IncompatiblePeerError) as caught:
        for start in range(0, len(banner), step or len(banner)):
            end.receive_data(banner[start : start + (step or len(banner))])
    assert caught.value.code == ExitCode.INCOMPATIBLE
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 400
    if step is None:
        quoted = banner[:16].decode("latin-1")
        assert quoted in text or not quoted.isprintable()
    with pytest.raises(IncompatiblePeerError):
        end.next()


@pytest.mark.parametrize("version", [0, 1, 6, 7, NEGOTIATING + 1, 255])
@pytest.mark.parametrize("step", [1, 4])
def test_another_version_is_named(version: int, step: int) -> None:
    _, end = connections()
    data = b"RDC" + bytes((version,))
    with pytest.raises(
        IncompatiblePeerError,
        match=rf"version {version}\b.*version {DIALECT.newest}; update rdc on the remote side",
    ) as caught:
        for start in range(0, 4, step):
            end.receive_data(data[start : start + step])
    assert caught.value.code == 2


def test_other_parameters_are_incompatible() -> None:
    _, end = connections()
    end.receive_data(PREAMBLE + raw(DIALECT.hello("rdc 9.9", b"q" * 32)))
    with pytest.raises(IncompatiblePeerError, match=r"rdc 9\.9.*other parameters"):
        end.next()


def test_the_end_before_a_word_is_marked() -> None:
    for data, before in ((b"", True), (PREAMBLE, True), (PREAMBLE + raw(HELLO), False)):
        _, end = connections()
        end.receive_data(data)
        end.receive_eof()
        if not before:
            assert end.next() == Received(HELLO, 0)
        for _ in range(2):  # and again on every later call
            with pytest.raises(StreamError) as caught:
                end.next()
            assert caught.value.before_hello is before
            assert type(caught.value) is StreamError
            assert caught.value.code == 12


# Whole streams


@given(st.binary(max_size=300))
def test_any_stream_parses_or_is_refused(data: bytes) -> None:
    _, end = connections()
    end.receive_data(PREAMBLE + raw(HELLO) + data)
    end.receive_eof()
    with pytest.raises(StreamError):
        everything(end)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.binary(max_size=40)), max_size=5))
def test_any_frames_parse_or_are_refused(items: list[tuple[int, int, bytes]]) -> None:
    _, end = connections()
    stream = b"".join(bytes((len(payload), kind, number)) + payload for kind, number, payload in items)
    end.receive_data(PREAMBLE + raw(HELLO) + raw(opening(), 1) + (raw_block(stream) if stream else b""))
    end.receive_eof()
    with pytest.raises(StreamError):
        everything(end)


def sessions_bytes(dialler: Role, compress: bool) -> Iterator[tuple[bool, bytes]]:
    """A session's bytes, message by message, with who said them."""
    near, far = connections(compress)
    yield True, near.data_to_send()
    yield False, far.data_to_send()
    near, far = connections(compress)
    move(near, far)
    move(far, near)
    for line in script(dialler):
        sender, receiver = (near, far) if line.by_dialler else (far, near)
        sender.send(line.message, line.round)
        sender.flush()
        data = sender.data_to_send()
        receiver.receive_data(data)
        everything(receiver)
        yield line.by_dialler, data


@given(st.sampled_from(ROLES), st.booleans(), st.booleans(), st.integers(0, 4000), st.integers(0, 7))
def test_a_flipped_bit_never_does_worse_than_an_error(
    dialler: Role, compress: bool, of_dialler: bool, position: int, bit: int
) -> None:
    """One side of the session follows the script while the other's bytes have a bit flipped."""
    said = list(sessions_bytes(dialler, compress))
    total = sum(len(data) for by_dialler, data in said if by_dialler is of_dialler)
    target = position % total
    end = Connection(not of_dialler, HELLO, compress)
    own = iter([line for line in script(dialler) if line.by_dialler is not of_dialler])
    seen = 0
    try:
        for row, (by_dialler, data) in enumerate(said):
            if by_dialler is not of_dialler:
                if row > 1:
                    line = next(own)
                    end.send(line.message, line.round)
                continue
            changed = bytearray(data)
            if seen <= target < seen + len(data):
                changed[target - seen] ^= 1 << bit
            seen += len(data)
            end.receive_data(bytes(changed))
            everything(end)
    except (ProtocolError, IncompatiblePeerError, LocalProtocolError):
        # Ours too: a message that changed within the rules can leave the script out of step.
        pass
