"""A file on its way by descent, and the messages that a discovery waits for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rdc.errors import ExitCode, ProtocolError
from rdc.model.kept import Kept
from rdc.protocol.connection import Received
from rdc.protocol.messages import FileFailed, Message, Progress, TopTier
from rdc.session.commands import Conversation, Receive
from rdc.session.descending_file import DescendingFile, Stage
from rdc.session.discovery import discover, next_message
from rdc.session.news import News
from rdc.signature.digests import DIGEST_BYTES
from rdc.tree.manifest import Manifest
from tests.manifests import build, flat_tree


class Part:
    """Stands for a comparison or a fetch."""

    def __init__(self, asked: list[int] | None = None) -> None:
        self.asked_nodes = asked or []
        self.restarted = 0

    def restart(self) -> None:
        self.restarted += 1


def test_an_answer_to_nothing_is_the_peers_fault() -> None:
    state = DescendingFile(7, b"path", 100, 5)
    with pytest.raises(ProtocolError, match="literals of file 7 that were not asked for"):
        state.fetching()


def test_what_was_sent_and_not_answered_is_counted() -> None:
    state = DescendingFile(7, b"path", 100, 5)
    assert state.unanswered() == []
    state.open_requests = 2
    assert state.unanswered() == [None, None]
    state.comparison = cast(Any, Part([3, 9]))
    assert state.unanswered() == [3, 9, None, None]


def test_an_attempt_gives_back_what_it_holds_and_the_next_has_whole_digests() -> None:
    state = DescendingFile(7, b"path", 100, 5)
    fetch = Part()
    state.fetch, state.failed = cast(Any, fetch), True
    assert state.fetching() is cast(Any, fetch)
    state.release()
    state.release()
    assert (fetch.restarted, state.fetch, state.comparison, state.failed) == (1, None, None, False)
    state.escalate()
    assert (state.stage, state.width) == (Stage.FULL, DIGEST_BYTES)


def test_a_new_version_replaces_what_was_signed_or_what_is_there() -> None:
    state = DescendingFile(7, b"path", 100, 5)
    context = cast(Any, SimpleNamespace(expected=lambda file, path: (file, path)))
    state.held = [cast(Any, SimpleNamespace(path=b"path", identity="signed"))]
    assert state.replaced(context) == cast(Any, "signed")
    # The version at its path is gone; another file is the base.
    state.held = [cast(Any, SimpleNamespace(path=b"other", identity="other"))]
    assert state.replaced(context) == cast(Any, (7, b"path"))


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
        next_message(News(events.append)), None, Progress("compare", 5, 9), Progress("compare", 9, 9), failed
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
                own, len(own), into, b"k" * 16, News(lambda _: None), 1, kept=Kept(owner=False), top=top
            ),
            first,
        )
    assert len(into) == 0
