"""Spool against plain bytes."""

from __future__ import annotations

import errno
import gc
import os
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import OutOfSpaceError
from rdc.files.base.spool import TAIL_BYTES, Spool
from tests.support.trees.descriptors import open_descriptors


@settings(deadline=None)
@given(st.integers(0, 40), st.lists(st.binary(max_size=20) | st.none()))
def test_a_spool_is_the_bytes_appended(limit: int, steps: list[bytes | None]) -> None:
    """None takes a view and keeps it: it must stay what it was."""
    expected = b""
    views: list[tuple[memoryview, bytes]] = []
    with Spool(limit) as spool:
        for step in steps:
            if step is None:
                views.append((spool.view(), expected))
            else:
                spool.append(step)
                expected += step
            assert len(spool) == len(expected)
        assert spool.view() == expected
        assert spool.view().readonly
        for view, then in views:
            assert view == then
    for view, then in views:
        assert view == then
    assert len(spool) == 0


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 3 * TAIL_BYTES), min_size=1, max_size=4))
def test_long_pieces(sizes: list[int]) -> None:
    pieces = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    with Spool(1000) as spool:
        for piece in pieces:
            spool.append(memoryview(piece))
        assert spool.view() == b"".join(pieces)


def test_memory_up_to_the_limit_then_an_unlinked_file(tmp_path: os.PathLike[str]) -> None:
    tempfile.tempdir = os.fspath(tmp_path)
    try:
        gc.collect()  # what earlier tests left to it
        before = len(open_descriptors())
        spool = Spool(1000)
        spool.append(bytes(1000))
        assert len(open_descriptors()) == before
        spool.append(b"x")
        assert len(open_descriptors()) == before + 1
        assert os.listdir(tmp_path) == []
        spool.close()
        spool.close()
        assert len(open_descriptors()) == before
        spool.append(b"again")
        assert bytes(spool.view()) == b"again"
    finally:
        tempfile.tempdir = None


def test_appending_costs_few_system_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    write, calls = os.write, []

    def counting(fd: int, data: memoryview) -> int:
        calls.append(len(data))
        return write(fd, data)

    monkeypatch.setattr(os, "write", counting)
    with Spool(0) as spool:
        for _ in range(3 * TAIL_BYTES // 32):
            spool.append(bytes(32))
        assert len(spool.view()) == 3 * TAIL_BYTES
    assert len(calls) <= 5


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "write", full)
    with Spool(0) as spool, pytest.raises(OutOfSpaceError, match="temporary file in"):
        spool.append(b"x")
