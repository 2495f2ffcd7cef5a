"""The digest of a content is that of its bytes, wherever a file has holes; and holes are not read."""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from pathlib import Path

from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.files.facts.extents import data_ranges
from rdc.files.facts.file_facts import PIECE_BYTES, ContentDigest, spans_with_data
from tests.support.share import examples

STEP = 2 * PIECE_BYTES

lengths = st.sampled_from([1, 4095, 4096, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
parts = st.lists(st.tuples(st.sampled_from(["hole", "zeros", "data", "one byte"]), lengths), max_size=6)


def write(path: Path, drawn: list[tuple[str, int]]) -> bytes:
    """A file of these parts; returns its content."""
    content = b""
    with path.open("wb") as file:
        for kind, length in drawn:
            part = bytes(length)
            if kind == "data":
                part = os.urandom(length)
            elif kind == "one byte":
                part = part[:-1] + b"x"
            content += part
            file.seek(length, os.SEEK_CUR) if kind == "hole" else file.write(part)
        file.truncate(len(content))
    return content


def digest_of(path: Path) -> bytes:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest = ContentDigest(size)
        for offset, length in spans_with_data((file.fileno(),), size, STEP):
            digest.add(offset, os.pread(file.fileno(), length, offset))
    return digest.digest()


def defined(content: bytes) -> bytes:
    """Return the digest as the module's docstring defines it."""
    pieces = [content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES)]
    plain = blake3(b"".join(piece for piece in pieces if any(piece))).digest()
    runs: list[list[int]] = []
    for number, piece in enumerate(pieces):
        if any(piece):
            continue
        if runs and sum(runs[-1]) == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    if not runs:
        return plain
    key = blake3(b"rdc: content without its pieces of zeros").digest()
    numbers = [number for run in runs for number in run]
    return blake3(
        plain + b"".join(number.to_bytes(8, "little") for number in [*numbers, len(content)]), key=key
    ).digest()


@settings(deadline=None, max_examples=examples(80))
@given(parts, parts)
def test_holes_do_not_count_and_contents_do(
    drawn: list[tuple[str, int]], others: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as made:
        sparse, dense, other = (Path(made) / name for name in ("sparse", "dense", "other"))
        content = write(sparse, drawn)
        dense.write_bytes(content)
        assert digest_of(sparse) == digest_of(dense) == defined(content)
        assert (write(other, others) == content) == (digest_of(sparse) == digest_of(other))


@settings(deadline=None, max_examples=examples(80))
@given(parts, parts)
def test_ranges_hold_all_data_of_both(drawn: list[tuple[str, int]], others: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as made:
        one, two = Path(made) / "one", Path(made) / "two"
        contents = write(one, drawn), write(two, others)
        size = min(map(len, contents))
        with one.open("rb") as first, two.open("rb") as second:
            fds = first.fileno(), second.fileno()
            ranges = list(data_ranges(fds, size))
            spans = list(spans_with_data(fds, size, STEP))
        for found in (ranges, [(offset, offset + length) for offset, length in spans]):
            assert found == sorted(found)
            assert all(start < end for start, end in found)
            for (_, end), (start, _) in pairwise(found):
                assert end <= start
            covered = bytearray(size)
            for start, end in found:
                covered[start:end] = bytes([1]) * (end - start)
            for content in contents:
                assert not any(byte and not covered[at] for at, byte in enumerate(content[:size]))
        assert all(offset % PIECE_BYTES == 0 and length <= STEP for offset, length in spans)


def test_a_hole_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.seek(1 << 36)
        file.write(b"x")
        file.truncate(1 << 37)
    with path.open("rb") as file:
        spans = list(spans_with_data((file.fileno(), file.fileno()), 1 << 37, STEP))
    assert sum(length for _, length in spans) == PIECE_BYTES
