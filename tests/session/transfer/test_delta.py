"""One file that comes by delta: what it waits for, what it gives back, and what becomes of late answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rdc.errors import FileError, ProtocolError
from rdc.protocol.messages import BlockAnswer, Data, FileEnd, NodeAnswer, TreeRequest
from rdc.session.runtime.commands import Send
from rdc.session.transfer import delta as delta_module
from rdc.session.transfer.compare import NEXT_ANSWER, Room, Steps
from rdc.session.transfer.delta import DeltaFile, StaleAnswers
from rdc.session.transfer.destination import Guesses
from rdc.session.trees.sites import MismatchError
from rdc.signature.tree import DIGEST_BYTES


class Fetch:
    """Stands for a fetch that fails."""

    def __init__(self, error: Exception, asked: int = 0) -> None:
        self.error = error
        self.asked = asked
        self.closed = 0

    def __call__(self, context: object, one: DeltaFile, *_: object) -> Fetch:
        one.unanswered.extend([None] * self.asked)
        return self

    def run(self) -> Steps[None]:
        raise self.error
        yield NEXT_ANSWER

    def close(self) -> None:
        self.closed += 1


class Calls:
    """Stands for what a file calls; notes the names."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **options: self.names.append(" ".join((name, *options)))


def a_file() -> tuple[DeltaFile, Calls]:
    calls = Calls()
    context = SimpleNamespace(problem=calls.problem, guesses=Guesses())
    shared = SimpleNamespace(context=context, bases=calls, room=Room(), stale=StaleAnswers())
    return DeltaFile(cast(Any, shared), 7, b"path", width=5, estimate=100), calls


def copying(one: DeltaFile) -> Steps[None]:
    """The way of a file that is copied: its first attempt has no comparison."""
    tree = SimpleNamespace(root=bytes(32), size=9, levels=(SimpleNamespace(records=1),))
    return one.bring_up_to_date(cast(Any, SimpleNamespace(tree=tree, path=b"base")), None)


def test_a_file_takes_room_and_gives_it_back() -> None:
    one, calls = a_file()
    room = one._shared.room
    assert (room.files, room.used) == (1, 100)
    one.leave()
    assert (room.files, room.used) == (0, 0)
    assert calls.names == ["drop ends"]


def test_one_file_of_any_size_has_place() -> None:
    room = Room()
    assert room.has_room
    room.count(1, 1 << 50)
    assert not room.has_room
    room.count(-1, -1 << 50)
    assert room.has_room


@pytest.mark.parametrize("failed", [False, True])
def test_requests_without_an_answer_are_expected_when_a_file_leaves(failed: bool) -> None:
    one, _ = a_file()
    one.unanswered.extend((3, 9, None))
    one.leave(failed=failed)
    stale = one._shared.stale
    if not failed:
        assert stale.drop(NodeAnswer(7, 0, (1, 3), (b"", b"")))
    assert stale.drop(NodeAnswer(7, 0, (4,), (b"",)))  # the rest of the answer is still to come
    assert stale.drop(NodeAnswer(7, 0, (9,), (b"",)))
    assert stale.drop(Data(7, b"late"))
    assert stale.drop(FileEnd(7, 4, b""))
    assert not stale.files and not stale.drop(Data(7, b"of the whole file"))


def test_an_attempt_that_mismatched_waits_for_its_answers_and_the_next_asks_for_whole_digests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, calls = a_file()
    fetch = Fetch(MismatchError(b"path", "a wrong root"), asked=2)
    monkeypatch.setattr(delta_module, "FileFetch", fetch)
    steps = copying(one)
    assert next(steps) is NEXT_ANSWER
    assert steps.send(Data(7, b"x")) is NEXT_ANSWER
    assert steps.send(BlockAnswer(7, b"")) is NEXT_ANSWER
    assert steps.send(FileEnd(7, 1, b"")) == Send(TreeRequest((7,), DIGEST_BYTES), 0)
    assert (fetch.closed, one._fetch, calls.names) == (1, None, ["drop_outgrown"])


def test_a_file_that_cannot_be_written_is_reported_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    one, calls = a_file()
    monkeypatch.setattr(delta_module, "FileFetch", Fetch(FileError(b"path", "no space")))
    assert list(copying(one)) == []
    assert calls.names == ["problem", "drop ends"]
    assert one._shared.room.files == 0


def test_an_answer_of_another_kind_is_the_peers_fault() -> None:
    one, _ = a_file()
    steps = one._take_tree()
    next(steps)
    with pytest.raises(ProtocolError, match="expected the tree of file 7, found Data"):
        steps.send(Data(7, b"x"))
