"""Manifests against the plain rows they were made of, and their root against MANIFEST.md."""

from __future__ import annotations

import random
import re
import struct
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

import rdc.tree
from rdc.kernel import name_ranks
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Preserved
from rdc.tree.manifest import GROUPS, Entry, Fold, Manifest
from tests.support.trees.manifests import (
    Rows,
    build,
    columns,
    entry,
    in_order,
    listing,
    parent_of,
    random_tree,
    randoms,
    touched,
    trees,
)

SLOW = settings(deadline=None)
"""A thousand entries an example, on machines of any load."""

DOCUMENT = (Path(rdc.tree.__file__).parent / "MANIFEST.md").read_text()


def by_directory(rows: Rows) -> list[tuple[bytes, list[Entry]]]:
    return [(path, list(found)) for path, found in groupby(in_order(rows), lambda e: parent_of(e.path))]


@SLOW
@given(trees())
def test_rows_are_the_entries_in_the_order_of_the_walk(rows: Rows) -> None:
    manifest, wanted = build(rows), in_order(rows)
    assert len(manifest) == len(wanted)
    assert [manifest.entry(row) for row in range(len(manifest))] == wanted
    for row in (-1, len(manifest)):
        with pytest.raises(IndexError):
            manifest.entry(row)


@SLOW
@given(trees(), randoms)
def test_entries_are_found_in_any_order(rows: Rows, rng: random.Random) -> None:
    manifest, wanted = build(rows), in_order(rows)
    for row in rng.sample(range(len(wanted)), min(50, len(wanted))):
        assert manifest.entry(row) == wanted[row]
        assert manifest.row(wanted[row].path) == row


@SLOW
@given(trees(), randoms)
def test_sizes_and_times_of_some_rows(rows: Rows, rng: random.Random) -> None:
    manifest, wanted = build(rows), in_order(rows)
    some = sorted(rng.sample(range(len(wanted)), rng.randrange(len(wanted) + 1)))
    for chosen in (some, some[:1], list(range(len(wanted))), []):
        assert manifest.sizes_of(chosen) == [wanted[row].size for row in chosen]
        assert manifest.mtimes_of(chosen) == [wanted[row].metadata.mtime_ns for row in chosen]
    assert manifest.total_size == sum(found.size for found in wanted)
    # No view of a column is left that would keep it from growing.
    manifest.extend(b"zz", listing([entry(b"zz/new", size=7)]).packed())
    assert manifest.sizes_of([len(wanted)]) == [7]


@SLOW
@given(trees())
def test_paths_lead_to_rows_and_directories(rows: Rows) -> None:
    manifest, wanted = build(rows), in_order(rows)
    directories = by_directory(rows)
    assert manifest.directories == [path for path, _ in directories]
    for number, (path, entries) in enumerate(directories):
        assert manifest.number(path) == number
        first = wanted.index(entries[0])
        assert (manifest.firsts[number], manifest.end(number)) == (first, first + len(entries))
        assert {manifest.directory_of(row) for row in range(first, first + len(entries))} == {number}
        assert manifest.listing(number).names == tuple(e.path.rpartition(b"/")[2] for e in entries)
        assert manifest.packed(number) == manifest.listing(number).packed()
        assert manifest.names(number) == manifest.packed(number).names
    for path, found in rows.items():
        assert manifest.is_directory(path) == (found.kind == Kind.DIRECTORY)
        for missing in (path + b"/nothing", path + b"-nothing", path[:-1] + b"\x00", b"nothing/" + path):
            assert manifest.row(missing) is None
            assert not manifest.is_directory(missing)
    assert manifest.number(b"nothing") is None
    assert manifest.row(b"") is None


@SLOW
@given(trees(), randoms)
def test_any_stretch_of_rows_comes_directory_by_directory(rows: Rows, rng: random.Random) -> None:
    manifest, wanted = build(rows), in_order(rows)
    for _ in range(10):
        first, stop = sorted(rng.choices(range(len(wanted) + 1), k=2))
        expected = [
            (path, list(found)) for path, found in groupby(wanted[first:stop], lambda e: parent_of(e.path))
        ]
        got = list(manifest.parts(first, stop))
        assert [path for path, _ in got] == [path for path, _ in expected]
        for (_, part), (_, entries) in zip(got, expected, strict=True):
            assert part == listing(entries).packed()
        at = first
        for path, part in got:
            # The same through `packed_slice`, which remembers where names lie in the directory it saw last.
            number = manifest.number(path)
            assert number is not None
            assert manifest.packed_slice(number, at, at + part.count) == part
            at += part.count


@SLOW
@given(trees(), randoms)
def test_a_manifest_put_together_from_pieces_is_the_same(rows: Rows, rng: random.Random) -> None:
    whole = build(rows)
    cuts = sorted({0, len(whole), *rng.choices(range(len(whole) + 1), k=rng.choice((0, 3, 40)))})
    joined = Manifest()
    for first, stop in pairwise(cuts):
        for path, part in whole.parts(first, stop):
            if len(joined) and rng.random() < 0.3:
                # Looked at half-way: what is remembered of an unfinished directory must not stay.
                assert joined.entry(len(joined) - 1) == whole.entry(len(joined) - 1)
                assert joined.number(joined.directories[-1]) == len(joined.directories) - 1
                joined.packed_slice(len(joined.directories) - 1, len(joined) - 1, len(joined))
            joined.extend(path, part)
    assert columns(joined) == columns(whole)
    assert joined.directories == whole.directories
    assert (joined.firsts, joined.texts, joined.links) == (whole.firsts, whole.texts, whole.links)
    assert [joined.entry(row) for row in range(len(joined))] == in_order(rows)


@SLOW
@given(trees(), randoms)
def test_rows_taken_at_once_are_those_taken_directory_by_directory(rows: Rows, rng: random.Random) -> None:
    other, quick, slow = build(rows), Manifest(), Manifest()
    cuts = sorted({0, len(other), *rng.choices(range(len(other) + 1), k=rng.choice((0, 3, 40)))})
    for first, stop in pairwise(cuts):
        if rng.random() < 0.2:
            continue
        parts = list(other.parts(first, stop))
        if rng.random() < 0.5:
            quick.take(other, first, stop)
        else:
            for path, part in parts:
                quick.extend(path, part)
        if len(quick) and rng.random() < 0.3:
            quick.entry(len(quick) - 1)
            quick.packed_slice(len(quick.directories) - 1, len(quick) - 1, len(quick))
        for path, part in parts:
            slow.extend(path, part)
    assert columns(quick) == columns(slow)
    assert quick.directories == slow.directories
    assert (quick.firsts, quick.texts, quick.links) == (slow.firsts, slow.texts, slow.links)
    assert [quick.entry(row) for row in range(len(quick))] == [slow.entry(row) for row in range(len(slow))]


@SLOW
@given(trees(), randoms)
def test_directories_taken_whole_are_the_same(rows: Rows, rng: random.Random) -> None:
    other, made = build(rows), Manifest()
    cuts = sorted({0, len(other), *rng.choices(range(len(other) + 1), k=rng.choice((0, 3, 40)))})
    for first, stop in pairwise(cuts):
        what = rng.random()
        if what < 0.7:
            made.take(other, first, stop)
        elif what < 0.9:
            for path, part in other.parts(first, stop):
                made.extend(path, replace(part, mtimes=bytes(8 * part.count)))
    whole = made.taken_directories(other)
    assert len(whole) == len(made.directories)
    for number, path in enumerate(made.directories):
        theirs = other.number(path)
        assert theirs is not None
        span = range(made.firsts[number], made.end(number))
        taken = all(any(row - run.first in range(run.count) for run in made.taken) for row in span)
        equal = taken and made.packed(number) == other.packed(theirs)
        # Between two takes of one directory's parts it is not seen, which costs a comparison.
        assert equal or not whole[number]
        once = any(run.first <= span.start and span.stop <= run.first + run.count for run in made.taken)
        assert whole[number] or not (equal and once)


@SLOW
@given(trees())
def test_a_cleared_manifest_is_a_new_one(rows: Rows) -> None:
    manifest = build(rows)
    for path in rows:
        manifest.row(path)
    manifest.clear()
    assert len(manifest) == 0
    assert manifest.number(b"") is None
    for path, entries in by_directory(rows):
        manifest.add(path, listing(entries).packed())
    assert columns(manifest) == columns(build(rows))
    assert [manifest.entry(row) for row in range(len(manifest))] == in_order(rows)


@SLOW
@given(trees(), randoms)
def test_directories_are_compared_by_what_is_kept(rows: Rows, rng: random.Random) -> None:
    if not rows:
        return
    path = rng.choice(sorted(rows))
    other = rows | {path: touched(rng, rows[path])}
    a, b = build(rows), build(other)
    old, new = rows[path], other[path]
    kept = replace(new, metadata=replace(new.metadata, uid=old.metadata.uid, gid=old.metadata.gid))
    for number, directory in enumerate(a.directories):
        here = directory == parent_of(path)
        assert a.same(number, b, number, Preserved(True)) == (not here or old == new)
        assert a.same(number, b, number, Preserved(False)) == (not here or old == kept)


# The root


def slow_root(rows: Rows, top: Metadata | None, owner: bool) -> bytes:
    """The formula of MANIFEST.md, row by row."""
    text = kinds = targets = modes = sizes = mtimes = uids = gids = b""
    for path, entries in by_directory(rows):
        text += b"\0" + path + b"\0"
        for e in entries:
            text += e.path.rpartition(b"/")[2] + b"\0"
            kinds += struct.pack("<B", e.kind)
            targets += e.target + b"\0" if e.kind == Kind.SYMLINK else b""
            modes += struct.pack("<H", e.metadata.mode)
            sizes += struct.pack("<Q", e.size)
            mtimes += struct.pack("<q", e.metadata.mtime_ns)
            uids += struct.pack("<I", e.metadata.uid)
            gids += struct.pack("<I", e.metadata.gid)
    message = struct.pack("<BB", owner, top is not None)
    if top is not None:
        message += struct.pack("<Hq", top.mode, top.mtime_ns)
        message += struct.pack("<II", top.uid, top.gid) if owner else b""
    kept = [text, kinds, targets, modes, sizes, mtimes, *([uids, gids] if owner else [])]
    message += b"".join(struct.pack("<Q", len(column)) for column in kept) + b"".join(kept)
    return blake3(message, key=blake3(b"rdc 1 manifest root").digest()).digest()


TOP = Metadata(0o755, -7, 3, 4)


@SLOW
@given(trees(), st.none() | st.just(TOP), st.booleans())
def test_the_root_is_the_formula(rows: Rows, top: Metadata | None, owner: bool) -> None:
    assert build(rows).root(top, Preserved(owner)) == slow_root(rows, top, owner)


@SLOW
@given(trees(), randoms, st.booleans())
def test_the_root_covers_all_that_is_kept_and_nothing_else(
    rows: Rows, rng: random.Random, owner: bool
) -> None:
    before = build(rows).root(TOP, Preserved(owner))
    for path in rng.sample(sorted(rows), min(5, len(rows))):
        old = rows[path]
        new = touched(rng, old)
        seen = new
        if not owner:
            seen = replace(new, metadata=replace(new.metadata, uid=old.metadata.uid, gid=old.metadata.gid))
        assert (build(rows | {path: new}).root(TOP, Preserved(owner)) == before) == (seen == old)
        renamed = {
            (p + b"~" if p == path else p): e for p, e in rows.items() if not p.startswith(path + b"/")
        }
        renamed[path + b"~"] = replace(old, path=path + b"~")
        assert build(renamed).root(TOP, Preserved(owner)) != before


def test_the_root_covers_the_top_directory() -> None:
    manifest = build({b"a": entry(b"a")})
    roots = {
        manifest.root(top, Preserved(owner))
        for owner in (True, False)
        for top in (
            None,
            TOP,
            replace(TOP, mode=0o700),
            replace(TOP, mtime_ns=1),
            replace(TOP, uid=0),
            replace(TOP, gid=0),
        )
    }
    assert len(roots) == 6 + 4  # without owner, uid and gid of the top do not count either


def test_columns_cannot_run_into_each_other() -> None:
    """Bytes that move from one column to the next change the root."""
    a, b = Manifest(), Manifest()
    a.text, a.kinds = bytearray(b"x\0"), bytearray(b"\0")
    b.text, b.kinds = bytearray(b"x"), bytearray(b"\0\0")
    assert a.root(None, Preserved(True)) != b.root(None, Preserved(True))


# The document


def example() -> Manifest:
    rows = [
        entry(b"a", Kind.DIRECTORY, mode=0o755, mtime_ns=6, uid=1, gid=2),
        entry(b"l", Kind.SYMLINK, mode=0o777, mtime_ns=9, target=b"a/f"),
        entry(b"a/f", mode=0o644, size=7, mtime_ns=8, uid=1, gid=2),
    ]
    return build({e.path: e for e in rows})


def shown(label: str, section: str) -> bytes:
    match = re.search(rf"^    {label} +((?:[0-9a-f]{{2}} ?)+)$", section, re.MULTILINE)
    assert match, label
    return bytes.fromhex(match[1])


def test_the_document_s_example_is_what_the_code_makes() -> None:
    columns_, digests = DOCUMENT.split("## Example\n")[1].split("Ranks, u64: ")
    manifest, top = example(), Metadata(0o755, 5, 1, 2)
    for name in ("text", "kinds", "targets", "modes", "sizes", "mtimes", "uids", "gids"):
        assert shown(name, columns_) == bytes(getattr(manifest, name)), name
    kept, bare = digests.split("Without owner and top:")
    assert shown("root", kept) == manifest.root(top, Preserved(True))
    assert shown("root", bare) == manifest.root(None, Preserved(False))
    names, attributes, mtimes = GROUPS
    tiers = Fold(manifest, Preserved(True)).tiers
    assert len(tiers) == len(tiers[0]) == 1
    assert shown("names", kept) == tiers[0].digests[names]
    assert shown("attributes", kept) == tiers[0].digests[attributes]
    assert shown("mtimes", kept) == tiers[0].digests[mtimes]
    assert shown("attributes", bare) == Fold(manifest, Preserved(False)).tiers[0].digests[attributes]
    ranks = dict(re.findall(r"(a/f|a|l) ((?:[0-9a-f]{2} ){7}[0-9a-f]{2})", digests))
    for path, rank in ranks.items():
        directory, _, name = path.encode().rpartition(b"/")
        key = blake3(directory).digest(16)
        assert bytes.fromhex(rank) == name_ranks(key, name + b"\0")
    assert set(ranks) == {"a", "l", "a/f"}


# Size


def test_thousands_of_entries_and_one_large_directory() -> None:
    rng = random.Random(0)
    rows = random_tree(rng, 3000)
    for number in range(20_000):
        path = b"large/%05d" % number
        rows[path] = entry(path, mtime_ns=number)
    rows[b"large"] = entry(b"large", Kind.DIRECTORY)
    manifest, wanted = build(rows), in_order(rows)
    for row in rng.sample(range(len(wanted)), 300):
        assert manifest.entry(row) == wanted[row]
    large = manifest.number(b"large")
    assert large is not None
    first = manifest.firsts[large]
    assert manifest.packed_slice(large, first + 19_990, first + 20_000).names == b"".join(
        b"%05d\0" % row for row in range(19_990, 20_000)
    )


@given(trees(), randoms)
def test_paths_are_those_of_the_entries(tree: Rows, rng: random.Random) -> None:
    """Asked for in parts, in order or not, of directories unpacked or not, while the tree still grows."""
    whole = build(tree)
    paths = [whole.entry(row).path for row in range(len(whole))]
    manifest, grown = Manifest(), 0
    while grown < len(whole):
        grown = min(len(whole), grown + rng.choice((1, 7, 100)))
        for path, part in whole.parts(len(manifest), grown):
            manifest.extend(path, part)
        for _ in range(3):
            rows = sorted(rng.sample(range(grown), rng.randint(0, min(grown, 9))))
            if rows and rng.random() < 0.5:
                manifest.listing(manifest.directory_of(rows[0]))
            assert manifest.paths(rows) == [paths[row] for row in rows]
    with pytest.raises(IndexError):
        manifest.paths([len(whole)])
