"""The bases of deltas: which versions, which of their chunks, and what a reader has to decode for them."""

from __future__ import annotations

import os
import random
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import FileError
from rdc.store import bases
from rdc.store.bases import BaseChooser, most_depth, older
from rdc.store.directory import split_keys
from rdc.store.frames import FRAME_BYTES, FrameKind, encode
from rdc.store.place import PackStore, make_store
from rdc.store.reader import FrameFacts, StoreReader
from rdc.store.writer import StoreWriter, cut_streams
from tests.support.store.stores import put_tree, read_alone


def digits(generation: int, base: int) -> list[int]:
    """Return the digits, the lowest first."""
    found = []
    while generation:
        found.append(generation % base)
        generation //= base
    return found


def without_the_lowest(generation: int, base: int) -> int:
    """Return the number whose lowest digit that is not 0 has become 0."""
    cleared = digits(generation, base)
    cleared[next(at for at, digit in enumerate(cleared) if digit)] = 0
    return sum(digit * base**at for at, digit in enumerate(cleared))


@given(st.integers(1, 1 << 17))
def test_a_generation_skips_by_its_lowest_digit(generation: int) -> None:
    assert older(generation) == without_the_lowest(generation, 4)
    assert most_depth(generation) == sum(digit > 0 for digit in digits(generation, 4))


@given(st.integers(1, 1 << 17))
def test_each_tenth_generation_of_a_published_store_skips(generation: int) -> None:
    last, *others = digits(generation, 10)
    below = generation - 1 if last else without_the_lowest(generation, 10)
    assert older(generation, skips=False) == below
    assert most_depth(generation, skips=False) == last + sum(digit > 0 for digit in others)


def test_a_thousand_generations_take_few_frames() -> None:
    assert max(map(most_depth, range(1, 1001))) == 5
    assert max(most_depth(number, skips=False) for number in range(1, 1001)) == 11


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[StoreReader]:
    make_store(os.fsencode(tmp_path / "st"))
    with PackStore.open(os.fsencode(tmp_path / "st")) as store:
        found = StoreReader(store)
        yield found
        found.close()


def stored(reader: StoreReader, content: bytes) -> list[bytes]:
    """Store a stream, and return the keys of its chunks."""
    head = reader.store.head
    cut = cut_streams(content, array("Q", [len(content)]), head.params, head.key)
    writer = StoreWriter(reader)
    writer.put_content(cut.keys, cut.lengths, memoryview(content))
    writer.finish()
    return list(cut.keys)


def test_those_that_share_pieces_are_chosen(reader: StoreReader) -> None:
    """Wherever they lie among the candidates, and hardly any others."""
    drawn = random.Random(3)
    old = drawn.randbytes(4 << 20)
    keys = stored(reader, old)
    start = 2_500_000
    content = bytearray(old[start : start + FRAME_BYTES])
    for at in range(0, len(content), 4000):
        content[at] ^= 1
    found = BaseChooser(reader, skips=True).choose(bytes(content), keys)
    assert found is not None
    prefix = b"".join(map(reader.chunk, found.keys))
    assert len(prefix) < 1.3 * len(content)
    assert prefix in old
    frame = encode(bytes(content), prefix)
    assert frame.kind is FrameKind.DELTA
    assert len(frame.data) < len(content) // 100


def test_those_in_the_middle_are_chosen_if_none_shares_pieces(reader: StoreReader) -> None:
    """Each of the pieces differs, and not all of its bytes."""
    old = random.Random(4).randbytes(2 << 20)
    keys = stored(reader, old)
    content = bytearray(old[900_000:1_200_000])
    content[::60] = bytes(len(content[::60]))
    found = BaseChooser(reader, skips=True).choose(bytes(content), keys)
    assert found is not None
    places = [keys.index(key) for key in found.keys]
    assert places == [*range(places[0], places[-1] + 1)]
    assert abs(sum(places) / len(places) - len(keys) / 2) < 2
    assert sum(map(reader.length, found.keys)) <= 3 * len(content) + (32 << 10)


def test_a_damaged_chunk_is_no_base(reader: StoreReader) -> None:
    old = random.Random(7).randbytes(2 << 20)
    keys = stored(reader, old)
    content = old[300_000:800_000] + old[1_200_000:1_700_000]
    frame = reader.facts(keys[0])
    os.chmod(frame.pack.path, 0o600)
    with open(frame.pack.path, "r+b") as file:
        file.seek(frame.offset + 500_000)  # frames of noise are stored as they are
        file.write(b"damaged")
    found = BaseChooser(reader, skips=True).choose(content, keys)
    assert found is not None
    (bad,) = [key for key in keys if is_damaged(reader, key)]
    assert bad not in found.keys
    assert sum(map(reader.length, found.keys)) > 0.8 * len(content)


def is_damaged(reader: StoreReader, key: bytes) -> bool:
    try:
        reader.chunk(key)
    except FileError:
        return True
    return False


def test_unknown_chunks_are_no_bases(reader: StoreReader) -> None:
    assert BaseChooser(reader, skips=True).choose(b"content", [bytes(16)]) is None


def slow_needs(reader: StoreReader, frame: FrameFacts) -> dict[int, int]:
    """Return the frames that a reader decodes for the bases of a frame, and their bytes."""
    found: dict[int, int] = {}
    for key in split_keys(frame.bases):
        base = reader.facts(key)
        found |= {base.number: base.size, **slow_needs(reader, base)}
    return found


FEW = 1_500_000
"""Bytes that some deltas need more of if nobody stops them."""


@pytest.mark.parametrize("most", [bases.NEEDED_BYTES, FEW])
def test_what_a_reader_decodes_for_a_delta_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """In every version of a file that changes everywhere, in contents and in length."""
    monkeypatch.setattr(bases, "NEEDED_BYTES", most)
    drawn, size = random.Random(5), 1 << 20
    content = bytearray(drawn.randbytes(size))
    (tmp_path / "tree").mkdir()
    for _ in range(21):
        for _ in range(drawn.choice((2, 30))):
            content[drawn.randrange(size)] ^= 1
        at = drawn.randrange(size)
        content[at:at] = drawn.randbytes(50)
        (tmp_path / "tree" / "file").write_bytes(content)
        put_tree(tmp_path / "tree", tmp_path / "st")
    read_alone(tmp_path / "st", 21, tmp_path / "out")
    assert (tmp_path / "out" / "file").read_bytes() == content
    with PackStore.open(os.fsencode(tmp_path / "st")) as store:
        reader = StoreReader(store)
        deltas = list(map(reader.frame, reader.deltas()))
        needs = [sum(slow_needs(reader, one).values()) for one in deltas]
        for one in deltas:
            own = [reader.facts(key) for key in split_keys(one.bases)]
            assert max([base.generation for base in own]) <= older(one.generation)
            assert one.depth == 1 + max([base.depth for base in own]) <= most_depth(one.generation)
        reader.close()
    assert len(deltas) > 40
    assert max(needs) <= most
    if most > FEW:
        assert max(needs) > FEW, "the other bound changes nothing"


def test_who_follows_a_published_store_has_the_bases(reader: StoreReader) -> None:
    """Nine of ten updates are made against chunks of the version before alone, and no chain grows too long.

    The tenth needs chunks that only the first version has.
    """
    drawn, size = random.Random(6), 1 << 20
    content, head, keys = bytearray(drawn.randbytes(size)), reader.store.head, list[bytes]()
    needs_old = []
    for number in range(24):
        cut = cut_streams(bytes(content), array("Q", [len(content)]), head.params, head.key)
        first = reader.frames
        writer = StoreWriter(reader, skips=False)
        writer.put_content(cut.keys, cut.lengths, memoryview(bytes(content)), keys)
        writer.finish()
        new = list(map(reader.frame, range(first, reader.frames)))
        if any(base not in keys for one in new for base in split_keys(one.bases)):
            needs_old.append(number)
        assert max([one.depth for one in new]) <= 10
        assert sum([one.stored for one in new]) < size // 4 or not number
        assert b"".join(map(reader.chunk, cut.keys)) == content
        keys = list(cut.keys)
        for _ in range(40):
            content[drawn.randrange(size)] ^= 1
    assert needs_old == [10, 20]
