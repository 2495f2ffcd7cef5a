"""A source whose claims about local content fail too often is told of no more of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from rdc.lean.records import replace
from rdc.limits import FAILED_FILES, FAILED_OF_BASE, WRONG_CELLS
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Message, TreeAnswer
from rdc.session.transfer.destination import Guesses
from tests.support.running.syncing import run_sync
from tests.support.wire.lying_source import answering

FILES = 3 * FAILED_FILES


def test_files_that_come_out_wrong_end_all_comparing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their roots are made up. All content arrives nevertheless."""
    source, top = tmp_path / "s", tmp_path / "d"
    for place in (source, top):
        place.mkdir()
        for number in range(FILES):
            (place / str(number)).write_bytes(os.urandom(60_000 + (place == source)))
    trees: list[int] = []

    def lie(message: Message) -> Sequence[Message]:
        if isinstance(message, TreeAnswer):
            trees.append(message.file)
            return (replace(message, root=os.urandom(32)),)
        return (message,)

    monkeypatch.setattr("rdc.session.transfer.compare.TREES_IN_FLIGHT", 1)
    answering(monkeypatch, lie)
    assert run_sync(source, top, SyncOptions(fsync=False)).problems == []
    assert len(trees) <= FAILED_FILES + 2
    for number in range(FILES):
        assert (top / str(number)).read_bytes() == (source / str(number)).read_bytes()


def test_bounds() -> None:
    guesses = Guesses()
    for _ in range(FAILED_OF_BASE):
        assert not guesses.is_spent(b"a")
        guesses.failed([b"a"])
    assert guesses.is_spent(b"a") and not guesses.is_spent(b"b")
    for _ in range(FAILED_FILES - FAILED_OF_BASE):
        assert not guesses.spent
        guesses.failed([])
    assert guesses.spent and guesses.is_spent(b"b")


def test_wrong_check_blocks_count_where_most_are() -> None:
    guesses = Guesses()
    guesses.claimed([b"a"], 4 * WRONG_CELLS)
    guesses.wrong([b"a"], 2 * WRONG_CELLS)
    assert not guesses.spent and not guesses.is_spent(b"a")
    guesses.wrong([b"a"], 1)
    assert guesses.spent and guesses.is_spent(b"a")
    few = Guesses()
    few.claimed([b"a"], WRONG_CELLS)
    few.wrong([b"a"], WRONG_CELLS)
    assert not few.is_spent(b"a")
