"""The files that the search for equal ranges reads, and which of two files it changes."""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path

import pytest

from rdc.duplicates.share import RunFinder
from rdc.errors import FileError
from rdc.files.names.name_change import displaced_name
from rdc.files.root.root import Root
from rdc.library import duplicate_groups
from rdc.library.duplicate_groups import RunSearch, open_operands
from rdc.model.entries import Metadata
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Problem
from rdc.tree.filters import FilterList

SIZE = 600_000


def search(
    paths: list[Path], *, keep: tuple[Path, ...] = (), min_size: int = 0, rules: tuple[FilterRule, ...] = ()
) -> tuple[set[tuple[str, str]], list[FileError], list[object]]:
    """Returns the pairs (source, destination) by name, the failures and the events."""
    problems: list[FileError] = []
    events: list[object] = []
    operands = open_operands([os.fsencode(path) for path in paths], [os.fsencode(path) for path in keep])
    try:
        runs = RunSearch(operands, FilterList(rules), None, min_size, events.append, problems.append).runs()
        found = {
            (os.fsdecode(one.source.path), os.fsdecode(one.destination.path))
            for several in runs
            for one in several
        }
    finally:
        operands.close()
    return found, problems, events


def shared(seed: int, size: int = SIZE) -> bytes:
    """Returns content with its own start and end for each seed, and an equal middle."""
    return random.Random(seed).randbytes(70_000) + random.Random(0).randbytes(size) + b"%d" % seed


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "sub").mkdir(parents=True)
    (top / "a").write_bytes(shared(1))
    (top / "sub" / "b").write_bytes(shared(2))
    return top


def test_equal_parts_are_found(tree: Path) -> None:
    found, problems, _ = search([tree])
    assert (found, problems) == ({("a", "sub/b")}, [])


def test_small_excluded_and_displaced_files_take_no_part(tree: Path) -> None:
    (tree / "short").write_bytes(shared(3)[:300_000])
    (tree / "left-out").write_bytes(shared(4))
    # A displaced file may be the only copy while another file takes its name.
    (tree / os.fsdecode(displaced_name(b"x", SIZE, Metadata(0o644, 0, 0, 0)))).write_bytes(shared(5))
    rules = (FilterRule(RuleAction.EXCLUDE, b"left-out"),)
    assert search([tree], min_size=400_000, rules=rules)[0] == {("a", "sub/b")}
    assert {name for pair in search([tree])[0] for name in pair} == {"a", "sub/b", "short", "left-out"}


def test_what_is_to_be_kept_is_what_others_share_with(tree: Path) -> None:
    found, _, _ = search([tree], keep=(tree / "sub",))
    assert found == {("sub/b", "a")}
    assert search([tree], keep=(tree,))[0] == set()


def test_a_file_that_cannot_be_read_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_read = Root.open_read

    def opened(self: Root, path: bytes) -> object:
        if path == b"a":
            raise FileError(path, "a: gone")
        return open_read(self, path)

    monkeypatch.setattr(Root, "open_read", opened)
    found, problems, _ = search([tree])
    assert (found, [error.path_bytes for error in problems]) == (set(), [b"a"])


def test_what_was_too_much_to_remember_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search([tree])[2] == []
    monkeypatch.setattr(duplicate_groups, "RunFinder", partial(RunFinder, 4))
    [event] = search([tree])[2]
    assert isinstance(event, Problem)
    assert "chunks were too many to remember" in event.message
