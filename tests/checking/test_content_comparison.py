"""Contents of two trees by the roots of files: in groups, alone where a group differs, and never twice."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.checking.content_comparison import (
    GROUPED_BYTES,
    IN_FLIGHT,
    REFERENCE_BYTES,
    ContentComparison,
    chosen_files,
    sampled,
)
from rdc.checking.records import Sample
from rdc.chunking import SYNC_PARAMS
from rdc.errors import ExitCode, ProtocolError
from rdc.files.root.root import Root
from rdc.limits import FILES_PER_GROUP
from rdc.progress import Event, Problem
from rdc.protocol.connection import Received
from rdc.protocol.messages import FileFailed, Message, RootAnswer, RootRequest
from rdc.session.runtime.commands import EventRelay, Flush, Receive, Send, TransferProgress
from rdc.signature.codec import group_references
from rdc.signature.tree import sign
from rdc.tree.filters import FilterList
from rdc.tree.manifest import Manifest
from rdc.tree.walk import Walk

SECRET = b"k" * 16


def manifest_of(top: Path) -> Manifest:
    manifest = Manifest()
    for path, listing, _ in Walk(Root.open(os.fsencode(top)), FilterList(()), lambda _: None):
        manifest.add(path, listing)
    return manifest


class Case:
    """This end's tree, and another end with a copy of it that a test may change."""

    def __init__(self, place: Path, contents: list[bytes]) -> None:
        self.here, self.there = place / "here", place / "there"
        self.here.mkdir()
        for number, content in enumerate(contents):
            (self.here / f"{number:04}").write_bytes(content)
        shutil.copytree(self.here, self.there)
        self.wanted = manifest_of(self.there)
        self.events: list[Event] = []
        self.found: list[tuple[int, bool | None]] = []
        self.requests: list[RootRequest] = []
        self.failing: set[int] = set()
        """Files that the other end cannot read."""
        self.lie: Message | None = None
        """What it says in place of its answers."""

    def answers(self, request: RootRequest) -> list[Message]:
        if self.lie is not None:
            return [self.lie]
        found: list[Message] = [
            FileFailed(file, ExitCode.PARTIAL, "no rights") for file in request.files if file in self.failing
        ]
        files = tuple(file for file in request.files if file not in self.failing)
        paths = [os.fsdecode(path) for path in self.wanted.paths(files)]
        roots = b"".join([sign((self.there / path).read_bytes(), SYNC_PARAMS).root for path in paths])
        references = group_references(roots, SECRET, request.width, request.group)
        return [*found, *([RootAnswer(files, (), references, request.group)] if files else [])]

    def compare(self, files: list[int] | None = None) -> dict[int, bool | None]:
        events = EventRelay(self.events.append)
        comparison = ContentComparison(
            Root.open(os.fsencode(self.here)),
            self.wanted,
            FileSigner(catalog=NoCatalog(), workers=1),
            SECRET,
            events,
            TransferProgress(events),
            lambda row, equal: self.found.append((row, equal)),
            keep=False,
        )
        work = comparison.run(range(len(self.wanted)) if files is None else files, 1)
        waiting: list[Received] = []
        answer: Received | None = None
        while True:
            try:
                command = work.send(answer)
            except StopIteration:
                break
            answer = None
            if isinstance(command, Send):
                assert isinstance(command.message, RootRequest)
                assert command.message.width == REFERENCE_BYTES
                self.requests.append(command.message)
                waiting += [Received(one, command.round) for one in self.answers(command.message)]
                assert len({one.round for one in waiting}) <= IN_FLIGHT
            elif isinstance(command, Receive):
                answer = waiting.pop(0)
            else:
                assert isinstance(command, Flush)
        assert not waiting
        rows = [row for row, _ in self.found]
        assert len(rows) == len(set(rows)), "each file is reported once"
        return dict(self.found)


def test_equal_files_are_compared_in_groups(tmp_path: Path) -> None:
    case = Case(tmp_path, [b"%d" % number for number in range(FILES_PER_GROUP + 3)])
    assert case.compare() == dict.fromkeys(range(FILES_PER_GROUP + 3), True)
    assert [request.group for request in case.requests] == [FILES_PER_GROUP]


def test_a_group_that_differs_is_compared_one_by_one(tmp_path: Path) -> None:
    case = Case(tmp_path, [b"%d" % number for number in range(5)])
    (case.there / "0003").write_bytes(b"x")
    assert case.compare() == {0: True, 1: True, 2: True, 3: False, 4: True}
    first, second = case.requests
    assert (first.group, second.group) == (FILES_PER_GROUP, 1)
    assert first.files == second.files == tuple(range(5))


def test_a_large_file_is_in_no_group(tmp_path: Path) -> None:
    case = Case(tmp_path, [b"a", bytes(GROUPED_BYTES + 1), b"b"])
    (case.there / "0001").write_bytes(b"1" + bytes(GROUPED_BYTES))
    assert case.compare() == {0: True, 1: False, 2: True}
    assert [(request.files, request.group) for request in case.requests] == [
        ((0, 2), FILES_PER_GROUP),
        ((1,), 1),
    ]


def test_files_that_one_end_cannot_read_are_neither_equal_nor_different(tmp_path: Path) -> None:
    case = Case(tmp_path, [b"%d" % number for number in range(6)])
    (case.here / "0001").unlink()
    case.failing = {4}
    assert case.compare() == {0: True, 1: None, 2: True, 3: True, 4: None, 5: True}
    problems = {event.path_bytes: event.code for event in case.events if isinstance(event, Problem)}
    assert problems[b"0004"] is ExitCode.PARTIAL
    assert b"0001" in problems


def test_only_the_files_asked_for_are_compared(tmp_path: Path) -> None:
    case = Case(tmp_path, [b"%d" % number for number in range(6)])
    assert case.compare([1, 4]) == {1: True, 4: True}
    assert case.compare([]).keys() == {1, 4}


@pytest.mark.parametrize("answer", [RootAnswer((9,), (), bytes(REFERENCE_BYTES)), RootRequest((0,))])
def test_answers_about_anything_else_end_the_session(answer: Message, tmp_path: Path) -> None:
    case = Case(tmp_path, [b"a", b"b"])

    case.lie = answer
    with pytest.raises(ProtocolError, match="roots"):
        case.compare()


@given(st.lists(st.binary(max_size=9), unique=True, max_size=60), st.integers(0, 5))
def test_a_sample_depends_on_path_and_seed_alone(paths: list[bytes], seed: int) -> None:
    sample = Sample(0.5, seed)
    chosen = {paths[at] for at in sampled(paths, sample)}
    assert chosen == {paths[::-1][at] for at in sampled(paths[::-1], sample)}
    assert sampled(paths, Sample(1.0, seed)) == list(range(len(paths)))
    larger = {paths[at] for at in sampled(paths, Sample(0.9, seed))}
    assert chosen <= larger, "a larger share has the files of a smaller one"


def test_a_sample_has_about_its_share(tmp_path: Path) -> None:
    paths = [b"%d" % number for number in range(4_000)]
    assert 850 < len(sampled(paths, Sample(0.25, 1))) < 1_150
    assert sampled(paths, Sample(0.25, 1)) != sampled(paths, Sample(0.25, 2))
    case = Case(tmp_path, [b""] * 50)
    files = range(0, 50, 2)
    some = chosen_files(case.wanted, files, Sample(0.5))
    assert set(some) < set(files)
    assert chosen_files(case.wanted, files, None) is files
