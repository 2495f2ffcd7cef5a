"""The manifest descent: what it finds is the source's manifest, what it costs, and what collisions do."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.limits import TIER_NODES, TOP_NODES
from rdc.model.entries import Kind
from rdc.model.preserved import Preserved
from rdc.plan.manifest_descent import first_tier
from rdc.protocol.messages import RowsPart, TierAnswer
from rdc.tree import manifest as fold_module
from rdc.tree.manifest import Entry, Fold, Group
from tests.support.trees.manifest_source import KEY, Driven, SourceModel, descend, feed, found, request, start
from tests.support.trees.manifests import NOW, Rows, build, columns, entry, flat_tree, pairs, randoms, touched

AnyRows = dict[bytes, Entry]

SLOW = settings(deadline=None)
"""A thousand entries an example, on machines of any load."""


def discover(wanted: AnyRows, existing: AnyRows, *, owner: bool = True, part: int = 4096) -> Driven:
    """Descends, and holds the result to be the source's manifest."""
    source = SourceModel(build(wanted), owner=owner, part=part)
    descent = start(existing, len(wanted), owner=owner)
    done = descend(descent, source)
    assert not descent.collided
    assert columns(found(descent), owner=owner) == columns(source.manifest, owner=owner)
    return done


@SLOW
@given(pairs(), st.booleans(), st.sampled_from((1, 3, 10, 4096)))
def test_the_source_s_manifest_is_found_from_any_other(
    pair: tuple[Rows, Rows], owner: bool, part: int
) -> None:
    wanted, existing = pair
    if not wanted:
        return
    done = discover(wanted, existing, owner=owner, part=part)
    assert done.rows <= len(wanted)
    # No node is asked about twice, and none below nodes that are the same.
    assert done.asked is not None
    nodes = [(ask.rows, ask.level, node) for ask in done.asked for node in ask.nodes]
    assert len(nodes) == len(set(nodes))
    assert done.exchanges <= first_tier(len(wanted)) + 2


@SLOW
@given(pairs(), st.booleans())
def test_the_top_that_comes_with_a_manifest_leads_to_the_same(pair: tuple[Rows, Rows], owner: bool) -> None:
    wanted, existing = pair
    if not wanted:
        return
    source = SourceModel(build(wanted), owner=owner)
    descent = start(existing, len(wanted), owner=owner)
    tiers = source.fold.tiers
    level = next(level for level, tier in enumerate(tiers) if len(tier) <= TOP_NODES)
    top = tiers[level].references(Group.WHOLE, KEY, range(len(tiers[level])))
    descent.take_top(level, top)
    done = descend(descent, source)
    assert done.exchanges <= level + 2
    assert columns(found(descent), owner=owner) == columns(source.manifest, owner=owner)
    equal = start(wanted, len(wanted), owner=owner)
    equal.take_top(level, top)
    assert not equal.questions()
    assert columns(found(equal), owner=owner) == columns(source.manifest, owner=owner)


@SLOW
@given(pairs(), st.booleans())
def test_equal_manifests_cost_one_look(pair: tuple[Rows, Rows], owner: bool) -> None:
    wanted, _ = pair
    if wanted:
        done = discover(wanted, wanted, owner=owner)
        assert (done.exchanges, done.rows) == (1, 0)


@SLOW
@given(pairs(), randoms)
def test_only_the_columns_that_differ_travel(pair: tuple[Rows, Rows], rng: random.Random) -> None:
    wanted, _ = pair
    existing = wanted
    for path in rng.sample(sorted(wanted), min(9, len(wanted))):
        existing = with_mtime(existing, path, rng.randrange(9))
    if wanted:
        assert discover(wanted, existing).groups in (Group.MTIMES, 0)
        sizes = {path: replace(e, size=e.size + (e.kind == Kind.FILE)) for path, e in wanted.items()}
        assert discover(wanted, sizes).groups in (Group.ATTRIBUTES, 0)
        # Without owners those of others are not looked at.
        owned = {path: replace(e, metadata=replace(e.metadata, uid=7)) for path, e in wanted.items()}
        assert discover(wanted, owned, owner=False).groups == 0
        assert discover(wanted, owned, owner=True).groups in (Group.ATTRIBUTES, 0)


@pytest.mark.parametrize("mtime", [0, 1], ids=["the same", "touched"])
def test_what_only_we_have_is_not_taken_with_what_surrounds_it(mtime: int) -> None:
    """Nodes of ours on both sides of some are the source's, or differ from them in their mtimes."""
    existing = Rows({b"%03d" % row: entry(b"%03d" % row, mtime_ns=NOW - mtime) for row in range(600)})
    fold = Fold(build(existing), Preserved(True))
    for number in range(1, len(fold.tiers[0]) - 2):
        ours = fold.tiers[0].span(number)
        wanted = {path: entry(path) for row, path in enumerate(sorted(existing)) if row not in ours}
        discover(wanted, existing)


@SLOW
@given(pairs(), st.binary(min_size=16, max_size=16))
def test_a_prepared_descent_is_the_same(pair: tuple[Rows, Rows], key: bytes) -> None:
    wanted, existing = pair
    if not wanted:
        return
    source = SourceModel(build(wanted), owner=True, key=key)
    descents = [start(existing, len(wanted), key=key) for _ in range(2)]
    descents[0].prepare()
    first, second = (descend(descent, source) for descent in descents)
    assert first == second


# Cost


@pytest.fixture(scope="module")
def large() -> Rows:
    """128,000 entries, as a tree of many small files has them."""
    return flat_tree(4_000, 31)


def with_mtime(rows: Rows, path: bytes, mtime: int) -> Rows:
    old = rows[path]
    return rows | {path: replace(old, metadata=replace(old.metadata, mtime_ns=mtime))}


def test_one_changed_mtime_in_a_large_tree_costs_little(large: Rows) -> None:
    existing = with_mtime(large, b"directory-02000/file-00007.txt", 5)
    done = discover(large, existing)
    assert done.groups == Group.MTIMES
    assert done.rows <= 26
    assert done.exchanges <= 5
    assert done.bytes <= 2500


def test_one_changed_file_and_its_directory_cost_little(large: Rows) -> None:
    existing = with_mtime(large, b"directory-02000/file-00007.txt", 5)
    path = b"directory-02000/file-00007.txt"
    existing = with_mtime(existing | {path: replace(existing[path], size=99)}, b"directory-02000", 6)
    done = discover(large, existing)
    assert done.rows <= 52
    assert done.exchanges <= 5
    assert done.bytes <= 3500


def test_one_new_file_in_a_large_tree_costs_little(large: Rows) -> None:
    existing = Rows(large)
    del existing[b"directory-02000/file-00007.txt"]
    done = discover(large, existing)
    assert done.rows <= 80
    assert done.exchanges <= 5
    assert done.bytes <= 6000


def test_all_mtimes_changed_cost_their_own_width(large: Rows) -> None:
    rng = random.Random(3)
    existing = {
        path: replace(e, metadata=replace(e.metadata, mtime_ns=rng.randrange(1 << 60)))
        for path, e in large.items()
    }
    done = discover(large, existing)
    assert done.groups == Group.MTIMES
    assert done.exchanges <= 5
    assert done.bytes <= 12 * len(large)
    assert done.row_bytes <= 9 * len(large)


def test_a_tree_of_which_nothing_is_known_costs_little_more_than_its_rows(large: Rows) -> None:
    manifest = build(large)
    rows = sum(len(column) for column in columns(manifest))
    done = discover(large, {b"something": entry(b"something")})
    assert done.exchanges <= 5
    assert done.bytes <= 1.3 * rows


def test_a_changed_entry_in_every_hundred_costs_no_listing(large: Rows) -> None:
    rng = random.Random(4)
    existing = Rows(large)
    for path in rng.sample(sorted(existing), len(existing) // 100):
        existing[path] = touched(rng, existing[path])
    done = discover(large, existing)
    assert done.rows < len(large) // 4
    assert done.exchanges <= 5


def test_a_large_directory_is_no_different() -> None:
    huge = Rows({b"%06d" % i: entry(b"%06d" % i, size=i) for i in range(20_000)})
    existing = with_mtime(huge, b"012345", 5)
    done = discover(huge, existing)
    assert done.rows <= 26
    assert done.bytes <= 2500


@pytest.mark.parametrize(
    ("entries", "tier"),
    [
        (1, 0),
        (200, 0),
        (1_039, 0),
        (1_040, 1),
        (16_639, 1),
        (16_640, 2),
        (266_239, 2),
        (1_000_000, 2),
        (60_000_000, 2),
        (70_000_000, 3),
        ((1 << 32) - 1, 4),
    ],
)
def test_where_a_descent_starts(entries: int, tier: int) -> None:
    assert first_tier(entries) == tier


def test_requests_are_as_long_as_one_message_takes() -> None:
    descent = start({b"a": entry(b"a")}, 400_000)
    descent.questions()
    nodes = 1100
    feed(descent, TierAnswer(2, (0,), (nodes,), random.Random(1).randbytes(11 * nodes)))
    questions = descent.questions()
    assert [len(ask.nodes) for ask in questions] == [TIER_NODES, nodes - TIER_NODES]
    assert [node for ask in questions for node in ask.nodes] == list(range(nodes))


# Collisions of short references


@pytest.mark.parametrize("width", [0, 1, 2])
@SLOW
@given(pair=pairs())
def test_a_collision_shows(width: int, pair: tuple[Rows, Rows]) -> None:
    """With references that short nearly every tree has collisions: the descent says so, or its result is not
    the source's manifest, or it is; and it never takes a source for a liar."""
    wanted, existing = pair
    if not wanted:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_module, "short_references", lambda *a: shortened(*a, used=width))
        source = SourceModel(build(wanted), owner=True)
        patch.setattr(
            "tests.support.trees.manifest_source.short_references", lambda *a: shortened(*a, used=width)
        )
        descent = start(existing, len(wanted))
        descend(descent, source)
    if not descent.collided:
        own = found(descent)
        equal = own.root(None, Preserved(True)) == source.manifest.root(None, Preserved(True))
        assert equal == (columns(own) == columns(source.manifest))


def shortened(key: bytes, digests: bytes, stride: int, width: int, *, used: int) -> bytes:
    """References of the right width of which only `used` bytes tell anything."""
    digests = bytes(digests)
    return b"".join(digests[i : i + used] + bytes(width - used) for i in range(0, len(digests), stride))


def test_some_of_these_collisions_are_noticed_on_the_way() -> None:
    rng = random.Random(5)
    noticed = 0
    with pytest.MonkeyPatch.context() as patch:
        for module in ("rdc.tree.manifest", "tests.support.trees.manifest_source"):
            patch.setattr(f"{module}.short_references", lambda *a: shortened(*a, used=1))
        for _ in range(20):
            wanted, existing = (flat_tree(rng.randrange(20, 40), rng.randrange(30, 60)) for _ in range(2))
            descent = start(existing, len(wanted))
            descend(descent, SourceModel(build(wanted), owner=True))
            noticed += descent.collided
    assert noticed > 3


def test_after_a_collision_nothing_more_is_asked_and_what_was_asked_still_comes() -> None:
    wanted, existing = flat_tree(30, 50), flat_tree(31, 44)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("rdc.tree.manifest", "tests.support.trees.manifest_source"):
            patch.setattr(f"{module}.short_references", lambda *a: shortened(*a, used=0))
        source, descent = SourceModel(build(wanted), owner=True), start(existing, len(wanted))
        after = 0
        while questions := descent.questions():
            assert not descent.collided
            for ask in questions:
                for answer in source.answers(request(ask)):
                    after += descent.collided
                    feed(descent, answer)
    assert descent.collided or columns(found(descent)) != columns(source.manifest)
    assert descent.complete


def test_attributes_of_a_file_do_not_land_on_a_directory() -> None:
    """Names that collide, where the source's node holds files and ours directories."""
    existing = {b"d%02d" % i: entry(b"d%02d" % i, Kind.DIRECTORY) for i in range(10)}
    descent = start(existing, 10)
    descent.questions()
    own = Fold(build(existing), Preserved(True)).tiers[0]
    names = own.references(Group.NAMES, KEY, range(1))
    feed(descent, TierAnswer(0, (0,), (1,), names + b"\0" * 6))
    questions = descent.questions()
    assert [(ask.rows, ask.groups) for ask in questions] == [(True, Group.ATTRIBUTES | Group.MTIMES)]
    files = SourceModel(build({b"f%02d" % i: entry(b"f%02d" % i, size=7) for i in range(10)}), owner=True)
    feed(descent, RowsPart((10,), True, files.rows([range(10)], questions[0].groups)))
    assert descent.collided
    assert descent.complete
