"""Selected messages: a list of paths goes over in bounded parts, and comes back as it was."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileError, ProtocolError, UsageError
from rdc.limits import SELECTED_LIST_BYTES, SELECTED_MESSAGE_BYTES, SELECTED_PER_MESSAGE
from rdc.model.location import FarList
from rdc.model.selection import SelectedPaths
from rdc.protocol.connection import Received
from rdc.protocol.messages import Opened, Role, Selected
from rdc.session.runtime.commands import Conversation, Receive, Send
from rdc.session.selecting import receive_selected, send_listed, send_selected
from rdc.session.trees.sites import ANYWHERE


def sent(conversation: Conversation[Any], round_: int = 0) -> tuple[list[Selected], Any]:
    """The messages that a conversation sends, and its result."""
    found: list[Selected] = []
    while True:
        try:
            command = next(conversation)
        except StopIteration as stop:
            return found, stop.value
        assert isinstance(command, Send)
        assert isinstance(command.message, Selected)
        assert command.round == round_
        found.append(command.message)


def received(messages: Sequence[Any]) -> tuple[SelectedPaths, ...]:
    conversation = receive_selected()
    assert isinstance(next(conversation), Receive)
    for message in messages:
        try:
            assert isinstance(conversation.send(Received(message, 0)), Receive)
        except StopIteration as stop:
            found: tuple[SelectedPaths, ...] = stop.value
            assert message is messages[-1], "it waits for no message behind the last one"
            return found
    raise AssertionError("it waits for more")


NAMES = st.lists(st.binary(min_size=1, max_size=30), max_size=8, unique=True).map(tuple)


@given(st.lists(st.builds(SelectedPaths, st.sampled_from([b"", b"a", b"b/c"]), NAMES), max_size=4))
def test_a_source_hears_what_was_selected(selected: list[SelectedPaths]) -> None:
    messages, _ = sent(send_selected(Role.SOURCE, selected))
    assert [message.last for message in messages] == [False] * (len(messages) - 1) + [True]
    assert received(messages) == tuple(selected or [SelectedPaths(b"", ())])


def test_a_destination_hears_names_alone() -> None:
    messages, _ = sent(send_selected(Role.DESTINATION, [SelectedPaths(b"secret/place", (b"a",))], 3), 3)
    assert messages == [Selected(b"", (b"a",), True)]


@pytest.mark.parametrize("size", [1, 4_000])
def test_no_message_is_larger_than_its_bounds(size: int) -> None:
    names = tuple(b"%0*d" % (size, number) for number in range(3 * SELECTED_PER_MESSAGE // size + 2_000))
    messages, _ = sent(send_selected(Role.SOURCE, [SelectedPaths(b"top", names)]))
    assert len(messages) > 1
    for message in messages:
        assert len(message.names) <= SELECTED_PER_MESSAGE
        assert sum(len(name) + 1 for name in message.names) <= SELECTED_MESSAGE_BYTES
    parts = received(messages)
    assert {part.origin for part in parts} == {b"top"}
    assert tuple(name for part in parts for name in part.names) == names


@pytest.mark.parametrize("message", [Opened(), None])
def test_nothing_else_may_come_in_between(message: Any) -> None:
    conversation = receive_selected()
    next(conversation)
    conversation.send(Received(Selected(b"", (b"a",), False), 0))
    with pytest.raises(ProtocolError, match="expected Selected"):
        conversation.send(None if message is None else Received(message, 0))


def listed(
    path: Path, *, role: Role = Role.SOURCE, nul: bool = False, relative: bool = True
) -> tuple[list[Selected], tuple[SelectedPaths, ...]]:
    far = FarList(os.fsencode(path), nul=nul, relative=relative)
    messages, found = sent(send_listed(far, ANYWHERE, b"the/source", role, 2), 2)
    return messages, found


def test_a_list_at_the_remote_side_selects_here_and_there(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"a\nb/c\n")
    messages, found = listed(path)
    assert received(messages)[0].names == found[0].names == (b"a", b"b/c")
    assert messages[0].origin == b"", "the destination hears names alone"
    assert found[0].origin == b"the/source/"
    messages, found = listed(path, role=Role.DESTINATION)
    assert (messages[0].origin, found[0].origin) == (b"", b"")
    messages, found = listed(path, relative=False)
    assert [part.names for part in received(messages)] == [part.names for part in found] == [(b"a",), (b"c",)]
    assert found[1].origin == b"the/source/b", "not relative: each path is one below its own directory"


def test_names_may_end_in_nul(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"a\nb\0c\0")
    _, found = listed(path, nul=True)
    assert found[0].names == (b"a\nb", b"c")


def test_a_list_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"--files-from=.*list: no such file here; check the path") as raised:
        listed(tmp_path / "list")
    assert raised.value.code is ExitCode.FILE_IO
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FileError, match=r"--files-from=.*fifo"):
        listed(tmp_path / "fifo")


def test_a_list_that_is_too_long_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "list"
    with path.open("wb") as file:
        file.truncate(SELECTED_LIST_BYTES + 1)
    with pytest.raises(UsageError, match=rf"list: more than {SELECTED_LIST_BYTES} bytes of paths"):
        listed(path)


def test_a_list_leads_out_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"a/../../b\n")
    with pytest.raises(UsageError):
        listed(path)
