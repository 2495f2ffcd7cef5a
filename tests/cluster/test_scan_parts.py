"""Slices as tasks: merged parts are one scan, whatever dies. What cannot be right is refused by name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import rdc
from rdc.cluster import slice_task
from rdc.cluster.slice_task import (
    NAMES,
    RootFacts,
    RunMarker,
    WorkerFacts,
    difference,
    looking,
    run_slice,
    worker_facts,
)
from rdc.errors import ExitCode, IncompatiblePeerError, OutOfSpaceError, RdcError, StoppedError, UsageError
from rdc.progress import Event, Problem, Progressed
from rdc.survey.report.terminal import scan_json
from tests.cluster.failing_executors import InThreads, killing_pool, process_pool
from tests.support.trees.linked_tree import linked_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    linked_tree(tmp_path / "tree", 3)
    (tmp_path / "out").mkdir()
    return tmp_path / "tree"


def whole(tree: Path) -> str:
    return scan_json(rdc.scan(tree, catalog=None))


def merged(parts: tuple[str, ...]) -> str:
    return scan_json(rdc.merge(parts))


def parts_in(out: Path) -> list[str]:
    return sorted(os.listdir(out))


@pytest.mark.parametrize("make", [process_pool, lambda: ThreadPoolExecutor(3)])
def test_parts_of_an_executor_are_one_scan(tree: Path, tmp_path: Path, make: type[Executor]) -> None:
    events: list[Event] = []
    parts = rdc.scan_parts(tree, make, 5, tmp_path / "out", reporter=events.append)
    assert merged(parts) == whole(tree)
    assert parts_in(tmp_path / "out") == [f"slice-{number}-of-5.rdcscan" for number in range(1, 6)]
    told = [event for event in events if isinstance(event, Progressed)]
    assert len(told) == 5
    assert told[-1].done == told[-1].total == rdc.scan(tree, catalog=None).coverage.found_bytes


def test_killed_workers_are_replaced(tree: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    make = killing_pool(tmp_path / "marks", {1, 4})
    parts = rdc.scan_parts(tree, make, 6, tmp_path / "out", reporter=events.append)
    assert merged(parts) == whole(tree)
    assert len(os.listdir(tmp_path / "marks")) >= 1
    assert any("a worker died" in event.message for event in events if isinstance(event, Problem))


def test_a_broken_pool_of_the_caller_leaves_the_parts(tree: Path, tmp_path: Path) -> None:
    pool = killing_pool(tmp_path / "marks", {3})()
    with pytest.raises(
        RdcError, match=r"^the workers ended, and \d slices have no part; run again"
    ) as raised:
        rdc.scan_parts(tree, pool, 6, tmp_path / "out")
    pool.shutdown()
    assert raised.value.code is ExitCode.PARTIAL
    assert merged(rdc.scan_parts(tree, InThreads(), 6, tmp_path / "out")) == whole(tree)


def test_workers_that_always_die_end_the_run(tree: Path, tmp_path: Path) -> None:
    made: list[Executor] = []

    def make() -> Executor:
        marks = tmp_path / f"marks {len(made)}"
        made.append(killing_pool(marks, {0, 1, 2, 3})())
        return made[-1]

    with pytest.raises(RdcError, match="the workers ended"):
        rdc.scan_parts(tree, make, 4, tmp_path / "out")
    assert len(made) == 3


def test_a_failed_task_is_run_again_and_a_bad_one_ends_after_three(tree: Path, tmp_path: Path) -> None:
    events: list[Event] = []

    def fail(number: int) -> None:
        if number in (0, 2, 4, 6):
            raise ZeroDivisionError("of the engine")

    with pytest.raises(
        RdcError, match=r"^1 of 4 slices have no part; run again.*slice \d/4: ZeroDivisionError: of"
    ):
        rdc.scan_parts(tree, InThreads(fail), 4, tmp_path / "out", reporter=events.append)
    notices = [event.message for event in events if isinstance(event, Problem)]
    assert any(notice.endswith("run again (2 of 3)") for notice in notices)
    assert any(notice.endswith("run again (3 of 3)") for notice in notices)
    # The next run reads what is missing alone.
    again = InThreads()
    assert merged(rdc.scan_parts(tree, again, 4, tmp_path / "out")) == whole(tree)
    assert again.submitted == 1


def test_a_damaged_part_is_read_again(tree: Path, tmp_path: Path) -> None:
    parts = rdc.scan_parts(tree, InThreads(), 3, tmp_path / "out")
    content = bytearray(Path(parts[1]).read_bytes())
    content[len(content) // 2] ^= 1
    Path(parts[1]).write_bytes(content)
    Path(parts[2]).write_bytes(b"")
    again = InThreads()
    assert merged(rdc.scan_parts(tree, again, 3, tmp_path / "out")) == whole(tree)
    assert again.submitted == 2


def test_a_part_of_another_scan_is_not_replaced(tree: Path, tmp_path: Path) -> None:
    parts = rdc.scan_parts(tree, InThreads(), 3, tmp_path / "out")
    before = [Path(part).read_bytes() for part in parts]
    with pytest.raises(
        UsageError, match=r"slice-1-of-3\.rdcscan: made with other.*--shift differs.*another directory"
    ):
        rdc.scan_parts(tree, InThreads(), 3, tmp_path / "out", rdc.ScanOptions(shift=3))
    assert [Path(part).read_bytes() for part in parts] == before
    Path(parts[0]).write_bytes(before[1])
    with pytest.raises(UsageError, match=r"slice-1-of-3\.rdcscan: expected slice 1/3, found another part"):
        rdc.scan_parts(tree, InThreads(), 3, tmp_path / "out")


def test_a_stop_ends_the_tasks_and_keeps_the_parts(tree: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    pool = InThreads(lambda number: stop.set() if number == 2 else None)
    with pytest.raises(StoppedError):
        rdc.scan_parts(tree, pool, 8, tmp_path / "out", stop=stop)
    kept = parts_in(tmp_path / "out")
    assert 2 <= len(kept) <= 4
    assert all(name.endswith("-of-8.rdcscan") for name in kept)
    again = InThreads()
    assert merged(rdc.scan_parts(tree, again, 8, tmp_path / "out")) == whole(tree)
    assert again.submitted == 8 - len(kept)


def test_the_end_of_a_run_reaches_a_worker(tree: Path, tmp_path: Path) -> None:
    marker = RunMarker(os.fsencode(tmp_path / "out"))
    marker.begin()
    times = iter([0.0, 0.0, 0.0, 0.1, 0.6, 0.6])
    ended = looking(marker.path, lambda: next(times))
    assert not ended()
    # A second run in the same directory ends the first.
    other = RunMarker(os.fsencode(tmp_path / "out"))
    other.begin()
    assert not ended()
    assert ended()
    assert ended()
    assert parts_in(tmp_path / "out") == [os.fsdecode(os.path.basename(other.path))]
    other.end()
    other.end()
    assert parts_in(tmp_path / "out") == []


def test_an_interrupt_ends_the_run(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rdc.cluster.make_parts.check_stop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rdc.scan_parts(tree, InThreads(), 3, tmp_path / "out")
    assert parts_in(tmp_path / "out") == []


def test_a_worker_without_the_mount_is_refused(tree: Path, tmp_path: Path) -> None:
    def unmount(number: int) -> None:
        if number == 1:
            tree.rename(tmp_path / "elsewhere")
            tree.mkdir()

    with pytest.raises(
        UsageError, match=r"^slice \d/4: worker .*tree is another directory there than here; mount"
    ):
        rdc.scan_parts(tree, InThreads(unmount), 4, tmp_path / "out")


def test_a_worker_that_does_not_see_the_parts_is_refused(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def hide(_: int) -> None:
        for name in os.listdir(out):
            os.unlink(out / name)

    def unmount(_: int) -> None:
        hide(0)
        out.rmdir()

    with pytest.raises(
        RdcError, match=r"4 of 4 slices.*does not see the file \.rdcparts-\*\.run beside the parts"
    ):
        rdc.scan_parts(tree, InThreads(hide), 4, out)
    with pytest.raises(UsageError, match=r"out is not there; all machines must see the directory"):
        rdc.scan_parts(tree, InThreads(unmount), 4, out)
    with pytest.raises(RdcError, match="cannot write a file beside the parts"):
        rdc.scan_parts(tree, InThreads(), 4, out)


def test_a_full_disk_is_reported(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object, path: str) -> None:
        raise OutOfSpaceError(f"{path}: No space left on device")

    monkeypatch.setattr("rdc.survey.parts.part_file.write_part", full)
    with pytest.raises(RdcError, match=r"2 of 2 slices have no part.*slice-\d-of-2.rdcscan: No space left"):
        rdc.scan_parts(tree, InThreads(), 2, tmp_path / "out")
    assert parts_in(tmp_path / "out") == []


def test_a_worker_without_memory_is_reported(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starved(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("rdc.survey.scan.scanner.survey", starved)
    with pytest.raises(RdcError, match=r"worker .*: MemoryError"):
        rdc.scan_parts(tree, InThreads(), 2, tmp_path / "out")


def test_a_worker_with_another_version_is_refused_before_work(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(run_slice("9.9", b"no pickle that this version knows"), str)
    monkeypatch.setattr(slice_task, "__version__", "9.9")
    with pytest.raises(
        IncompatiblePeerError, match=r"^worker with rdc 9\.9 on .*install the same version there"
    ):
        rdc.scan_parts(tree, InThreads(), 2, tmp_path / "out")
    assert parts_in(tmp_path / "out") == []


def test_what_a_worker_returns_is_checked(tree: Path, tmp_path: Path) -> None:
    class Odd(InThreads):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            return super().submit(lambda: b"garbage")

    with pytest.raises(RdcError, match=r"2 of 2 slices have no part.*UnpicklingError"):
        rdc.scan_parts(tree, Odd(), 2, tmp_path / "out")


def facts(*names: int, inode: int = 7, version: str = "1") -> WorkerFacts:
    return WorkerFacts("host", version, (RootFacts(b"/data", inode, names),))


def test_what_makes_two_machines_alike(tmp_path: Path) -> None:
    assert difference(facts(1, 2, 3), facts(1, 2, 3)) == ""
    assert difference(facts(1, 2, 3), facts(1, 2, 3, 4)) == ""
    assert difference(facts(), facts()) == ""
    assert "another rdc" in difference(facts(), facts(version="2"))
    assert "is not there" in difference(facts(1), facts(inode=0))
    assert "another directory" in difference(facts(1), facts(1, inode=8))
    assert "another directory" in difference(facts(1, 2, 3), facts())
    assert "another directory" in difference(facts(1, 2, 3), facts(3, 4, 5))
    for number in range(200):
        (tmp_path / f"{number}").touch()
    (one,) = worker_facts([os.fsencode(tmp_path)], "").roots
    assert len(one.names) == NAMES
    (tmp_path / "another").touch()
    assert (
        difference(
            WorkerFacts("h", "1", (one,)),
            WorkerFacts("h", "1", worker_facts([os.fsencode(tmp_path)], "").roots),
        )
        == ""
    )


def test_bad_arguments_are_named(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="slice 0/0"):
        rdc.scan_parts(tree, InThreads(), 0, tmp_path / "out")
    with pytest.raises(UsageError, match="at least one path"):
        rdc.scan_parts([], InThreads(), 1, tmp_path / "out")
    with pytest.raises(UsageError, match=r"options\.slice"):
        rdc.scan_parts(tree, InThreads(), 1, tmp_path / "out", rdc.ScanOptions(slice=rdc.ScanSlice(1, 2)))
    with pytest.raises(TypeError, match="slices"):
        rdc.scan_parts(tree, InThreads(), "2", tmp_path / "out")  # type: ignore[arg-type] # this is the question
