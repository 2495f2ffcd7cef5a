"""Which pairs of trees count as settled: those that were met under the same options, and no others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import EVERYTHING
from rdc.model.sync import SyncOptions
from rdc.progress import silent
from rdc.protocol.messages import Start
from rdc.session.destination.own_tree import InSyncPair
from rdc.tree.filters import FilterList
from rdc.tree.manifest import Manifest
from rdc.tree.walk import Walk
from tests.support.running.paired_sync import Remembering

NO_RULES = FilterList(())
SOURCE, OWN = b"s" * 32, b"o" * 32
PLAIN = SyncOptions()
MATTER = {
    "delete": replace(PLAIN, delete=True),
    "update": replace(PLAIN, update=True),
    "existing": replace(PLAIN, existing=True),
    "ignore_existing": replace(PLAIN, ignore_existing=True),
    "min_size": replace(PLAIN, min_size=1),
    "min_size 2": replace(PLAIN, min_size=2),
    "max_size": replace(PLAIN, max_size=0),
    "one_file_system": replace(PLAIN, one_file_system=True),
}


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "more").write_bytes(b"than the source has")
    found = Root.open(os.fsencode(tmp_path))
    yield found
    found.release()


def settlement(
    store: Remembering | None,
    root: Root,
    options: SyncOptions = PLAIN,
    metadata: Metadata | None = None,
    only: bytes = b"",
) -> InSyncPair:
    given = root.metadata(b"") if metadata is None else metadata
    return InSyncPair(
        store, root, Start(only, Kind.DIRECTORY, given), options, NO_RULES, preserved=EVERYTHING
    )


def walked(root: Root) -> Manifest:
    manifest = Manifest()
    for path, listing, _ in Walk(root, NO_RULES, silent):
        manifest.add(path, listing)
    return manifest


def test_a_pair_is_settled_as_it_was_met(root: Root) -> None:
    store = Remembering()
    settlement(store, root).again(SOURCE, OWN)
    assert settlement(store, root).is_in_sync(SOURCE, OWN)
    # The other way round it is another pair.
    assert not settlement(store, root).is_in_sync(OWN, SOURCE)
    assert not settlement(store, root).is_in_sync(SOURCE, SOURCE)


@pytest.mark.parametrize("name", MATTER)
def test_options_that_say_what_is_compared_matter(name: str, root: Root) -> None:
    """Settled under one, a pair is not under the others."""
    store = Remembering()
    settlement(store, root, MATTER[name]).again(SOURCE, OWN)
    others = [PLAIN, *(options for other, options in MATTER.items() if other != name)]
    assert settlement(store, root, MATTER[name]).is_in_sync(SOURCE, OWN)
    assert not any(settlement(store, root, options).is_in_sync(SOURCE, OWN) for options in others)


def test_a_name_alone_and_mount_points_matter(root: Root) -> None:
    store = Remembering()
    settlement(store, root, only=b"d").again(SOURCE, OWN)
    assert not settlement(store, root).is_in_sync(SOURCE, OWN)
    options = MATTER["one_file_system"]
    mine, other = settlement(store, root, options), settlement(store, root, options)
    mine.note_mount_points([b"mounted"])
    mine.again(SOURCE, OWN)
    assert not other.is_in_sync(SOURCE, OWN)
    other.note_mount_points([b"mounted"])
    assert other.is_in_sync(SOURCE, OWN)


def test_equal_trees_are_not_remembered(root: Root) -> None:
    """They need no memory: their roots say it."""
    store = Remembering()
    settlement(store, root).again(OWN, OWN)
    assert store.settled == set()


def test_nothing_is_settled_without_a_memory(root: Root) -> None:
    alone = settlement(None, root)
    alone.again(SOURCE, OWN)
    alone.remember_in_sync(Manifest(), None, set())
    assert not alone.is_in_sync(SOURCE, OWN)


def test_a_destination_with_more_is_settled_after_a_run(root: Root) -> None:
    store = Remembering()
    run = settlement(store, root)
    wanted, own = Manifest(), walked(root)
    run.remember_in_sync(wanted, None, set())
    top = root.metadata(b"")
    assert len(store.settled) == 1
    assert settlement(store, root).is_in_sync(wanted.root(top, EVERYTHING), own.root(top, EVERYTHING))


@pytest.mark.parametrize("options", [PLAIN, replace(PLAIN, delete=True)], ids=["", "--delete"])
def test_what_a_comparison_would_find_is_not_settled(options: SyncOptions, root: Root) -> None:
    """The root itself has another mode; or what is to be deleted is still there."""
    store = Remembering()
    metadata = root.metadata(b"")
    other = metadata if options.delete else replace(metadata, mode=metadata.mode ^ 0o022)
    settlement(store, root, options, other).remember_in_sync(Manifest(), None, set())
    assert store.settled == set()
