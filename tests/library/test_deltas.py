"""Deltas make the new content of the old one, or nothing; what they cost; and what hostile ones cannot do."""

from __future__ import annotations

import io
import os
import random
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

import rdc

HEAD, COPY, FRAME, END = "<4sBIIQ32s", "<QQ", "<BIIQI", "<Q32s"
PIECES = [random.Random(seed).randbytes(200 * seed * seed) for seed in range(1, 9)] + [bytes(5000), b"x", b""]
CONTENTS = st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join)
SMALL = rdc.ChunkParams.for_mean(512)


def applied(old: bytes, delta: bytes) -> bytes:
    """What DELTA.md says, read slowly."""
    at, made = struct.calcsize(HEAD), b""
    while delta[at]:
        tag, at = delta[at], at + 1
        if tag == 1:
            offset, length = struct.unpack_from(COPY, delta, at)
            at += struct.calcsize(COPY)
            made += old[offset : offset + length]
        else:
            kind, _length, stored, first, prefix = struct.unpack_from(FRAME, delta, at)
            at += struct.calcsize(FRAME)
            data, at = delta[at : at + stored], at + stored
            raw = zstandard.ZstdCompressionDict(
                old[first : first + prefix], dict_type=zstandard.DICT_TYPE_RAWCONTENT
            )
            made += (
                data if kind == 0 else zstandard.ZstdDecompressor(raw if kind == 2 else None).decompress(data)
            )
    assert struct.unpack_from(END, delta, at + 1) == (len(made), blake3(made).digest())
    assert at + 1 + struct.calcsize(END) == len(delta)
    return made


@given(CONTENTS, CONTENTS, st.integers(0, 10_000))
def test_a_patch_makes_the_new_content(old: bytes, new: bytes, cut: int) -> None:
    new = new[:cut] + old[cut:] + new
    delta = rdc.delta(old, new)
    assert rdc.patch(old, delta) == new
    assert applied(old, delta) == new
    delta = rdc.signature_delta(rdc.sign(old, SMALL), new)
    assert rdc.patch(old, delta) == new
    assert applied(old, delta) == new
    assert rdc.signature_delta(rdc.sign(old, SMALL).to_bytes(), new) == delta


def test_an_edit_costs_some_bytes_and_a_move_nothing() -> None:
    old = random.Random(1).randbytes(1 << 20)
    edited = old[:500_000] + b"some new bytes" + old[500_000:]
    assert len(rdc.delta(old, edited)) < 250
    moved = old[600_000:] + old[:600_000]
    # Two copies, and the chunk in which they meet.
    assert len(rdc.delta(old, moved)) < 1000
    assert len(rdc.delta(old, old)) < 120
    signature = rdc.sign(old, SMALL)
    assert len(rdc.signature_delta(signature, edited)) < 3 * SMALL.max_size
    unrelated = random.Random(2).randbytes(1 << 20)
    assert len(rdc.delta(old, unrelated)) < len(unrelated) + 500


def test_a_long_run_of_equal_chunks_is_one_copy() -> None:
    old = b"begin" + bytes(3 << 20) + b"end"
    assert len(rdc.delta(old, old + b"more")) < 250
    assert len(rdc.delta(old, bytes(2 << 20))) < 250


def test_contents_are_buffers_paths_and_files(tmp_path: Path) -> None:
    old, new = PIECES[7] + PIECES[3], PIECES[7] + b"more" + PIECES[3]
    paths = [tmp_path / "old", tmp_path / "new"]
    for path, content in zip(paths, (old, new), strict=True):
        path.write_bytes(content)
    expected = rdc.delta(old, new)
    with open(paths[0], "rb") as old_file, open(paths[1], "rb") as new_file:
        for one, other in (
            (str(paths[0]), paths[1]),
            (memoryview(old), bytearray(new)),
            (old_file, new_file),
        ):
            assert rdc.delta(one, other) == expected
            assert rdc.patch(one, io.BytesIO(expected)) == new
    assert rdc.delta(paths[0], new, to=tmp_path / "delta") == b""
    assert (tmp_path / "delta").read_bytes() == expected
    assert rdc.patch(paths[0], tmp_path / "delta", to=paths[0]) == b""
    assert paths[0].read_bytes() == new


def test_a_delta_for_another_base_writes_nothing(tmp_path: Path) -> None:
    old = PIECES[5]
    delta = rdc.delta(old, old + b"more")
    target = tmp_path / "file"
    for base in (old[:-1], old[:-1] + b"x", b""):
        target.write_bytes(b"kept")
        with pytest.raises(rdc.DeltaError, match="for another base"):
            rdc.patch(base, delta, to=target)
        assert target.read_bytes() == b"kept"
        assert os.listdir(tmp_path) == ["file"]


OLD = PIECES[5] + PIECES[2]
NEW = PIECES[5] + b"between" + PIECES[2] + bytes(9000)
DELTA = rdc.delta(OLD, NEW)


@given(
    st.integers(0, len(DELTA) - 1), st.integers(1, 255), st.sampled_from(["flip", "cut", "insert", "drop"])
)
def test_a_damaged_delta_never_makes_something_else(at: int, change: int, how: str) -> None:
    damaged = {
        "flip": DELTA[:at] + bytes([DELTA[at] ^ change]) + DELTA[at + 1 :],
        "cut": DELTA[:at],
        "insert": DELTA[:at] + bytes([change]) * change + DELTA[at:],
        "drop": DELTA[:at] + DELTA[at + change :],
    }[how]
    with suppress(rdc.DeltaError):
        assert rdc.patch(OLD, damaged) == NEW


def hostile(*instructions: bytes, size: int = 0) -> bytes:
    return DELTA[: struct.calcsize(HEAD)] + b"".join(instructions) + b"\0" + struct.pack(END, size, bytes(32))


def copy(offset: int, length: int) -> bytes:
    return b"\1" + struct.pack(COPY, offset, length)


def frame(kind: int, length: int, data: bytes, first: int = 0, prefix: int = 0) -> bytes:
    return b"\2" + struct.pack(FRAME, kind, length, len(data), first, prefix) + data


BOMB = zstandard.ZstdCompressor().compress(bytes(64 << 20))
HUGE = (1 << 64) - 1

HOSTILE: dict[str, bytes] = {
    "many copies": hostile(*[copy(0, len(OLD))] * 2000),
    "a copy behind the base": hostile(copy(len(OLD), 1)),
    "a long copy": hostile(copy(1, HUGE)),
    "a far copy": hostile(copy(HUGE, 1)),
    "an empty copy": hostile(copy(0, 0)),
    "a bomb": hostile(frame(1, 1 << 20, BOMB)),
    "a bomb that lies": hostile(frame(1, 5, BOMB[:5])),
    "much content": hostile(b"\2" + struct.pack(FRAME, 0, HUGE >> 32, HUGE >> 32, 0, 0)),
    "no content": hostile(frame(0, 0, b"")),
    "no such kind": hostile(frame(3, 1, b"x")),
    "a prefix behind the base": hostile(frame(2, 9, b"x", len(OLD), 1)),
    "a long prefix": hostile(frame(2, 9, b"x", 0, HUGE >> 32)),
    "no prefix": hostile(frame(2, 9, b"x")),
    "no such instruction": hostile(b"\7"),
    "another digest": hostile(copy(0, 3), size=3),
    "another version": DELTA[:4] + b"\2" + DELTA[5:],
    "impossible chunks": DELTA[:5] + struct.pack("<II", 0, HUGE >> 32) + DELTA[13:],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_delta_is_refused_in_bounded_memory(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(rdc.DeltaError) as raised:
            rdc.patch(OLD, HOSTILE[name], limit=1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert str(raised.value).isprintable()


def test_the_limit_is_the_callers() -> None:
    with pytest.raises(rdc.DeltaError, match=r"more than 9 bytes; set limit="):
        rdc.patch(OLD, DELTA, limit=9)
    assert rdc.patch(OLD, DELTA, limit=len(NEW)) == NEW


def test_a_delta_replaces_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(b"not a delta")
    with pytest.raises(rdc.UsageError, match="expected a delta"):
        rdc.delta(b"", b"", to=tmp_path / "notes")
    assert (tmp_path / "notes").read_bytes() == b"not a delta"


class Pipe:
    def __init__(self, content: bytes) -> None:
        self._file = io.BytesIO(content)

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, 1000))


def test_a_stream_is_a_new_content_and_no_base() -> None:
    new: Any = Pipe(NEW)
    assert rdc.patch(OLD, Pipe(rdc.delta(OLD, new))) == NEW
    with pytest.raises(TypeError, match=r"^delta\.old: expected a file that can seek, found Pipe$"):
        rdc.delta(Pipe(OLD), NEW)
    wrong: Any = 3
    with pytest.raises(TypeError, match=r"^patch\.delta: expected bytes or another buffer, found int$"):
        rdc.patch(OLD, wrong)
    with pytest.raises(TypeError, match=r"^signature_delta\.signature: expected SignatureTree | bytes"):
        rdc.signature_delta(wrong, OLD)
    text: Any = io.StringIO("text")
    with pytest.raises(TypeError, match=r"^delta\.new\.read: expected bytes, found str$"):
        rdc.delta(OLD, text)


def test_a_damaged_signature_is_refused() -> None:
    with pytest.raises(rdc.RdcError):
        rdc.signature_delta(rdc.sign(OLD, SMALL).to_bytes()[:-1], NEW)
