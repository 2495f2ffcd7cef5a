"""Descriptions of a tree: listings, manifests, and the requests that each allows."""

from __future__ import annotations

import pytest

from rdc.errors import ProtocolError
from rdc.model.entries import Kind
from rdc.model.preserved import Preserved
from rdc.protocol import messages
from rdc.protocol.connection import Connection, LocalProtocolError, Received
from tests.protocol.states import in_state
from tests.support.wire.dialogues import (
    BY_DIGEST,
    END,
    LISTED,
    OFFER,
    RESULT,
    START,
    WHOLE,
    asked,
    everything,
    move,
    serving,
)
from tests.support.wire.wire_script import HELLO, PREAMBLE, connections, listing, opening, raw

# Listings and requests


@pytest.mark.parametrize(
    "parts",
    [
        [messages.ListingPart(1, b"", 0, True, listing(b"a"))],
        [messages.ListingPart(0, b"", 1, True, listing(b"a"))],
        [
            messages.ListingPart(0, b"", 0, True, listing(b"a")),
            messages.ListingPart(1, b"x", 0, True, listing(b"a")),
        ],
        [
            messages.ListingPart(0, b"", 0, True, listing(b"a")),
            messages.ListingPart(0, b"", 1, True, listing(b"b")),
        ],
        [
            messages.ListingPart(0, b"", 0, False, listing(b"a")),
            messages.ListingPart(1, b"x", 1, True, listing(b"b")),
        ],
        [
            messages.ListingPart(0, b"", 0, False, listing(b"a")),
            messages.ListingPart(0, b"x", 1, True, listing(b"b")),
        ],
        [
            messages.ListingPart(0, b"", 0, False, listing(b"b")),
            messages.ListingPart(0, b"", 1, True, listing(b"b")),
        ],
        [messages.ListingPart(0, b"", 0, False, listing(b"a")), messages.ListingEnd(1, 1, 1, 1000, 0)],
        [messages.ListingPart(0, b"", 0, True, listing(b"a")), messages.ListingEnd(1, 2, 1, 1000, 0)],
        [messages.ListingPart(0, b"", 0, True, listing(b"a")), messages.ListingEnd(1, 1, 1, 1001, 0)],
        [messages.ListingPart(0, b"", 0, True, listing(b"a")), messages.ListingEnd(2, 1, 1, 1000, 0)],
        [
            messages.ListingPart(0, b"", 0, True, listing(b"a", kind=Kind.SYMLINK)),
            messages.ListingEnd(1, 1, 1, 0, 0),
        ],
        [messages.ListingEnd(0, 0, 0, 0, 0)],
        [messages.ListingPart(0, b"", 0, True, listing(b"a")), START],
        [OFFER],
    ],
)
def test_a_listing_out_of_step_is_refused(parts: list[messages.Message]) -> None:
    near, _ = connections()
    near.send(opening(), 0)
    near.send(WHOLE, 0)
    near.receive_data(PREAMBLE + raw(HELLO) + raw(messages.Opened(), 1) + raw(START, 1))
    near.receive_data(b"".join(raw(part, 1) for part in parts))
    with pytest.raises(ProtocolError, match=parts[-1].name):
        everything(near)


@pytest.mark.parametrize(
    ("said", "then"),
    [
        ([], messages.TierRequest(0, (), 7)),
        ([WHOLE], WHOLE),
        ([WHOLE], BY_DIGEST),
        ([WHOLE], messages.TierRequest(0, (), 7)),
        ([WHOLE], messages.RowsRequest(0, (0,), 7)),
        ([BY_DIGEST], BY_DIGEST),
        ([BY_DIGEST], messages.RootRequest((2,))),
        ([BY_DIGEST, WHOLE], WHOLE),
        ([BY_DIGEST, WHOLE], BY_DIGEST),
        ([BY_DIGEST, WHOLE], messages.TierRequest(0, (), 7)),
        ([BY_DIGEST, WHOLE], messages.RowsRequest(0, (0,), 7)),
        ([BY_DIGEST, messages.TierRequest(0, (), 7), WHOLE], WHOLE),
    ],
)
def test_a_destination_asks_for_one_description_and_looks_only_into_a_manifest(
    said: list[messages.Message], then: messages.Message
) -> None:
    with pytest.raises(LocalProtocolError, match=then.name):
        asked(*said).send(then, 1)


def test_a_listing_replaces_a_manifest_once_its_questions_are_answered() -> None:
    near = asked(BY_DIGEST)
    near.send(messages.RootRequest((1,)), 1)
    with pytest.raises(LocalProtocolError, match="1 requests are unanswered"):
        near.send(WHOLE, 1)
    near = asked(BY_DIGEST)
    near.send(WHOLE, 1)
    with pytest.raises(LocalProtocolError, match="not yet in state serving"):
        near.send(*RESULT)
    with pytest.raises(LocalProtocolError, match="file 1 was not listed"):
        near.send(messages.RootRequest((1,)), 1)
    near = asked(BY_DIGEST, messages.TierRequest(0, (), 7), WHOLE)
    near.send(messages.RootRequest((0, 1)), 1)
    assert near.outstanding == 1


@pytest.mark.parametrize(
    ("said", "unasked"),
    [
        ([], START),
        ([], LISTED[0]),
        ([], OFFER),
        ([BY_DIGEST], OFFER),
        ([BY_DIGEST], START),
        ([BY_DIGEST], LISTED[0]),
        ([BY_DIGEST], END[0]),
        ([BY_DIGEST], messages.TierAnswer(0, (0,), (2,), bytes(28))),
        ([WHOLE], LISTED[0]),
        ([WHOLE], OFFER),
        ([BY_DIGEST, WHOLE], OFFER),
        ([BY_DIGEST, WHOLE], START),
        ([BY_DIGEST, WHOLE], LISTED[0]),
    ],
)
def test_a_source_describes_no_more_than_it_was_asked_to(
    said: list[messages.Message], unasked: messages.Message
) -> None:
    near = asked(*said)
    near.receive_data(raw(unasked, 1))
    with pytest.raises(ProtocolError, match=unasked.name):
        everything(near)


@pytest.mark.parametrize("describe", [WHOLE, BY_DIGEST])
@pytest.mark.parametrize("first", [LISTED[0], END[0], OFFER])
def test_a_description_begins_with_its_start(describe: messages.Describe, first: messages.Message) -> None:
    near, _ = connections()
    near.send(opening(), 0)
    near.send(describe, 0)
    near.receive_data(PREAMBLE + raw(HELLO) + raw(messages.Opened(), 1) + raw(first, 1))
    with pytest.raises(ProtocolError, match=first.name):
        everything(near)


def test_only_listed_files_can_be_asked_for() -> None:
    for request in (
        messages.RootRequest((0, 5)),
        messages.DigestRequest((0, 5)),
        messages.TraitsRequest((0, 5)),
        messages.FileRequest((5,)),
        messages.BundleRequest(5, (0, 5), 256),
        messages.NodeRequest(5, 0, (0,), 4),
        messages.BlockRequest(5, (0,), (1,), 16, 2),
        messages.RangeRequest(5, (0,), (1,)),
    ):
        with pytest.raises(LocalProtocolError, match="file 5 was not listed"):
            serving().send(request, 2)
        far = in_state(messages.Role.DESTINATION, messages.State.ASKING, True, messages.Notice)
        far.receive_data(raw(request, 2))
        with pytest.raises(ProtocolError, match="file 5 was not listed"):
            far.next()


def refused_here_and_there(request: messages.Message, why: str, *before: messages.Message) -> None:
    near, far = serving(2), in_state(messages.Role.DESTINATION, messages.State.ASKING, True, messages.Notice)
    for message in before:
        near.send(message, 2)
        far.receive_data(raw(message, 2))
        far.next()
    with pytest.raises(LocalProtocolError, match=why):
        near.send(request, 2)
    far.receive_data(raw(request, 2))
    with pytest.raises(ProtocolError, match=why):
        far.next()


def test_bundles_are_numbered_from_where_entries_end() -> None:
    first, second = messages.BundleRequest(2, (0, 1), 256), messages.BundleRequest(3, (0,), 256)
    for wrong in (messages.BundleRequest(1, (1,), 256), second):
        refused_here_and_there(wrong, f"a bundle named {wrong.bundle}, expected 2")
    refused_here_and_there(first, "a bundle named 2, expected 3", first)
    refused_here_and_there(messages.BlockRequest(3, (0,), (9,), 16, 2), "file 3 was not listed", first)
    refused_here_and_there(messages.NodeRequest(3, 0, (0,), 4), "file 3 was not listed", first, second)
    near = serving(2)
    for message in (
        first,
        second,
        messages.BlockRequest(3, (0,), (9,), 16, 2),
        messages.RangeRequest(2, (0,), (9,)),
    ):
        near.send(message, 2)


def test_a_bundle_waits_for_the_last_entry() -> None:
    near, _ = connections()
    near.send(opening(), 0)
    near.send(WHOLE, 0)
    described = raw(HELLO) + raw(messages.Opened(), 1) + raw(START, 1) + raw(*LISTED)
    near.receive_data(PREAMBLE + described)
    everything(near)
    with pytest.raises(LocalProtocolError, match="there may be more entries"):
        near.send(messages.BundleRequest(2, (0,), 256), 2)


# What a source that dialled offers


def dialled_by_source(*lines: tuple[bool, messages.Message]) -> tuple[Connection, Connection]:
    """(source, destination) after the opening and `lines`: (from the source, message), each in round 1."""
    source, destination = connections()
    said: list[tuple[bool, messages.Message]] = [
        (True, opening(messages.Role.DESTINATION)),
        (False, messages.Opened()),
        *lines,
    ]
    for ours, message in said:
        sender, receiver = (source, destination) if ours else (destination, source)
        sender.send(message, 1)
        move(sender, receiver)
    return source, destination


def test_an_offer_is_the_answer_where_it_is_what_was_asked_for() -> None:
    orders: list[list[tuple[bool, messages.Message]]] = [
        [(True, START), (True, OFFER), (False, BY_DIGEST)],
        [(False, BY_DIGEST), (True, START), (True, OFFER)],
        [(True, START), (False, BY_DIGEST), (True, OFFER)],
    ]
    for lines in orders:
        source, destination = dialled_by_source(*lines, (True, messages.TopTier(0, bytes(4))))
        destination.send(messages.TierRequest(0, (0,), 7), 1)
        assert move(destination, source) == [Received(messages.TierRequest(0, (0,), 7), 1)]


@pytest.mark.parametrize("describe", [WHOLE, messages.Describe(False, Preserved(True))])
def test_another_offer_counts_for_nothing(describe: messages.Describe) -> None:
    source, destination = dialled_by_source(
        (True, START), (True, OFFER), (False, describe), (True, messages.TopTier(0, bytes(4)))
    )
    with pytest.raises(LocalProtocolError, match="Done"):
        destination.send(*RESULT)
    with pytest.raises(LocalProtocolError, match="TierRequest"):
        destination.send(messages.TierRequest(0, (0,), 7), 1)
    described: list[messages.Message] = (
        [LISTED[0], END[0]]
        if describe.whole
        else [messages.Manifest(bytes(32), 2, 2, 2000, 0, Preserved(True))]
    )
    for message in described:
        source.send(message, 1)
        move(source, destination)
    destination.send(messages.FileRequest((1,)), 1)
    assert move(destination, source) == [Received(messages.FileRequest((1,)), 1)]


def test_there_is_one_offer_and_it_comes_first() -> None:
    orders: list[list[tuple[bool, messages.Message]]] = [
        [(True, START), (True, OFFER)],
        [(False, WHOLE), (True, START), (True, OFFER)],
        [(False, WHOLE), (True, START), (True, LISTED[0])],
    ]
    for lines in orders:
        source, _ = dialled_by_source(*lines)
        with pytest.raises(LocalProtocolError, match="Manifest"):
            source.send(OFFER, 1)
    _, destination = connections()
    destination.receive_data(PREAMBLE + raw(HELLO) + raw(opening(messages.Role.DESTINATION)) + raw(OFFER, 1))
    assert [destination.next(), destination.next()][1] is not None
    with pytest.raises(ProtocolError, match="Manifest"):
        destination.next()


def test_likely_files_are_asked_for_once() -> None:
    near = asked(WHOLE)
    near.send(messages.LikelyRequest(5, 8, 1024), 2)
    with pytest.raises(LocalProtocolError, match="it came already"):
        near.send(messages.LikelyRequest(5, 8, 1024), 2)
