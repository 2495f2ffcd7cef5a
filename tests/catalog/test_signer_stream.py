"""Streams of chunks equal the tree's chunks; holes are not read; known files are not read again."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.signer import FileSigner, StreamedFile
from rdc.chunking import ChunkParams
from rdc.files.facts.extents import holes
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.signature.tree import sign

PARAMS = ChunkParams.for_mean(4096)
DATA = random.Random(9).randbytes(300_000)


class Taken:
    def __init__(self) -> None:
        self.chunks: list[tuple[bytes, int, int]] = []

    def add(self, digests: list[bytes], lengths: list[int], /) -> None:
        self.chunks += [(digest, length, 1) for digest, length in zip(digests, lengths, strict=True)]

    def repeat(self, digest: bytes, length: int, count: int, /) -> None:
        self.chunks.append((digest, length, count))

    def runs(self) -> list[tuple[bytes, int, int]]:
        """Joins equal neighbouring chunks into one record, as a signature does."""
        joined: list[tuple[bytes, int, int]] = []
        for digest, length, count in self.chunks:
            if joined and joined[-1][0] == digest:
                joined[-1] = (digest, length, joined[-1][2] + count)
            else:
                joined.append((digest, length, count))
        return joined


def streamed(
    signer: FileSigner, path: Path, *, always_read: bool = False
) -> tuple[StreamedFile, Taken, list[int]]:
    root, taken, steps = Root.open(os.fsencode(path.parent)), Taken(), []
    with root.open_read(os.fsencode(path.name)) as source:
        work = signer.streaming(source, taken, always_read=always_read)
        try:
            while True:
                steps.append(next(work))
        except StopIteration as stop:
            return stop.value, taken, steps


def sparse(path: Path, parts: list[tuple[int, bytes]], size: int) -> bytes:
    """Creates a file with `parts` at their offsets and holes elsewhere. Returns its content."""
    content = bytearray(size)
    with path.open("wb") as file:
        for offset, data in parts:
            file.seek(offset)
            file.write(data)
            content[offset : offset + len(data)] = data
        file.truncate(size)
    return bytes(content)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("size", [0, 1, 6_228, 6_229, 50_000, 5_000_000])
def test_a_stream_is_the_trees_chunk_list(tmp_path: Path, size: int, workers: int) -> None:
    content = random.Random(size).randbytes(size)
    (tmp_path / "f").write_bytes(content)
    result, taken, _ = streamed(FileSigner(PARAMS, workers=workers), tmp_path / "f")
    tree = sign(content, PARAMS)
    level = tree.levels[0]
    assert result == StreamedFile(tree.root, tree.traits, known=False)
    assert taken.runs() == [
        (level.digest(i), level.lengths[i], level.counts[i]) for i in range(level.records)
    ]


LAYOUTS = [
    [],
    [(0, DATA)],
    [(5_000_000, DATA)],
    [(0, DATA), (3_000_000, DATA), (3_600_000, b"\0" * 70_000), (7_999_000, b"end" * 333)],
    [(4096 * i * 40, DATA[:4096]) for i in range(1, 40)],
    [(123 * 4096, b"x")],
]


@pytest.mark.parametrize("parts", LAYOUTS, ids=range(len(LAYOUTS)))
@pytest.mark.parametrize("size", [8_000_001, 8_388_608])
@pytest.mark.parametrize("mean", [4096, 16_384])
def test_holes_change_nothing_but_the_reading(
    tmp_path: Path, parts: list[tuple[int, bytes]], size: int, mean: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = ChunkParams.for_mean(mean)
    content = sparse(tmp_path / "f", parts, size)
    read: list[int] = []
    original = SourceFile.pread

    def counted(source: SourceFile, offset: int, length: int) -> bytes:
        read.append(length)
        return original(source, offset, length)

    monkeypatch.setattr(SourceFile, "pread", counted)
    result, taken, steps = streamed(FileSigner(params, workers=2), tmp_path / "f")
    tree = sign(content, params)
    level = tree.levels[0]
    assert (result.root, result.traits) == (tree.root, tree.traits)
    assert taken.runs() == [
        (level.digest(i), level.lengths[i], level.counts[i]) for i in range(level.records)
    ]
    assert steps == sorted(steps)
    with (tmp_path / "f").open("rb") as file:
        hollow = sum(end - start for start, end in holes(file.fileno(), size))
    assert hollow > size // 2
    assert sum(read) == size - hollow
    # A sync computes the root in the same way.
    with Root.open(os.fsencode(tmp_path)).open_read(b"f") as source:
        assert FileSigner(params).sign(source).root == tree.root


def test_a_file_of_nothing_but_a_huge_hole(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.truncate(1 << 42)
    result, taken, _ = streamed(FileSigner(PARAMS), tmp_path / "f")
    assert sum(length * count for _, length, count in taken.chunks) == 1 << 42
    assert len(taken.chunks) < 100
    assert len({digest for digest, length, _ in taken.chunks if length == PARAMS.max_size}) == 1
    assert len(result.root) == 32


def test_what_the_catalog_knows_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    content = DATA + sparse(path, [(0, DATA)], 3_000_000)
    path.write_bytes(content + b"\0" * 100_000)
    os.utime(path, (1, 1))
    # Old enough for the racy rule: the catalog's clock is an hour ahead.
    with Catalog(
        tmp_path / "catalog", clock=lambda: os.stat(path).st_ctime_ns + 3_600_000_000_000
    ) as catalog:
        first = streamed(FileSigner(PARAMS, catalog), path)
        monkeypatch.setattr(SourceFile, "pread", None)
        again = streamed(FileSigner(PARAMS, catalog), path)
        assert again[0] == StreamedFile(first[0].root, first[0].traits, known=True)
        assert again[1].runs() == first[1].runs()
        with pytest.raises(TypeError):
            streamed(FileSigner(PARAMS, catalog), path, always_read=True)
