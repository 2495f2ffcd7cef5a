"""Which frames snapshots need, beside a definition that follows keys one by one."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rdc
from rdc.errors import FileError
from rdc.store.directory import split_keys
from rdc.store.marking import Marking, bytes_alone, stored_bytes, united
from rdc.store.place import PackStore
from rdc.store.reader import StoreReader
from rdc.store.snapshot_tree import SnapshotTree
from rdc.store.snapshots import Snapshot
from tests.support.store.stores import put_tree

DRAWN = random.Random(12)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with six days of a tree, one of them forgotten, so that bases of frames are needed alone."""
    tree, store = tmp_path / "tree", tmp_path / "st"
    tree.mkdir()
    (tree / "large").write_bytes(DRAWN.randbytes(600_000))
    for day in range(6):
        content = bytearray((tree / "large").read_bytes())
        content[300_000:300_100] = DRAWN.randbytes(100)  # the sixth is made against the fifth
        (tree / "large").write_bytes(content)
        (tree / f"file {day}").write_bytes(DRAWN.randbytes(3_000))
        put_tree(tree, store)
    rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1,), apply=True))
    return store


@contextmanager
def opened(store: Path) -> Iterator[tuple[StoreReader, list[Snapshot]]]:
    with PackStore.open(os.fsencode(store)) as place:
        reader = StoreReader(place)
        try:
            yield reader, [place.snapshot(number) for number in place.numbers()]
        finally:
            reader.close()


def frames_by_key(reader: StoreReader) -> dict[bytes, set[int]]:
    found: dict[bytes, set[int]] = {}
    for pack in reader.packs:
        directory = reader.directory(pack)
        for own in range(directory.frames):
            for key in directory.keys_of(own):
                found.setdefault(key, set()).add(pack.first_frame + own)
    return found


def needed(reader: StoreReader, snapshot: Snapshot) -> tuple[set[int], set[int]]:
    """Return the frames with chunks of a snapshot, and those with their bases, too."""
    by_key = frames_by_key(reader)
    tree = SnapshotTree(reader, snapshot)
    refs = [snapshot.tree]
    for path in tree:
        rows = tree.rows(path)
        assert rows is not None
        refs += [file.content for file in rows.files]
    keys = {
        key
        for ref in refs
        for level in range(ref.level + 1)
        for part in reader.key_parts(ref, level)
        for key in split_keys(part)
    }
    content = set().union(*[by_key[key] for key in keys])
    found, todo = set(content), list(content)
    while todo:
        for key in split_keys(reader.frame(todo.pop()).bases):
            todo += by_key[key] - found
            found |= by_key[key]
    return content, found


def marked(marks: bytes | bytearray) -> set[int]:
    return {number for number, mark in enumerate(marks) if mark}


def test_marks_are_what_following_each_key_finds(store: Path) -> None:
    with opened(store) as (reader, snapshots):
        marking, has_bases = Marking(reader), False
        for snapshot in snapshots:
            content, with_bases = needed(reader, snapshot)
            marks = marking.content(snapshot)
            assert marked(marks) == content
            marking.add_bases(marks)
            assert marked(marks) == with_bases
            has_bases = has_bases or with_bases > content
        assert has_bases


def test_bytes_alone_are_those_of_frames_that_one_snapshot_needs(store: Path) -> None:
    with opened(store) as (reader, snapshots):
        sets = [needed(reader, snapshot)[1] for snapshot in snapshots]
        expected = []
        for own in sets:
            alone = own.difference(*[other for other in sets if other is not own])
            expected.append(sum(reader.frame(number).stored for number in alone))
        assert bytes_alone(reader, snapshots) == expected
        assert any(expected)


def test_used_bytes_are_the_share_of_marked_chunks(store: Path) -> None:
    with opened(store) as (reader, snapshots):
        marking = Marking(reader)
        marks = marking.content(snapshots[-1])
        by_key = frames_by_key(reader)
        whole = stored_bytes(reader, marks)
        used = sum(marking.used_bytes(pack) for pack in reader.packs)
        assert 0 < used <= whole
        marking = Marking(reader)
        for snapshot in snapshots:
            marking.content(snapshot)
        assert used <= sum(marking.used_bytes(pack) for pack in reader.packs)
        assert len(by_key) <= reader.chunks


def test_a_missing_pack_is_an_error_and_a_damaged_snapshot_is_none(store: Path) -> None:
    smallest = min(store.rglob("*.pack"), key=lambda path: path.stat().st_size)
    smallest.unlink()
    with opened(store) as (reader, snapshots):
        sizes = bytes_alone(reader, snapshots)
        assert None in sizes
        snapshot = snapshots[sizes.index(None)]
        with pytest.raises(FileError, match="no pack has chunk"):
            marks = Marking(reader).content(snapshot)
            Marking(reader).add_bases(marks)


def test_united_marks_have_those_of_both() -> None:
    for _ in range(50):
        one = bytes(DRAWN.choices((0, 1), k=DRAWN.randrange(20)))
        other = bytes(DRAWN.choices((0, 1), k=DRAWN.randrange(20)))
        both = united(one, other)
        assert marked(both) == marked(one) | marked(other)
        assert len(both) == max(len(one), len(other))
