"""Any tree over any other through a relay: the result is the model's, whatever the sizes of reads."""

from __future__ import annotations

import os
import random
from pathlib import Path
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from rdc.session.far import relay
from rdc.transport import pipes
from tests.support.relay.relayed import relayed_sync
from tests.support.running.scene import SLOW, scene
from tests.support.running.sync_model import outcome
from tests.support.share import examples
from tests.support.trees.tree_strategies import pairs
from tests.support.trees.trees import Tree, describe, read_tree, write_tree


def check(top: Path, wanted: Tree, before: Tree, options: SyncOptions) -> None:
    source = write_tree(top / "source", wanted)
    destination = write_tree(top / "destination", before)
    expected = outcome(wanted, before, delete=options.delete, checksum=options.checksum)
    report = relayed_sync(source, destination, options)
    assert describe(expected.tree, read_tree(destination)) == []
    assert describe(wanted, read_tree(source)) == []
    assert report.exit == (ExitCode.PARTIAL if expected.blocked else ExitCode.OK)
    again = relayed_sync(source, destination, options)
    assert (again.changed, again.deleted) == (0, 0) or options.checksum or expected.blocked


@settings(max_examples=examples(60), suppress_health_check=SLOW)
@given(pairs(), st.booleans(), st.booleans())
def test_any_tree_over_any_other(trees: tuple[Tree, Tree], delete: bool, checksum: bool) -> None:
    options = SyncOptions(delete=delete, checksum=checksum, fsync=False, force_empty=True)
    with scene() as top:
        check(top, *trees, options)


@settings(max_examples=examples(24), suppress_health_check=SLOW)
@given(pairs(), st.integers(1, 300), st.integers(0, 2**32))
def test_any_sizes_of_what_moves(trees: tuple[Tree, Tree], high: int, seed: int) -> None:
    """Reads of a few bytes, and hops that take hardly any output, only make it slower."""
    rng = random.Random(seed)
    write = os.write

    def short(fd: int, data: bytes) -> int:
        return write(fd, data[: rng.choice((1, 7, 400, 70_000))])

    with (
        scene() as top,
        patch.object(pipes, "READ_BYTES", 1 + seed % 2000),
        patch.object(relay, "PENDING_HIGH", high),
    ):
        fake = type("os", (), {**vars(os), "write": staticmethod(short)})
        with patch.object(pipes, "os", fake):
            check(top, *trees, SyncOptions(delete=True, fsync=False, force_empty=True))
