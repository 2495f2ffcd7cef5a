"""Trees whose files have other mtimes and the same contents: compared and settled many at a time."""

from __future__ import annotations

import os
import random
import resource
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode
from rdc.files.bulk.open_many import CHANGED, FAILED, OpenedFiles
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.big_file import sync_measured
from tests.support.trees.trees import read_tree

SIZES = (0, 1, 100, 1_500, 6_000, 30_000)
MTIME = 1_000_000_000


def make_pair(top: Path, count: int = 300) -> tuple[Path, Path]:
    """Two trees of equal contents in some directories, those of the second with another mtime."""
    rng = random.Random(9)
    source, destination = top / "src", top / "dst"
    for number in range(count):
        content = rng.randbytes(SIZES[number % len(SIZES)])
        for side, mtime in ((source, MTIME + number), (destination, 7)):
            path = side / f"d{number // 40}" / f"{number:03}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, (mtime, mtime))
    large = rng.randbytes(400_000)
    for side in (source, destination):
        (side / "large").write_bytes(large)
    os.utime(destination / "large", (7, 7))
    return source, destination


def edit(path: Path, mtime: int) -> None:
    """Other content of the same size."""
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(path, (mtime, mtime))


@pytest.mark.usefixtures("fewest_bytes")
@pytest.mark.parametrize("checksum", [False, True], ids=["by mtime", "by content"])
@pytest.mark.parametrize("built", [True, False], ids=["in C", "without C"])
def test_only_what_differs_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: bool, checksum: bool
) -> None:
    source, destination = make_pair(tmp_path)
    edit(source / "d1" / "051", 5)
    edit(source / "large", 5)
    os.chmod(source / "d2" / "090", 0o600)
    (destination / "d3" / "130").write_bytes(b"of another size")
    if checksum:
        edit(destination / "d4" / "175", MTIME + 175)  # with the source's mtime
    if not built:
        monkeypatch.setattr("rdc.session.trees.small_file_digests.can_open", lambda _: False)
    run = run_sync(source, destination, SyncOptions(checksum=checksum))
    assert run.problems == []
    assert read_tree(destination) == read_tree(source)
    items = set(run.items)
    assert len([item for item in items if item[1] == "f"]) == 301
    assert ".f..t...... d0/000" in items
    assert ".f..tp..... d2/090" in items
    assert (">fc.t...... d1/051" if checksum else ">f..t...... d1/051") in items
    assert (">fcst...... d3/130" if checksum else ">f.st...... d3/130") in items
    assert (">fc........ d4/175" in items) == checksum
    assert run.done.literal_bytes < 70_000
    again = run_sync(source, destination, SyncOptions(checksum=True))
    assert (again.done.changed, again.problems) == (0, [])


@pytest.mark.parametrize("pull", [False, True], ids=["push", "pull"])
def test_the_wire_is_that_of_single_files(tmp_path: Path, pull: bool) -> None:
    """Three hundred files in groups: half a byte each, and requests of a few bytes."""
    source, destination = make_pair(tmp_path)
    cost = sync_measured(source, destination, pull=pull)
    assert read_tree(destination) == read_tree(source)
    roots = cost.summary["bytes_by_purpose"]["roots"]
    assert roots <= 230, cost.summary
    assert cost.summary["literal_bytes"] == 0
    assert cost.summary["changed"] >= 301


def test_a_dry_run_tells_them_and_touches_nothing(tmp_path: Path) -> None:
    source, destination = make_pair(tmp_path, 60)
    before = read_tree(destination)
    run = run_sync(source, destination, SyncOptions(dry_run=True))
    assert read_tree(destination) == before
    files = [item.split()[1] for item in run.items if item[1] == "f" and "/" in item]
    assert files == sorted(files)
    assert len(files) == 60
    run = run_sync(source, destination, SyncOptions(dry_run=True, checksum=True))
    assert read_tree(destination) == before
    assert ".f..t...... d0/000" in run.items


def test_a_file_changed_after_it_was_read_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never given the mtime of a content that it does not have. The next run compares it."""
    source, destination = make_pair(tmp_path, 60)
    wanted = read_tree(source)
    set_metadata = OpenedFiles.set_metadata
    outcomes: list[bytes] = []

    def meddling(self: OpenedFiles, *given: Any, **named: Any) -> bytes:
        if not outcomes:
            edit(destination / "d0" / "004", 7)
            os.rename(destination / "d0" / "005", destination / "d0" / "away")
            (destination / "d0" / "005").write_bytes((destination / "d0" / "away").read_bytes())
            (destination / "d0" / "away").unlink()
        outcomes.append(set_metadata(self, *given, **named))
        return outcomes[-1]

    with monkeypatch.context() as patch:
        patch.setattr(OpenedFiles, "set_metadata", meddling)
        run = run_sync(source, destination)
    assert outcomes[0].count(CHANGED) == 2
    assert {problem.path_bytes for problem in run.problems} == {b"d0/004", b"d0/005"}
    assert {problem.code for problem in run.problems} == {ExitCode.PARTIAL}
    run = run_sync(source, destination)
    assert run.problems == []
    assert read_tree(destination) == wanted
    assert run.done.literal_bytes > 0


def test_what_cannot_be_settled_together_is_tried_singly_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = make_pair(tmp_path, 60)
    wanted = read_tree(source)

    def failing(self: OpenedFiles, rows: list[int], *_: object, **__: object) -> bytes:
        (destination / "d0" / "004").unlink(missing_ok=True)
        return bytes([FAILED]) * len(rows)

    monkeypatch.setattr(OpenedFiles, "set_metadata", failing)
    run = run_sync(source, destination)
    assert [(problem.code, problem.path_bytes) for problem in run.problems] == [(ExitCode.PARTIAL, b"d0/004")]
    found = read_tree(destination)
    for directory in (b"d0", b""):
        found.pop(directory, None)
        wanted.pop(directory, None)
    del wanted[b"d0/004"]
    assert found == wanted


def test_files_that_cannot_be_read_fail_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the source when it is asked for their roots; a fifo has taken the place of one, another is gone."""
    source, destination = make_pair(tmp_path, 100)
    opened = OpenedFiles.__init__
    meddled: list[int] = []

    def meddling(self: OpenedFiles, *given: Any) -> None:
        if not meddled:
            meddled.append(1)
            (source / "d0" / "003").unlink()
            os.mkfifo(source / "d0" / "003")
            (source / "d1" / "055").unlink()
        opened(self, *given)

    monkeypatch.setattr(OpenedFiles, "__init__", meddling)
    run = run_sync(source, destination)
    assert sorted(problem.path_bytes for problem in run.problems) == [b"d0/003", b"d1/055"]
    assert {problem.code for problem in run.problems} <= {ExitCode.VANISHED}
    for number in set(range(100)) - {3, 55}:
        name = f"d{number // 40}/{number:03}"
        assert (destination / name).stat().st_mtime == MTIME + number, name


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
def test_between_processes(tmp_path: Path, way: Way) -> None:
    source, destination = make_pair(tmp_path)
    edit(source / "d1" / "051", 5)
    run = run_sync(source, destination, way=way)
    assert run.problems == []
    assert read_tree(destination) == read_tree(source)
    assert len([item for item in run.items if item[1] == "f"]) == 301


def test_few_descriptors_are_enough(tmp_path: Path) -> None:
    """What cannot be opened with the others is opened by itself."""
    source, destination = make_pair(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(map(int, os.listdir("/proc/self/fd"))) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 60, hard))
    try:
        run = run_sync(source, destination)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert run.problems == []
    assert read_tree(destination) == read_tree(source)
