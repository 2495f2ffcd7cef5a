"""Folds against the definition in MANIFEST.md, written out slowly here; what moves and what stays."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from itertools import groupby

import pytest
from blake3 import blake3
from hypothesis import given, settings

from rdc.kernel import short_references
from rdc.model.entries import Kind
from rdc.model.preserved import Preserved
from rdc.tree.manifest import GROUPS, Entry, Fold, Group, Tier
from tests.reference.kernel import name_ranks
from tests.support.trees.manifests import (
    Rows,
    build,
    changed,
    entry,
    flat_tree,
    in_order,
    parent_of,
    randoms,
    touched,
    trees,
)

SLOW = settings(deadline=None)
"""A thousand entries an example, on machines of any load."""


def groups_by_definition(ranks: list[int]) -> list[int]:
    """Ends of the groups: the rightmost smallest rank in (c+6, c+26], while more than 26 are left."""
    ends, cut = [], 0
    while len(ranks) - cut > 26:
        window = range(cut + 6, cut + 26)
        cut = 1 + max(window, key=lambda i: (-ranks[i], i))
        ends.append(cut)
    return [*ends, len(ranks)] if ranks else []


def row_rank(found: Entry) -> int:
    directory, _, name = found.path.rpartition(b"/")
    return int.from_bytes(name_ranks(blake3(directory).digest(16), name + b"\0"), "little")


def keyed(text: bytes, data: bytes) -> bytes:
    return blake3(data, key=blake3(text).digest()).digest()


def ground_digests(entries: list[Entry], owner: bool) -> dict[Group, bytes]:
    text = b""
    for path, found in groupby(entries, lambda e: parent_of(e.path)):
        text += b"\0" + path + b"\0" + b"".join(e.path.rpartition(b"/")[2] + b"\0" for e in found)
    names = struct.pack("<I", len(entries)) + text + b"\0" + bytes(e.kind for e in entries)
    names += b"".join(e.target + b"\0" for e in entries if e.kind == Kind.SYMLINK)
    attributes = b"".join(struct.pack("<H", e.metadata.mode) for e in entries)
    attributes += b"".join(struct.pack("<Q", e.size) for e in entries)
    if owner:
        attributes += b"".join(struct.pack("<I", e.metadata.uid) for e in entries)
        attributes += b"".join(struct.pack("<I", e.metadata.gid) for e in entries)
    mtimes = b"".join(struct.pack("<q", e.metadata.mtime_ns) for e in entries)
    return {
        Group.NAMES: keyed(b"rdc 1 manifest names", names),
        Group.ATTRIBUTES: keyed(b"rdc 1 manifest attributes", attributes),
        Group.MTIMES: keyed(b"rdc 1 manifest mtimes", mtimes),
    }


def split(items: list[bytes], ends: list[int]) -> list[list[bytes]]:
    return [items[first:end] for first, end in zip([0, *ends], ends, strict=False)]


def by_definition(rows: Rows, owner: bool) -> list[tuple[list[int], list[int], dict[Group, bytes]]]:
    """Per tier: ends of its nodes in children and in rows, digests."""
    entries = in_order(rows)
    ends = groups_by_definition([row_rank(e) for e in entries])
    if not ends:
        return []
    nodes = [ground_digests(entries[first:end], owner) for first, end in zip([0, *ends], ends, strict=False)]
    digests = {group: [node[group] for node in nodes] for group in GROUPS}
    spans = ends
    tiers = [(ends, spans, {group: b"".join(digests[group]) for group in GROUPS})]
    while len(ends) > 26:
        ranks = [int.from_bytes(digest[:8], "big") for digest in digests[Group.NAMES]]
        ends = groups_by_definition(ranks)
        spans = [spans[end - 1] for end in ends]
        digests = {
            group: [keyed(b"rdc 1 manifest node", b"".join(part)) for part in split(digests[group], ends)]
            for group in GROUPS
        }
        tiers.append((ends, spans, {group: b"".join(digests[group]) for group in GROUPS}))
    return tiers


def seen(tier: Tier) -> tuple[list[int], list[int], dict[Group, bytes]]:
    return list(tier.ends), list(tier.rows), tier.digests


@pytest.mark.parametrize("owner", [True, False])
@SLOW
@given(rows=trees())
def test_a_fold_is_its_definition(owner: bool, rows: Rows) -> None:
    assert [seen(tier) for tier in Fold(build(rows), Preserved(owner)).tiers] == by_definition(rows, owner)


def test_a_large_fold_is_its_definition() -> None:
    rows = flat_tree(40, 200)
    tiers = Fold(build(rows), Preserved(True)).tiers
    assert [seen(tier) for tier in tiers] == by_definition(rows, True)
    assert len(tiers) == 3


@SLOW
@given(trees())
def test_nodes_have_the_sizes_that_bounds_are_made_of(rows: Rows) -> None:
    fold = Fold(build(rows), Preserved(True))
    assert bool(fold.tiers) == bool(rows)
    below = len(rows)
    for tier in fold.tiers:
        counts = [len(tier.children(node)) for node in range(len(tier))]
        assert all(7 <= count <= 26 for count in counts[:-1])
        assert 1 <= counts[-1] <= 26
        assert sum(counts) == below
        spans = [tier.span(node) for node in range(len(tier))]
        assert [row for span in spans for row in span] == list(range(len(rows)))
        below = len(tier)
    assert not rows or below <= 26


@SLOW
@given(trees(), randoms)
def test_metadata_move_no_boundary(rows: Rows, rng: random.Random) -> None:
    other = {path: touched(rng, e) if rng.random() < 0.3 else e for path, e in rows.items()}
    before, after = (Fold(build(r), Preserved(True)).tiers for r in (rows, other))
    for a, b in zip(before, after, strict=True):
        assert (a.ends, a.rows, a.digests[Group.NAMES]) == (b.ends, b.rows, b.digests[Group.NAMES])


def column(tier: Tier, group: Group) -> list[bytes]:
    return [tier.digests[group][32 * i : 32 * i + 32] for i in range(len(tier))]


@SLOW
@given(trees(), randoms)
def test_a_digest_tells_which_group_of_which_rows_changed(rows: Rows, rng: random.Random) -> None:
    if not rows:
        return
    order = in_order(rows)
    row = rng.randrange(len(order))
    old = order[row]
    new = touched(rng, old)
    group = Group.MTIMES if new.metadata.mtime_ns != old.metadata.mtime_ns else Group.ATTRIBUTES
    for owner in (True, False):
        kept = owner or (old.metadata.uid, old.metadata.gid) == (new.metadata.uid, new.metadata.gid)
        a, b = (Fold(build(r), Preserved(owner)).tiers for r in (rows, rows | {old.path: new}))
        for before, after in zip(a, b, strict=True):
            for each in GROUPS:
                differing = [
                    node
                    for node, (x, y) in enumerate(zip(column(before, each), column(after, each), strict=True))
                    if x != y
                ]
                expected = [node for node in range(len(before)) if row in before.span(node)]
                assert differing == (expected if each is group and kept and new != old else [])


def test_kinds_and_link_targets_count_as_names() -> None:
    base = {b"l": entry(b"l", Kind.SYMLINK, target=b"one")}
    for other in (entry(b"l", Kind.SYMLINK, target=b"two"), entry(b"l", Kind.FILE)):
        a, b = (Fold(build(r), Preserved(True)).tiers[0].digests for r in (base, {b"l": other}))
        assert a[Group.NAMES] != b[Group.NAMES]
        assert a[Group.MTIMES] == b[Group.MTIMES]


def test_equal_names_in_other_directories_are_other_nodes() -> None:
    """Else a copied directory would be taken for the one it was copied from."""
    a, b = (Fold(build({p: entry(p) for p in paths}), Preserved(True)) for paths in ([b"x/f"], [b"y/f"]))
    assert a.tiers[0].digests[Group.NAMES] != b.tiers[0].digests[Group.NAMES]


@pytest.mark.parametrize("seed", range(5))
def test_a_few_changed_names_change_a_few_nodes(seed: int) -> None:
    rng = random.Random(seed)
    rows = flat_tree(50, 200)
    other = dict(rows)
    for i in range(3):
        path = b"directory-%05d/new-%d" % (rng.randrange(50), i)
        other[path] = entry(path)
        del other[rng.choice([p for p in sorted(other) if other[p].kind == Kind.FILE])]
    a, b = (Fold(build(r), Preserved(True)).tiers for r in (rows, other))
    for before, after in zip(a, b, strict=True):
        new = set(column(after, Group.NAMES)) - set(column(before, Group.NAMES))
        # Six places; at each the node itself and now and then a neighbour or two.
        assert len(new) <= 15


@SLOW
@given(trees(), randoms)
def test_references_are_those_of_the_kernel(rows: Rows, rng: random.Random) -> None:
    key = rng.randbytes(16)
    for tier in Fold(build(rows), Preserved(True)).tiers:
        first, stop = sorted(rng.choices(range(len(tier) + 1), k=2))
        for group in GROUPS:
            found = b"".join(
                short_references(key, digest, 32, group.width) for digest in column(tier, group)[first:stop]
            )
            assert tier.references(group, key, range(first, stop)) == found
    assert [group.width for group in GROUPS] == [5, 3, 3]


def test_folding_waits_until_it_is_needed() -> None:
    manifest = build(flat_tree(2, 3))
    fold = Fold(manifest, Preserved(True))
    path = b"directory-00000/file-00000.txt"
    later = changed(random.Random(1), flat_tree(2, 3), 0)
    later[path] = replace(later[path], size=99)
    manifest.clear()
    for directory, part in build(later).parts(0, 8):
        manifest.extend(directory, part)
    assert fold.tiers[0].digests == Fold(build(later), Preserved(True)).tiers[0].digests
    assert fold.tiers is fold.prepare()
