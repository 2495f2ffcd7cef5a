"""A session that began with Meet: who may send what, and turns in which the roles are exchanged."""

from __future__ import annotations

import pytest

from rdc.errors import ProtocolError
from rdc.model.entries import EMPTY_LISTING, Metadata
from rdc.protocol import messages
from rdc.protocol.connection import Connection, LocalProtocolError
from rdc.protocol.messages import Role, State
from rdc.protocol.messages.uniting import Subject
from tests.protocol.states import SAMPLES
from tests.support.wire.dialogues import RESULT, move
from tests.support.wire.wire_script import connections, opening, raw

TOP = Metadata(0o755, 0, 0, 0)


def met() -> tuple[Connection, Connection]:
    """Dialler and answerer, both idle."""
    near, far = connections()
    near.send(opening(Role.SOURCE), 0)
    move(near, far)
    move(far, near)
    near.send(SAMPLES[messages.Meet], 0)
    move(near, far)
    far.send(messages.Opened(), 1)
    far.send(SAMPLES[messages.Met], 1)
    move(far, near)
    return near, far


def turn(near: Connection, far: Connection, role: Role) -> None:
    """A whole turn in which the answerer has `role`."""
    near.send(messages.Exchange(role), 2)
    move(near, far)
    source, destination = (far, near) if role is Role.SOURCE else (near, far)
    source.send(messages.Changed(b"", TOP, 0, b"", EMPTY_LISTING, ()), 2)
    source.send(messages.TurnEnd(0, 0, 0), 2)
    move(source, destination)
    destination.send(RESULT[0], 3)
    move(destination, source)


def test_roles_are_exchanged_again_and_again_and_the_stream_may_end_between_turns() -> None:
    near, far = met()
    for role in (Role.SOURCE, Role.DESTINATION, Role.DESTINATION, Role.SOURCE, Role.SOURCE):
        turn(near, far, role)
        assert (near.role, far.role) == (role.other, role)
        for subject in (Subject.STEPS, Subject.AGREE):
            near.send(messages.Page(subject, b"", True), 3)
        far.send(messages.Page(Subject.AGREED, b"", True), 3)
        move(near, far)
        move(far, near)
    for end in (near, far):
        end.receive_eof()
        assert end.next() is None


@pytest.mark.parametrize("subject", list(Subject))
@pytest.mark.parametrize("by_dialler", [True, False])
def test_each_page_is_for_one_side_to_send(subject: Subject, by_dialler: bool) -> None:
    near, far = met()
    sender, other = (near, far) if by_dialler else (far, near)
    page = messages.Page(subject, b"x", True)
    if by_dialler == (subject in {0, 2, 4, 6, 8, 9, 11, 13, 15, 17, 20, 22, 24}):
        sender.send(page, 1)
        assert [received.message for received in move(sender, other)] == [page]
        return
    with pytest.raises(LocalProtocolError):
        sender.send(page, 1)
    other.receive_data(raw(page, 1))
    with pytest.raises(ProtocolError, match="for the other side"):
        other.next()


def test_the_answerer_begins_no_turn_and_nobody_begins_one_within_another() -> None:
    near, far = met()
    with pytest.raises(LocalProtocolError, match="the dialler"):
        far.send(messages.Exchange(Role.SOURCE), 1)
    near.send(messages.Exchange(Role.SOURCE), 2)
    with pytest.raises(LocalProtocolError):
        near.send(messages.Exchange(Role.SOURCE), 2)
    with pytest.raises(LocalProtocolError):
        near.send(messages.Page(Subject.STEPS, b"", True), 2)
    near, far = met()
    turn(near, far, Role.DESTINATION)
    with pytest.raises(LocalProtocolError, match="begins each turn"):
        near.send(messages.Turn(False), 3)


@pytest.mark.parametrize("first", [messages.Describe, messages.Start, messages.Watch])
def test_a_description_excludes_a_meeting(first: type[messages.Message]) -> None:
    near, far = connections()
    near.send(opening(Role.SOURCE), 0)
    move(near, far)
    move(far, near)
    far.send(messages.Opened(), 1)
    if first is messages.Describe:
        near.send(SAMPLES[first], 0)
        with pytest.raises(LocalProtocolError):
            near.send(SAMPLES[messages.Meet], 0)
        return
    near.send(SAMPLES[messages.Meet], 0)
    move(near, far)
    with pytest.raises(LocalProtocolError):
        near.send(SAMPLES[messages.Describe], 0)
    if first is messages.Watch:
        with pytest.raises(LocalProtocolError):
            far.send(SAMPLES[first], 1)
    assert far._rules.us.state is State.LISTING
