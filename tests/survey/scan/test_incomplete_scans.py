"""Scans that do not see everything: files that change or vanish, and runs that stop early."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdc.catalog import small_files
from rdc.errors import ExitCode, UsageError
from rdc.files.bulk import open_many as contents
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.library.scans import scan
from rdc.model.entries import strings
from rdc.model.scan import ScanOptions, ScanReport
from tests.library.stop_after import StopAfter
from tests.support.running.expected_counts import count
from tests.support.trees.mixed_tree import agree, mixed_tree

PLAIN = ScanOptions(compress=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    mixed_tree(tmp_path / "t")
    return tmp_path / "t"


def trouble(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], None]) -> None:
    """Calls `act` when the file called `name` is read for the first time."""
    original = os.pread
    done: list[str] = []

    def pread(fd: int, length: int, offset: int) -> bytes:
        data = original(fd, length, offset)
        if not done and os.readlink(f"/proc/self/fd/{fd}").endswith(name):
            done.append(name)
            act()
        return data

    # What reads in C is defined by what reads in Python.
    monkeypatch.setattr(contents, "_reader", None)
    monkeypatch.setattr(os, "pread", pread)


@pytest.mark.parametrize("name", ["1.txt", "large"])
@pytest.mark.parametrize("kind", ["grows", "shrinks", "is touched"])
def test_files_that_change_are_named(
    tree: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tree / "a" / name
    path.write_bytes(path.read_bytes() or b"something")

    def act() -> None:
        if kind == "grows":
            with path.open("ab") as file:
                file.write(b"more")
        elif kind == "shrinks":
            os.truncate(path, 5)
        else:
            os.utime(path, (1, 1))

    trouble(monkeypatch, name, act)
    whole = count([tree / "a"])
    report = scan([tree / "a"], PLAIN, catalog=None)
    assert [one.path_bytes for one in report.errors] == [os.fsencode(path)]
    assert report.exit is ExitCode.VANISHED
    # The part of a large file that was read counts; a small file is left out.
    missing = whole.files + whole.hardlinks - report.files - report.hardlinks
    assert missing == (name != "large") or (kind == "shrinks" and missing == 1)
    totals = {level.bytes for level in report.levels if level.name.startswith("cdc")}
    assert len(totals) == 1


def test_vanishing_and_unreadable(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Root.open_read

    def open_read(root: Root, path: bytes) -> SourceFile:
        if path.endswith(b"noise"):
            raise root.failure(PermissionError(13, ""), path, "open it for reading", reading=True)
        return original(root, path)

    def read_small(fd: int, paths: bytes, *others: Any) -> contents.Contents:
        (tree / "a" / "1.txt").unlink(missing_ok=True)
        found = contents.read_contents(fd, paths, *others)
        for row, path in enumerate(strings(paths)):
            if path.endswith(b"noise"):
                found.outcomes[row] = errno.EACCES
        return found

    monkeypatch.setattr(Root, "open_read", open_read)
    monkeypatch.setattr(small_files, "read_contents", read_small)
    report = scan([tree, tree / "missing"], PLAIN, catalog=None)
    codes = {os.path.basename(one.path_bytes): one.code for one in report.errors}
    assert codes == {
        b"noise": ExitCode.PARTIAL,
        b"1.txt": ExitCode.VANISHED,
        b"missing": ExitCode.PARTIAL,
    }
    assert report.exit is ExitCode.PARTIAL
    assert all(os.fsdecode(one.path_bytes) in one.message for one in report.errors)


def test_stopping_keeps_what_was_done(tree: Path) -> None:
    report = scan([tree], PLAIN, catalog=None, stop=StopAfter(5))
    assert report.coverage.reason == "interrupted"
    assert report.exit is ExitCode.INTERRUPTED
    assert 0 < report.files < report.coverage.found_files


def test_stopping_in_the_middle_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(random.Random(3).randbytes(12_000_000))
    stop = StopAfter(8)
    report = scan([tmp_path], PLAIN, catalog=None, stop=stop)
    assert report.coverage.reason == "interrupted"
    assert 0 < report.bytes < 12_000_000
    assert {level.bytes for level in report.levels} == {report.bytes}


def test_a_share_of_the_files_in_random_order(tree: Path) -> None:
    def sampled(seed: int, share: float) -> ScanReport:
        return scan([tree], replace(PLAIN, sample=share, seed=seed), catalog=None)

    first, again = sampled(1, 0.3), sampled(1, 0.3)
    assert first == again
    assert first.coverage.reason == "sample"
    assert not first.coverage.complete
    assert first.exit is ExitCode.OK
    assert len({sampled(seed, 0.05).bytes for seed in range(6)}) > 1
    whole = sampled(3, 1.0)
    assert whole.coverage.complete
    agree(whole, count([tree]))
    with pytest.raises(UsageError):
        sampled(1, 1.5)


def test_a_time(tree: Path) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    report = scan([tree], replace(PLAIN, seconds=30), catalog=None, clock=clock)
    assert report.coverage.reason == "time"
    assert 0 < report.files < report.coverage.found_files
    assert report.exit is ExitCode.OK
