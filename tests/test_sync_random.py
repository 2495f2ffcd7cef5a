"""Any tree over any other: the result is the model's, and a second run finds nothing to do."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from tests.sync_model import outcome
from tests.syncing import Way, run_sync
from tests.tree_strategies import pairs
from tests.trees import Tree, describe, read_tree, write_tree

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


def check(pair: tuple[Tree, Tree], options: SyncOptions, way: Way) -> None:
    wanted, held = pair
    expected = outcome(wanted, held, delete=options.delete, checksum=options.checksum)
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        source = write_tree(Path(top, "source"), wanted)
        destination = write_tree(Path(top, "destination"), held)

        first = run_sync(source, destination, options, way=way)
        assert describe(expected.tree, read_tree(destination)) == []
        assert describe(wanted, read_tree(source)) == []
        assert {problem.path for problem in first.problems} == expected.blocked
        assert first.done.exit == (ExitCode.PARTIAL if expected.blocked else ExitCode.OK)

        second = run_sync(source, destination, options, way=way)
        assert second.items == []
        assert (second.done.changed, second.done.deleted, second.done.literal_bytes) == (0, 0, 0)
        assert second.done.exit == first.done.exit
        assert describe(expected.tree, read_tree(destination)) == []


options = st.builds(
    SyncOptions, delete=st.booleans(), checksum=st.booleans(), fsync=st.just(False), force_empty=st.just(True)
)


@settings(max_examples=500, deadline=None, suppress_health_check=SLOW)
@given(pairs(), options)
def test_in_one_process(pair: tuple[Tree, Tree], options: SyncOptions) -> None:
    check(pair, options, Way.HERE)


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(pairs(), options)
def test_through_a_child(way: Way, pair: tuple[Tree, Tree], options: SyncOptions) -> None:
    check(pair, options, way)
