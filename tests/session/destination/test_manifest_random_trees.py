"""Comparison by manifest over any trees: it ends in the right tree, whatever digests collide."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.kernel import short_references
from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from rdc.session.destination import conversation as destination_module
from rdc.session.destination.own_tree import OwnTree
from rdc.session.source import tree_description as description_module
from rdc.session.source.tree_description import Description
from rdc.tree import manifest as fold_module
from tests.support.running.paired_sync import Remembering, kinds, sync_in_turns
from tests.support.running.sync_model import outcome
from tests.support.share import examples
from tests.support.trees.manifest_runs import DIALLERS, LISTED, LOOKED, equal, many, wire
from tests.support.trees.tree_strategies import pairs
from tests.support.trees.trees import Tree, describe, read_tree, tree, write_tree


def useless(width: int) -> object:
    """Short references of which only the first `width` bytes tell anything."""
    real = short_references

    def shortened(key: bytes, digests: bytes, stride: int, full: int) -> bytes:
        references = real(key, digests, stride, full)
        return b"".join(
            references[i : i + width] + bytes(full - width) for i in range(0, len(references), full)
        )

    return shortened


@DIALLERS
@pytest.mark.parametrize("width", [0, 1])
def test_collisions_end_in_a_listing_and_the_right_tree(
    width: int, dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_module, "short_references", useless(width))
    before, after = many(3_000), many(2_500)
    after |= tree({f"other-{i}/file-{j}": b"new" for i in range(20) for j in range(20)})
    source, destination = write_tree(tmp_path / "s", after), write_tree(tmp_path / "d", before)
    run = sync_in_turns(source, destination, SyncOptions(delete=True, fsync=False), dialler=dialler)
    assert run.done.exit == ExitCode.OK
    assert kinds(run) >= LISTED | LOOKED
    equal(source, destination)
    assert wire(sync_in_turns(source, destination, dialler=dialler)) <= 600


SLOW = settings(max_examples=examples(75), deadline=None)


@pytest.mark.sampled(2)
@DIALLERS
@pytest.mark.parametrize("width", [None, 1, 0])
@SLOW
@given(pair=pairs(), delete=st.booleans())
def test_any_tree_over_any_other(
    width: int | None, dialler: Role, pair: tuple[Tree, Tree], delete: bool
) -> None:
    wanted, held = pair
    expected = outcome(wanted, held, delete=delete)
    options = SyncOptions(delete=delete, fsync=False, force_empty=True)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        for module in (destination_module, description_module):
            patch.setattr(module, "SMALL_MANIFEST", 0)
        if width is not None:
            patch.setattr(fold_module, "short_references", useless(width))
        source = write_tree(Path(top, "source"), wanted)
        destination = write_tree(Path(top, "destination"), held)
        catalog = Remembering()
        run = sync_in_turns(source, destination, options, dialler=dialler, catalog=catalog)
        assert describe(expected.tree, read_tree(destination)) == []
        assert {problem.path_bytes for problem in run.problems} == expected.blocked
        for _ in range(2):
            again = sync_in_turns(source, destination, options, dialler=dialler, catalog=catalog)
            assert (again.done.changed, again.done.deleted) == (0, 0)
            assert {problem.path_bytes for problem in again.problems} == expected.blocked
            assert describe(expected.tree, read_tree(destination)) == []
            # What the first run presumed to leave, without a look, is what it left.
            assert expected.blocked or wire(again) <= 600


def test_the_source_walks_while_the_destination_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start has arrived when the source begins to walk, so that both do it at the same time."""
    source, destination = (write_tree(tmp_path / name, many(300)) for name in ("source", "destination"))
    order: list[str] = []
    offer, walk = Description.offer, OwnTree.walk

    def offering(self: Description, kept: Preserved, round_: int, **options: Any) -> object:
        order.append("offer")
        return offer(self, kept, round_, **options)

    def walking(self: OwnTree) -> object:
        order.append("walk")
        return walk(self)

    monkeypatch.setattr(Description, "offer", offering)
    monkeypatch.setattr(OwnTree, "walk", walking)
    run = sync_in_turns(source, destination)
    assert run.done.changed == 0
    assert sorted(order) == ["offer", "walk"]
