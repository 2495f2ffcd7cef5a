"""A watch whose inotify fails it: it reads the whole tree, once after an overflow, often past a limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rdc.watching.follower as schedule_module
from rdc.library.trees import watch
from rdc.model.location import Location
from rdc.model.sync import SyncOptions
from rdc.progress import Event
from rdc.watching.events import TreeEvents
from rdc.watching.records import Disconnected, Halted, InStep, Limited, Resumed, WatchEvent, WatchOptions
from tests.support.running.syncing import contents_of
from tests.support.running.watching import eventually
from tests.support.trees.trees import describe, read_tree


def run_watch(
    source: Path, destination: Path, during: Callable[[], None], told: list[WatchEvent]
) -> list[BaseException]:
    """Watches in this process while `during` runs in a thread; what that one raised."""
    failures: list[BaseException] = []
    over = threading.Event()

    def work() -> None:
        try:
            eventually(lambda: any(isinstance(event, InStep) for event in told), lambda: str(told))
            during()
        except BaseException as error:  # noqa: BLE001 - raised by the test
            failures.append(error)
        finally:
            over.set()
            (source / "end").touch()

    def emit(event: Event | WatchEvent, /) -> None:
        if not isinstance(event, InStep | Halted | Resumed | Limited | Disconnected):
            return
        told.append(event)
        if over.is_set():
            raise KeyboardInterrupt

    thread = threading.Thread(target=work)
    thread.start()
    options = WatchOptions(SyncOptions(delete=True, fsync=False))
    watch(
        Location(None, contents_of(source)),
        Location(None, contents_of(destination)),
        options,
        reporter=emit,
        catalog=None,
    )
    thread.join()
    return failures


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "src" / "d").mkdir(parents=True)
    (tmp_path / "src" / "d" / "f").write_bytes(b"f")
    return tmp_path / "src", tmp_path / "dst"


def equal(source: Path, destination: Path) -> bool:
    return describe(read_tree(source), read_tree(destination)) == []


def test_past_the_limit_of_watches_changes_are_found_all_the_same(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places
    add = TreeEvents.watch

    def only_the_top(self: TreeEvents, root: Any, path: bytes) -> None:
        if path == b"":
            add(self, root, path)
        else:
            self.limit = "fs.inotify.max_user_watches is reached"

    monkeypatch.setattr(TreeEvents, "watch", only_the_top)
    monkeypatch.setattr(schedule_module, "LIMITED_SECONDS", 1)
    told: list[WatchEvent] = []

    def during() -> None:
        (source / "d" / "f").write_bytes(b"unseen by inotify")
        eventually(lambda: equal(source, destination), lambda: str(told))

    assert run_watch(source, destination, during, told) == []
    assert len([event for event in told if isinstance(event, Limited)]) == 1


def test_an_overflow_has_the_whole_tree_read(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places
    take = TreeEvents._sort
    lost = 0

    def lose(self: TreeEvents, directory: bytes, event: Any) -> bool:
        nonlocal lost
        if directory == b"d":
            lost += 1
            return False
        if lost:
            self._overflow = True
        return take(self, directory, event)

    monkeypatch.setattr(TreeEvents, "_sort", lose)
    told: list[WatchEvent] = []

    def during() -> None:
        (source / "d" / "f").write_bytes(b"lost by inotify")
        (source / "d" / "g").write_bytes(b"lost too")
        eventually(lambda: lost > 1, lambda: "nothing was lost")
        (source / "seen").touch()
        eventually(lambda: equal(source, destination), lambda: str(told))

    assert run_watch(source, destination, during, told) == []
