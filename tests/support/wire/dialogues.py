"""Two connected Connections, and the usual messages between them."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Preserved
from rdc.protocol.connection import Connection, Received
from rdc.protocol.messages import (
    Describe,
    Done,
    ListingEnd,
    ListingPart,
    Manifest,
    Message,
    Opened,
    Role,
    RowsRequest,
    Start,
    TierAnswer,
    TierRequest,
    answers_to,
)
from rdc.protocol.messages.field_types import Claims
from tests.support.wire.wire_script import HELLO, PREAMBLE, connections, listing, opening, raw

__all__ = [
    "BY_DIGEST",
    "CLAIMS",
    "END",
    "LISTED",
    "LOOKS",
    "OFFER",
    "RESULT",
    "ROLES",
    "START",
    "WHOLE",
    "asked",
    "everything",
    "move",
    "serving",
]

ROLES = list(Role)


WHOLE = Describe(True, Preserved(False))
BY_DIGEST = Describe(False, Preserved(False))
START = Start(b"only", Kind.FILE, Metadata(0, 0, 0, 0))
OFFER = Manifest(bytes(32), 2, 2, 2000, 0, Preserved(False))
LISTED = (ListingPart(0, b"", 0, True, listing(b"a", b"b")), 1)
END = (ListingEnd(1, 2, 2, 2000, 0), 1)
RESULT = (Done(0, 0, 0, 0, 0, 0, ExitCode.OK), 1)

CLAIMS = Claims((0, 2, 9), b"aabbcc")


LOOKS: set[type[Message]] = {TierRequest, RowsRequest, *answers_to(TierRequest, RowsRequest)}
"""The messages that belong to a manifest; the other requests and answers belong to a listing."""


def everything(connection: Connection) -> list[Received]:
    found = []
    while (received := connection.next()) is not None:
        found.append(received)
    return found


def move(near: Connection, far: Connection, step: int | None = None) -> list[Received]:
    """All of near's bytes to far, in parts of `step`; what far made of them."""
    near.flush()
    data = near.data_to_send()
    found = []
    for start in range(0, len(data), step or len(data) or 1):
        far.receive_data(data[start : start + (step or len(data))])
        found += everything(far)
    return found


def serving(entries: int = 5) -> Connection:
    """A destination that dialled, with `entries` files listed."""
    near, _ = connections()
    near.send(opening(), 0)
    near.send(WHOLE, 0)
    names = [b"%03d" % row for row in range(entries)]
    near.receive_data(
        PREAMBLE
        + raw(HELLO)
        + raw(Opened(), 1)
        + raw(START, 1)
        + raw(ListingPart(0, b"", 0, True, listing(*names)), 1)
        + raw(ListingEnd(1, entries, entries, 1000 * entries, 0), 1)
    )
    everything(near)
    return near


def asked(*messages: Message) -> Connection:
    """A destination that dialled and said `messages`, each answered by what an honest source answers."""
    answers: dict[Message, list[Message]] = {
        BY_DIGEST: [START, OFFER],
        WHOLE: [LISTED[0], END[0]] if BY_DIGEST in messages else [START, LISTED[0], END[0]],
        TierRequest(0, (), 7): [TierAnswer(0, (0,), (2,), bytes(28))],
    }
    near, _ = connections()
    near.send(opening(), 0)
    near.receive_data(PREAMBLE + raw(HELLO) + raw(Opened(), 1))
    for message in messages:
        near.send(message, 1)
        near.receive_data(b"".join(raw(answer, 1) for answer in answers[message]))
        everything(near)
    return near
