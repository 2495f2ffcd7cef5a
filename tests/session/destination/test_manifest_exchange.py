"""The messages that a discovery waits for."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rdc.errors import ExitCode, ProtocolError
from rdc.model.preserved import Preserved
from rdc.protocol.connection import Received
from rdc.protocol.messages import FileFailed, Message, Progress, TopTier
from rdc.session.destination.own_tree import discover, next_message
from rdc.session.runtime.commands import Conversation, EventRelay, Receive
from rdc.tree.manifest import Manifest
from tests.support.trees.manifests import build, flat_tree


def told(conversation: Conversation[Any], *messages: Message | None) -> Any:
    """What the conversation returns when these come, one for each Receive."""
    waiting = list(messages)
    reply = None
    try:
        while True:
            command = conversation.send(cast(Any, reply))
            reply = None
            if isinstance(command, Receive):
                message = waiting.pop(0)
                reply = None if message is None else Received(message, 1)
    except StopIteration as stop:
        assert waiting == []
        return stop.value


def test_news_are_taken_on_the_way() -> None:
    events: list[object] = []
    failed = FileFailed(1, ExitCode.PARTIAL, "no")
    received = told(
        next_message(EventRelay(events.append)),
        None,
        Progress("compare", 5, 9),
        Progress("compare", 9, 9),
        failed,
    )
    assert received.message is failed
    assert len(events) == 2


@pytest.mark.parametrize(
    ("top", "first", "text"),
    [
        (True, FileFailed(1, ExitCode.PARTIAL, "no"), "expected the top of the manifest, found FileFailed"),
        (False, FileFailed(1, ExitCode.PARTIAL, "no"), "expected manifest nodes, found FileFailed"),
        (False, TopTier(0, b""), "expected manifest nodes, found TopTier"),
    ],
)
def test_what_a_discovery_did_not_ask_for_ends_it(top: bool, first: Message, text: str) -> None:
    own, into = build(flat_tree(3, 100)), Manifest()
    with pytest.raises(ProtocolError, match=text):
        told(
            discover(
                own,
                len(own),
                into,
                b"k" * 16,
                EventRelay(lambda _: None),
                1,
                preserved=Preserved(owner=False),
                top=top,
            ),
            first,
        )
    assert len(into) == 0
