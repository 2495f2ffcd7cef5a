"""A name moves to another file system: its copy is whole, or gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.errors import FileChangedError
from rdc.files.base.taking_names import make_durable
from rdc.files.names.name_change import Move
from rdc.files.root.root import Root
from tests.files.names.link_pairs import Pair
from tests.support.trees.saved_files import CONTENT, TIME


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "into"


def copied(pair: Pair, into: Path) -> Move:
    """`old` on its way into another file system, where its copy has its name already."""
    there = Root.open(os.fsencode(into), create=True, writable=True)
    move = Move(pair.old.root, b"old", pair.old, pair.kept, into=there, destination=b"new")
    copy = move.stage()
    assert copy is not None
    make_durable([copy])
    directory = move.place()
    assert directory is not None
    make_durable([], [directory])
    return move


def test_a_move(pair: Pair, into: Path) -> None:
    move = copied(pair, into)
    move.depart(first=True)
    make_durable([], move.directories)
    assert pair.beside.read_bytes() == CONTENT
    move.finish()
    assert os.listdir(pair.place) == ["kept"]
    assert (into / "new").read_bytes() == CONTENT
    assert os.stat(into / "new").st_mtime_ns == TIME


@pytest.mark.parametrize("late", [False, True], ids=["before it leaves", "after it left"])
def test_a_file_that_stays_leaves_no_copy(pair: Pair, into: Path, late: bool) -> None:
    move = copied(pair, into)
    if late:
        move.depart(first=True)
    with pytest.raises(BlockingIOError):
        os.open(pair.beside if late else pair.name, os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(FileChangedError, match="written to"):
        move.finish() if late else move.depart(first=True)
    pair.expect_untouched()
    assert os.listdir(into) == []


def test_undoing_removes_the_copy(pair: Pair, into: Path) -> None:
    move = copied(pair, into)
    move.depart(first=True)
    move.undo()
    pair.expect_untouched()
    assert os.listdir(into) == []
