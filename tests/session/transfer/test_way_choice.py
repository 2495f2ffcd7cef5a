"""The choice of ways within a session: on lines of every kind, and where a whole file would lose
something."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.files.facts import file_systems
from rdc.model.sync import SyncOptions
from rdc.plan.ways import FIRST_WINDOW, NEAR_SECONDS, Packing
from rdc.protocol.connection import Connection
from rdc.protocol.messages import FileRequest
from rdc.session.runtime.commands import AskArrival, Conversation, Pace, Receive, Send
from rdc.session.transfer import way_choice
from tests.support.running.delta_sync import counts, edited, places, text
from tests.support.running.paired_sync import Program, sync_in_turns
from tests.support.running.syncing import Run, Way, run_sync
from tests.support.share import examples
from tests.support.trees.trees import describe, litter, read_tree

T = TypeVar("T")

QUIET = SyncOptions(fsync=False)


class OverLine(Program):
    """A destination whose messages take the time that a line gives them, by a clock of its own."""

    def __init__(
        self, rate: float, round_trip: float, jumps: Iterable[float] = (), stalls: float | None = None
    ) -> None:
        """`jumps`: seconds by which the clock is off, for one question after the other. `stalls`: bytes after
        which the line stands still for a second."""
        self.asked: list[tuple[int, Packing]] = []
        """Files and packing of each FileRequest."""
        self._rate, self._round_trip = rate, round_trip
        self._jumps = iter(jumps)
        self._stalls = float("inf") if stalls is None else stalls

    def converse(self, conversation: Conversation[T], connection: Connection) -> Conversation[T]:
        """Answer questions about arrivals, and note what is asked for."""
        trips, sent, answer = 0, False, None
        while True:
            try:
                command = conversation.send(answer)
            except StopIteration as stop:
                value: T = stop.value
                return value
            answer = None
            if isinstance(command, AskArrival):
                command.received = connection.bytes_received
                command.now = trips * self._round_trip + connection.bytes_received / self._rate
                command.now += next(self._jumps, 0.0) + (connection.bytes_received > self._stalls)
                continue
            if isinstance(command, Send):
                sent = True
                if isinstance(command.message, FileRequest):
                    self.asked.append((len(command.message.files), Packing(command.message.packing)))
            elif isinstance(command, Receive) and command.wait and sent:
                trips, sent = trips + 1, False
            answer = yield command


def versions(count: int, size: int) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Files of about `size` bytes, and their next versions, of other sizes."""
    old = {f"d{row % 5}/{row:03}": text(row, size + row) for row in range(count)}
    return old, {name: edited(content, row) + b"." for row, (name, content) in enumerate(old.items())}


def over(line: OverLine, source: Path, destination: Path, options: SyncOptions = QUIET) -> Run:
    """Equal trees, no problem, nothing left over."""
    run = sync_in_turns(source, destination, options, programs=(line, Program()))
    assert run.problems == []
    assert litter(read_tree(destination)) == []
    assert describe(read_tree(source), read_tree(destination)) == []
    return run


def test_over_a_near_and_fast_line_all_come_whole(tmp_path: Path) -> None:
    old, new = versions(60, 40_000)
    line = OverLine(2e9, 1e-4)
    run = over(line, *places(tmp_path, old, new))
    assert not counts(run).keys() & {"BundleRequest", "RangeRequest"}
    assert run.done.literal_bytes == sum(map(len, new.values()))
    assert [packing for _, packing in line.asked][:2] == [Packing.AS_EVER, Packing.NONE]
    assert len(line.asked) <= 4


@pytest.mark.parametrize("received", [10_000, 150_000, 500_000, 1_500_000])
def test_a_stall_does_not_turn_a_fast_line_to_deltas(received: int, tmp_path: Path) -> None:
    old, new = versions(60, 40_000)
    run = over(OverLine(2e9, 1e-4, stalls=received), *places(tmp_path, old, new))
    assert run.done.bytes_received > received
    assert not counts(run).keys() & {"BundleRequest", "RangeRequest"}


def test_over_a_near_and_slow_line_only_the_first_ones_come_whole(tmp_path: Path) -> None:
    old, new = versions(60, 40_000)
    line = OverLine(1e6, 1e-3)
    run = over(line, *places(tmp_path, old, new))
    assert counts(run)["BundleRequest"] >= 1
    assert [packing for _, packing in line.asked] == [Packing.AS_EVER] * 2
    assert run.done.literal_bytes <= 2 * FIRST_WINDOW + 60_000


def test_over_a_far_line_none_come_whole_until_its_rate_is_told(tmp_path: Path) -> None:
    old, new = versions(60, 4_000)
    line = OverLine(2e9, 2 * NEAR_SECONDS)
    source, destination = places(tmp_path, old, new)
    run = over(line, source, destination)
    assert not line.asked
    assert run.done.literal_bytes <= 60 * 600
    for name, content in old.items():
        (destination / name).write_bytes(content)
        os.utime(destination / name, ns=(1, 1))
    run = over(line, source, destination, SyncOptions(fsync=False, line=10**9))
    assert line.asked == [(60, Packing.NONE)]


@pytest.mark.usefixtures("nothing_likely")
@pytest.mark.parametrize("rate", [10**5, 10**7, 10**9])
def test_the_rate_of_an_option_counts_at_once(rate: int, tmp_path: Path) -> None:
    old, new = versions(9, 9_000)
    line = OverLine(1e6, 0.0)
    run = over(line, *places(tmp_path, old, new), SyncOptions(fsync=False, line=rate))
    assert bool(counts(run).keys() & {"TreeAnswer", "BundleRequest"}) == (rate == 10**5)
    assert len(line.asked) == (rate != 10**5)


def test_fewest_bytes_are_those_of_deltas_on_any_line(tmp_path: Path) -> None:
    old, new = versions(60, 4_000)
    line = OverLine(2e9, 1e-4)
    run = over(line, *places(tmp_path, old, new), SyncOptions(fsync=False, fewest_bytes=True))
    assert not line.asked
    assert run.done.literal_bytes <= 60 * 600


@settings(
    max_examples=examples(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rate=st.floats(1e3, 1e10),
    trip=st.floats(0, 0.02),
    jumps=st.lists(st.floats(-1e6, 1e6, allow_nan=False) | st.just(0.0), max_size=30),
    sizes=st.lists(st.integers(0, 5_000) | st.integers(100_000, 300_000), min_size=1, max_size=12),
)
def test_whatever_a_line_and_a_clock_do_the_tree_is_right(
    rate: float, trip: float, jumps: list[float], sizes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("line")
    old = {str(row): text(row, size) for row, size in enumerate(sizes)}
    new = {name: edited(content or b"x", int(name)) + b"." for name, content in old.items()}
    over(OverLine(rate, trip, jumps), *places(place, old, new))


# Where a whole file would lose something


def by_delta(run: Run) -> int:
    return counts(run).get("TreeAnswer", 0)


def test_here_all_come_whole_but_what_only_has_another_time(tmp_path: Path) -> None:
    old = {"edited": text(1, 300_000), "touched": text(2, 300_000), "small": text(3, 5_000)}
    source, destination = places(
        tmp_path, old, {**old, "edited": old["edited"] + b"!", "small": old["small"] + b"!"}
    )
    inode = (destination / "touched").stat().st_ino
    run = run_sync(source, destination, QUIET)
    assert run.problems == []
    assert by_delta(run) == 1
    assert run.done.literal_bytes == 300_001 + 5_001
    assert (destination / "touched").stat().st_ino == inode
    assert describe(read_tree(source), read_tree(destination)) == []


@pytest.mark.parametrize("way", [Way.HERE, Way.PULL])
@pytest.mark.parametrize("size", [100_000, 300_000])
def test_small_files_with_holes_keep_them_whole_and_large_ones_by_delta(
    ext4: Path, size: int, way: Way
) -> None:
    source, destination = ext4 / "s", ext4 / "d"
    for place, end in ((source, size + 1), (destination, size)):
        place.mkdir()
        for row in range(12):
            with (place / str(row)).open("wb") as file:
                os.pwrite(file.fileno(), random.Random(row).randbytes(4096), 0)
                file.truncate(end)
                if place == source:
                    os.posix_fallocate(file.fileno(), 0, end)  # zeros, and no holes
    run = run_sync(source, destination, SyncOptions(fsync=False, line=10**9), way=way)
    assert by_delta(run) == 0 if size == 100_000 else counts(run)["BundleRequest"]
    assert all((destination / str(row)).stat().st_blocks * 512 <= 20_000 for row in range(12))


def type_at(place: Path) -> int:
    with (place / "any").open("wb") as file:
        return file_systems.type_of(file.fileno())


@pytest.mark.parametrize(("size", "whole"), [(100_000, True), (200_000, False)])
def test_a_file_system_that_shares_blocks_gets_deltas_of_large_files(
    size: int, whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way_choice, "SHARING_TYPES", {type_at(tmp_path)})
    source, destination = places(tmp_path, {"f": text(1, size)}, {"f": text(1, size) + b"!"})
    run = run_sync(source, destination, QUIET)
    assert by_delta(run) == (not whole)
    assert (destination / "f").read_bytes() == (source / "f").read_bytes()


def test_in_place_large_files_are_written_where_they_differ(tmp_path: Path) -> None:
    source, destination = places(tmp_path, {"f": text(1, 300_000)}, {"f": text(1, 300_000) + b"!"})
    run = run_sync(source, destination, SyncOptions(fsync=False, inplace=True))
    assert by_delta(run) == 1
    assert run.done.literal_bytes <= 30_000


def write(path: Path) -> None:
    path.write_bytes(b"by somebody else")


def rename(path: Path) -> None:
    path.rename(path.with_suffix(".gone"))


@pytest.mark.parametrize("change", [write, rename, Path.unlink])
def test_an_old_version_that_changes_meanwhile_is_not_replaced(
    change: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = versions(20, 3_000)
    source, destination = places(tmp_path, old, new)
    take = way_choice.WayChoice.add
    name = "d1/006"

    def late(self: way_choice.WayChoice, file: int, size: int) -> None:
        if self._context.manifest.entry(file).path == name.encode():
            change(destination / name)
        take(self, file, size)

    monkeypatch.setattr(way_choice.WayChoice, "add", late)
    run = run_sync(source, destination, QUIET)
    assert [problem.path for problem in run.problems] == [name]
    assert not (destination / name).exists() or (destination / name).read_bytes() == b"by somebody else"
    assert all((destination / each).read_bytes() == new[each] for each in new if each != name)
    assert litter(read_tree(destination)) == []


class Paced(Program):
    """A side that notes the limits that it is asked to keep."""

    def __init__(self) -> None:
        self.asked: list[Pace] = []

    def converse(self, conversation: Conversation[T], connection: Connection) -> Conversation[T]:
        answer = None
        while True:
            try:
                command = conversation.send(answer)
            except StopIteration as stop:
                value: T = stop.value
                return value
            if isinstance(command, Pace):
                self.asked.append(command)
            answer = yield command


@pytest.mark.parametrize("compress", [True, None])
def test_both_sides_know_whether_everything_is_to_be_compressed(
    compress: bool | None, tmp_path: Path
) -> None:
    """The source of a fetch, too: it would send new files without compression where that ends sooner."""
    source, destination = places(tmp_path, *versions(3, 2_000))
    sides = Paced(), Paced()
    sync_in_turns(source, destination, SyncOptions(fsync=False, compress=compress), programs=sides)
    for side in sides:
        assert [pace.packs for pace in side.asked] == [compress is True]
        assert [pace.tries for pace in side.asked] == [compress is not True]
