"""A sync gives back all descriptors by itself: what lies in cycles is closed when the collector comes, which
in a large process may be hundreds of syncs later."""

from __future__ import annotations

import errno
import gc
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode, RdcError
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.descriptors import open_descriptors
from tests.support.trees.trees import Directory, File, Link, tree, write_tree

_rng = random.Random(11)
LARGE, OTHER = _rng.randbytes(900_000), _rng.randbytes(400_000)

WANTED = tree(
    {
        "edited": LARGE[:300_000] + b"edit" + LARGE[300_000:],
        "moved/file": OTHER,
        "resembles": OTHER[:150_000] + b"edit" + OTHER[150_000:],
        "touched": File(LARGE, mtime_ns=5),
        "link": Link(b"edited"),
        "deep/er/new": LARGE[::-1],
        **{f"many/{number}": b"%d" % number * 50 for number in range(40)},
    }
)
HELD = tree(
    {
        "edited": LARGE,
        "was/file": OTHER,
        "touched": LARGE,
        "link": b"a file",
        "extra/deep": Directory(),
        **{f"many/{number}": File(b"%d" % number * 49, mtime_ns=5) for number in range(40)},
    }
)
PLAIN = SyncOptions(fsync=False)


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def opened() -> set[str]:
    """open_descriptors would collect first."""
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    "options",
    [
        PLAIN,
        replace(PLAIN, delete=True),
        replace(PLAIN, dry_run=True),
        replace(PLAIN, checksum=True, hard_links=True),
        replace(PLAIN, acls=True, xattrs=True, size_only=True),
        replace(PLAIN, one_file_system=True, update=True),
    ],
    ids=["", "--delete", "-n", "-c -H", "-A -X --size-only", "-x -u"],
)
@pytest.mark.parametrize("way", Way)
@pytest.mark.usefixtures("uncollected")
def test_whatever_is_synced(way: Way, options: SyncOptions, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    os.link(source / "edited", source / "edited.too")
    # Whatever is opened once and for all.
    run_sync(source, write_tree(tmp_path / "first", HELD), options, way=way)
    before = open_descriptors()
    for place in ("d", "e"):
        destination = tmp_path / place
        if place == "d":
            write_tree(destination, HELD)
        assert run_sync(source, destination, options, way=way).done.exit == ExitCode.OK
        assert run_sync(source, destination, options, way=way).done.exit == ExitCode.OK
        assert run_sync(bytes(source / "edited"), destination, options, way=way).done.exit == ExitCode.OK
        assert opened() == before


@pytest.mark.parametrize("dialler", list(Role))
@pytest.mark.usefixtures("uncollected")
def test_the_end_that_answers(dialler: Role, tmp_path: Path) -> None:
    """Mostly a process of its own, but not where somebody answers many."""
    source = write_tree(tmp_path / "s", WANTED)
    sync_in_turns(source, write_tree(tmp_path / "first", HELD), PLAIN, dialler=dialler)
    before = open_descriptors()
    sync_in_turns(source, write_tree(tmp_path / "d", HELD), PLAIN, dialler=dialler)
    assert opened() == before


@pytest.mark.parametrize("way", Way)
@pytest.mark.usefixtures("uncollected")
def test_a_source_that_is_not_there(way: Way, tmp_path: Path) -> None:
    destination = write_tree(tmp_path / "d", HELD)
    for path in (b"none", b"none/"):
        with pytest.raises(RdcError):
            run_sync(os.path.join(os.fsencode(tmp_path), path), destination, PLAIN, way=way)
    before = open_descriptors()
    for path in (b"none", b"none/"):
        with pytest.raises(RdcError):
            run_sync(os.path.join(os.fsencode(tmp_path), path), destination, PLAIN, way=way)
        assert opened() == before


@pytest.mark.parametrize("way", [Way.HERE, Way.PULL])
@pytest.mark.parametrize(
    "fails",
    [lambda: OSError(errno.EIO, "odd"), lambda: OSError(errno.ENOSPC, "full"), KeyboardInterrupt],
    ids=["EIO", "ENOSPC", "Ctrl-C"],
)
@pytest.mark.usefixtures("uncollected")
def test_a_run_that_fails_on_its_way(
    fails: Callable[[], BaseException], way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of a file, with others open."""
    source = write_tree(tmp_path / "s", WANTED)
    write = os.pwrite

    def fail(fd: int, data: bytes, offset: int) -> int:
        if offset:
            raise fails()
        return write(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", fail)
    before: set[str] = set()
    for place in ("first", "d", "e"):
        destination = write_tree(tmp_path / place, HELD)
        try:
            assert run_sync(source, destination, PLAIN, way=way).done.exit == ExitCode.PARTIAL
        except (RdcError, KeyboardInterrupt):
            assert fails().args[:1] != (errno.EIO,)
        before = before or open_descriptors()
        assert opened() == before
