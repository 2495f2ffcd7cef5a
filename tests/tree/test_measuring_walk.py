"""A measuring walk sees what any walk sees, and knows which file each entry is."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from rdc.errors import ExitCode, FileError
from rdc.files.root.root import Root
from rdc.model.entries import strings
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Event, Problem, silent
from rdc.tree.filters import FilterList
from rdc.tree.walk import Walk, measuring_walk
from tests.support.trees.tree_strategies import trees
from tests.support.trees.trees import Tree, write_tree

NO_RULES = FilterList(())
RULES = FilterList([FilterRule(RuleAction.EXCLUDE, b"a"), FilterRule(RuleAction.EXCLUDE, b"/b/a*")])


@settings(deadline=None, max_examples=25)
@given(trees())
def test_the_same_entries_and_the_inodes_of_a_stat(wanted: Tree) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        top = write_tree(Path(made) / "t", wanted)
        root = Root.open(os.fsencode(top))
        for rules in (NO_RULES, RULES):
            plain = [(found.path, found.listing) for found in Walk(root, rules, silent)]
            walked = list(measuring_walk(root, rules, silent))
            assert [(found.path, found.listing) for found in walked] == plain
            for found in walked:
                directory = root.directory(found.path)
                for row, name in enumerate(strings(found.listing.names)):
                    status = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
                    assert found.inodes.identity(row) == (status.st_dev, status.st_ino)
                assert len(found.inodes.links) == 4 * len(found.listing)
        root.close()
        for path, _, _, fd in os.fwalk(top):
            os.fchmod(fd, 0o700)
            assert path


def test_where_not_to_descend_is_asked_once_a_directory(tmp_path: Path) -> None:
    for name in ("in/deep", "out/deep"):
        (tmp_path / name).mkdir(parents=True)
    asked = []

    def descend(device: int, inode: int) -> bool:
        asked.append((device, inode))
        return inode != (tmp_path / "out").stat().st_ino

    walked = measuring_walk(Root.open(os.fsencode(tmp_path)), NO_RULES, silent, descend)
    assert [found.path for found in walked] == [b"", b"in", b"in/deep"]
    stats = [(tmp_path / name).stat() for name in ("in", "out", "in/deep")]
    assert asked == [(status.st_dev, status.st_ino) for status in stats]


def test_a_directory_that_goes_is_reported_and_a_root_raised(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "gone").mkdir(parents=True)
    (top / "here").mkdir()
    events: list[Event] = []
    walk = iter(measuring_walk(Root.open(os.fsencode(top)), NO_RULES, events.append))
    assert next(walk).path == b""
    (top / "gone").rmdir()
    assert [found.path for found in walk] == [b"here"]
    [problem] = events
    assert isinstance(problem, Problem)
    assert (problem.code, problem.path_bytes) == (ExitCode.VANISHED, b"gone")
    root = Root.open(os.fsencode(top))
    (top / "here").rmdir()
    top.rmdir()
    with pytest.raises(FileError):
        list(measuring_walk(root, NO_RULES, silent))
