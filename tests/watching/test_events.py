"""What inotify tells, and what is made of it: overflow, limits, renames, and directories made in a race."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rdc.watching.events as events_module
from rdc.errors import ExitCode, FileError
from rdc.files.root.root import Root
from rdc.model.entries import Listed
from rdc.progress import Event, Problem
from rdc.session.trees.source_tree import SourceTree
from rdc.tree.filters import FilterList
from rdc.tree.manifest import Manifest
from rdc.watching.announced_tree import AnnouncedTree
from rdc.watching.events import Batch, MoveSeen, TreeEvents
from rdc.watching.read_changes import ReadChanges, Retries
from tests.support.running.watching import eventually

QUEUE = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "d").mkdir()
    root = Root.open(os.fsencode(tmp_path))
    yield root
    root.close()


def watched(root: Root, *paths: bytes, running: bool = True) -> TreeEvents:
    events = TreeEvents(b"", running=running)
    for path in (b"", *paths):
        events.watch(root, path)
    return events


def batch_of(events: TreeEvents) -> Batch:
    """Once the burst is over."""
    eventually(lambda: events.due() == 0, lambda: "no burst came to its end")
    return events.take()


def test_a_burst_names_directories_and_pairs_renames(root: Root, tmp_path: Path) -> None:
    events = watched(root, b"d")
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "a").rename(tmp_path / "d" / "b")
    (tmp_path / "d" / "new").mkdir()
    batch = batch_of(events)
    assert batch == Batch(
        frozenset({b"", b"d"}), frozenset({b"d/new"}), (MoveSeen(b"a", b"d/b", False),), overflow=False
    )
    assert events.due() is None
    events.close()


def test_an_overflow_of_the_kernel_s_queue_is_noticed(root: Root, tmp_path: Path) -> None:
    events = watched(root, running=False)
    for number in range(QUEUE // 2 + 100):
        # Two events at least, and none like the one before, which the kernel would join.
        name = tmp_path / f"f{number}"
        name.touch()
        name.unlink()
    events.run()
    eventually(lambda: events._overflow, lambda: "the overflow was not told")
    assert batch_of(events).overflow
    assert not batch_of_more(events, tmp_path).overflow
    events.close()


def batch_of_more(events: TreeEvents, tmp_path: Path) -> Batch:
    (tmp_path / "more").touch()
    return batch_of(events)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.ENOMEM])
def test_a_limit_of_watches_is_told(root: Root, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(code)
        return -1

    monkeypatch.setattr(events_module, "inotify_add_watch", refuse)
    events = watched(root)
    assert events.limit is not None
    assert ("max_user_watches" in events.limit) == (code == errno.ENOSPC)
    events.close()


def test_a_limit_of_instances_is_told(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "")

    monkeypatch.setattr(events_module, "_Reader", refuse)
    events = watched(root)
    assert events.limit is not None
    assert "max_user_instances" in events.limit
    events.close()


def test_a_directory_that_moved_is_followed(root: Root, tmp_path: Path) -> None:
    events = watched(root, b"d")
    (tmp_path / "d").rename(tmp_path / "e")
    assert batch_of(events).trees == {b"e"}
    root.forget(b"d")
    events.watch(root, b"e")
    (tmp_path / "e" / "x").touch()
    assert batch_of(events).directories == {b"e"}
    assert len(events._paths) == 2, "the directory is not watched twice"
    events.close()


def test_the_top_s_removal_rings(root: Root, tmp_path: Path) -> None:
    events = TreeEvents(b"d")
    events.watch(root, b"d")
    (tmp_path / "d").rename(tmp_path / "away")
    assert batch_of(events) == Batch(frozenset(), frozenset(), (), overflow=False)
    events.close()


def test_a_directory_that_could_not_be_read_is_new_once_it_is_touched(root: Root, tmp_path: Path) -> None:
    """It is new whether it is watched or was closed to that as well."""
    (tmp_path / "d" / "closed").mkdir()
    (tmp_path / "d" / "open").mkdir()
    events = watched(root, b"d", b"d/open")
    for path in (b"d/closed", b"d/open"):
        events.missed(path)
    for name in ("closed", "open"):
        (tmp_path / "d" / name).chmod(0o700)
    assert batch_of(events).trees == {b"d/closed", b"d/open"}
    for path in (b"d/closed", b"d/open"):
        events.watch(root, path)
    for name in ("closed", "open"):
        (tmp_path / "d" / name).chmod(0o750)
    assert batch_of(events).trees == set()
    events.close()


def test_a_new_directory_that_cannot_be_read_is_named_and_tried_again(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, listed = watched(root, b"d"), Root.list_unviewed
    told: list[Event] = []

    def list_unviewed(self: Root, path: bytes, **more: Any) -> Listed:
        if path == b"d/new":
            raise FileError(path, "closed")
        return listed(self, path, **more)

    monkeypatch.setattr(Root, "list_unviewed", list_unviewed)
    (tmp_path / "d" / "new").mkdir()
    tree = SourceTree(root, None)
    record, retries = AnnouncedTree(Manifest(), {}), Retries(time.monotonic)
    scan = ReadChanges(tree, FilterList(()), record, events, retries, told.append)
    scan.read(batch_of(events))
    assert told == [Problem(ExitCode.PARTIAL, b"d/new", "closed")]
    (tmp_path / "d" / "new").chmod(0o700)
    assert batch_of(events).trees == {b"d/new"}
    events.close()
