"""The states: every state with every message, and rounds that are possible."""

from __future__ import annotations

import pytest

from rdc.errors import ProtocolError
from rdc.protocol import messages
from rdc.protocol.connection import LocalProtocolError, Received
from rdc.protocol.sequence import TRANSITIONS
from tests.protocol.states import SAMPLES, in_state
from tests.support.wire.dialogues import (
    END,
    RESULT,
    ROLES,
    move,
)
from tests.support.wire.wire_script import HELLO, PREAMBLE, connections, opening, raw, script

CASES = [
    (sender, state, dials, sample)
    for sender in ROLES
    for state in TRANSITIONS[sender]
    for dials in (False, True)
    for sample in SAMPLES
]


@pytest.mark.parametrize(
    ("sender", "state", "dials", "sample"),
    CASES,
    ids=[f"{c[0].name[0]}-{c[1].name}-{'dialler' if c[2] else 'answerer'}-{c[3].__name__}" for c in CASES],
)
def test_every_state_and_message_is_legal_or_refused(
    sender: messages.Role, state: messages.State, dials: bool, sample: type[messages.Message]
) -> None:
    end = in_state(sender, state, dials, sample)
    message = opening(sender.other) if sample is messages.Open else SAMPLES[sample]
    legal = sample in TRANSITIONS[sender][state]
    if sample is messages.Open:
        legal = legal and dials
    if sample is messages.Opened:
        legal = legal and not dials
    if sample is messages.Selected:
        legal = legal and dials and state is not messages.State.OPENING  # this Open asks for no list
    if sample in {messages.Meet, messages.Page, messages.Exchange}:
        legal = legal and dials
    if sample is messages.Met:
        legal = legal and not dials
    if sample is messages.Rules:
        legal = False  # and announces none
    number = 0 if sample is messages.Hello else 1
    end.receive_data(raw(message, number))
    if legal:
        assert end.next() == Received(message, number)
    else:
        with pytest.raises(ProtocolError, match=sample.__name__):
            end.next()
        with pytest.raises(ProtocolError):
            end.next()


def test_every_message_has_a_sample() -> None:
    assert SAMPLES.keys() == set(messages.message_kinds().values())


def test_done_waits_for_the_description_and_ends_the_other_side() -> None:
    places = {kind: kind.place for kind in messages.message_kinds().values()}
    assert {kind: place.needs for kind, place in places.items() if place.needs} == {
        messages.Done: messages.State.SERVING
    }
    assert {kind: place.moves for kind, place in places.items() if place.moves} == {
        messages.Describe: (messages.State.SERVING, messages.State.LISTING),
        messages.Done: (messages.State.SERVING, messages.State.CLOSED),
        messages.Turn: (messages.State.DONE, messages.State.ASKING),
        messages.Met: (messages.State.ASKING, messages.State.DONE),
    }
    early = in_state(messages.Role.SOURCE, messages.State.LISTING, False, messages.Notice)
    with pytest.raises(LocalProtocolError, match="Done"):
        early.send(*RESULT)
    early.receive_data(raw(*END))
    early.next()
    early.send(*RESULT)
    early.receive_data(raw(SAMPLES[messages.Notice], 1))
    with pytest.raises(ProtocolError, match="Notice"):
        early.next()


def test_the_roles_agree_until_open_has_named_them() -> None:
    for state in (messages.State.GREETING, messages.State.OPENING):
        source, destination = (set(TRANSITIONS[role][state]) for role in messages.Role)
        assert source == destination


def test_opened_without_open_is_refused() -> None:
    near, _ = connections()
    near.receive_data(PREAMBLE + raw(HELLO) + raw(messages.Opened(), 1))
    near.next()
    with pytest.raises(ProtocolError, match="Opened"):
        near.next()


# Rounds


def test_a_round_that_nothing_can_have_caused_is_refused() -> None:
    near, _ = connections()
    near.receive_data(PREAMBLE + raw(HELLO))
    near.next()
    near.send(opening(), 1)
    near.receive_data(raw(messages.Opened(), 2))
    assert near.next() == Received(messages.Opened(), 2)
    assert near.max_round == 2
    near.receive_data(raw(SAMPLES[messages.Notice], 3))
    with pytest.raises(ProtocolError, match="round 3"):
        near.next()


@pytest.mark.parametrize("dialler", ROLES)
def test_a_refusal_may_cross_a_turn(dialler: messages.Role) -> None:
    """Rounds begin anew with a Turn, and the remote side may stop before it hears of one."""
    near, far = connections()
    move(near, far)
    move(far, near)
    for line in script(dialler):
        sender, other = (near, far) if line.by_dialler else (far, near)
        sender.send(line.message, line.round)
        if isinstance(line.message, messages.Turn):
            break
        move(sender, other)
    other.send(SAMPLES[messages.Refused], 0)
    assert move(other, sender) == [Received(SAMPLES[messages.Refused], 0)]


def test_our_own_rounds_are_held_to_the_same() -> None:
    near, _ = connections()
    with pytest.raises(LocalProtocolError, match="round 2"):
        near.send(opening(), 2)
    with pytest.raises(LocalProtocolError, match="round -1"):
        near.send(opening(), -1)
