"""The bar and the lines of progress: they appear late, never go back, and fit their terminal."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import RdcError
from rdc.progress import Event, ItemChanged, PlanKnown, Progressed
from rdc.report.progress_display import (
    PhaseProgress,
    ProgressBar,
    ProgressLines,
    ProgressTrack,
    progress_text,
)
from rdc.report.sync_terminal import SyncTerminal, TerminalStyle
from tests.support.running.fake_environment import FakeClock


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen is that of a common terminal."""
    monkeypatch.setenv("TERM", "xterm")


PROGRESS_EVENTS = st.one_of(
    st.builds(PlanKnown, st.integers(0, 9), st.integers(0, 99), st.integers(0, 9)),
    st.builds(
        Progressed,
        st.sampled_from(["compare", "transfer", "delete", "unheard of"]),
        st.integers(0, 120),
        st.none() | st.integers(0, 120),
    ),
)


@given(st.lists(PROGRESS_EVENTS, max_size=30))
def test_progress_never_moves_backwards(events: list[Event]) -> None:
    track = ProgressTrack()
    order = ["compare", "transfer", "delete"]
    before = track.phase_progress
    for event in events:
        track.follow(event)
        now = track.phase_progress
        assert order.index(now.phase) >= order.index(before.phase)
        if now.phase == before.phase:
            assert now.done >= before.done
            assert before.total is None or now.total == before.total
        assert now.total is None or now.done <= now.total
        before = now


def test_the_plan_gives_the_total() -> None:
    track = ProgressTrack()
    track.follow(Progressed("compare", 7, 9))
    assert track.phase_progress == PhaseProgress("compare", 7, 9)
    track.follow(PlanKnown(2, 100, 3))
    assert track.phase_progress == PhaseProgress("compare", 7, 9)
    track.follow(Progressed("transfer", 20, 100))
    assert track.phase_progress == PhaseProgress("compare", 7, 9), (
        "nobody knows yet how much there is to transfer"
    )
    track.follow(Progressed("compare", 9, 9))
    assert track.phase_progress == PhaseProgress("transfer", 20, 100)
    track.follow(Progressed("transfer", 150, 150))
    assert track.phase_progress == PhaseProgress("transfer", 100, 100)
    track.follow(Progressed("delete", 1, 3))
    assert track.phase_progress == PhaseProgress("delete", 1, 3)


def bar_output(
    events: list[tuple[float, Event]], *, color: bool = True, line: str | None = None, width: int = 100
) -> str:
    stream, clock = io.StringIO(), FakeClock()
    bar = ProgressBar(stream, clock, color=color, width=width)
    for now, event in events:
        clock.now = now
        bar.follow(event)
    if line is not None:
        assert bar.line(line)
    bar.close()
    return stream.getvalue()


SLOW: list[tuple[float, Event]] = [
    (0.1, PlanKnown(3, 2_000_000, 0)),
    (0.4, Progressed("transfer", 500_000, 2_000_000)),
    (0.6, Progressed("transfer", 1_000_000, 2_000_000)),
    (0.61, Progressed("transfer", 1_100_000, 2_000_000)),
    (0.9, Progressed("transfer", 1_500_000, 2_000_000)),
]


def test_short_work_shows_no_bar() -> None:
    assert bar_output(SLOW[:2]) == ""


def test_long_work_shows_a_bar_and_wipes_it() -> None:
    output = bar_output(SLOW)
    assert "transferring" in output
    assert "1.0 MB of 2.0 MB" in output
    assert "1.5 MB of 2.0 MB" in output
    assert "1.1 MB" not in output  # too soon after the last redraw
    assert output.rstrip().endswith("\x1b[J")  # the last thing done is to erase the line


@pytest.mark.parametrize(
    ("width", "bar", "time"), [(100, 1, 1), (70, 1, 1), (69, 0, 1), (46, 0, 1), (45, 0, 0), (36, 0, 0)]
)
def test_a_narrow_terminal_gets_the_figures(width: int, bar: bool, time: bool) -> None:
    large: list[tuple[float, Event]] = [
        (0.1, PlanKnown(3, 999_900_000_000, 0)),
        (0.6, Progressed("transfer", 299_000_000_000, 999_900_000_000)),
        (0.9, Progressed("transfer", 499_900_000_000, 999_900_000_000)),
    ]
    output = bar_output(large, color=False, width=width)
    assert "499.9 GB of 999.9 GB" in output and "…" not in output
    assert ("[#########...........]" in output, bool(re.search(r"\d:\d\d left", output))) == (bar, time)


@pytest.mark.parametrize(("width", "rate", "entries"), [(100, 1, 1), (80, 1, 0), (70, 0, 0)])
def test_a_bar_has_rate_and_entries(width: int, rate: bool, entries: bool) -> None:
    items: list[tuple[float, Event]] = [(0.2, ItemChanged(">f+++++++++", b"a"))]
    output = bar_output([*SLOW[:1], *items, *SLOW[1:]], color=False, width=width)
    assert ("  1.9 MB/s" in output, "1/3 entries" in output) == (rate, entries)
    assert "…" not in output


def test_phases_replace_each_other() -> None:
    output = bar_output(
        [
            (0.6, Progressed("compare", 1, None)),
            (0.8, Progressed("compare", 2_000, None)),
            (0.9, Progressed("transfer", 7_000, None)),
            (1.0, PlanKnown(1, 10, 2)),
            (1.2, Progressed("delete", 1, 2)),
        ]
    )
    assert "1 B" in output
    assert "2.0 KB" in output
    assert "7.0 KB " in output
    assert "7.0 KB of 7.0 KB" in output  # more came than the plan knew of
    assert "1 of 2" in output
    assert "comparing" not in output[output.index("deleting") :]


def test_plain_lines_come_once_a_second_and_at_the_end_of_a_phase() -> None:
    clock = FakeClock()
    said: list[str] = []
    lines = ProgressLines(said.append, clock)
    events: list[tuple[float, Event]] = [
        (0.1, Progressed("compare", 1_000, 4_000)),
        (1.1, Progressed("compare", 2_000, 4_000)),
        (1.2, PlanKnown(3, 2_000_000, 0)),
        (1.3, Progressed("compare", 3_000, 4_000)),
        (1.4, Progressed("compare", 4_000, 4_000)),
        (3.0, Progressed("transfer", 500_000, 2_000_000)),
        (3.5, Progressed("transfer", 600_000, 2_000_000)),
        (63.5, Progressed("transfer", 1_000_000, 2_000_000)),
        (64.0, Progressed("transfer", 2_000_000, 2_000_000)),
        (64.1, Progressed("transfer", 2_000_000, 2_000_000)),
    ]
    for now, event in events:
        clock.now = now
        lines.follow(event)
    assert said == [
        "comparing: 2.0 KB of 4.0 KB, 50 %, 0:01 left\n",
        "transferring: 500.0 KB of 2.0 MB, 25 %, 0:05 left\n",
        "transferring: 1.0 MB of 2.0 MB, 50 %, 1:02 left\n",
        "transferring: 2.0 MB of 2.0 MB\n",
    ]
    assert not lines.line("told otherwise")


def test_no_color_draws_without_colour() -> None:
    assert "\x1b[J" in bar_output(SLOW, color=False)
    assert "\x1b[3" not in bar_output(SLOW, color=False)
    assert "\x1b[32mtransferring:\x1b[0m" in bar_output(SLOW, color=True)


def test_trouble_is_printed_above_the_bar_as_it_is() -> None:
    output = bar_output(SLOW, line="rdc: [bold]x[/bold]: denied")
    assert "rdc: [bold]x[/bold]: denied\n" in output


def test_an_error_takes_the_bar_away() -> None:
    stream, clock = io.StringIO(), FakeClock()
    bar = ProgressBar(stream, clock, color=False, width=80)
    terminal = SyncTerminal(TerminalStyle(), lambda _: None, lambda _: None, bar)
    for now, event in SLOW:
        clock.now = now
        terminal(event)
    assert stream.getvalue()
    terminal.fail(RdcError("gone"))
    assert not bar.line("no longer there")


def test_sharing_is_a_phase_of_its_own_with_its_total() -> None:
    track = ProgressTrack()
    for event in (Progressed("compare", 5, 10), Progressed("share", 3, 9), Progressed("compare", 10, 10)):
        track.follow(event)
    assert track.phase_progress == PhaseProgress("share", 3, 9)
    track.follow(Progressed("share", 12, 9))
    assert progress_text(track.phase_progress) == "sharing: 9 B of 9 B"
