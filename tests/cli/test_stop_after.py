"""--stop-after and --stop-at: when a run ends, and what stays of it."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.cli.options.deadlines import Deadline, next_time
from rdc.cli.verbs import sync
from rdc.errors import ExitCode, RdcError, StoppedError, UsageError
from rdc.library.trees import sync as run
from rdc.model.sync import SyncOptions
from rdc.progress import Event, ItemChanged
from tests.cli.fake_syncer import FakeSyncer, asked
from tests.support.running.fake_environment import FakeProcess
from tests.support.running.syncing import Way, command, contents_of, run_sync, shell
from tests.support.trees.trees import describe, read_tree, tree, write_tree

NOW = datetime(2027, 3, 30, 12, 30).timestamp()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14:00", (2027, 3, 30, 14, 0)),
        ("12:30", (2027, 3, 31, 12, 30)),
        ("T06:05", (2027, 3, 31, 6, 5)),
        (":59", (2027, 3, 30, 12, 59)),
        (":00", (2027, 3, 30, 13, 0)),
        ("1", (2027, 4, 1, 0, 0)),
        ("30", (2027, 4, 30, 0, 0)),
        ("31", (2027, 3, 31, 0, 0)),
        ("1-30", (2028, 1, 30, 0, 0)),
        ("2/29", (2028, 2, 29, 0, 0)),
        ("2030-12-31T23:59", (2030, 12, 31, 23, 59)),
        ("30/12/31T23:59", (2030, 12, 31, 23, 59)),
        ("30T13:00", (2027, 3, 30, 13, 0)),
    ],
)
def test_a_time_is_the_next_one_that_fits(text: str, expected: tuple[int, ...]) -> None:
    year, month, day, hour, minute = expected
    assert next_time(text, NOW) == datetime(year, month, day, hour, minute).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "24:00", "12:60", "1999-01-01", "2027-03-30T12:30", "13-01", "2-30", "0", "32", "T", ":",
        "2027-02-29", "9999-12-31", "12:3", "1-2-3-4", "-1", "1T", "٣",
    ],
)  # fmt: skip
def test_what_is_no_time_to_come(text: str) -> None:
    assert next_time(text, NOW) is None


@pytest.mark.parametrize("text", ["", "x", "24:00", "1999-01-01", "-1"])
def test_a_wrong_time_is_one_line(text: str) -> None:
    ended = command("sync", f"--stop-at={text}", "src/", "dst")
    assert (ended.code, len(ended.err.splitlines())) == (ExitCode.USAGE, 1)
    assert f"--stop-at={text}: a time to come is expected" in ended.err


@given(st.text("0123456789:T-/", max_size=16), st.integers(0, 4 * 10**9))
def test_any_text_is_a_later_time_or_none(text: str, now: int) -> None:
    found = next_time(text, now)
    assert found is None or found > now


@pytest.mark.parametrize("value", ["0", "", "-1", "1.5", "x", "1" * 19])
def test_minutes_are_a_number(value: str) -> None:
    with pytest.raises(UsageError, match=f"--stop-after={value}: a number of minutes is expected"):
        asked(f"--stop-after={value}")


def test_the_last_one_counts() -> None:
    before = time.monotonic()
    stop = asked("--stop-at=2099-12-31", "--time-limit=2").stop
    assert isinstance(stop, Deadline) and not stop.is_set()
    assert before + 120 <= stop.at <= time.monotonic() + 120
    stop = asked("--stop-after=2", "--stop-at=2099-12-31").stop
    assert isinstance(stop, Deadline) and stop.at == datetime(2099, 12, 31).timestamp()
    assert asked().stop is None


def test_it_ends_with_30_and_one_line() -> None:
    process = FakeProcess()
    with pytest.raises(RdcError, match="stopped by --stop-after=5; what is done stays") as caught:
        sync.run(
            ["--stop-after=5", "src/", "dst"], process.environment, syncer=FakeSyncer(end=StoppedError())
        )
    assert caught.value.code is ExitCode.TIMEOUT


@pytest.mark.parametrize("way", list(Way))
def test_what_is_done_stays_and_the_next_run_goes_on(way: Way, tmp_path: Path) -> None:
    """The time is over after the third change: old or new is at each path, and nothing else."""
    files = {f"d{number}/f": os.urandom(300_000) for number in range(12)}
    wanted, held = tree(files), tree({name: content[:200_000] for name, content in files.items()})
    source, top = write_tree(tmp_path / "s", wanted), write_tree(tmp_path / "d", held)
    seen: list[Event] = []
    stop = Deadline("--stop-after=1", 3, lambda: sum(isinstance(event, ItemChanged) for event in seen))
    from rdc.model.location import Location

    with pytest.raises(StoppedError):
        run(
            Location("far" if way is Way.PULL else None, contents_of(source)),
            Location("far" if way is Way.PUSH else None, contents_of(top)),
            SyncOptions(),
            shell=shell(),
            reporter=seen.append,
            stop=stop,
        )
    for name, content in files.items():
        assert (top / name).read_bytes() in (content, content[:200_000])
    assert run_sync(source, top, way=way).problems == []
    assert describe(wanted, read_tree(top)) == []
