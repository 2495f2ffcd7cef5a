"""Every time that a file system holds arrives, or is clamped there and known as such.

In memory (tmpfs) the file system takes all 64 bits of seconds; ext4 on a loop device ends in 2446.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.limits import SMALL_MANIFEST
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.loop_images import mounted

SECOND = 10**9
YEARS = {
    "1601": -11_644_473_600,
    "1901": -2_177_452_800,
    "2100": 4_102_444_800,
    "2262": 9_223_372_036,
    "2263": 9_246_182_400,
    "2446": 15_032_385_536,
    "9999": 253_370_764_800,
    "far": 1 << 55,
    "early": -(1 << 55),
}
WAYS = list(Way)


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        yield Path(made)


def set_time(path: Path, seconds: int, rest: int = 123_456_789) -> None:
    os.utime(path, ns=(0, seconds * SECOND + rest), follow_symlinks=False)


def fill(top: Path, *, more: int) -> None:
    top.mkdir()
    for year, seconds in YEARS.items():
        (top / f"d{year}").mkdir()
        for name in (f"small{year}", f"d{year}/in"):
            (top / name).write_text(year)
            set_time(top / name, seconds)
        (top / f"large{year}").write_bytes(bytes(200_000) + year.encode())
        (top / f"link{year}").symlink_to(year)
        os.mkfifo(top / f"fifo{year}")
        for kind in ("d", "large", "link", "fifo"):
            set_time(top / f"{kind}{year}", seconds)
    for number in range(more):
        (top / f"m{number}").write_text("m")
    set_time(top, YEARS["9999"])


def times(top: Path) -> dict[str, int]:
    paths = [top, *top.rglob("*")]
    return {str(path.relative_to(top)): path.lstat().st_mtime_ns for path in paths}


@pytest.mark.parametrize("more", [0, SMALL_MANIFEST])
@pytest.mark.parametrize("way", WAYS)
def test_all_times_arrive_and_a_second_run_is_idle(way: Way, more: int, memory: Path) -> None:
    fill(memory / "s", more=more)
    run = run_sync(memory / "s", memory / "d", way=way)
    assert run.problems == []
    assert times(memory / "d") == times(memory / "s")
    assert run_sync(memory / "s", memory / "d", way=way).items == []
    # A second of difference beyond 2262 is one.
    for name in ("small9999", "d9999/in", "largefar", "link1601"):
        set_time(memory / "s" / name, YEARS["9999"] + 1)
    again = run_sync(memory / "s", memory / "d", way=way)
    assert len(again.items) == 4
    assert times(memory / "d") == times(memory / "s")


@pytest.mark.parametrize("way", WAYS)
def test_two_distant_times_are_not_equal(way: Way, memory: Path) -> None:
    for top, text, year in (("s", "new", "9999"), ("d", "old", "2263")):
        (memory / top).mkdir()
        (memory / top / "a").write_text(text)
        set_time(memory / top / "a", YEARS[year])
    run_sync(memory / "s", memory / "d", way=way)
    assert (memory / "d/a").read_text() == "new"


def test_update_knows_which_of_two_distant_times_is_newer(memory: Path) -> None:
    for name, source, here in (("a", 10, 11), ("b", 11, 10)):
        for top, year in (("s", source), ("d", here)):
            (memory / top).mkdir(exist_ok=True)
            (memory / top / name).write_text(f"{top}{year}")
            set_time(memory / top / name, YEARS["2263"] * year)
    run_sync(memory / "s", memory / "d", SyncOptions(update=True))
    assert ((memory / "d/a").read_text(), (memory / "d/b").read_text()) == ("d11", "s11")


@pytest.mark.needs("ext4")
def test_what_is_clamped_is_idle_and_never_stale(memory: Path, tmp_path: Path) -> None:
    with mounted("ext4", tmp_path, options="") as there:
        fill(memory / "s", more=0)
        assert run_sync(memory / "s", there / "d").problems == []
        assert (there / "d/small9999").stat().st_mtime == 15_032_385_535
        assert run_sync(memory / "s", there / "d").items == []
        (memory / "s/small9999").write_text("8888")
        set_time(memory / "s/small9999", YEARS["9999"] - 5)
        assert run_sync(memory / "s", there / "d").items == [">fc........ small9999"]
        assert (there / "d/small9999").read_text() == "8888"
        assert command("check", f"{memory}/s/", f"{there}/d/").code == 0


@pytest.mark.needs("ext4")
@pytest.mark.parametrize("way", WAYS)
def test_what_is_clamped_does_not_come_back(way: Way, memory: Path, tmp_path: Path) -> None:
    with mounted("ext4", tmp_path, options="") as there:
        fill(memory / "s", more=0)
        run_sync(memory / "s", there / "d", way=way)
        before = times(memory / "s")
        assert run_sync(there / "d", memory / "s", way=way).items == []
        (there / "d/small9999").write_text("8888")
        set_time(there / "d/small9999", 15_032_385_535, 0)
        assert len(run_sync(there / "d", memory / "s", way=way).items) == 1
        assert (memory / "s/small9999").read_text() == "8888"
        after = times(memory / "s")
        assert {name for name in before if before[name] != after[name]} <= {".", "small9999"}
        assert command("check", f"{there}/d/", f"{memory}/s/").code == 0


def test_undo_brings_distant_times_back(memory: Path) -> None:
    fill(memory / "s", more=0)
    run_sync(memory / "s", memory / "d")
    before = times(memory / "d")
    for year in YEARS:
        (memory / f"s/small{year}").write_text("changed")
        (memory / f"s/large{year}").unlink()
        set_time(memory / f"s/link{year}", 0)
    assert command("sync", "--delete", "--keep-undo=1d", f"{memory}/s/", f"{memory}/d/").code == 0
    assert times(memory / "d") != before
    assert command("undo", memory / "d").code == 0
    after = times(memory / "d")
    assert {name: time for name, time in after.items() if not name.startswith(".rdc-undo")} == before
