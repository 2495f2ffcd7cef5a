"""The tree that a run leaves behind, put together from the one it found, against a walk of all of it."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.files.confined import Root
from rdc.model.entries import Kind, Metadata
from rdc.model.kept import EVERYTHING
from rdc.model.sync import FilterRule, RuleAction, SyncOptions
from rdc.progress import silent
from rdc.protocol.messages import Start
from rdc.session.settled_tree import SettledTree
from rdc.tree.filters import FilterList
from rdc.tree.manifest import Manifest
from rdc.tree.walk import PackedWalk
from tests.manifests import columns

FILTERS = FilterList((FilterRule(RuleAction.EXCLUDE, b"*.o"),))
NAMES = ("a", "a-b", "a.b", "b", "c.o", "0")


@contextmanager
def opened(top: Path) -> Iterator[tuple[Root, SettledTree]]:
    """As in a run that deletes, which looks at what it left."""
    root = Root.open(os.fsencode(top))
    try:
        start = Start(b"", Kind.DIRECTORY, Metadata(0o755, 0, 0, 0))
        yield root, SettledTree(root, start, SyncOptions(delete=True), FILTERS, kept=EVERYTHING)
    finally:
        root.close()


def walked(top: Path) -> Manifest:
    manifest = Manifest()
    with opened(top) as (root, _):
        for path, listing in PackedWalk(root, FILTERS, silent):
            manifest.add(path, listing)
    return manifest


def grow(rng: random.Random, top: Path, count: int) -> None:
    places = [top]
    for _ in range(count):
        path = rng.choice(places) / rng.choice(NAMES)
        if path.exists():
            continue
        if rng.random() < 0.5:
            path.mkdir()
            places.append(path)
        else:
            path.write_bytes(b"x")


def edit(rng: random.Random, top: Path) -> set[bytes]:
    """Changes below some directories, which it returns."""
    changed = set()
    for place in [Path(here) for here, _, _ in os.walk(top)]:
        if rng.random() < 0.7 or not place.exists():
            continue
        changed.add(os.fsencode(place.relative_to(top)).removeprefix(b"."))
        path = place / rng.choice(NAMES)
        what = rng.randrange(5)
        if what == 0 and path.is_dir():
            shutil.rmtree(path)
        elif what <= 1 and not path.exists():
            # In the second case somebody else made it.
            path.mkdir()
            (path / "new").write_bytes(b"")
            if what:
                changed.add(os.fsencode(path.relative_to(top)))
        elif not path.is_dir():
            path.write_bytes(b"changed")
    return changed


@settings(deadline=None, max_examples=60)
@given(st.builds(random.Random, st.integers(0, 1 << 32)), st.sampled_from((0, 3, 20, 60)))
def test_an_amended_tree_is_the_one_that_a_walk_finds(rng: random.Random, size: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        grow(rng, top, size)
        before = walked(top)
        changed = edit(rng, top)
        after = walked(top)
        changed = {path for path in changed if (top / os.fsdecode(path)).is_dir() and b".o" not in path}
        with opened(top) as (_, tree):
            slow = tree._walked_tree(after, before, changed)
            quick = tree._amended_tree(after, before, changed)
            whole = tree.read(after, before, changed)
        assert slow is not None
        assert whole is not None
        assert columns(whole) == columns(slow)
        assert whole.directories == slow.directories
        if quick is None:
            # Only where directories came or went that the run did not make.
            assert set(slow.directories) - set(before.directories) - changed or any(
                not (top / os.fsdecode(path)).is_dir() for path in before_directories(before)
            )
        else:
            assert columns(quick) == columns(slow)


def before_directories(before: Manifest) -> set[bytes]:
    entries = (before.entry(row) for row in range(len(before)))
    return {entry.path for entry in entries if entry.kind == Kind.DIRECTORY}


def test_what_still_differs_is_not_settled(tmp_path: Path) -> None:
    for name in ("a/file", "b/c/file", "other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    before = walked(tmp_path)
    with opened(tmp_path) as (_, tree):
        assert tree.read(before, before, {b"b/c"}) is not None
        (tmp_path / "b/c/file").write_bytes(b"another size")
        assert tree.read(before, before, {b"b/c"}) is None
        # It is not looked for where nothing was done.
        assert tree.read(before, before, {b"a"}) is not None
        assert tree.read(before, before, {b"gone"}) is None
