"""What people see of a watch: a bar for the first comparison, one status line after it, trouble above."""

from __future__ import annotations

import io

from rdc.errors import ExitCode
from rdc.model.watch import Disconnected, Halted, InStep, WatchReport
from rdc.progress import ItemChanged, PlanKnown, Problem, Progressed
from rdc.report.progress_bar import ProgressBar
from rdc.report.sync_terminal import TerminalStyle
from rdc.report.watch_terminal import StatusLine, WatchTerminal
from tests.fake_environment import FakeClock


class Screen:
    """A watch on a terminal, each event half a second after the one before."""

    def __init__(self) -> None:
        self.stream, self.clock, self.said = io.StringIO(), FakeClock(), [""]
        bar = ProgressBar(self.stream, self.clock, color=False, width=80)
        status = StatusLine(self.stream, color=False)
        self.terminal = WatchTerminal(
            TerminalStyle(), self.said.append, lambda: None, self.said.append, bar, status
        )

    def compare(self) -> None:
        for done in (1, 1_000_000, 2_000_000):
            self.clock.now += 0.5
            self.terminal.report(PlanKnown(1, 2_000_000, 0))
            self.terminal.report(Progressed("transfer", done, 2_000_000))

    def drawn(self) -> str:
        """What was drawn since the last call."""
        text = self.stream.getvalue()
        self.stream.seek(0)
        self.stream.truncate()
        return text


def in_step(*, whole: bool) -> InStep:
    return InStep(whole, 3, 1, 0, 400, 100, 0.25)


def test_the_bar_serves_the_first_comparison_and_the_status_line_what_follows() -> None:
    screen = Screen()
    screen.compare()
    assert "1.0 MB of 2.0 MB" in screen.drawn()
    screen.terminal.tell(in_step(whole=True))
    assert "in step: 3 files; so far 1 changed, 0 deleted, sent 400 B (last turn 250 ms)" in screen.drawn()
    for _ in range(2):
        screen.compare()
        screen.terminal.report(ItemChanged("<f+++++++++", b"a", None))
        assert "transferring" not in screen.drawn(), "one thing at a time is drawn anew"
        screen.terminal.tell(in_step(whole=False))
    assert "so far 3 changed" in screen.drawn()
    screen.terminal.finish(WatchReport(3, 3, 0, 1200, 300, 0))
    assert screen.said[-1].startswith("stopped after 3 turns: 3 changed, 0 deleted, sent 1.2 KB")


def test_a_bar_that_gave_way_to_trouble_comes_back() -> None:
    screen = Screen()
    screen.compare()
    screen.terminal.tell(Disconnected("the line is dead", 0.5))
    assert screen.said[-1] == "rdc: connection lost: the line is dead; next try in 0.5 seconds\n"
    screen.drawn()
    screen.compare()
    assert "2.0 MB of 2.0 MB" in screen.drawn()


def test_trouble_is_a_line_above_the_status_line() -> None:
    screen = Screen()
    screen.terminal.tell(in_step(whole=True))
    screen.drawn()
    screen.terminal.report(Problem(ExitCode.PARTIAL, b"x", "x: [bold]denied[/bold]"))
    screen.terminal.tell(Halted("src is gone"))
    drawn = screen.drawn()
    assert "rdc: x: [bold]denied[/bold]\n" in drawn and "rdc: halted: src is gone\n" in drawn
    assert screen.said == [""]
