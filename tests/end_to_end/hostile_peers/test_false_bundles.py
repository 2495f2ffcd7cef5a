"""A source that lies about a bundle costs bytes or ends the session, and never makes a wrong file."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ProtocolError
from rdc.protocol.messages import BlockAnswer, BundleAnswer, Message
from rdc.session.runtime.commands import Send
from rdc.session.source import answers as file_answers_module
from tests.support.running.delta_sync import places, synced
from tests.support.running.paired_sync import sync_in_turns
from tests.support.trees.bundled_files import NEW, OLD
from tests.support.trees.trees import read_tree

pytestmark = pytest.mark.usefixtures("nothing_likely", "fewest_bytes")


def answering(monkeypatch: pytest.MonkeyPatch, answer: Callable[[BundleAnswer], BundleAnswer]) -> None:
    """The source's BundleAnswers are what `answer` makes of them."""

    def changed(message: Message, round_: int) -> Send:
        return Send(answer(message) if isinstance(message, BundleAnswer) else message, round_)

    monkeypatch.setattr(file_answers_module, "Send", changed)


def with_(message: BundleAnswer, **fields: Any) -> BundleAnswer:
    names = ("bundle", "without", "digest", "fingerprints")
    return BundleAnswer(*[fields.get(name, getattr(message, name)) for name in names])


@pytest.mark.parametrize(
    "lie",
    [
        lambda m: with_(m, fingerprints=m.fingerprints[:-3]),
        lambda m: with_(m, fingerprints=m.fingerprints + bytes(3)),
        lambda m: with_(m, fingerprints=b""),
        lambda m: with_(m, without=(0,)),
    ],
    ids=["short", "long", "none", "one left out"],
)
def test_a_description_that_does_not_fit_ends_the_session(
    lie: Callable[[BundleAnswer], BundleAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, lie)
    source, destination = places(tmp_path, OLD, NEW)
    before = read_tree(destination)
    with pytest.raises(ProtocolError):
        sync_in_turns(source, destination)
    assert read_tree(destination) == before


@pytest.mark.parametrize(
    "lie",
    [
        lambda m: with_(m, digest=bytes(32)),
        lambda m: with_(m, fingerprints=random.Random(1).randbytes(len(m.fingerprints))),
        lambda m: with_(m, fingerprints=(m.fingerprints[:3] * len(m.fingerprints))[: len(m.fingerprints)]),
        lambda m: with_(m, fingerprints=m.fingerprints[-6:] + m.fingerprints[:-6]),
        lambda m: with_(m, without=tuple(range(len(NEW))), fingerprints=b""),
    ],
    ids=["digest", "prints", "one print", "prints moved", "nothing in it"],
)
def test_a_description_that_is_not_true_costs_bytes_alone(
    lie: Callable[[BundleAnswer], BundleAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, lie)
    source, destination = places(tmp_path, OLD, NEW)
    synced(source, destination)


def test_a_source_that_makes_fingerprints_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(message: Message, round_: int) -> Send:
        if isinstance(message, BlockAnswer):
            message = BlockAnswer(message.file, random.Random(3).randbytes(len(message.fingerprints)))
        return Send(message, round_)

    monkeypatch.setattr(file_answers_module, "Send", changed)
    source, destination = places(tmp_path, OLD, NEW)
    synced(source, destination)
