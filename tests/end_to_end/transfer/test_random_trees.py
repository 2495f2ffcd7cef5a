"""Any tree over any other: the result is the model's, and a second run finds nothing to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from tests.support.running.scene import SLOW, scene
from tests.support.running.sync_model import outcome
from tests.support.running.syncing import Way, run_sync
from tests.support.share import examples
from tests.support.trees.tree_strategies import edited, pairs, trees
from tests.support.trees.trees import Tree, describe, read_tree, write_tree


def check(source: Path, wanted: Tree, held: Tree, options: SyncOptions, way: Way) -> None:
    """A destination with `held` is synced, then synced again."""
    destination = write_tree(source.parent / "destination", held)
    expected = outcome(wanted, held, delete=options.delete, checksum=options.checksum)

    first = run_sync(source, destination, options, way=way)
    assert describe(expected.tree, read_tree(destination)) == []
    assert describe(wanted, read_tree(source)) == []
    assert {problem.path_bytes for problem in first.problems} == expected.blocked
    assert first.done.exit == (ExitCode.PARTIAL if expected.blocked else ExitCode.OK)

    second = run_sync(source, destination, options, way=way)
    assert second.items == []
    assert (second.done.changed, second.done.deleted, second.done.literal_bytes) == (0, 0, 0)
    assert second.done.exit == first.done.exit
    assert describe(expected.tree, read_tree(destination)) == []


options = st.builds(
    SyncOptions, delete=st.booleans(), checksum=st.booleans(), fsync=st.just(False), force_empty=st.just(True)
)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=SLOW)
@given(pairs(), options)
def test_in_one_process(pair: tuple[Tree, Tree], options: SyncOptions) -> None:
    wanted, held = pair
    with scene() as place:
        check(write_tree(place / "source", wanted), wanted, held, options, Way.HERE)


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
@settings(max_examples=15, deadline=None, suppress_health_check=SLOW)
@given(pairs(), options)
def test_through_a_child(way: Way, pair: tuple[Tree, Tree], options: SyncOptions) -> None:
    wanted, held = pair
    with scene() as place:
        check(write_tree(place / "source", wanted), wanted, held, options, way)


@settings(max_examples=examples(80), deadline=None, suppress_health_check=SLOW)
@given(st.data(), trees(), options)
def test_what_is_remembered_never_stands_for_what_is_there(
    data: st.DataObject, wanted: Tree, options: SyncOptions
) -> None:
    """Both sides change behind rdc's back, at once, at the same paths, often in the same inodes."""
    with scene() as place:
        source = write_tree(place / "source", wanted)
        for _ in range(3):
            held = data.draw(edited(wanted))
            check(source, wanted, held, options, Way.HERE)
            shutil.rmtree(place / "destination")
            if data.draw(st.booleans()):
                wanted = data.draw(edited(wanted))
                shutil.rmtree(source)
                write_tree(source, wanted)
