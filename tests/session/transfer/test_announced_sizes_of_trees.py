"""Sizes in trees, equal roots, renames and turns: content of another size than announced is not taken."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from rdc.catalog.signer import FileSigner
from rdc.errors import ExitCode, ProtocolError
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Preserved
from rdc.progress import Problem
from rdc.protocol import messages
from rdc.protocol.connection import Received
from rdc.session.destination.change_turn import ChangeTurn
from rdc.session.runtime.commands import EventRelay, Receive, Send
from rdc.session.transfer.destination import Destination, Terms
from rdc.session.trees.destination_root import open_destination
from rdc.tree.filters import FilterList
from tests.session.transfer.size_cases import OPTIONS, PART, ROLES, noise, places
from tests.support.running.paired_sync import sync_in_turns
from tests.support.trees.trees import File, Tree, describe, litter, read_tree
from tests.support.wire.lying_source import Written, answering
from tests.support.wire.wire_script import listing


@ROLES
@pytest.mark.parametrize("size", [10, 400_000])
def test_a_tree_that_announces_a_size_that_is_left_alone(
    size: int, dialler: messages.Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, {"f": noise(1, 300_000)}, {"f": noise(1, 290_000)})
    before = read_tree(destination)

    def lie(message: messages.Message) -> Sequence[messages.Message]:
        return [replace(message, size=size)] if isinstance(message, messages.TreeAnswer) else [message]

    answering(monkeypatch, lie)
    written = Written().watch(monkeypatch)
    options = changed(OPTIONS, min_size=11, max_size=300_000)
    run = sync_in_turns(source, destination, options, dialler=dialler)
    assert [(problem.code, problem.path_bytes) for problem in run.problems] == [(ExitCode.VANISHED, b"f")]
    assert files_of(read_tree(destination)) == files_of(before)
    assert written.bytes == 0


def files_of(found: Tree) -> dict[bytes, object]:
    return {path: entry for path, entry in found.items() if isinstance(entry, File)}


@ROLES
def test_records_of_more_than_the_size_write_nothing(
    dialler: messages.Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, {"f": noise(1, 600_000)}, {"f": noise(1, 590_000)})

    def lie(message: messages.Message) -> Sequence[messages.Message]:
        return (
            [replace(message, size=message.size // 2)]
            if isinstance(message, messages.TreeAnswer)
            else [message]
        )

    answering(monkeypatch, lie)
    written = Written().watch(monkeypatch)
    with pytest.raises(ProtocolError, match="records of 600000 bytes for a node of 300000"):
        sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert written.bytes == 0


@ROLES
def test_equal_roots_of_other_sizes_are_not_copied(
    dialler: messages.Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of many small files is said to have the root of a large one: it comes as it was announced."""
    small = {f"n{row}": noise(10 + row, 6_000) for row in range(7)}
    old = {name: noise(50, 5_000) for name in small}
    large = noise(1, 3 << 20)
    source, destination = places(tmp_path, {"a": large, **small}, {"a": large[:-1], **old})
    roots: list[messages.TreeAnswer] = []

    def lie(message: messages.Message) -> Sequence[messages.Message]:
        if isinstance(message, messages.TreeAnswer):
            roots.append(message)
            if message is not roots[0]:
                return [replace(message, root=roots[0].root)]
        return [message]

    monkeypatch.setattr("rdc.session.transfer.bundle.BUNDLE_FILES_LEAST", 1000)
    answering(monkeypatch, lie)
    written = Written().watch(monkeypatch)
    sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert len(roots) >= 8
    assert written.bytes <= len(large) + 4 * 7 * 6_000
    assert all((destination / name).stat().st_size <= 6_000 for name in small)


@ROLES
@pytest.mark.parametrize("copies", [False, True])
def test_a_moved_file_of_another_size_is_not_copied(
    copies: bool, dialler: messages.Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New files of 5,000 bytes are said to be a large one that is here."""
    large = noise(1, 3 << 20)
    small = {f"n{row}": noise(10 + row, 5_000) for row in range(7)}
    source, destination = places(tmp_path, {**small, "new": large}, {"gone": large})
    with Root.open(os.fsencode(source)).open_read(b"new") as file:
        root = FileSigner().sign(file).root
    traits: list[int] = []

    def lie(message: messages.Message) -> Sequence[messages.Message]:
        if isinstance(message, messages.TraitsAnswer):
            row = message.sizes.index(len(large))
            traits.append(len(message.files))
            return [replace(message, sizes=(len(large),) * traits[0], roots=message.root(row) * traits[0])]
        if isinstance(message, messages.DigestAnswer):
            return [messages.DigestAnswer(blake3(root * (traits[0] if copies else 1)).digest())]
        return [message]

    answering(monkeypatch, lie)
    written = Written().watch(monkeypatch)
    os.utime(source / "new", ns=(9, 9))
    sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert traits == [8]
    assert written.bytes <= len(large) + 7 * 5_000
    found = read_tree(destination)
    assert litter(found) == []
    del found[b"gone"]
    assert describe(read_tree(source), found) == []


# Turns that tell of changes


@pytest.mark.parametrize("lies", ["more", "less", "too large", "as told"])
def test_a_turn_s_files_keep_to_the_sizes_that_it_told(
    lies: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "g").write_bytes(b"g")
    start = messages.Start(b"", Kind.DIRECTORY, Metadata(0o755, 10**18, 0, 0), Preserved(owner=False))
    options = changed(OPTIONS, max_size=2_000)
    problems: list[Problem] = []
    terms = Terms(options, FilterList(()), bytes(16), FileSigner())
    destination_root = open_destination(os.fsencode(tmp_path), start, options, Preserved(owner=False))
    relay = EventRelay(lambda event: problems.append(event) if isinstance(event, Problem) else None)
    turn = ChangeTurn(Destination(terms, destination_root, start, relay, Preserved(owner=False)))
    content = noise(1, 1000)
    end = messages.FileEnd(0, 1000, blake3(content).digest())
    answers: dict[str, list[messages.Message]] = {
        "more": [messages.Data(0, content), messages.Data(0, PART)],
        "less": [messages.Data(0, content[:9]), messages.FileEnd(0, 9, blake3(content[:9]).digest())],
        "too large": [
            messages.Resized(0, 3_000),
            messages.Data(0, PART[:3_000]),
            messages.FileEnd(0, 3_000, bytes(32)),
        ],
        "as told": [messages.Data(0, content), end],
    }
    told: list[messages.Message] = [
        messages.Changed(b"", start.metadata, 0, b"", listing(b"f"), ()),
        messages.TurnEnd(2, 2, 0),
    ]
    written = Written().watch(monkeypatch)

    def run() -> None:
        conversation: Any = turn.run(0)
        reply: object = None
        with suppress(StopIteration):
            while True:
                command, reply = conversation.send(reply), None
                if isinstance(command, Send) and isinstance(command.message, messages.FileRequest):
                    told.extend(answers[lies])
                elif isinstance(command, Receive) and command.wait:
                    reply = Received(told.pop(0), 2)

    if lies in {"more", "less"}:
        with pytest.raises(ProtocolError, match="f: expected the 1000 bytes that the remote side announced"):
            run()
    else:
        run()
        assert [(one.code, one.path_bytes) for one in problems] == [(ExitCode.VANISHED, b"f")] * (
            lies != "as told"
        )
    assert (tmp_path / "f").exists() == (lies == "as told")
    assert written.bytes <= 1000
