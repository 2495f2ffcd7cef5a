"""Trees as plain rows: the slow model of manifests, made and changed at random."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

from hypothesis import strategies as st

from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.preserved import packed_time
from rdc.tree.manifest import Entry, Manifest

__all__ = [
    "NOW",
    "Rows",
    "build",
    "changed",
    "columns",
    "drop",
    "entry",
    "flat_tree",
    "in_order",
    "listing",
    "pairs",
    "parent_of",
    "random_tree",
    "randoms",
    "touched",
    "trees",
    "walk_order",
]

NOW = 1_700_000_000_000_000_000


class Rows(dict[bytes, Entry]):
    """Path to entry, in no special order; every entry's directory is in it."""

    def __repr__(self) -> str:
        # A failing example is read by people: a thousand entries are not.
        shown = dict(list(self.items())[:5])
        return f"Rows({len(self)}: {dict.__repr__(shown)[:1000]} ...)"

    def __or__(self, other: dict[bytes, Entry]) -> Rows:  # type: ignore[override] # two of these are one again
        return Rows({**self, **other})


def entry(path: bytes, kind: Kind = Kind.FILE, **fields: Any) -> Entry:
    """An entry with usual metadata where nothing else is said."""
    values: dict[str, Any] = {
        "mode": 0o644,
        "mtime_ns": NOW,
        "uid": 0,
        "gid": 0,
        "size": 0,
        "target": b"",
    } | fields
    size, target = values.pop("size"), values.pop("target")
    return Entry(path, kind, size, Metadata(**values), target)


def parent_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def walk_order(path: bytes) -> tuple[tuple[bytes, ...], bytes]:
    """Sort entries as a walk finds them: by directory in pre-order, then by name."""
    *directories, name = path.split(b"/")
    return tuple(directories), name


def in_order(rows: dict[bytes, Entry]) -> list[Entry]:
    return [rows[path] for path in sorted(rows, key=walk_order)]


def listing(entries: Iterable[Entry]) -> Listing:
    found = list(entries)
    return Listing(
        tuple(e.path.rpartition(b"/")[2] for e in found),
        bytes(e.kind for e in found),
        array("H", [e.metadata.mode for e in found]),
        array("Q", [e.size for e in found]),
        array("q", [e.metadata.mtime_ns for e in found]),
        array("I", [e.metadata.uid for e in found]),
        array("I", [e.metadata.gid for e in found]),
        tuple(e.target for e in found if e.kind == Kind.SYMLINK),
    )


def build(rows: dict[bytes, Entry]) -> Manifest:
    manifest = Manifest()
    for path, entries in groupby(in_order(rows), lambda e: parent_of(e.path)):
        manifest.add(path, listing(entries).packed())
    return manifest


def columns(manifest: Manifest, *, owner: bool = True) -> tuple[bytes, ...]:
    """All that a manifest holds; owners only where they are kept."""
    kept = (
        manifest.text,
        manifest.kinds,
        manifest.targets,
        manifest.modes,
        manifest.sizes,
        manifest.mtimes,
        *((manifest.uids, manifest.gids) if owner else ()),
    )
    return tuple(bytes(column) for column in kept)


# Random trees

NAMES = (b"a", b"a-", b"a.b", b"a0", b"B", b"\xff", b"new\nline", b"x" * 255)


def some_name(rng: random.Random) -> bytes:
    """Return a name: now and then an odd one, so that orders by name and by path differ; otherwise one of
    many."""
    return rng.choice(NAMES) if rng.random() < 0.2 else b"%x" % rng.randrange(1 << 16)


def some_entry(rng: random.Random, path: bytes) -> Entry:
    kind = rng.choices(list(Kind)[:4], (10, 3, 2, 1))[0]
    return entry(
        path,
        kind,
        mode=rng.choice((0o644, 0o755, rng.randrange(0o10000))),
        mtime_ns=rng.choice((NOW, -1, packed_time(rng.randrange(-(1 << 64), 1 << 64)))),
        uid=rng.choice((0, 0, 1000, 0xFFFF_FFFF)),
        gid=rng.choice((0, 0, 1000)),
        size=rng.choice((0, 7, rng.randrange(1 << 40))) if kind == Kind.FILE else 0,
        target=rng.choice((b"a", b"t" * 300)) if kind == Kind.SYMLINK else b"",
    )


def random_tree(rng: random.Random, count: int) -> Rows:
    rows = Rows()
    directories = [b""]
    while len(rows) < count:
        # Most go where the last ones went: directories of very different sizes.
        where = directories[-1] if rng.random() < 0.7 else rng.choice(directories)
        path = where + b"/" + some_name(rng) if where else some_name(rng)
        if path not in rows:
            rows[path] = some_entry(rng, path)
            if rows[path].kind == Kind.DIRECTORY:
                directories.append(path)
    return rows


def touched(rng: random.Random, old: Entry) -> Entry:
    """The same names, some other column changed."""
    metadata = old.metadata
    match rng.randrange(5):
        case 0:
            metadata = replace(metadata, mtime_ns=rng.randrange(1 << 62))
        case 1:
            metadata = replace(metadata, mode=metadata.mode ^ 0o111)
        case 2:
            metadata = replace(metadata, uid=metadata.uid ^ 5)
        case 3:
            metadata = replace(metadata, gid=metadata.gid ^ 5)
        case 4 if old.kind == Kind.FILE:
            return replace(old, size=old.size ^ 1)
    return replace(old, metadata=metadata)


def drop(rows: Rows, path: bytes) -> None:
    for other in [p for p in rows if p == path or p.startswith(path + b"/")]:
        del rows[other]


def changed(rng: random.Random, before: Rows, edits: int) -> Rows:
    """Return the tree after some random edits."""
    rows = Rows(before)
    for _ in range(edits):
        path = rng.choice(sorted(rows)) if rows else b"new"
        match rng.randrange(6):
            case 0 | 1 | 2 if path in rows:
                rows[path] = touched(rng, rows[path])
            case 3:
                drop(rows, path)
            case 4 if path in rows:
                drop(rows, path)
                rows[path] = some_entry(rng, path)
            case _:
                where = path if path in rows and rows[path].kind == Kind.DIRECTORY else parent_of(path)
                fresh = where + b"/" + some_name(rng) if where else some_name(rng)
                drop(rows, fresh)
                rows[fresh] = some_entry(rng, fresh)
    return rows


randoms = st.builds(random.Random, st.integers(0, 1 << 32))
sizes = st.sampled_from((0, 1, 5, 7, 27, 100, 600, 1500))


@st.composite
def trees(draw: st.DrawFn) -> Rows:
    return random_tree(draw(randoms), draw(sizes))


def _metadata_only(rng: random.Random, before: Rows, edits: int) -> Rows:
    rows = Rows(before)
    for path in rng.sample(sorted(rows), min(edits, len(rows))):
        rows[path] = touched(rng, rows[path])
    return rows


def _another(rng: random.Random, before: Rows, edits: int) -> Rows:
    return random_tree(rng, edits)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Draw a wanted and a held tree: the held one is something else, another version, or has the same
    names."""
    rng, wanted = draw(randoms), draw(trees())
    change: Callable[[random.Random, Rows, int], Rows] = draw(
        st.sampled_from((changed, changed, _metadata_only, _another))
    )
    return wanted, change(rng, wanted, draw(st.sampled_from((0, 1, 5, 60, 700))))


# Large trees whose size is exact


def flat_tree(directories: int, files: int) -> Rows:
    """Return a tree of `directories` directories with `files` files each."""
    rows = Rows()
    for i in range(directories):
        where = b"directory-%05d" % i
        rows[where] = entry(where, Kind.DIRECTORY, mode=0o755)
        for j in range(files):
            path = where + b"/file-%05d.txt" % j
            rows[path] = entry(path, size=j)
    return rows
