"""A source and a destination that exchange content and nothing else."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.limits import DATA_BYTES
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Preserved
from rdc.protocol import messages
from rdc.session.runtime.commands import Receive, Send
from tests.support.running.driven_pairs import (
    Talk,
    wanted,
)
from tests.support.wire.wire_script import HELLO, listing, opening


def source(count: int, poll: bool) -> Talk:
    """Dials as the source, sends one file of `count` full messages; returns what it heard meanwhile."""
    yield Send(opening(messages.Role.DESTINATION), 1)
    assert wanted((yield Receive())) == HELLO
    assert isinstance(wanted((yield Receive())), messages.Opened)
    assert isinstance(wanted((yield Receive())), messages.Describe)
    yield Send(messages.Start(b"", Kind.DIRECTORY, Metadata(0o755, 0, 0, 0)), 1)
    yield Send(messages.ListingPart(0, b"", 0, True, listing(b"big")), 1)
    yield Send(messages.ListingEnd(1, 1, 1, 1000, 0), 1)
    assert isinstance(wanted((yield Receive())), messages.FileRequest)
    heard = 0
    for _ in range(count):
        yield Send(messages.Data(0, bytes(DATA_BYTES)), 1)
        if poll and (yield Receive(wait=False)) is not None:
            heard += 1
    yield Send(messages.FileEnd(0, count * DATA_BYTES, bytes(32)), 1)
    while not isinstance(wanted((yield Receive())), messages.Done):
        heard += 1
    return heard


def destination(count: int, notices: int) -> Talk:
    """Answers, asks for the file, and has `notices` to tell before it takes the first byte."""
    assert wanted((yield Receive())) == HELLO
    yield Receive()
    yield Send(messages.Opened(), 1)
    yield Send(messages.Describe(True, Preserved(True)), 1)
    while not isinstance(wanted((yield Receive())), messages.ListingEnd):
        pass
    yield Send(messages.FileRequest((0,)), 1)
    for row in range(notices):
        yield Send(messages.Notice(ExitCode.OK, b"%d" % row, "x" * 4000), 1)
    size = 0
    while isinstance(message := wanted((yield Receive())), messages.Data):
        size += len(message.payload)
    assert size == count * DATA_BYTES
    yield Send(messages.Done(1, 0, 0, size, 0, 0, ExitCode.OK), 1)
    return size
