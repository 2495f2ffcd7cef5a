"""However many calls to storage are in flight, a sync does and says the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from rdc.model.sync import SyncOptions
from rdc.progress import ItemChanged, Problem
from tests.support.running.syncing import Way, run_sync
from tests.support.share import examples
from tests.support.trees.tree_strategies import pairs
from tests.support.trees.trees import File, Tree, read_tree, tree, write_tree


def synced(source: Tree, destination: Tree, depth: int, way: Way = Way.HERE) -> tuple[list[object], Tree]:
    """What a sync with deletion says in order, and the tree that it makes."""
    with tempfile.TemporaryDirectory() as made:
        here, there = Path(made) / "source", Path(made) / "destination"
        write_tree(here, source)
        write_tree(there, destination)
        options = SyncOptions(delete=True, force_empty=True, fsync=False, items=True, depth=depth)
        run = run_sync(here, there, options, way=way)
        said: list[object] = [event for event in run.events if isinstance(event, ItemChanged | Problem)]
        return said, read_tree(there)


@settings(max_examples=examples(60))
@given(pairs())
def test_random_pairs(trees: tuple[Tree, Tree]) -> None:
    assert synced(*trees, depth=16) == synced(*trees, depth=1)


@pytest.mark.parametrize("way", list(Way))
def test_many_of_all(way: Way) -> None:
    """More files than a batch has, in more directories than are listed ahead: new, changed, touched, gone."""
    source = {f"a{i % 40:02}/b/f{i:04}": File(b"%d " % i * (i % 60)) for i in range(700)}
    destination = dict(list(source.items())[300:])
    for number, path in enumerate(list(destination)[:200]):
        content = destination[path].content
        destination[path] = File(content + b"!", mtime_ns=5) if number % 2 else File(content, 0o600)
    destination |= {f"gone{i % 30:02}/c/g{i:04}": File(b"x" * i) for i in range(400)}
    both = tree(source), tree(destination)
    deep = synced(*both, depth=16, way=way)
    assert deep == synced(*both, depth=1, way=way)
    assert deep[1] == both[0]
