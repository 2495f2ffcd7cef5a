"""`rdc watch` on a terminal: one line at the bottom that says how things stand, at every width."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.progress import Problem, Progressed
from rdc.report.progress_display import StatusLine, columns, fitted
from rdc.report.sync_terminal import TerminalStyle
from rdc.watching.command import WatchTerminal
from rdc.watching.records import Disconnected, Halted, InStep, Resumed, WatchEvent, WatchReport
from tests.support.daemon.daemons import WAIT_SECONDS
from tests.support.running.syncing import RDC
from tests.watching.screen import Screen, Terminal


@given(st.lists(st.text(st.characters(categories=["L", "N", "P"])), min_size=1), st.integers(0, 100))
def test_parts_fit_the_width(parts: list[str], width: int) -> None:
    text = fitted(parts, width)
    assert columns(text) <= width
    whole = "  ".join(parts)
    assert whole.startswith(text.removesuffix("…")) or text == "…"
    if columns(whole) <= width:
        assert text == whole


def test_wide_characters_take_two_columns() -> None:
    assert [columns(text) for text in ("abc", "日本", "é", "e\u0301")] == [3, 4, 1, 1]
    assert fitted(["日本語日本語"], 7) == "日本語…"


class Shown:
    """A WatchTerminal on a screen of which the width can change."""

    def __init__(self, width: int, *, color: bool = False) -> None:
        self.now = 0.0
        self._stream = io.StringIO()
        self.screen = Screen(width)
        status = StatusLine(self._stream, color=color, size=lambda: self.screen.width, encoding="utf-8")
        style = TerminalStyle()

        def write(text: str) -> None:
            self._stream.write(text)

        self.terminal = WatchTerminal(
            style,
            write,
            lambda: None,
            write,
            status=status,
            clock=lambda: self.now,
            time_of_day=lambda: "12:34:56",
        )

    def emit(self, event: WatchEvent) -> str:
        self.terminal(event)
        return self.bottom

    @property
    def bottom(self) -> str:
        text = self._stream.getvalue()
        self._stream.seek(0)
        self._stream.truncate()
        self.screen.feed(text)
        return self.screen.bottom


def in_step(changed: int = 1, sent: int = 500, seconds: float = 0.085, files: int = 1) -> InStep:
    return InStep(False, files, changed, 0, sent, 90, seconds)


def test_the_line_says_how_things_stand() -> None:
    shown = Shown(120)
    wanted = "in sync: 1 file  last 12:34:56, 85 ms  1 changed  0 deleted  sent 500 B  received 90 B"
    assert shown.emit(in_step()) == wanted
    assert shown.emit(Halted("src is gone\x1b[2J")) == "halted: src is gone\\x1b[2J"
    assert shown.emit(Resumed()) == wanted
    assert shown.emit(Disconnected("cut", 0.5)) == "interrupted: cut  next try in 0.5 s"
    assert shown.emit(Disconnected("cut", 60)) == "interrupted: cut  next try in 60 s"
    assert shown.emit(in_step()).startswith("in sync: 1 file")
    # Each once, however often it was tried.
    assert shown.screen.lines == [
        "rdc: halted: src is gone\\x1b[2J",
        "rdc: resumed: the source is back",
        "rdc: interrupted: cut",
        "in sync again: 1 file; watching",
    ]
    shown.terminal.close()
    assert shown.bottom == ""


def test_counters_of_a_long_run_are_readable() -> None:
    shown = Shown(200)
    shown.emit(in_step(changed=12_345_678, sent=5 * 10**15, seconds=4_000, files=1_000_000))
    assert shown.bottom == (
        "in sync: 1,000,000 files  last 12:34:56, 1:06:40  12,345,678 changed  0 deleted  sent 5.0 PB"
        "  received 90 B"
    )


@pytest.mark.parametrize("width", [1, 2, 9, 20, 40, 79, 80, 81, 200])
def test_every_width_and_what_follows_a_change_of_it(width: int) -> None:
    shown = Shown(width)
    shown.emit(in_step())
    shown.screen.width = 7
    shown.emit(in_step())  # the screen checks that all of the old line goes
    shown.screen.width = 100
    assert shown.emit(in_step()).endswith("received 270 B")


def test_a_long_turn_shows_how_far_it_is() -> None:
    shown = Shown(80)
    shown.emit(in_step())
    for seconds in (0.0, 0.3, 0.6):
        shown.now = seconds
        shown.terminal(Progressed("transfer", int(seconds * 10_000_000), 10_000_000))
    assert shown.bottom == "transferring: 6.0 MB of 10.0 MB"
    assert shown.emit(in_step()).startswith("in sync")


def test_trouble_is_a_line_above_and_the_end_a_summary() -> None:
    shown = Shown(120)
    shown.emit(in_step())
    shown.terminal(Problem(ExitCode.PARTIAL, b"x", "x: [bold]denied[/bold]\x1b"))
    assert shown.bottom.startswith("in sync")
    shown.terminal.finish(WatchReport(3, 3, 0, 1200, 300, 0))
    assert shown.bottom == ""
    assert shown.screen.lines == [
        "rdc: x: [bold]denied[/bold]\\x1b",
        "stopped after 3 turns: 3 changed, 0 deleted, sent 1.2 KB, received 300 B",
    ]


def test_colour_marks_what_is_wrong() -> None:
    shown = Shown(80, color=True)
    shown.emit(in_step())
    assert shown.screen.coloured


# A true terminal


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for number in range(20):
        (tmp_path / "src" / f"f{number}").write_bytes(b"x" * number)
    return tmp_path


@pytest.fixture(params=["", "1"], ids=["colour", "NO_COLOR"])
def terminal(request: pytest.FixtureRequest, place: Path) -> Iterator[Terminal]:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "TERM": "xterm",
        "RDC_CATALOG": "off",
        "NO_COLOR": request.param,
        "LC_ALL": "C.UTF-8",
    }
    words = [*RDC, "watch", "--delete", f"{place}/src/", f"{place}/dst/"]
    terminal = Terminal(words, environ, 100)
    try:
        yield terminal
    finally:
        terminal.close()
    assert terminal.screen.coloured == (request.param == "")


def test_a_watch_from_its_start_to_its_end(place: Path, terminal: Terminal) -> None:
    source = place / "src"
    terminal.wait(lambda screen: screen.bottom.startswith("in sync: 20 files  last"))
    (source / "n\x1b[31m\x07ew").write_bytes(b"new")
    terminal.wait(lambda screen: screen.bottom.startswith("in sync: 21 files"))
    terminal.resize(30)
    terminal.wait(lambda screen: screen.bottom == "in sync: 21 files")
    terminal.resize(10)
    terminal.wait(lambda screen: screen.bottom == "in sync:…")
    terminal.resize(120)
    terminal.wait(lambda screen: "received" in screen.bottom)
    source.rename(place / "away\x1b")
    terminal.wait(lambda screen: screen.bottom.startswith("halted: "))
    (place / "away\x1b").rename(source)
    terminal.wait(lambda screen: screen.bottom.startswith("in sync: 21 files"))
    children = Path(f"/proc/{terminal.process.pid}/task/{terminal.process.pid}/children").read_text()
    os.kill(int(children.split()[0]), signal.SIGKILL)
    # Not for long: whoever looks late sees only that it was there.
    terminal.wait(
        lambda screen: (
            any(bottom.startswith("interrupted: ") for bottom in screen.shown)
            and screen.bottom.startswith("in sync: 21 files")
        )
    )
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait(lambda screen: any(line.startswith("stopped after") for line in screen.lines))
    assert terminal.process.wait(WAIT_SECONDS) == 0
    assert terminal.screen.bottom == ""
    assert [line.partition(":")[0] for line in terminal.screen.lines[:-1]] == ["rdc"] * 3 + ["in sync again"]
