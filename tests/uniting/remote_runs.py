"""Runs of two directories as on two machines: both ends in turns in one thread, over two connections."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog, SignatureStore
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Page
from rdc.protocol.messages.uniting import Subject
from rdc.session.runtime.commands import Conversation, Send
from rdc.session.serve import Admission, answer, as_asked, greeting
from rdc.uniting.far_side import answer_meeting
from rdc.uniting.meeting import Again, Ends
from rdc.uniting.records import UniteOptions, UniteReport
from rdc.uniting.remote import RemoteRun
from rdc.uniting.rings import location_here
from rdc.uniting.rows import LEFT
from tests.support.running.run_pair import run_pair

Wrap = Callable[["Conversation[object]", int], "Conversation[object]"]
"""Stands between a conversation and its connection. The number is 0 for the dialler's, 1 for the other."""


@dataclass
class RemoteResult:
    report: UniteReport
    bytes: int
    """Of the last session, both ways."""
    trips: int
    sessions: int
    kinds: tuple[str, ...]


def ends_of(left: Path, right: Path, near: int) -> Ends:
    """As the command line makes them, of `near` on this machine and the other side at "far:"."""
    places = [os.fsencode(left), os.fsencode(right)]
    shown = [b"far:" + place for place in places]
    shown[near] = places[near]
    return Ends((shown[0], shown[1]), near, places[near], places[1 - near], location_here(places[near]))


def unite_in_turns(
    left: Path,
    right: Path,
    options: UniteOptions,
    report: Callable[[object], None],
    *,
    near: int = LEFT,
    admit: Admission = as_asked,
    wrap: Wrap | None = None,
    catalog: SignatureStore | None = None,
) -> RemoteResult:
    """Unite two directories of which `near` dials the other one."""
    said = Again()
    for number in range(1, 6):
        with ExitStack() as stack:
            signer = FileSigner(catalog=catalog or NoCatalog())
            run = RemoteRun(stack, ends_of(left, right, near), options, report, None, signer, said)
            here = Connection(True, greeting(signer.params))
            there = Connection(False, greeting(signer.params))
            dialling: Conversation[object] = run.conversation()
            answering: Conversation[object] = answer(
                FileSigner(catalog=catalog or NoCatalog()), admit, meeting=answer_meeting
            )
            if wrap is not None:
                dialling, answering = wrap(dialling, 0), wrap(answering, 1)
            found, _ = run_pair(dialling, here, answering, there)
            if isinstance(found, UniteReport):
                costs = tuple(cost.name for cost in here.costs)
                traffic = here.bytes_sent + here.bytes_received
                return RemoteResult(found, traffic, (here.max_round + 1) // 2, number, costs)
            assert isinstance(found, Again)
            said = found
    raise AssertionError("the sides never agreed on how to meet")


def lying(side: int, subject: Subject, lie: bytes) -> Wrap:
    """The page about `subject` that `side` sends is another one."""

    def wrap(conversation: Conversation[object], number: int) -> Conversation[object]:
        return told(conversation) if number == side else conversation

    def told(conversation: Conversation[object]) -> Conversation[object]:
        answer = None
        try:
            while True:
                command = conversation.send(answer)
                if (
                    isinstance(command, Send)
                    and isinstance(command.message, Page)
                    and command.message.subject is subject
                ):
                    command = Send(Page(subject, lie, True), command.round)
                answer = yield command
        except StopIteration as stop:
            return stop.value
        finally:
            conversation.close()

    return wrap
