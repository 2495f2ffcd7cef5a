"""--prune-empty-dirs: directories that hold nothing but directories take no part."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdc.cli.options.sync_options import parse_sync, read_request
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.trees import Directory, read_tree, tree, write_tree

SOURCE = tree(
    {
        "empty": Directory(),
        "full/deep/er": Directory(),
        "full/deep/file": b"f",
        "nested/a/b/c": Directory(),
        "objects/x.o": b"o",
    }
)


def no_file(name: str) -> bytes:
    raise AssertionError(name)


@pytest.mark.parametrize("way", Way)
def test_what_holds_no_file_is_left_out_and_deleted(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", SOURCE)
    destination = write_tree(tmp_path / "d", tree({"empty": Directory(), "nested/a/old": b"goes"}))
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"),)
    options = SyncOptions(prune_empty_dirs=True, delete=True, rules=rules, fsync=False)
    run_sync(source, destination, options, way=way)
    assert set(read_tree(destination)) == {b"", b"full", b"full/deep", b"full/deep/file"}
    assert run_sync(source, destination, options, way=way).items == []
    run_sync(source, destination, SyncOptions(fsync=False), way=way)
    assert set(read_tree(destination)) == set(SOURCE)


def test_a_source_without_any_file_is_empty(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"a/b": Directory()}))
    destination = write_tree(tmp_path / "d", tree({"old": b"stays"}))
    run = run_sync(source, destination, SyncOptions(prune_empty_dirs=True, delete=True, fsync=False))
    assert "the source is empty" in run.problems[0].message
    assert set(read_tree(destination)) == {b"", b"old"}


def test_a_protected_directory_stays(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", SOURCE)
    words = parse_sync(["-m", "--filter=P b", "--no-fsync", "a", "b"])
    options = read_request(words, no_file).options
    run_sync(source, tmp_path / "d", options)
    assert {b"nested", b"nested/a", b"nested/a/b"} < set(read_tree(tmp_path / "d"))
    assert not {b"empty", b"nested/a/b/c"} & set(read_tree(tmp_path / "d"))


@pytest.mark.parametrize(
    ("words", "pruned"), [(["-m"], True), (["-m", "--no-m"], False), (["--no-m", "-m"], True), ([], False)]
)
def test_the_last_of_them_counts(words: list[str], pruned: bool) -> None:
    assert read_request(parse_sync([*words, "a", "b"]), no_file).options.prune_empty_dirs is pruned
