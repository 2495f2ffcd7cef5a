"""A made successor of this protocol, with one feature more and one message less, beside this rdc.

The successor speaks versions 9 and 10. Version 10 has no Plan, and its feature `hints` has a message Hint.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from rdc.lean.records import Record
from rdc.lean.typed import Annotated
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import DIALECT, Connection, Dialect, Received
from rdc.protocol.messages import Describe, Message, Plan, Role, State, message_kinds
from rdc.protocol.sequence import TRANSITIONS
from rdc.protocol.wire import codec
from rdc.protocol.wire.fields import Integer
from rdc.session.runtime.commands import Command, Conversation, Send
from tests.support.running.paired_sync import Program, kinds, sync_in_turns
from tests.support.share import examples
from tests.support.trees.random_changes import Changes
from tests.support.trees.random_contents import Contents
from tests.support.trees.trees import describe, read_tree

T = TypeVar("T")
SEEDS = examples(34)


@codec.message(200, by=codec.DESTINATION, when=State.ASKING)
class Hint(Message, Record):
    """D, any time: its lucky number."""

    number: Annotated[int, Integer(0, 9)]


SHAPE = codec._SHAPES.pop(Hint.kind)
"""What makes it a message. Only the tests of this module have it."""

NEXT = Dialect(
    oldest=DIALECT.newest,
    newest=DIALECT.newest + 1,
    features={**DIALECT.features, "hints": (Hint,)},
    since={Hint: DIALECT.newest + 1},
    until={Plan: DIALECT.newest},
)


class Present(Program):
    """This rdc, for whom Hint is no message at all."""

    dialect = Dialect(9, 9, DIALECT.features, since={Hint: 10}, until={})


class Successor(Program):
    """Its rdc sends a Hint before a Describe, if that is agreed on by then, and Plan only in version 9."""

    dialect = NEXT

    def __init__(self) -> None:
        self.hints = 0

    def converse(self, conversation: Conversation[T], connection: Connection) -> Conversation[T]:
        answer: Received | None = None
        try:
            command: Command = next(conversation)
            while True:
                agreed = connection.agreement
                if not isinstance(command, Send):
                    answer = yield command
                    while answer is not None and isinstance(answer.message, Hint):
                        self.hints += 1
                        answer = yield command
                elif isinstance(command.message, Plan) and agreed is not None and agreed.version == 10:
                    answer = None
                else:
                    if isinstance(command.message, Describe) and agreed and "hints" in agreed.features:
                        yield Send(Hint(7), command.round)
                    answer = yield command
                command = conversation.send(answer)
        except StopIteration as stop:
            value: T = stop.value
            return value
        finally:
            conversation.close()


@pytest.fixture(autouse=True)
def hints(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Declares the message for one test."""
    with monkeypatch.context() as patch:
        patch.setitem(codec._SHAPES, Hint.kind, SHAPE)
        for role, state, after in Hint.place.transitions():
            patch.setitem(TRANSITIONS[role][state], Hint, after)
        yield


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dialler", list(Role))
@pytest.mark.parametrize("who", ["near", "far", "both"])
def test_with_either_or_both_ends_new_the_same_trees_arrive(who: str, dialler: Role, tmp_path: Path) -> None:
    hints = plans = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        changes = Changes(rng, Contents(rng), fresh=True)
        place = tmp_path / str(seed)
        place.mkdir()
        source, destinations = place / "source", (place / "one", place / "other")
        changes.fill(bytes(source), rng.choice((3, 30)))
        for destination in destinations:
            destination.mkdir()
        programs = (
            Successor() if who != "far" else Present(),
            Successor() if who != "near" else Present(),
        )
        for _ in range(2):
            like = sync_in_turns(source, destinations[0], _options(), dialler=dialler)
            run = sync_in_turns(source, destinations[1], _options(), dialler=dialler, programs=programs)
            assert describe(read_tree(destinations[0]), read_tree(destinations[1])) == []
            assert like.done.exit == run.done.exit
            assert like.done.deleted == run.done.deleted
            plans += "Plan" in kinds(run)
            changes.change(bytes(source), 8)
        hints += sum(end.hints for end in programs if isinstance(end, Successor))
    assert (hints > 0) == (who == "both")
    # A destination plans only for a source that dialled and shows progress.
    assert (plans > 0) == (who != "both" and dialler is Role.SOURCE)


def test_the_successor_alone_knows_its_message() -> None:
    assert Hint.kind == 200
    assert 200 in message_kinds()


def _options() -> SyncOptions:
    return SyncOptions(fsync=False, delete=True, force_empty=True, specials=False, devices=False)
