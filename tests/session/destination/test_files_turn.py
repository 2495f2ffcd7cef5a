"""A turn of files that a plan names: no others are taken, and what does not come is said."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.catalog.signer import FileSigner
from rdc.errors import ExitCode, ProtocolError
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from rdc.protocol.connection import Received
from rdc.protocol.messages import Changed, Done, Message, Start, TurnEnd
from rdc.session.destination.files_turn import FilesTurn, WantedFile
from rdc.session.runtime.commands import EventRelay, Receive, Send
from rdc.session.transfer.destination import Destination, Terms
from rdc.session.trees.destination_root import DestinationRoot
from rdc.tree.filters import FilterList
from tests.support.wire.wire_script import listing

TOP = Metadata(0o755, 0, 0, 0)
FILE = Metadata(0o640, 10**18, 0, 0)
WANTED = Changed(b"", TOP, 0, b"", listing(b"wanted"), ())
END = TurnEnd(1, 1, 0)


def turn(
    place: Path, report: Callable[[Problem], None], *, declined: frozenset[bytes] = frozenset()
) -> FilesTurn:
    """One whose plan names the new file `wanted`."""
    root = Root.open(os.fsencode(place))
    kept = Preserved(owner=False)
    terms = Terms(SyncOptions(fsync=False), FilterList(()), bytes(16), FileSigner())
    start = Start(b"", Kind.DIRECTORY, TOP, kept)
    where = DestinationRoot(root, None, new=False)
    context = Destination(terms, where, start, EventRelay(lambda _: None), kept)
    return FilesTurn(context, {b"wanted": WantedFile(FILE, None)}, (), report, declined=declined)


def take(files: FilesTurn, *messages: Message) -> object:
    """Return the last command of a turn that was told these."""
    conversation = files.run(0)
    command: object = next(conversation)
    for message in messages:
        assert command == Receive()
        command = conversation.send(Received(message, 0))
    return command


@pytest.mark.parametrize(
    ("announced", "refusal"),
    [
        (replace(WANTED, listing=listing(b"other")), "'other' is not a file that the plan names"),
        (replace(WANTED, path=b"wanted"), "'wanted/wanted' is not a file that the plan names"),
        (replace(WANTED, listing=listing(b"wanted", kind=Kind.SYMLINK)), "'wanted' is not a file"),
        (replace(WANTED, listing=listing(b"wanted", kind=Kind.DIRECTORY)), "'wanted' is not a file"),
        (replace(WANTED, gone=b"mine\0"), "expected files of '' alone, found other changes"),
        (replace(WANTED, doubtful=(0,)), "expected files of '' alone, found other changes"),
        (Done(0, 0, 0, 0, 0, 0, ExitCode.OK), "expected files of the plan, found Done"),
    ],
)
def test_only_files_of_the_plan_are_taken(announced: Message, refusal: str, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"content")
    with pytest.raises(ProtocolError, match=refusal):
        take(turn(tmp_path, lambda _: None), announced)
    assert os.listdir(tmp_path) == ["mine"]


def test_a_file_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="'wanted' is not a file that the plan names"):
        take(turn(tmp_path, lambda _: None), WANTED, WANTED)


def test_a_file_that_does_not_come_is_said_and_ends_no_turn(tmp_path: Path) -> None:
    problems: list[Problem] = []
    files = turn(tmp_path, problems.append)
    command = take(files, END)
    assert isinstance(command, Send)
    assert isinstance(command.message, Done)
    assert [(problem.code, problem.path_bytes) for problem in problems] == [(ExitCode.PARTIAL, b"wanted")]
    assert "found nothing there; run again" in problems[0].message
    assert files.landed == {}
    assert os.listdir(tmp_path) == []


def test_a_file_without_a_place_is_passed_over(tmp_path: Path) -> None:
    """Its number stays: the source counts it."""
    both = replace(WANTED, listing=listing(b"no place", b"wanted"))
    files = turn(tmp_path, lambda _: None, declined=frozenset({b"no place"}))
    command = take(files, both, END)
    assert isinstance(command, Send)
    assert getattr(command.message, "file", 1) == 1
    assert len(files.manifest) == 2


def test_an_announced_file_is_asked_for(tmp_path: Path) -> None:
    command = take(turn(tmp_path, lambda _: None), WANTED, END)
    assert isinstance(command, Send)
    assert not isinstance(command.message, Done)
