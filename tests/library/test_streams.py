"""Chunks, signatures and indices come from any binary file object, whatever its reads return."""

from __future__ import annotations

import io
import os
import random
import threading
from pathlib import Path

import pytest

import rdc

PARAMS = rdc.ChunkParams.for_mean(1024)
DATA = random.Random(7).randbytes(300_000)


class ShortReads:
    """A file object with nothing but read(), which returns a few bytes at a time, as fsspec's files may."""

    def __init__(self, data: bytes, seed: int = 1) -> None:
        self._data = io.BytesIO(data)
        self._random = random.Random(seed)

    def read(self, size: int, /) -> bytes:
        return self._data.read(min(size, self._random.choice((1, 7, 100, 5000))))


@pytest.mark.parametrize("data", [b"", b"short", DATA])
def test_a_stream_has_the_signature_of_its_bytes(data: bytes) -> None:
    whole = rdc.sign(data, PARAMS)
    for stream in (io.BytesIO(data), ShortReads(data)):
        assert rdc.sign(stream, PARAMS) == whole
    spans = [chunk.length for chunk in rdc.chunks(data, PARAMS)]
    assert [chunk.length for chunk in rdc.chunks(ShortReads(data), PARAMS)] == spans
    assert [chunk.length for chunk in rdc.chunks([data[:99], data[99:]], PARAMS)] == spans


def test_a_pipe_is_signed() -> None:
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as file:
            file.write(DATA)

    thread = threading.Thread(target=write)
    thread.start()
    with open(reading, "rb", buffering=0) as file:
        assert rdc.sign(file, PARAMS).root == rdc.sign(DATA, PARAMS).root
    thread.join()


def test_reading_starts_where_the_file_stands() -> None:
    file = io.BytesIO(DATA)
    file.seek(1000)
    assert rdc.sign(file, PARAMS).root == rdc.sign(DATA[1000:], PARAMS).root


def test_a_text_file_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"^sign\.source\.read: expected bytes, found str$"):
        rdc.sign(io.StringIO("text"), PARAMS)  # type: ignore[arg-type] # this is the question


def test_an_error_of_the_stream_comes_through() -> None:
    class Broken:
        def read(self, size: int, /) -> bytes:
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        rdc.sign(Broken(), PARAMS)


def test_an_index_opens_from_a_path_and_from_streams(tmp_path: Path) -> None:
    index = rdc.SimilarityIndex()
    for key in range(50):
        index.add(key, rdc.Traits(random.Random(key).randbytes(9)), size=key)
    with open(tmp_path / "index", "wb") as file:
        index.save(file)
    saved = (tmp_path / "index").read_bytes()
    for source in (tmp_path / "index", str(tmp_path / "index"), io.BytesIO(saved), ShortReads(saved)):
        assert list(rdc.open_index(source).keys()) == list(range(50))
    with pytest.raises(rdc.SimilarityIndexError):
        rdc.open_index(ShortReads(saved[:-1]))
    with pytest.raises(OSError, match="No such file"):
        rdc.open_index(tmp_path / "none")
