"""How a scan reads: each file once, in bounded batches, with progress that only grows."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.catalog.small_files import SMALL_BYTES
from rdc.catalog.store import NoCatalog
from rdc.errors import ExitCode, FileError
from rdc.files.root.source_file import SourceFile
from rdc.model.scan import ScanOptions
from rdc.progress import Event, Problem, Progressed
from rdc.survey.count.counters import Outcome
from rdc.survey.scan import scanner as scanner_module
from rdc.survey.scan.found_files import (
    BATCH_BYTES,
    BATCH_FILES,
    BATCH_MOST,
    FEW_FILES,
    RUN_FILES,
    FoundFile,
    Run,
    SignedBatch,
    SmallBatch,
    sign_batch,
)
from rdc.survey.scan.scanner import STREAMED_BYTES, Scanner

PLAIN = ScanOptions(compress=False)
FIXED = ScanOptions(compress=False, fixed=("fixed-4096",))

SIZES = (0, 1, 5_000, SMALL_BYTES, SMALL_BYTES + 1, 300_000, STREAMED_BYTES - 1, STREAMED_BYTES)
"""Sizes next to each limit at which files are read in another way."""


def scanned(
    *paths: Path,
    options: ScanOptions = PLAIN,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = lambda: 0.0,
) -> tuple[Outcome, list[Event]]:
    events: list[Event] = []
    scanner = Scanner(options, NoCatalog(), events.append, stopped, clock)
    outcome = scanner.run([os.fsencode(path) for path in paths])
    assert outcome is scanner.outcome
    return outcome, events


def expect_forwards(events: list[Event], total: int, *, to_its_end: bool = True) -> None:
    told = [event for event in events if isinstance(event, Progressed)]
    assert {(event.phase, event.total) for event in told} == {("read", total)}
    done = [event.done for event in told]
    assert done[0] == 0
    assert done == sorted(done)
    assert done[-1] <= total
    assert (done[-1] == total) or not to_its_end


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[SmallBatch]:
    """The batches that are signed."""
    found: list[SmallBatch] = []

    def sign(batch: SmallBatch, *words: Any, keep: bool) -> SignedBatch:
        found.append(batch)
        return sign_batch(batch, *words, keep=keep)

    monkeypatch.setattr(scanner_module, "sign_batch", sign)
    return found


# Each once


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(SIZES), st.integers(1, 3), st.booleans()), max_size=8),
    st.sampled_from([PLAIN, FIXED]),
    st.integers(0, 1 << 30),
)
def test_every_file_counts_once_however_it_is_read(
    tmp_path: Path,
    wanted: list[tuple[int, int, bool]],
    options: ScanOptions,
    seed: int,
) -> None:
    """Each file has a size, a number of names, and perhaps a hole of two blocks at its end."""
    drawn, top = random.Random(seed), Path(tempfile.mkdtemp(dir=tmp_path))
    places = [top / name for name in ("a", "b", "b/c")]
    for place in places:
        place.mkdir()
    hollow = 0
    for number, (size, names, sparse) in enumerate(wanted):
        path = drawn.choice(places) / f"{drawn.randrange(99)}-{number}"
        with path.open("wb") as file:
            file.write(drawn.randbytes(size))
            if sparse:
                at = -(-size // 4096) * 4096 + 8192
                file.truncate(at)
                hollow += 8192
        for name in range(1, names):
            os.link(path, drawn.choice(places) / f"{drawn.randrange(99)}-{number}-{name}")
    outcome, events = scanned(top, options=options)
    found = [path.stat() for path in top.rglob("*") if path.is_file()]
    assert (outcome.found_files, outcome.files) == (len(found), len(wanted))
    assert outcome.hardlinks == len(found) - len(wanted)
    each = {one.st_ino: one for one in found}.values()
    assert outcome.bytes + outcome.holes_bytes == sum(one.st_size for one in each)
    assert outcome.holes_bytes == hollow
    assert outcome.allocated_bytes == sum(512 * one.st_blocks for one in each)
    assert (outcome.code, outcome.reason, outcome.problems) == (ExitCode.OK, "", [])
    expect_forwards(events, sum(one.st_size for one in found))
    shutil.rmtree(top)


def test_a_file_that_was_named_and_is_in_the_tree_too(tmp_path: Path) -> None:
    for size in SIZES:
        (tmp_path / f"{size}").write_bytes(b"x" * size)
    outcome, _ = scanned(tmp_path / "1", tmp_path, tmp_path / f"{STREAMED_BYTES}")
    assert (outcome.files, outcome.hardlinks) == (len(SIZES), 2)
    assert outcome.bytes == sum(SIZES)


@pytest.mark.parametrize(("size", "options"), [(300_000, FIXED), (STREAMED_BYTES, PLAIN)])
def test_a_file_that_cannot_be_read_under_one_name_counts_under_another(
    size: int, options: ScanOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That which comes later, as far as the first was tried before."""
    monkeypatch.setattr(scanner_module, "ALONE_FILES", 1)
    (tmp_path / "a").write_bytes(os.urandom(size))
    os.link(tmp_path / "a", tmp_path / "b")
    os.link(tmp_path / "a", tmp_path / "c")
    opened = FoundFile.open

    def closed(self: FoundFile) -> SourceFile:
        if self.path == b"a":
            raise FileError(self.path, "closed")
        return opened(self)

    monkeypatch.setattr(FoundFile, "open", closed)
    outcome, events = scanned(tmp_path, options=options)
    assert (outcome.files, outcome.hardlinks, outcome.bytes) == (1, 1, size)
    assert [problem.path_bytes for problem in outcome.problems] == [os.fsencode(tmp_path / "a")]
    assert [event.path_bytes for event in events if isinstance(event, Problem)] == [
        os.fsencode(tmp_path / "a")
    ]
    expect_forwards(events, 3 * size)


# In batches


def test_batches_are_of_one_tree_and_bounded(tmp_path: Path, batches: list[SmallBatch]) -> None:
    """Batches begin small: a small tree is read before threads start, a large one by all threads."""
    trees = (("one", 3, 500), ("few", 2, 3), ("fewer", 1, 3), ("two", 60, 20))
    for tree, directories, files in trees:
        for directory in range(directories):
            place = tmp_path / tree / f"{directory}"
            place.mkdir(parents=True)
            for file in range(files):
                (place / f"{file}").write_bytes(b"%d" % file)
    outcome, _ = scanned(*(tmp_path / tree for tree, _, _ in trees))
    assert outcome.files == outcome.found_files == sum(count * files for _, count, files in trees)
    assert sum(map(len, batches)) == outcome.files
    sizes = [len(batch) for batch in batches]
    assert max(sizes) <= BATCH_FILES
    # A directory's files come in runs, and a batch ends between two runs.
    assert BATCH_FILES // 16 < max(sizes[:2]) <= max(BATCH_FILES // 8, RUN_FILES)
    assert max(sizes) > BATCH_FILES // 2
    for batch in batches:
        assert {batch.file(row).root for row in range(len(batch))} == {batch.root}
    assert len({id(batch.root) for batch in batches}) == len(trees)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from((100, 40_000, 300_000, 2_000_000)), st.integers(1, 70)), max_size=4)
)
def test_a_batch_of_few_files_may_be_larger(
    tmp_path: Path, batches: list[SmallBatch], wanted: list[tuple[int, int]]
) -> None:
    top = Path(tempfile.mkdtemp(dir=tmp_path))
    for number, (size, count) in enumerate(wanted):
        (top / f"{number}").mkdir()
        for name in range(min(count, 8_000_000 // size)):
            with (top / f"{number}" / f"{name}").open("wb") as file:
                file.write(b"%d" % name)
                os.posix_fallocate(file.fileno(), 0, size)
    batches.clear()
    outcome, _ = scanned(top)
    assert sum(map(len, batches)) == outcome.files
    for batch, after in zip(batches, [*batches[1:], None][: len(batches)], strict=True):
        assert batch.bytes <= BATCH_MOST
        # A part of a directory is added whole, and the last one made it full.
        before = batched_runs(batch)[:-1]
        assert sum(run.bytes for run in before) < BATCH_BYTES or sum(map(files_of, before)) < FEW_FILES
        if after is not None and len(batch) < FEW_FILES:
            first = batched_runs(after)[0]
            assert batch.bytes + first.bytes > BATCH_MOST or len(batch) + files_of(first) > BATCH_FILES // 16
    shutil.rmtree(top)


def batched_runs(batch: SmallBatch) -> list[Run]:
    return batch._runs


def files_of(run: Run) -> int:
    return run.stop - run.start


def test_with_fixed_blocks_no_file_is_read_with_others(tmp_path: Path, batches: list[SmallBatch]) -> None:
    """Files with content are read singly, since blocks are cut while a file is read singly."""
    for size in (0, 1, 5_000):
        (tmp_path / f"{size}").write_bytes(b"x" * size)
    outcome, _ = scanned(tmp_path, options=FIXED)
    assert outcome.files == 3
    assert [batch.names() for batch in batches] == [[b"0"]]


# To an early end


@pytest.mark.parametrize("seed", range(3))
def test_what_was_read_until_time_was_over_is_counted(seed: int, tmp_path: Path) -> None:
    drawn = random.Random(seed)
    for number in range(400):
        (tmp_path / f"{number}").write_bytes(drawn.randbytes(drawn.choice((100, 5_000, SMALL_BYTES + 1))))
    now = [0.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    outcome, events = scanned(
        tmp_path, options=ScanOptions(compress=False, seconds=120, seed=seed), clock=clock
    )
    assert (outcome.reason, outcome.interrupted) == ("time", False)
    assert 0 < outcome.files < outcome.found_files == 400
    expect_forwards(events, outcome.found_bytes, to_its_end=False)
    # Nothing is half done: each file was read or was not begun.
    last = [event for event in events if isinstance(event, Progressed)][-1]
    assert last.done == outcome.bytes


def test_who_stops_it_before_it_begins_has_nothing(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x")
    (tmp_path / "large").write_bytes(bytes(STREAMED_BYTES))
    outcome, events = scanned(tmp_path, stopped=lambda: True)
    assert (outcome.files, outcome.bytes, outcome.interrupted) == (0, 0, True)
    assert not [event for event in events if isinstance(event, Problem)]
