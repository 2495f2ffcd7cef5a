"""A host that does not keep to the rules: it is named, the other one hears why, and memory here
stays bounded."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Preserved
from rdc.progress import Event
from rdc.protocol.messages import (
    Condition,
    Data,
    Describe,
    Done,
    FileEnd,
    FileRequest,
    Follow,
    ListingEnd,
    ListingPart,
    Message,
    Notice,
    Open,
    Opened,
    Refused,
    SourceState,
    Start,
    Watch,
)
from rdc.session.far.relay import INBOUND_BYTES, PENDING_HIGH
from tests.support.relay.relayed import Peer, Serve, relayed_sync
from tests.support.trees.trees import describe, read_tree, tree, write_tree
from tests.support.wire.claimed_entries import listing

METADATA = Metadata(0o755, 10**18, 0, 0)


def source_that_says(*messages: Message) -> Serve:
    """A source that is asked to describe its tree, and says this instead."""

    def serve(sock: socket.socket) -> None:
        peer = Peer(sock)
        peer.await_(Open)
        peer.say(Opened(), 1)
        round_ = peer.await_(Describe)
        for message in messages:
            peer.force(message, round_)
        while peer.next() is not None:
            pass

    return serve


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([Start(b"key", Kind.FILE, METADATA, Preserved(False))], "'f' was asked for"),
        ([Start(b"", Kind.DIRECTORY, METADATA, Preserved(False))], "'f' was asked for"),
        ([Watch(False, bytes(16))], "sent Watch, and nothing is watched"),
        ([Data(0, b"unasked")], "no request is unanswered"),
        ([Refused(ExitCode.BUSY, "too much to do")], "^a: too much to do"),
    ],
    ids=["another entry", "a whole directory", "a watch", "content", "a refusal"],
)
def test_a_source(messages: list[Message], reason: str, tmp_path: Path) -> None:
    """It was asked for one file. What it could have written by this stays as it is."""
    before = tree({"key": b"mine", "f": b"old"})
    write_tree(tmp_path / "two", before)
    with pytest.raises(RdcError, match=reason) as caught:
        relayed_sync(b"one/f", tmp_path / "two", at_source=source_that_says(*messages))
    assert str(caught.value).startswith("a: ")
    assert describe(before, read_tree(tmp_path / "two")) == []


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Follow(0, b""), "asks to follow the source"),
        (FileRequest((7,)), "file 7 was not listed"),
        (Done(0, 0, 0, 0, 0, 0, ExitCode.OK), "not yet in state serving"),
    ],
    ids=["a watch", "what is not there", "an early end"],
)
def test_a_destination(message: Message, reason: str, tmp_path: Path) -> None:
    refusals: list[Message] = []

    def source(sock: socket.socket) -> None:
        peer = Peer(sock)
        peer.await_(Open)
        peer.say(Opened(), 1)
        while (received := peer.next()) is not None:
            refusals.append(received.message)

    def destination(sock: socket.socket) -> None:
        peer = Peer(sock)
        round_ = peer.await_(Open)
        peer.say(Opened(), round_)
        peer.force(message, round_)
        while peer.next() is not None:
            pass

    with pytest.raises(ProtocolError, match=reason) as caught:
        relayed_sync(b"one/", tmp_path / "two", at_source=source, at_destination=destination)
    assert str(caught.value).startswith("b: ")
    (refusal,) = refusals
    assert isinstance(refusal, Refused) and refusal.message.startswith("b: ")


def test_a_destination_that_takes_nothing_holds_the_source_up(tmp_path: Path) -> None:
    """What the source may write ahead is some MB, however much it has."""
    content = random.Random(1).randbytes(512 << 10)
    parts = 64
    taken: list[int] = []
    arrived = 0

    def source(sock: socket.socket) -> None:
        peer = Peer(sock)
        peer.await_(Open)
        peer.say(Opened(), 1)
        round_ = peer.await_(Describe)
        peer.say(Start(b"", Kind.DIRECTORY, METADATA, Preserved(False)), round_)
        peer.say(ListingPart(0, b"", 0, True, listing((b"f",), Kind.FILE, parts * len(content))), round_)
        peer.say(ListingEnd(1, 1, 1, parts * len(content), 0), round_)
        round_ = peer.await_(FileRequest)
        sent = 0
        for _ in range(parts):
            peer.connection.send(Data(0, content), round_)
            peer.connection.flush()
            data = memoryview(peer.connection.data_to_send())
            while data:
                # Whoever is held up for half a second gives way to the destination.
                sock.settimeout(0.5 if not taken else 60)
                try:
                    done = sock.send(data)
                except TimeoutError:
                    taken.append(sent)
                    continue
                sent += done
                data = data[done:]
        assert taken, "nothing held it up"
        peer.say(FileEnd(0, parts * len(content), bytes(32), None, None), round_)
        peer.await_(Done)

    def destination(sock: socket.socket) -> None:
        nonlocal arrived
        peer = Peer(sock)
        round_ = peer.await_(Open)
        peer.say(Opened(), round_)
        peer.say(Describe(True, Preserved(False)), round_)
        round_ = peer.await_(ListingEnd)
        peer.say(FileRequest((0,)), round_)
        while not taken:
            pass
        while (received := peer.next()) is not None and not isinstance(received.message, FileEnd):
            arrived += len(getattr(received.message, "payload", b""))
        peer.say(Done(1, 0, 0, 0, 0, 0, ExitCode.OK), round_ + 2)

    report = relayed_sync(b"one/", tmp_path / "two", at_source=source, at_destination=destination)
    assert report.files == 1 and arrived == parts * len(content)
    # The queues of two socket pairs, and what the relay holds in this direction.
    queues = 2 * (2 << 20)
    assert taken[0] < INBOUND_BYTES + PENDING_HIGH + 2 * (1 << 20) + queues


def test_reports_stay_with_this_machine_s_user(tmp_path: Path) -> None:
    """A source hears nothing of what the destination has."""
    write_tree(tmp_path / "one", tree({"f": b"f"}))
    write_tree(tmp_path / "two", tree({"secret": b"s"}))
    heard: list[Message] = []

    def destination(sock: socket.socket) -> None:
        peer = Peer(sock)
        round_ = peer.await_(Open)
        peer.say(Opened(), round_)
        peer.say(Notice(ExitCode.PARTIAL, b"secret", "closed"), round_)
        peer.say(Describe(True, Preserved(False)), round_)
        round_ = peer.await_(ListingEnd)
        peer.say(Done(0, 0, 0, 0, 0, 1, ExitCode.PARTIAL), round_)

    def source(sock: socket.socket) -> None:
        peer = Peer(sock)
        peer.await_(Open)
        peer.say(Opened(), 1)
        while (received := peer.next()) is not None:
            heard.append(received.message)
            if isinstance(received.message, Describe):
                round_ = received.round + 1
                peer.say(Start(b"", Kind.DIRECTORY, METADATA, Preserved(False)), round_)
                peer.say(ListingPart(0, b"", 0, True, listing((), Kind.FILE)), round_)
                peer.say(ListingEnd(1, 0, 0, 0, 0), round_)

    events: list[Event] = []
    report = relayed_sync(
        b"one/", tmp_path / "two", at_source=source, at_destination=destination, events=events
    )
    assert (report.exit, report.errors) == (ExitCode.PARTIAL, 1)
    assert [type(message) for message in heard] == [Describe, Done]
    assert "closed (on b)" in str(events)


def test_a_condition_without_a_watch(tmp_path: Path) -> None:
    """A connection's own rules refuse it before the relay sees it."""
    condition = Condition(SourceState.HALTED, "gone", 0)

    def serve(sock: socket.socket) -> None:
        peer = Peer(sock)
        peer.await_(Open)
        peer.say(Opened(), 1)
        peer.await_(Describe)
        peer.force(condition, 2)
        while peer.next() is not None:
            pass

    with pytest.raises(ProtocolError, match=r"^a: .*Condition"):
        relayed_sync(b"one/", tmp_path / "two", at_source=serve)
