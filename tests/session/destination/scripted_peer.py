"""A remote side that follows a script, connected in memory to a conversation of this side."""

from __future__ import annotations

from collections.abc import Iterator

from rdc.chunking import SYNC_PARAMS
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Message, Turn
from rdc.session.runtime.commands import Conversation
from rdc.session.runtime.driver import Runner
from rdc.session.serve import greeting

__all__ = ["meet"]

PIECE = 64 << 10
"""Bytes moved at a time."""


def meet(
    near: Conversation[object], script: Iterator[Message | type[Message]], *, dialled: bool, limit: int = 0
) -> Connection:
    """Runs `near` against the script: messages are said, a type is waited for. Returns our connection, whose
    counters say what came; raises what ends the conversation. `dialled`: we dialled. `limit`: of memory for
    entries, 0 for none."""
    ours = Connection(dialled, greeting(SYNC_PARAMS))
    if limit:
        ours.entries.limit = limit
    theirs = Connection(not dialled, greeting(SYNC_PARAMS))
    runner = Runner(near, ours)
    heard: set[type[Message]] = set()
    round_ = 0

    def move() -> None:
        nonlocal round_
        theirs.flush()
        data = theirs.data_to_send()
        for at in range(0, len(data), PIECE):
            ours.receive_data(data[at : at + PIECE])
            runner.advance(True)
        while True:
            if not runner.over:
                runner.advance(True)
            ours.flush()
            answer = ours.data_to_send()
            if not answer:
                break
            theirs.receive_data(answer)
            while (received := theirs.next()) is not None:
                heard.add(type(received.message))
                round_ = max(round_, received.round + 1)

    for step in script:
        if isinstance(step, type):
            move()
            assert step in heard, f"no {step.__name__} came"
            heard.clear()
            continue
        if isinstance(step, Turn):
            round_ = 0
        theirs.send(step, round_)
        if theirs.pending > PIECE:
            move()
    move()
    return ours
