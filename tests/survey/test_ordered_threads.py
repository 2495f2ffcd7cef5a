"""in_order: results in order, in the caller alone where nothing waits, side by side where storage does."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rdc.survey.read import in_order
from tests.support.storage.slow_storage import SlowStorage

HERE = threading.current_thread().name


def named(task: int) -> tuple[int, bool]:
    """The task, and whether the caller itself did it."""
    return task, threading.current_thread().name == HERE


@pytest.mark.parametrize("workers", [1, 3])
def test_results_are_in_order(workers: int) -> None:
    found = list(in_order(named, range(50), workers))
    assert [task for task, _ in found] == list(range(50))
    assert all(here for _, here in found) == (workers == 1)


def test_a_single_worker_gets_a_second_one_once_storage_waits() -> None:
    """Two tasks are then in work at a time: each of the later ones meets another."""
    seen: list[int] = []
    both = threading.Barrier(2)

    def work(task: int) -> tuple[int, bool]:
        seen.append(task)
        if task > 5:
            both.wait(timeout=60)
        return named(task)

    found = list(in_order(work, range(26), 1, lambda: len(seen) > 5))
    assert [task for task, _ in found] == list(range(26))
    assert [here for _, here in found] == [True] * 6 + [False] * 20


def test_leaving_early_ends_the_threads() -> None:
    results = in_order(named, range(1000), 1, lambda: True)
    assert [next(results), next(results)] == [(0, True), (1, False)]
    results.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rdc survey")]


@pytest.mark.parametrize(("wait", "threads"), [(0, 0), (3_000, 2)])
def test_a_scan_of_storage_that_waits_reads_two_batches_at_a_time(
    tmp_path: Path, wait: int, threads: int
) -> None:
    """Files of 200 KB, so that a batch has few of them. Threads that open files of one batch come beside."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "native").mkdir()
    for number in range(120):
        (tmp_path / "tree" / f"{number}").write_bytes(b"%d" % number * 60_000)
    script = """
import os, sys, threading
from rdc.model.scan import ScanOptions
from rdc.survey.scan import scanner
from rdc.survey.scan.scanner import survey
signing, sign = set(), scanner.sign_batch
def noted(*arguments, **options):
    signing.add(threading.current_thread().name)
    return sign(*arguments, **options)
scanner.sign_batch = noted
found = survey([os.fsencode(sys.argv[1])], ScanOptions(), threads=1)
print(found.files, len(signing - {"MainThread"}))
"""
    storage = SlowStorage(tmp_path / "native")
    for _ in range(10):  # others on the machine may make files wait, or hide that they do
        ran = storage.run_python("-c", script, tmp_path / "tree", **({"open": wait} if wait else {}))
        assert ran.code == 0, ran.errors
        files, others = map(int, ran.output.split())
        assert files == 120
        if others == threads:
            return
    pytest.fail(f"{others} threads sign batches, expected {threads}")
