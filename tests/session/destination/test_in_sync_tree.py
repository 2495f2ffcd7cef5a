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

from rdc.files.base.paths import join
from rdc.files.root.root import Root
from rdc.model.entries import EMPTY_LISTING, Kind, Metadata, PackedListing
from rdc.model.preserved import EVERYTHING
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.plan.skip_options import expected_directory
from rdc.progress import silent
from rdc.protocol.messages import Start
from rdc.session.destination.in_sync_tree import InSyncTree
from rdc.tree.filters import FilterList
from rdc.tree.manifest import Manifest
from rdc.tree.walk import Walk
from tests.support.share import examples
from tests.support.trees.manifests import Rows, build, columns, entry, pairs, randoms

FILTERS = FilterList((FilterRule(RuleAction.EXCLUDE, b"*.o"),))
NAMES = ("a", "a-b", "a.b", "b", "c.o", "0")


@contextmanager
def opened(top: Path) -> Iterator[tuple[Root, InSyncTree]]:
    """Yield them as in a run that deletes, which looks at what it left."""
    root = Root.open(os.fsencode(top))
    try:
        start = Start(b"", Kind.DIRECTORY, Metadata(0o755, 0, 0, 0))
        yield root, InSyncTree(root, start, SyncOptions(delete=True), FILTERS, preserved=EVERYTHING)
    finally:
        root.close()


def walked(top: Path) -> Manifest:
    manifest = Manifest()
    with opened(top) as (root, _):
        for path, listing, _ in Walk(root, FILTERS, silent):
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


@settings(deadline=None, max_examples=examples(60))
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


def settled_by_rule(wanted: Manifest, before: Manifest, changed: set[bytes]) -> Manifest | None:
    """Directory by directory, of a run that deletes nothing; None where others came or went."""
    nothing = EMPTY_LISTING.packed()

    def told(manifest: Manifest, path: bytes) -> PackedListing:
        number = manifest.number(path)
        return nothing if number is None else manifest.packed(number)

    def below(path: bytes, listing: PackedListing) -> set[bytes]:
        unpacked = listing.unpacked()
        return {join(path, unpacked.names[row]) for row in unpacked.rows_of(Kind.DIRECTORY)}

    own = Manifest()
    for path in sorted({*before.directories, *changed}, key=lambda one: one.split(b"/")):
        held = told(before, path)
        listing = expected_directory(told(wanted, path), held) if path in changed else held
        if below(path, held) - below(path, listing) or below(path, listing) - below(path, held) - changed:
            return None
        own.add(path, listing)
    return own


@settings(deadline=None, max_examples=examples(200))
@given(pairs(), randoms, st.sampled_from((0, 0.5, 1)))
def test_what_a_run_without_deletions_did_is_known_without_a_look(
    pair: tuple[Rows, Rows], rng: random.Random, more: float
) -> None:
    """Whatever of the directories it says were changed, and in whatever they differ."""
    wanted, before = build(pair[0]), build(pair[1])
    everywhere = {*wanted.directories, *before.directories}
    changed = {
        path
        for path in everywhere
        if rng.random() < more
        or (here := before.number(path)) is None
        or (there := wanted.number(path)) is None
        or wanted.packed(there) != before.packed(here)
    }
    if rng.random() < 0.3:
        changed = {path for path in changed if rng.random() < 0.9}
    with tempfile.TemporaryDirectory() as place:
        root = Root.open(os.fsencode(place))
        start = Start(b"", Kind.DIRECTORY, Metadata(0o755, 0, 0, 0))
        tree = InSyncTree(root, start, SyncOptions(), FILTERS, preserved=EVERYTHING)
        found = tree._amended_tree(wanted, before, changed)
        root.close()
    expected = settled_by_rule(wanted, before, changed)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert columns(found) == columns(expected)
        assert found.directories == expected.directories


def test_what_is_only_here_stays_between_what_was_changed() -> None:
    """Its directory is there too, and empty: the entries on both sides of it have new mtimes."""
    told = {
        b"a": Kind.DIRECTORY,
        b"a/f": Kind.FILE,
        b"x": Kind.DIRECTORY,
        b"y": Kind.DIRECTORY,
        b"y/g": Kind.FILE,
    }
    wanted = build(Rows({path: entry(path, kind) for path, kind in told.items()}))
    held = Rows({path: entry(path, kind, mtime_ns=5) for path, kind in told.items()})
    before = build(held | {b"x/old": entry(b"x/old")})
    with tempfile.TemporaryDirectory() as place:
        root = Root.open(os.fsencode(place))
        start = Start(b"", Kind.DIRECTORY, Metadata(0o755, 0, 0, 0))
        tree = InSyncTree(root, start, SyncOptions(), FILTERS, preserved=EVERYTHING)
        found = tree._amended_tree(wanted, before, {b"", b"a", b"y"})
        root.close()
    assert found is not None
    assert [found.entry(row).path for row in range(len(found))] == [
        b"a",
        b"x",
        b"y",
        b"a/f",
        b"x/old",
        b"y/g",
    ]
    assert columns(found) == columns(
        build(Rows({p: wanted.entry(wanted.row(p) or 0) for p in told}) | {b"x/old": entry(b"x/old")})
    )
