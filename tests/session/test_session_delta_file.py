"""One file that comes by delta: what it waits for, what it gives back, and what becomes of late answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rdc.errors import FileError, ProtocolError
from rdc.protocol.messages import BlockAnswer, Data, FileEnd, NodeAnswer, TreeRequest
from rdc.session.landing.guesses import Guesses
from rdc.session.runtime.commands import Send
from rdc.session.transfer.delta_context import DeltaContext, Room, StaleAnswers
from rdc.session.transfer.delta_file import NEXT_ANSWER, Answer, DeltaFile, Steps
from rdc.session.trees.errors import MismatchError
from rdc.signature.digests import DIGEST_BYTES


class Part:
    """Stands for a comparison or a fetch."""

    def __init__(self, asked: list[int] | None = None) -> None:
        self.asked_nodes = asked or []
        self.restarted = 0

    def restart(self) -> None:
        self.restarted += 1


class Calls:
    """Stands for what a file calls; notes the names."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.names.append(name)


def shared_by_files() -> tuple[DeltaContext, Calls]:
    calls = Calls()
    anything = cast(Any, calls)
    context = cast(
        Any,
        SimpleNamespace(problem=calls.problem, expected=lambda file, path: (file, path), guesses=Guesses()),
    )
    return DeltaContext(context, anything, anything, anything, Room(), StaleAnswers()), calls


def a_file() -> tuple[DeltaFile, Calls]:
    shared, calls = shared_by_files()
    return DeltaFile(shared, 7, b"path", width=5, estimate=100), calls


def failing(error: Exception) -> Steps[None]:
    raise error
    yield NEXT_ANSWER


def test_a_file_takes_room_and_gives_it_back() -> None:
    one, calls = a_file()
    room = one._shared.room
    assert (room.files, room.used) == (1, 100)
    one.leave()
    assert (room.files, room.used) == (0, 0)
    assert calls.names == ["drop", "forget"]


def test_one_file_of_any_size_has_place() -> None:
    room = Room()
    assert room.has_room
    room.enter(1 << 50)
    assert room.left < 0 and not room.has_room
    room.leave(1 << 50)
    assert room.has_room


@pytest.mark.parametrize("failed", [False, True])
def test_requests_without_an_answer_are_expected_when_a_file_leaves(failed: bool) -> None:
    one, _ = a_file()
    one.comparison = cast(Any, Part([3, 9]))
    one.open_requests = 1
    one.leave(failed=failed)
    stale = one._shared.stale
    if not failed:
        assert stale.drop(NodeAnswer(7, 0, (1, 3), (b"", b"")))
    assert stale.drop(NodeAnswer(7, 0, (4,), (b"",)))  # the rest of the answer is still to come
    assert stale.drop(NodeAnswer(7, 0, (9,), (b"",)))
    assert stale.drop(Data(7, b"late"))
    assert stale.drop(FileEnd(7, 4, b""))
    assert not stale and not stale.drop(Data(7, b"of the whole file"))


def test_an_attempt_that_mismatched_waits_for_its_answers_and_gives_back_what_it_holds() -> None:
    one, calls = a_file()
    fetch = Part()
    one.fetch, one.open_requests = cast(Any, fetch), 2
    steps = one._attempt(failing(MismatchError(b"path", "a wrong root")))
    assert next(steps) is NEXT_ANSWER
    assert steps.send(Answer(Data(7, b"x"), 5)) is NEXT_ANSWER
    assert steps.send(Answer(BlockAnswer(7, b""), 5)) is NEXT_ANSWER
    with pytest.raises(StopIteration) as stop:
        steps.send(Answer(FileEnd(7, 1, b""), 7))
    assert stop.value.value is False
    assert (fetch.restarted, one.fetch, calls.names) == (1, None, ["drop_outgrown"])


def test_the_second_attempt_asks_for_whole_digests() -> None:
    one, _ = a_file()
    one._round = 9
    assert next(one._try_with_digests()) == Send(TreeRequest((7,), DIGEST_BYTES), 9)


def test_a_file_that_cannot_be_written_is_reported_and_leaves() -> None:
    one, calls = a_file()
    with pytest.raises(StopIteration) as stop:
        next(one._attempt(failing(FileError(b"path", "no space"))))
    assert stop.value.value is True
    assert calls.names == ["problem", "drop", "forget"]
    assert one._shared.room.files == 0


def test_an_answer_of_another_kind_is_the_peers_fault() -> None:
    one, _ = a_file()
    steps = one._take_tree()
    next(steps)
    with pytest.raises(ProtocolError, match="expected the tree of file 7, found Data"):
        steps.send(Answer(Data(7, b"x"), 3))
