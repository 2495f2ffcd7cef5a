"""Packs: what is written is read, and each damage is refused with the name of the file."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import FileError
from rdc.lean.records import replace
from rdc.lean.zstd import zstandard
from rdc.store.directory import (
    BASES_MOST,
    DEPTH_MOST,
    DIRECTORY_BYTES,
    KEY_BYTES,
    Directory,
    DirectoryBuilder,
    FrameRow,
    chunks_at_most,
    decode_directory,
    encode_directory,
)
from rdc.store.frames import FRAME_BYTES, FrameKind, StoredFrame
from rdc.store.pack_file import (
    FinishedPack,
    LocalPack,
    PackEnd,
    PackWriter,
    pack_path,
    read_directory,
    read_end,
    read_frame,
)

KEY = bytes(range(32))


def row(kind: FrameKind = FrameKind.STORED, size: int = 5, **changes: object) -> FrameRow:
    found = FrameRow(kind, size, size, 1, 0, 0, b"")
    return replace(found, **changes)  # type: ignore[arg-type] # each test gives a field its type


@st.composite
def directories(draw: st.DrawFn) -> Directory:
    builder = DirectoryBuilder()
    for _ in range(draw(st.integers(0, 6))):
        lengths = draw(st.lists(st.integers(1, 9000), min_size=1, max_size=5))
        size, chunks = sum(lengths), len(lengths)
        keys = [draw(st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)) for _ in lengths]
        kind = draw(st.sampled_from([*FrameKind]))
        stored = size if kind is FrameKind.STORED else draw(st.integers(1, size))
        frame = FrameRow(kind, stored, size, chunks, 0, 0, b"")
        if kind is FrameKind.DELTA:
            bases = draw(st.binary(min_size=KEY_BYTES, max_size=3 * KEY_BYTES))
            bases = bases[: len(bases) // KEY_BYTES * KEY_BYTES]
            generation, depth = draw(st.integers(1, 0xFFFF)), draw(st.integers(1, DEPTH_MOST))
            frame = FrameRow(kind, stored, size, chunks, generation, depth, bases)
        builder.add(frame, keys, lengths)
    return builder.directory()


@given(directories())
def test_a_directory_is_read_as_it_was_written(directory: Directory) -> None:
    encoded = encode_directory(directory)
    found = decode_directory(encoded, directory.stored)
    assert encode_directory(found) == encoded
    assert [found.row(at) for at in range(found.frames)] == [
        directory.row(at) for at in range(directory.frames)
    ]
    assert [found.keys_of(at) for at in range(found.frames)] == [
        directory.keys_of(at) for at in range(directory.frames)
    ]
    assert chunks_at_most(encoded[:18]) >= found.chunks


@given(directories(), st.integers(0), st.integers(1, 255))
def test_a_changed_directory_is_refused_or_sound(directory: Directory, place: int, change: int) -> None:
    """Whatever a directory says, its numbers add up once it was read."""
    columns = bytearray(zstandard.ZstdDecompressor().decompress(encode_directory(directory)))
    columns[place % len(columns)] ^= change
    data = zstandard.ZstdCompressor().compress(bytes(columns))
    try:
        found = decode_directory(data, directory.stored)
    except ValueError:
        return
    assert found.stored == directory.stored
    assert len(found.keys) == KEY_BYTES * len(found.lengths)
    rows = [found.row(at) for at in range(found.frames)]
    assert sum(frame.chunks for frame in rows) == len(found.lengths)
    assert sum(frame.size for frame in rows) == sum(found.lengths)
    assert all(frame.depth <= DEPTH_MOST for frame in rows)


@pytest.mark.parametrize(
    "frame",
    [
        row(FrameKind.DELTA),
        row(FrameKind.DELTA, bases=bytes(16), generation=1),
        row(FrameKind.DELTA, bases=bytes(16), depth=1),
        row(FrameKind.DELTA, bases=bytes(16), generation=1, depth=DEPTH_MOST + 1),
        row(bases=bytes(16)),
        row(FrameKind.PACKED, depth=1),
        row(stored=4),
        row(FrameKind.PACKED, size=6),
        row(FrameKind.PACKED, stored=FRAME_BYTES + 1),
        row(FrameKind.DELTA, bases=bytes(16 * (BASES_MOST + 1)), generation=1, depth=1),
    ],
)
def test_a_frame_that_no_writer_makes_is_refused(frame: FrameRow) -> None:
    builder = DirectoryBuilder()
    builder.add(frame, [bytes(KEY_BYTES)], [5])
    directory = builder.directory()
    with pytest.raises(ValueError, match="expected"):
        decode_directory(encode_directory(directory), directory.stored)


def test_a_large_directory_is_refused_before_it_is_decoded() -> None:
    packer = zstandard.ZstdCompressor().compressobj(size=DIRECTORY_BYTES + 1)
    data = packer.compress(bytes(DIRECTORY_BYTES + 1)) + packer.flush()
    with pytest.raises(ValueError, match="at most"):
        decode_directory(data, 0)


@pytest.fixture
def place(tmp_path: Path) -> int:
    (tmp_path / "packs").mkdir()
    return os.open(tmp_path, os.O_RDONLY)


def written(place: int) -> FinishedPack:
    writer = PackWriter(place, b"st", KEY)
    writer.add(StoredFrame(FrameKind.STORED, b"first"), row(), [b"k" * 16], [5])
    writer.add(StoredFrame(FrameKind.STORED, b"second"), row(size=6), [b"l" * 16], [6])
    return writer.finish()


def opened(place: int, name: bytes, key: bytes = KEY) -> tuple[LocalPack, PackEnd, Directory]:
    path = pack_path(name)
    file = LocalPack(os.open(path, os.O_RDONLY, dir_fd=place), b"st/" + path)
    end = read_end(name, file, b"st/" + path)
    return file, end, read_directory(file, end, b"st/" + path, key)


def test_a_pack_is_read_as_it_was_written(place: int, tmp_path: Path) -> None:
    pack = written(place)
    fd, end, directory = opened(place, pack.name)
    assert end == pack.end
    assert encode_directory(directory) == encode_directory(pack.directory)
    assert end.size == (tmp_path / pack_path(pack.name).decode()).stat().st_size
    assert read_frame(fd, directory.offsets[0], 5, b"") == b"first"
    assert read_frame(fd, directory.offsets[1], 6, b"") == b"second"
    assert [path.name for path in (tmp_path / "packs").rglob("*") if path.is_file()] == [
        f"{pack.name.hex()}.pack"
    ]


def test_a_discarded_pack_leaves_nothing(place: int, tmp_path: Path) -> None:
    writer = PackWriter(place, b"st", KEY)
    writer.add(StoredFrame(FrameKind.STORED, b"first"), row(), [b"k" * 16], [5])
    writer.discard()
    assert not [path for path in (tmp_path / "packs").rglob("*") if path.is_file()]


def cut_off(data: bytes) -> bytes:
    return data[:-1]


def flipped(at: int) -> Callable[[bytes], bytes]:
    def flip(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[at] ^= 4
        return bytes(changed)

    return flip


@pytest.mark.parametrize(
    "damage",
    [
        cut_off,
        lambda _: b"",
        lambda data: data + b"x",
        lambda data: data[:30],
        flipped(0),
        flipped(-1),
        flipped(-64),
        flipped(-50),
        flipped(-40),
        flipped(-12),
        flipped(-70),
        lambda data: data[:-64] + struct.pack("<QQ", 1 << 60, 1 << 60) + data[-48:],
    ],
    ids=[
        "short",
        "empty",
        "long",
        "stub",
        "head",
        "end",
        "offset",
        "length",
        "digest",
        "name",
        "column",
        "huge",
    ],
)
def test_a_damaged_pack_is_refused_by_name(
    place: int, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    pack = written(place)
    path = tmp_path / pack_path(pack.name).decode()
    path.chmod(0o600)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FileError, match=f"{pack.name.hex()}.pack: damaged: expected"):
        opened(place, pack.name)


def test_a_pack_under_another_name_and_one_of_another_store_are_refused(place: int, tmp_path: Path) -> None:
    pack = written(place)
    other = b"\xaa" * 8
    target = tmp_path / pack_path(other).decode()
    target.parent.mkdir()
    target.write_bytes((tmp_path / pack_path(pack.name).decode()).read_bytes())
    with pytest.raises(FileError, match="under its name"):
        opened(place, other)
    with pytest.raises(FileError, match="another store"):
        opened(place, pack.name, bytes(32))
