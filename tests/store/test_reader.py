"""The reader of packs: it finds each chunk, takes a sound copy if one is damaged, and refuses hostile packs.

What is refused is named, before much memory or time is spent.
"""

from __future__ import annotations

import os
import random
import runpy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import FileError
from rdc.store import reader as reading
from rdc.store.directory import KEY_BYTES
from rdc.store.pack_file import pack_path
from rdc.store.place import PackStore, make_store
from rdc.store.reader import StoreReader
from rdc.store.writer import StoreWriter
from tests.support.share import examples
from tests.support.store.stores import READER, PackedFrame, add_pack

SECONDS = 5.0
"""More CPU time than any refusal takes on a slow machine; one second is promised on a fast one."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    make_store(os.fsencode(tmp_path / "st"))
    return tmp_path / "st"


@contextmanager
def opened(store: Path) -> Iterator[StoreReader]:
    with PackStore.open(os.fsencode(store)) as place:
        reader = StoreReader(place)
        try:
            yield reader
        finally:
            reader.close()


def damage(store: Path, name: bytes, at: int) -> None:
    path = store / pack_path(name).decode()
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@given(st.lists(st.lists(st.binary(min_size=1, max_size=40), max_size=8), max_size=5))
def test_each_chunk_is_found_and_no_other(packs: list[list[bytes]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as top:
        store = Path(top, "st")
        make_store(os.fsencode(store))
        for pack in packs:
            add_pack(store, *map(PackedFrame, pack))
        with opened(store) as reader:
            for content in {content for pack in packs for content in pack}:
                assert reader.chunk(reader.key_of(content)) == content
            assert reader.chunks == sum(map(len, packs))
            assert bytes(KEY_BYTES) not in reader


def runs(store: Path, contents: list[bytes]) -> list[bytes]:
    """Store chunks together, in frames of some each. Return their keys."""
    with opened(store) as reader:
        writer = StoreWriter(reader)
        keys = [reader.key_of(content) for content in contents]
        new = [
            (key, content)
            for key, content in dict(zip(keys, contents, strict=True)).items()
            if key not in reader
        ]
        for at in range(0, len(new), 3):
            some = new[at : at + 3]
            writer.add([key for key, _ in some], [content for _, content in some])
            writer._end_frame(writer._contents)
        writer.finish()
    return keys


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.integers(0, 20), max_size=30), st.lists(st.integers(0, 20), max_size=30))
def test_many_chunks_are_those_that_are_read_one_by_one(first: list[int], wanted: list[int]) -> None:
    """In any order, with repeats, some of them in two packs."""
    import tempfile

    pool = [b"%d " % number * (number + 1) for number in range(21)]
    with tempfile.TemporaryDirectory() as top:
        store = Path(top, "st")
        make_store(os.fsencode(store))
        runs(store, [pool[number] for number in first])
        add_pack(store, *[PackedFrame(pool[number]) for number in sorted({*first[:3]})])
        runs(store, pool)
        with opened(store) as reader:
            keys = [reader.key_of(pool[number]) for number in wanted]
            assert list(map(bytes, reader.read_many(b"".join(keys)))) == [pool[number] for number in wanted]
            assert reader.lengths(b"".join(keys)) == [len(pool[number]) for number in wanted]


def test_many_chunks_are_read_in_few_searches(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = runs(store, [b"chunk %d" % number for number in range(30)])
    with opened(store) as reader:
        searched = list[bytes]()
        place_of = reader._place_of

        def noted(key: bytes) -> tuple[int, int]:
            searched.append(key)
            return place_of(key)

        monkeypatch.setattr(reader, "_place_of", noted)
        assert len(reader.read_many(b"".join(keys))) == 30
        assert searched == keys[::3]


def test_many_chunks_of_a_damaged_frame_come_from_elsewhere(store: Path) -> None:
    contents = [random.Random(number).randbytes(100) for number in range(6)]
    keys = runs(store, contents)
    with opened(store) as reader:
        (pack,) = reader.packs
    damage(store, pack.name, 8 + 150)
    with opened(store) as reader, pytest.raises(FileError, match="damaged"):
        reader.read_many(b"".join(keys))
    add_pack(store, PackedFrame(contents[1]))
    with opened(store) as reader:
        assert list(map(bytes, reader.read_many(b"".join(keys[1:2])))) == contents[1:2]
        assert list(map(bytes, reader.read_many(b"".join(keys[3:])))) == contents[3:]


def test_few_directories_and_files_stay_open(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "DIRECTORIES_BYTES", 200)
    monkeypatch.setattr(reading, "OPEN_PACKS", 2)
    contents = [b"chunk %d" % number for number in range(30)]
    for content in contents:
        add_pack(store, PackedFrame(content))
    before = len(os.listdir("/proc/self/fd"))
    with opened(store) as reader:
        for content in random.Random(1).choices(contents, k=100):
            assert reader.chunk(reader.key_of(content)) == content
        assert len(os.listdir("/proc/self/fd")) <= before + 4
        assert len(reader._directories) <= 3


def test_a_sound_copy_is_read_if_one_is_damaged(store: Path) -> None:
    """It may come from another pack, and so may the base of a delta."""
    noise = random.Random(2).randbytes(5000)
    first = add_pack(store, PackedFrame(noise))
    with PackStore.open(os.fsencode(store)) as place:
        reader = StoreReader(place)
        writer = StoreWriter(reader)
        key, changed = reader.key_of(noise), noise[:100] + b"x" + noise[101:]
        writer.add([reader.key_of(changed)], [changed], [key])
        writer.finish()
        assert writer.deltas_made == 1
        reader.close()
    damage(store, first, 50)
    with opened(store) as reader:
        for content in (noise, changed):
            with pytest.raises(FileError, match="damaged"):
                reader.chunk(reader.key_of(content))
    for number in range(4):
        damage(store, add_pack(store, PackedFrame(noise), PackedFrame(b"%d" % number)), 50)
    add_pack(store, PackedFrame(noise))
    for order in ((noise, changed), (changed, noise)):
        with opened(store) as reader:
            for content in order:
                assert reader.chunk(reader.key_of(content)) == content
                # The reader that knows nothing of rdc does the same.
                alone = runpy.run_path(str(READER))["Store"](str(store))
                assert alone.chunk(reader.key_of(content)) == content


def test_a_delta_that_was_decoded_before_its_base_was_found_damaged_is_lost(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is decoded from wrong bytes and kept. Then its base is found damaged, and has no other place."""
    noise = random.Random(2).randbytes(5000)
    changed = noise[:100] + b"x" + noise[101:]
    first = add_pack(store, PackedFrame(noise))
    with opened(store) as reader:
        writer = StoreWriter(reader)
        writer.add([reader.key_of(changed)], [changed], [reader.key_of(noise)])
        writer.finish()
        assert writer.deltas_made == 1
    damage(store, first, 50)
    with opened(store) as reader:
        tried = list[int]()
        chunk_at = reader._chunk_at

        def noted(key: bytes, number: int, frame: int) -> bytes:
            tried.append(frame)
            assert len(tried) < 10, "it is tried again and again"
            return chunk_at(key, number, frame)

        monkeypatch.setattr(reader, "_chunk_at", noted)
        delta = reader.frames_with(reader.key_of(changed))[0]
        assert reader.content(delta) != changed
        for content in (noise, changed):
            with pytest.raises(FileError, match=r"damaged|no pack has chunk"):
                reader.chunk(reader.key_of(content))
        add_pack(store, PackedFrame(noise))
    with opened(store) as reader:
        reader.content(delta)
        for content in (noise, changed):
            assert reader.chunk(reader.key_of(content)) == content


def test_a_delta_without_its_bases_counts_as_missing(store: Path) -> None:
    gone = bytes(range(16))
    add_pack(store, PackedFrame(b"delta", bases=gone))
    with opened(store) as reader:
        key = reader.key_of(b"delta")
        assert key not in reader
        with pytest.raises(FileError, match="no pack has chunk"):
            reader.chunk(key)
    add_pack(store, PackedFrame(b"delta"))
    with opened(store) as reader:
        assert reader.chunk(key) == b"delta"


def test_bases_in_a_circle_are_refused(store: Path) -> None:
    one, two = bytes([1] * 16), bytes([2] * 16)
    add_pack(store, PackedFrame(b"one", key=one, bases=two), PackedFrame(b"two", key=two, bases=one))
    add_pack(store, PackedFrame(b"own", key=bytes([3] * 16), bases=bytes([3] * 16)))
    began = time.process_time()
    for key in (one, two, bytes([3] * 16)):
        with opened(store) as reader, pytest.raises(FileError, match="bases of less depth"):
            reader.chunk(key)
    assert time.process_time() - began < SECONDS


def test_a_delta_that_needs_too_much_is_refused_before_it_is_decoded(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "DECODED_BYTES", 2500)
    monkeypatch.setattr(reading, "CLOSURE_BASES", 3)
    parts = [PackedFrame(bytes([number]) * 1000, key=bytes([number] * 16)) for number in range(1, 5)]
    many = b"".join([bytes([number] * 16) for number in (1, 2, 3, 4)])
    add_pack(store, *parts, PackedFrame(b"large", key=b"l" * 16, bases=many[:48]))
    add_pack(store, PackedFrame(b"many", key=b"m" * 16, bases=many))
    with opened(store) as reader:
        for key in (b"l" * 16, b"m" * 16):
            with pytest.raises(FileError, match="needs more"):
                reader.chunk(key)
            assert not reader.frames_read


def test_a_prefix_that_is_too_long_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PREFIX_BYTES", 1000)
    base = PackedFrame(bytes(800))
    with PackStore.open(os.fsencode(store)) as place:
        from blake3 import blake3

        key = blake3(base.content, key=place.head.key).digest(KEY_BYTES)
    add_pack(store, base, PackedFrame(b"delta", key=b"d" * 16, bases=key + key))
    with opened(store) as reader, pytest.raises(FileError, match="bases of 1000 bytes"):
        reader.chunk(b"d" * 16)


def test_a_frame_that_decodes_to_more_is_refused(store: Path) -> None:
    from rdc.lean.zstd import zstandard

    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 30))
    base = PackedFrame(b"base", key=b"b" * 16)
    add_pack(store, base, PackedFrame(b"small", key=b"s" * 16, bases=b"b" * 16, stored=bomb))
    began = time.process_time()
    with opened(store) as reader, pytest.raises(FileError, match="a frame of"):
        reader.chunk(b"s" * 16)
    assert time.process_time() - began < SECONDS


def test_equal_keys_are_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of them would make each search long."""
    same = [PackedFrame(b"x", key=bytes(16))] * 20_000
    name = add_pack(store, *same)
    sound = add_pack(store, PackedFrame(b"sound"))
    began = time.process_time()
    with opened(store) as reader:
        assert [name.hex() in str(error) for error in reader.damaged] == [True]
        assert reader.chunk(reader.key_of(b"sound")) == b"sound"
        assert bytes(16) not in reader
        assert [pack.name for pack in reader.packs] == [sound]
    assert time.process_time() - began < SECONDS
