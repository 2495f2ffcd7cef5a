"""--delete-missing-args: a SRC or listed path that is missing is deleted at DST, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.daemon.access import Access, granted_options
from rdc.errors import ExitCode, TrustError
from rdc.lean.records import replace
from rdc.model.options import FileList
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from rdc.protocol.messages import Open, Role
from tests.support.running.several_sources import paths_in, run, written
from tests.support.running.syncing import Way
from tests.support.trees.trees import read_tree, tree

OPTIONS = SyncOptions(delete_missing_args=True, fsync=False)


@pytest.mark.parametrize("way", Way)
def test_what_is_missing_goes_and_nothing_else(way: Way, tmp_path: Path) -> None:
    written(tmp_path, tree({"no": b"goes", "other": b"stays", "full/x": b"stays"}))
    rehearsed = run(tmp_path, ["c", "no", "full"], replace(OPTIONS, dry_run=True), way)
    assert paths_in(tmp_path / "d") == {"no", "other", "full", "full/x"}
    done = run(tmp_path, ["c", "no", "full"], OPTIONS, way)
    assert (done.done.exit, done.done.deleted) == (ExitCode.OK, 1)
    notices = [event.message for event in done.events if isinstance(event, Problem)]
    assert ["full: not deleted, it is not empty" in notice for notice in notices] == [True]
    assert paths_in(tmp_path / "d") == {"c", "other", "full", "full/x"}
    assert rehearsed.items == done.items
    done = run(tmp_path, ["c", "no", "full"], replace(OPTIONS, force=True), way)
    assert (done.problems, paths_in(tmp_path / "d")) == ([], {"c", "other"})


@pytest.mark.parametrize("way", Way)
def test_listed_paths_below_what_is_missing(way: Way, tmp_path: Path) -> None:
    written(tmp_path, tree({"b/gone/x": b"goes", "b/gone/y": b"stays", "b/u/z": b"goes", "away/x": b"goes"}))
    names = (b"b/t", b"b/gone/x", b"b/u/z", b"away/x")
    options = replace(OPTIONS, files=FileList(names), relative=True, recursive=False)
    before = os.stat(tmp_path / "s" / "b" / "u").st_mtime_ns
    done = run(tmp_path, [""], options, way)
    assert (done.done.exit, done.problems, done.done.deleted) == (ExitCode.OK, [], 3)
    assert paths_in(tmp_path / "d") == {"away", "b", "b/t", "b/u", "b/gone", "b/gone/y"}
    assert os.stat(tmp_path / "d" / "b" / "u").st_mtime_ns == before
    assert run(tmp_path, [""], options, way).items == []


def test_a_missing_directory_above_deletes_nothing(tmp_path: Path) -> None:
    """Its file system may not be mounted."""
    held = written(tmp_path, tree({"x": b"stays"})) / "d"
    done = run(tmp_path, ["c", "unmounted/x"], OPTIONS)
    assert done.done.exit is ExitCode.PARTIAL and "no such file" in done.problems[0].message
    assert paths_in(held) == {"c", "x"}


def test_a_rule_protects(tmp_path: Path) -> None:
    written(tmp_path, tree({"no": b"stays", "na": b"goes"}))
    rules = (FilterRule(RuleAction.EXCLUDE, b"/no"),)
    assert run(tmp_path, ["c", "no", "na"], replace(OPTIONS, rules=rules)).done.deleted == 1
    assert set(read_tree(tmp_path / "d")) == {b"", b"c", b"no"}


def test_limits_of_deletions_count(tmp_path: Path) -> None:
    written(tmp_path, tree({"n1": b"", "n2": b"", "n3": b""}))
    done = run(tmp_path, ["c", "n1", "n2", "n3"], replace(OPTIONS, max_delete=1))
    assert (done.done.exit, done.done.deleted) == (ExitCode.MAX_DELETE, 1)


@pytest.mark.parametrize("access", [Access("m", no_delete=True), Access("m", append_only=True)])
def test_a_module_that_deletes_nothing_refuses(access: Access) -> None:
    with pytest.raises(TrustError, match="--delete-missing-args"):
        granted_options(Open.asking(Role.DESTINATION, b"", bytes(16), OPTIONS, selects=True), access)
