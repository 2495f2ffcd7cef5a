"""A source that lies about blocks or corrections costs bytes, and never a wrong file."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ProtocolError
from rdc.protocol.messages import BlockAnswer, Correction, Message, RangeRequest
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, Claims
from rdc.session.runtime.commands import Send
from rdc.session.source import answers as file_answers_module
from rdc.session.source import range_answers as cell_checks_module
from rdc.session.source import range_answers as range_answers_module
from rdc.session.transfer import compare as compare_module
from tests.support.running.delta_sync import CORRECTIONS, NEW, OLD, counts, places, rebuilt_library, synced
from tests.support.running.paired_sync import sync_in_turns

pytestmark = pytest.mark.usefixtures("nothing_likely", "fewest_bytes")


def answering(monkeypatch: pytest.MonkeyPatch, answer: Callable[[BlockAnswer], Message]) -> None:
    """The source's BlockAnswers are what `answer` makes of them."""

    class Changed(Send):
        def __init__(self, message: Message, round: int) -> None:  # noqa: A002 - as it calls it
            super().__init__(answer(message) if isinstance(message, BlockAnswer) else message, round)

    monkeypatch.setattr(file_answers_module, "Send", Changed)


def test_a_source_that_makes_fingerprints_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, lambda m: BlockAnswer(m.file, random.Random(1).randbytes(len(m.fingerprints))))
    source, destination = places(tmp_path, OLD, NEW)
    synced(source, destination)


def test_a_source_that_repeats_one_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the base's own first block: every block matches at once, and every chunk is wrong."""
    answering(
        monkeypatch,
        lambda m: BlockAnswer(m.file, (m.fingerprints[:4] * len(m.fingerprints))[: len(m.fingerprints)]),
    )
    source, destination = places(tmp_path, OLD, NEW)
    synced(source, destination)


@pytest.mark.parametrize("lie", ["random", "first", "zeros"])
def test_a_source_that_lies_about_a_region(lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its blocks seem to be, the file comes right, and nothing of it twice."""

    def answer(message: BlockAnswer) -> BlockAnswer:
        size = len(message.fingerprints)
        made_up = {
            "random": random.Random(2).randbytes(size),
            "first": (message.fingerprints[:6] * size)[:size],
            "zeros": bytes(size),
        }
        return BlockAnswer(message.file, made_up[lie])

    answering(monkeypatch, answer)
    source, destination = rebuilt_library(tmp_path)
    run = synced(source, destination)
    assert counts(run)["TreeAnswer"] == 1
    # But for a block or two that were told truly by chance.
    assert 299_000 <= run.done.literal_bytes <= 300_000
    assert run.done.round_trips <= 7


@pytest.mark.parametrize("name", ["small", "one chunk", "some chunks", "large"])
def test_a_source_that_says_all_is_wrong(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells come, and are what they are."""
    monkeypatch.setattr(
        cell_checks_module,
        "check_block_digests",
        lambda secret, images: b"??" * -(-len(images) // CHECK_BLOCK_BYTES),
    )
    source, destination = places(tmp_path, {"f": OLD[name]}, {"f": NEW[name]})
    run = synced(source, destination)
    assert counts(run)["RangeRequest"] == 1
    assert run.done.round_trips <= 10
    assert run.done.literal_bytes <= min(len(NEW[name]), 3 * 50_000)


@pytest.mark.parametrize("name", ["small", "some chunks"])
@pytest.mark.parametrize("change", ["shorter", "longer", "empty"])
def test_corrections_that_do_not_fit_end_the_session(
    change: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fits_not(*given: Any) -> Iterator[Correction]:
        for found in CORRECTIONS(*given):
            assert isinstance(found, Correction)
            payload = bytes(found.payload)
            changed = {"shorter": payload[1:], "longer": payload[1:] + b"ab", "empty": b""}[change]
            yield Correction(found.file, found.cells, changed)

    monkeypatch.setattr(
        cell_checks_module,
        "check_block_digests",
        lambda secret, images: b"??" * -(-len(images) // CHECK_BLOCK_BYTES),
    )
    monkeypatch.setattr(range_answers_module, "corrections", fits_not)
    source, destination = places(tmp_path, {"f": OLD[name]}, {"f": NEW[name]})
    with pytest.raises(ProtocolError):
        sync_in_turns(source, destination)
    assert (destination / "f").read_bytes() == OLD[name]


@pytest.mark.parametrize("name", ["small", "some chunks"])
def test_corrections_that_lie_reach_no_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a lie makes is not what reference and root name: it is fetched again."""

    def lies(*given: Any) -> Iterator[Correction]:
        for found in CORRECTIONS(*given):
            assert isinstance(found, Correction)
            yield Correction(found.file, found.cells, bytes(len(found.payload)))

    monkeypatch.setattr(
        cell_checks_module,
        "check_block_digests",
        lambda secret, images: b"??" * -(-len(images) // CHECK_BLOCK_BYTES),
    )
    monkeypatch.setattr(range_answers_module, "corrections", lies)
    source, destination = places(tmp_path, {"f": OLD[name]}, {"f": NEW[name]})
    synced(source, destination)


def test_claims_about_what_is_not_there_fail_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beyond(message: Message, round_: int) -> Send:
        if isinstance(message, RangeRequest):
            claims = Claims((1_000,), b"ab")
            message = RangeRequest(message.file, message.gaps, message.lengths, claims=claims)
        return Send(message, round_)

    monkeypatch.setattr(compare_module, "Send", beyond)
    source, destination = places(tmp_path, {"f": OLD["some chunks"]}, {"f": NEW["some chunks"]})
    run = sync_in_turns(source, destination)
    assert (destination / "f").read_bytes() == OLD["some chunks"]
    assert "FileFailed" in counts(run)
