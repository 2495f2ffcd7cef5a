"""The terminal output of a sync: golden lines and escaped names."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.model.runs import MessageCost, Purpose, SyncReport
from rdc.progress import Event, ItemChanged, PlanKnown, Problem, Progressed
from rdc.report.output import counted, exact_text, size_text
from rdc.report.sync_terminal import (
    SyncTerminal,
    TerminalStyle,
    item_line,
    name_line,
    stats_block,
    summary_line,
)
from tests.support.running.fake_environment import FakeClock


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """rich asks the process whether its terminal is a dumb one."""
    monkeypatch.setenv("TERM", "xterm")


REPORT = SyncReport(
    files=1_234,
    total_bytes=1_200_000_000,
    changed=12,
    deleted=1,
    moved=0,
    bytes_sent=48_000,
    bytes_received=1_200,
    literal_bytes=40_100,
    reused_bytes=1_159_900_000,
    round_trips=4,
    errors=0,
    exit=ExitCode.OK,
    by_kind=(
        MessageCost("Hello", 2, 120, 130, Purpose.OVERHEAD),
        MessageCost("Literals", 3, 41_000, 40_990, Purpose.LITERALS),
        MessageCost("FileBatch", 1, 8_000, 9_000, Purpose.LITERALS),
        MessageCost("Manifest", 4, 80, 90, Purpose.MANIFEST),
    ),
)

EVENTS: list[Event] = [
    PlanKnown(3, 100, 1),
    ItemChanged(".d..t......", b"./"),
    ItemChanged(">f+++++++++", b"d/new\x1b[2J"),
    ItemChanged(".f...p.....", b"d/mode"),
    ItemChanged("cL+++++++++", b"link", b"to\n"),
    Problem(ExitCode.PARTIAL, b"x", "x: permission denied"),
    Problem(ExitCode.OK, b"s", "s: a socket, skipped"),
    Progressed("transfer", 100, 100),
    ItemChanged("*deleting  ", b"old\xff"),
]


def run(style: TerminalStyle, report: SyncReport = REPORT) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()

    def data(text: str) -> None:
        out.write(text)

    def talk(text: str) -> None:
        err.write(text)

    clock = FakeClock()
    terminal = SyncTerminal(style, data, talk, clock=clock)
    terminal.start()
    for event in EVENTS:
        terminal(event)
    clock.now += 2.0
    terminal.finish(report)
    return out.getvalue(), err.getvalue()


TALK = (
    "rdc: x: permission denied\n"
    "rdc: note: s: a socket, skipped\n"
    "12 updated, 1 deleted; sent 49.2 KB of 1.2 GB (23,576x less) in 2.0 s\n"
)


def test_plain() -> None:
    assert run(TerminalStyle()) == ("", TALK)


def test_verbose_names_what_rsync_names() -> None:
    assert run(TerminalStyle(names=True)) == (
        "./\nd/new\\x1b[2J\nlink -> to\\x0a\ndeleting old\\xff\n",
        TALK,
    )


def test_itemize_is_rsyncs_format() -> None:
    expected = (
        ".d..t...... ./\n"
        ">f+++++++++ d/new\\x1b[2J\n"
        ".f...p..... d/mode\n"
        "cL+++++++++ link -> to\\x0a\n"
        "*deleting   old\\xff\n"
    )
    assert run(TerminalStyle(itemize=True))[0] == expected
    assert run(TerminalStyle(itemize=True, names=True))[0] == expected


def test_quiet_leaves_errors() -> None:
    assert run(TerminalStyle(quiet=True, names=True, itemize=True, stats=True)) == (
        "",
        "rdc: x: permission denied\n",
    )


def test_stats() -> None:
    assert run(TerminalStyle(stats=True))[0] == (
        "Files in the source:  1,234\n"
        "Their size:           1,200,000,000 bytes\n"
        "Entries changed:      12\n"
        "Entries deleted:      1\n"
        "Content sent as is:   40,100 bytes\n"
        "Content reused:       1,159,900,000 bytes\n"
        "Bytes sent:           48,000 bytes\n"
        "Bytes received:       1,200 bytes\n"
        "Round trips:          4\n"
        "Bytes both ways:\n"
        "  manifest:           80 bytes\n"
        "    Manifest:         80 bytes in 4\n"
        "  roots:              0 bytes\n"
        "  nodes:              0 bytes\n"
        "  sub-chunks:         0 bytes\n"
        "  literals:           49,000 bytes\n"
        "    Literals:         41,000 bytes in 3\n"
        "    FileBatch:        8,000 bytes in 1\n"
        "  overhead:           120 bytes\n"
        "    Hello:            120 bytes in 2\n"
    )
    human = stats_block(replace(REPORT, by_kind=()), level=2)
    assert "Their size:           1.2 GB\n" in human
    assert "both ways" not in human


@pytest.mark.parametrize(
    ("changes", "style", "line"),
    [
        (
            {"created": 9, "entries": 40_124},
            {},
            "9 new, 3 updated, 1 deleted, 40,112 unchanged; sent 49.2 KB of 1.2 GB (23,576x less) in 0.50 s",
        ),
        (
            {"literal_bytes": 40_100, "reused_bytes": 58_299},
            {"carried": "received"},
            "12 updated, 1 deleted; received 49.2 KB of 98.4 KB in 0.50 s",
        ),
        (
            {"literal_bytes": 40_100, "reused_bytes": 58_300},
            {"carried": "transferred"},
            "12 updated, 1 deleted; transferred 49.2 KB of 98.4 KB (2x less) in 0.50 s",
        ),
        (
            {"changed": 0, "deleted": 500},
            {"carried": "copied"},
            "500 deleted; copied 40.1 KB of 1.2 GB (28,926x less) in 0.50 s",
        ),
        (
            {"changed": 1, "deleted": 0, "moved": 1, "literal_bytes": 0, "reused_bytes": 9_000},
            {"carried": "copied"},
            "1 moved; copied 0 B of 9.0 KB in 0.50 s",
        ),
        (
            {"changed": 0, "deleted": 0, "literal_bytes": 0, "reused_bytes": 0, "entries": 7},
            {"carried": "copied"},
            "7 unchanged in 0.50 s",
        ),
        (
            {"changed": 0, "deleted": 0, "literal_bytes": 0, "reused_bytes": 0, "entries": 7},
            {},
            "7 unchanged; sent 49.2 KB in 0.50 s",
        ),
        (
            {"created": 4, "moved": 3, "literal_bytes": 0, "reused_bytes": 0},
            {"carried": "copied", "dry_run": True},
            "dry run, nothing was changed: 4 new, 5 updated, 3 moved, 1 deleted in 0.50 s",
        ),
    ],
)
def test_the_last_line(changes: dict[str, Any], style: dict[str, Any], line: str) -> None:
    assert summary_line(replace(REPORT, **changes), TerminalStyle(**style), 0.5) == line


@pytest.mark.parametrize(
    ("report", "dry_run", "end"),
    [
        (REPORT, True, "in 0.50 s"),
        (replace(REPORT, errors=1, exit=ExitCode.PARTIAL), False, "s; 1 problem, exit code 23"),
        (replace(REPORT, exit=ExitCode.MAX_DELETE), False, "s; stopped early, exit code 25"),
    ],
)
def test_the_end_of_the_last_line(report: SyncReport, dry_run: bool, end: str) -> None:
    assert summary_line(report, TerminalStyle(dry_run=dry_run), 0.5).endswith(end)


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_no_name_can_move_the_cursor(path: bytes, target: bytes) -> None:
    event = ItemChanged(">f+++++++++", path, target)
    assert item_line(event).isprintable()
    assert (name_line(event) or "").isprintable()


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (999_949, "999.9 KB"),
        (999_950, "1.0 MB"),
        (48_000, "48.0 KB"),
        (1_200_000_000, "1.2 GB"),
        (2**63, "9.2 EB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert size_text(count) == text


def test_counts() -> None:
    assert exact_text(1) == "1 byte"
    assert exact_text(1_234_567) == "1,234,567 bytes"
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(2_000, "entry", "entries") == "2,000 entries"


def ended(style: TerminalStyle, report: SyncReport, *events: Event) -> str:
    """What stderr gets of a run that nobody sees."""
    said: list[str] = []
    terminal = SyncTerminal(style, lambda _: None, said.append, unseen=True)
    terminal.start()
    for event in events:
        terminal(event)
    terminal.finish(report)
    return "".join(said)


def test_a_run_that_nobody_sees_and_that_went_well_says_nothing() -> None:
    """cron mails what a job prints."""
    item = ItemChanged(">f+++++++++", b"new")
    assert ended(TerminalStyle(), REPORT, item) == ""
    assert "12 updated" in ended(TerminalStyle(asked=True), REPORT, item)
    assert "exit code 24" in ended(TerminalStyle(), replace(REPORT, exit=ExitCode.VANISHED), item)
    notice = Problem(ExitCode.OK, b"s", "s: a socket, skipped")
    assert ended(TerminalStyle(), REPORT, notice).startswith("rdc: note: s: a socket, skipped\n12 updated")


class DrawnBar:
    """A Bar that notes what is asked of it."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def follow(self, event: object) -> None:
        self.shown.append("bar")

    def line(self, text: str) -> bool:
        return False

    def hide(self) -> None:
        self.shown.append("hidden")

    def wait(self, word: str) -> None:
        self.shown.append(word)

    def close(self) -> None: ...


def test_the_bar_is_below_the_names() -> None:
    shown: list[str] = []
    terminal = SyncTerminal(TerminalStyle(names=True), shown.append, shown.append, DrawnBar(shown))
    terminal.start()
    terminal(Progressed("transfer", 1, 9))
    terminal(ItemChanged(">f+++++++++", b"new"))
    assert shown == ["connecting", "bar", "bar", "hidden", "new\n"]
