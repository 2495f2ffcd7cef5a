"""The announced tree against one of plain dicts, in random steps."""

from __future__ import annotations

import random
from array import array
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.model.entries import Kind, Listing, Metadata, PackedListing, strings
from rdc.tree.manifest import Manifest
from rdc.watching.announced_tree import AnnouncedTree, InodeStamps

Entry = tuple[int, int, Metadata, bytes, bytes]
"""Kind, size, metadata, link target and stamp."""

Model = dict[bytes, dict[bytes, Entry]]


def join(path: bytes, name: bytes) -> bytes:
    return path + b"/" + name if path else name


def packed(entries: dict[bytes, Entry]) -> tuple[PackedListing, InodeStamps]:
    names = sorted(entries)
    rows = [entries[name] for name in names]
    metadata = [row[2] for row in rows]
    listing = Listing(
        tuple(names),
        bytes([row[0] for row in rows]),
        array("H", [one.mode for one in metadata]),
        array("Q", [row[1] for row in rows]),
        array("q", [one.mtime_ns for one in metadata]),
        array("I", [one.uid for one in metadata]),
        array("I", [one.gid for one in metadata]),
        tuple(row[3] for row in rows if row[0] == Kind.SYMLINK),
    ).packed()
    stamps = b"".join([row[4] for row in rows])
    return listing, InodeStamps(listing.names, stamps, stamps)


def check(tree: AnnouncedTree, model: Model) -> None:
    entries = [entry for directory in model.values() for entry in directory.values()]
    assert tree.entries == len(entries)
    assert tree.files == sum(entry[0] == Kind.FILE for entry in entries)
    for path, directory in model.items():
        listing, stamps = packed(directory)
        assert tree.of(path) == listing
        assert tree.stamps_of(path) == (stamps if directory else None)


def some_entries(rng: random.Random, numbers: count[int]) -> dict[bytes, Entry]:
    found: dict[bytes, Entry] = {}
    for name in rng.sample([b"%c" % letter for letter in b"abcdefgh"], rng.randrange(6)):
        kind = rng.choice((Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK))
        number = next(numbers)
        metadata = Metadata(number % 512, number, number, number)
        target = b"to %d" % number if kind == Kind.SYMLINK else b""
        size = number if kind == Kind.FILE else 0
        found[name] = (kind, size, metadata, target, number.to_bytes(8, "little"))
    return found


def drop(model: Model, path: bytes) -> None:
    for other in [one for one in model if one == path or one.startswith(path + b"/")]:
        del model[other]


def step(rng: random.Random, numbers: count[int], tree: AnnouncedTree, model: Model) -> None:
    path = rng.choice(list(model))
    what = rng.choice(("put", "rename", "rename", "rename", "metadata", "metadata", "entry", "of"))
    if what == "put":
        entries = some_entries(rng, numbers)
        gone = {name for name, entry in model[path].items() if entry[0] == Kind.DIRECTORY}
        kept = {name for name, entry in entries.items() if entry[0] == Kind.DIRECTORY}
        for name in gone - kept:
            drop(model, join(path, name))
        tree.put(path, *packed(entries))
        model[path] = entries
        for name in kept:
            model.setdefault(join(path, name), {})
    elif what == "of":
        assert tree.of(path) == packed(model[path])[0]
    elif model[path]:
        name = rng.choice(list(model[path]))
        old = join(path, name)
        kind, size, metadata, target, stamp = model[path][name]
        assert tree.entry(old) == (kind, size, metadata)
        assert tree.kind(join(path, b"none")) is None
        if what == "metadata" and kind == Kind.DIRECTORY:
            other = Metadata(0o700, next(numbers), 1, 2)
            tree.set_metadata(old, other)
            model[path][name] = (kind, size, other, target, stamp)
            assert tree.metadata(old) == other
        elif what == "rename" and kind != Kind.SYMLINK:
            into, new = rng.choice(list(model)), rng.choice((b"x", b"y", b"A", name))
            moved = join(into, new)
            if new in model[into] or (moved + b"/").startswith(old + b"/"):
                return
            tree.rename(old, moved)
            model[into][new] = model[path].pop(name)
            for other_path in [one for one in model if one == old or one.startswith(old + b"/")]:
                model[moved + other_path[len(old) :]] = model.pop(other_path)


@given(st.integers(0, 1 << 32))
def test_random_changes_are_those_of_plain_dicts(seed: int) -> None:
    rng, numbers = random.Random(seed), count(1)
    tree, model = AnnouncedTree(Manifest(), {}), {b"": dict[bytes, Entry]()}
    for _ in range(60):
        step(rng, numbers, tree, model)
        if rng.random() < 0.1:
            tree.acknowledge()
    check(tree, model)


def test_renames_in_one_directory_pack_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [b"%05d" % number for number in range(500)]
    one = (int(Kind.FILE), 1, Metadata(0o644, 1, 0, 0), b"", bytes(8))
    tree = AnnouncedTree(Manifest(), {})
    tree.put(b"", *packed(dict.fromkeys(names, one)))
    unpacked: list[int] = []
    unpack = PackedListing.unpacked

    def counting(self: PackedListing) -> Listing:
        unpacked.append(self.count)
        return unpack(self)

    monkeypatch.setattr(PackedListing, "unpacked", counting)
    for name in names:
        tree.rename(name, b"new " + name)
        assert tree.kind(b"new " + name) is Kind.FILE
    assert unpacked == []
    assert strings(tree.of(b"").names) == [b"new " + name for name in names]
    assert unpacked == [500]
