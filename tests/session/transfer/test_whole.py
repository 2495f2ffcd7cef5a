"""A whole file arriving: written by a thread behind the receiving one, and never handed over unchecked."""

from __future__ import annotations

import errno
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from rdc.errors import OutOfSpaceError
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.lean.threads import Threads
from rdc.session.transfer.whole import WholeFileWriter
from rdc.session.trees.sites import MismatchError

PARTS = [random.Random(i).randbytes(100_000 + i) for i in range(9)]
WHOLE = b"".join(PARTS)


@pytest.fixture(params=["writer", "no writer"])
def writer(request: pytest.FixtureRequest) -> Iterator[Threads | None]:
    if request.param == "no writer":
        yield None
        return
    threads = Threads(1, "writer")
    yield threads
    threads.close()


def arriving(place: Path, writer: Threads | None) -> WholeFileWriter:
    root = Root.open(os.fsencode(place))
    return WholeFileWriter(0, b"file", Replacement(root, b"file"), None, writer)


def test_what_came_is_what_is_written(tmp_path: Path, writer: Threads | None) -> None:
    arrival = arriving(tmp_path, writer)
    for part in PARTS:
        arrival.push(memoryview(part))
    assert arrival.size == len(WHOLE)
    arrival.finish(blake3(WHOLE).digest())
    assert arrival.temporary.pread(0, len(WHOLE) + 1) == WHOLE
    arrival.abandon()
    assert os.listdir(tmp_path) == []


def test_another_digest_is_a_mismatch(tmp_path: Path, writer: Threads | None) -> None:
    arrival = arriving(tmp_path, writer)
    for part in PARTS:
        arrival.push(part)
    with pytest.raises(MismatchError, match="announced digest"):
        arrival.finish(blake3(WHOLE[:-1]).digest())
    arrival.abandon()
    assert os.listdir(tmp_path) == []


def test_all_that_came_is_kept(tmp_path: Path, writer: Threads | None) -> None:
    arrival = arriving(tmp_path, writer)
    for part in PARTS[:5]:
        arrival.push(part)
    arrival.keep()
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == b"".join(PARTS[:5])


@pytest.mark.parametrize("failing", range(9))
def test_a_full_disk_is_noticed_and_nothing_is_written_after(
    tmp_path: Path, writer: Threads | None, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Its descriptor may be another file's by then."""
    arrival = arriving(tmp_path, writer)
    fd = arrival.temporary.fileno()
    pwrite, calls, given_back = os.pwrite, 0, threading.Event()

    def failing_pwrite(to: int, data: memoryview, at: int) -> int:
        nonlocal calls
        assert not given_back.is_set()
        if to != fd:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        calls += 1
        if calls == failing + 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(to, data, at)

    monkeypatch.setattr(os, "pwrite", failing_pwrite)
    with pytest.raises(OutOfSpaceError):
        for part in PARTS:
            arrival.push(part)
        arrival.finish(blake3(WHOLE).digest())
    arrival.abandon()
    given_back.set()
    assert os.listdir(tmp_path) == []
    assert calls == failing + 1
