"""Another thread stops a job: it ends soon, by name, and every file is complete."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rdc
from tests.library.stop_after import StopAfter
from tests.support.running.syncing import shell as pseudo_shell

SOON = 10.0
"""Seconds in which a stopped job must have ended on a busy machine."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    for number in range(40):
        directory = source / f"d{number % 4}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"f{number}").write_bytes(random.Random(number % 20).randbytes(20_000))
    return source


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def whole_files(place: Path) -> dict[str, bytes]:
    """The files at the destination without those that rdc keeps for the next run."""
    return {name: data for name, data in contents(place).items() if ".rdc" not in name}


@pytest.mark.parametrize("far", [False, True], ids=["here", "by shell"])
@pytest.mark.parametrize("count", [0, 1, 5, 20, 60])
def test_a_stopped_sync_leaves_old_or_new_files(tree: Path, tmp_path: Path, count: int, far: bool) -> None:
    copy = tmp_path / "copy"
    (copy / "d0").mkdir(parents=True)
    (copy / "d0" / "f0").write_bytes(b"old")
    place: rdc.Location | str = rdc.Location("host", str(copy).encode() + b"/") if far else f"{copy}/"
    shell = pseudo_shell() if far else None
    try:
        rdc.sync(f"{tree}/", place, shell=shell, catalog=None, stop=StopAfter(count))
    except rdc.StoppedError as error:
        assert error.code is rdc.ExitCode.INTERRUPTED
    expected = contents(tree)
    for name, data in whole_files(copy).items():
        assert data == expected[name] or (name, data) == ("d0/f0", b"old")
    assert rdc.sync(f"{tree}/", place, shell=shell, catalog=None).exit is rdc.ExitCode.OK
    assert contents(copy) == expected


def test_a_sync_that_waits_is_stopped(tree: Path, tmp_path: Path) -> None:
    """The limit of one byte a second makes the sync wait on the remote side almost all the time."""
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    begun = time.monotonic()
    with pytest.raises(rdc.StoppedError, match="stopped by the caller"):
        rdc.sync(
            f"{tree}/",
            rdc.Location("host", str(tmp_path / "copy").encode()),
            rdc.SyncOptions(bandwidth=1000),
            shell=pseudo_shell(),
            catalog=None,
            stop=stop,
        )
    assert time.monotonic() - begun < SOON
    timer.join()


@pytest.mark.parametrize("far", [False, True], ids=["here", "by shell"])
@pytest.mark.parametrize("count", [0, 3])
def test_a_check_stops(tree: Path, count: int, far: bool) -> None:
    place: rdc.Location | str = rdc.Location("host", bytes(tree) + b"/") if far else f"{tree}/"
    with pytest.raises(rdc.StoppedError):
        rdc.check(f"{tree}/", place, shell=pseudo_shell() if far else None, stop=StopAfter(count))


def test_a_scan_reports_what_it_read(tree: Path) -> None:
    report = rdc.scan(tree, catalog=None, stop=StopAfter(5))
    assert report.coverage.reason == "interrupted"
    assert report.exit is rdc.ExitCode.INTERRUPTED


def test_a_merge_stops_between_two_parts(tree: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    rdc.scan(tree, catalog=None, part=part)
    with pytest.raises(rdc.StoppedError):
        rdc.merge([part, part], stop=StopAfter(1))


JOBS: list[Callable[..., Any]] = [rdc.dupes, rdc.similar, rdc.dedupe]


@pytest.mark.parametrize("job", JOBS, ids=["dupes", "similar", "dedupe"])
@pytest.mark.parametrize("count", [0, 2])
def test_a_search_stops(job: Callable[..., Any], count: int, tree: Path) -> None:
    with pytest.raises(rdc.StoppedError):
        job(tree, catalog=None, stop=StopAfter(count))


def test_a_stopped_dedupe_leaves_complete_files(tree: Path, tmp_path: Path) -> None:
    before = contents(tree)
    options = rdc.DedupeOptions(apply=True, hardlink=True, journal=str(tmp_path / "journal").encode())
    for count in range(0, 60, 7):
        try:
            rdc.dedupe(tree, options, catalog=None, stop=StopAfter(count))
        except rdc.StoppedError:
            assert contents(tree) == before


def test_a_watch_ends_with_its_report(tree: Path, tmp_path: Path) -> None:
    stop = threading.Event()

    def told(event: rdc.Event | rdc.WatchEvent, /) -> None:
        if isinstance(event, rdc.InStep):
            threading.Timer(0.2, stop.set).start()

    begun = time.monotonic()
    report = rdc.watch(f"{tree}/", f"{tmp_path / 'copy'}/", reporter=told, catalog=None, stop=stop)
    assert report.turns >= 1
    assert time.monotonic() - begun < SOON
    assert contents(tmp_path / "copy") == contents(tree)


def test_a_cancelled_task_stops_its_sync(tree: Path, tmp_path: Path) -> None:
    async def main() -> rdc.SyncReport:
        stop = threading.Event()
        job = asyncio.to_thread(rdc.sync, f"{tree}/", str(tmp_path / "copy"), catalog=None, stop=stop)
        try:
            return await job
        finally:
            stop.set()

    assert asyncio.run(main()).files == 40
