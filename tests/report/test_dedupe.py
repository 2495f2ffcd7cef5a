"""The output of `rdc dedupe`: a line per action, the report's figures, and harmless display of names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.duplicates.report import DedupeStyle, DedupeTerminal, instance_line, summary_line
from rdc.errors import ExitCode, FileError
from rdc.lean.records import replace
from rdc.model.duplicates import Action, DedupeReport, Instance
from rdc.progress import Problem, Progressed
from rdc.report.json_output import JsonOutput
from tests.support.running.fake_environment import FakeClock

HOSTILE = b"\x1b[2J\xff\n"
SHOWN = "\\x1b[2J\\xff\\x0a"
NOTHING = DedupeReport(0, 0, 0, 0, 0, 0, 0, 0, False, ExitCode.OK)


class Run:
    """A DedupeTerminal with its output."""

    def __init__(self, style: DedupeStyle) -> None:
        self.data: list[str] = []
        self.talk: list[str] = []
        self.closed = 0
        self.followed: list[object] = []
        self.terminal = DedupeTerminal(style, self.data.append, self.talk.append, self)

    def follow(self, event: object) -> None:
        self.followed.append(event)

    def line(self, text: str) -> bool:
        return False

    def hide(self) -> None: ...

    def wait(self, word: str) -> None: ...

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("action", "won", "perhaps", "line"),
    [
        (Action.SHARE, 1_200_000, 0, "share    b/copy with a/first: 1.2 MB"),
        (Action.SHARE, 0, 3_000, "share    b/copy with a/first: 0 B, perhaps 3.0 KB more"),
        (Action.SHARE, 0, 0, "share    b/copy with a/first"),
        (Action.LINK, 2_000, 3_000, "link     b/copy to a/first: 2.0 KB, perhaps 3.0 KB more"),
        (Action.SEPARATE, 0, 0, "separate b/copy from a/first: 5.0 KB"),
        (Action.SEPARATE, 7_000, 9_000, "separate b/copy from a/first: 5.0 KB"),
        (Action.CLEAR, 0, 0, "clear    b/copy which is a/first"),
        (Action.RESTORE, 0, 0, "restore  b/copy as a/first"),
    ],
)
def test_each_thing_done_is_a_line(action: Action, won: int, perhaps: int, line: str) -> None:
    assert instance_line(Instance(action, b"b/copy", b"a/first", 5_000, won, perhaps)) == line


@pytest.mark.parametrize(
    ("changes", "style", "line"),
    [
        (
            {},
            DedupeStyle(True),
            "0 files in 0 groups: 0 B to reclaim (dry run: nothing was changed; --apply acts)",
        ),
        ({"files": 1, "groups": 1, "won": 4096}, DedupeStyle(False), "1 file in 1 group: 4.1 KB reclaimed"),
        (
            {"files": 1234, "groups": 56, "won": 1, "perhaps": 2_000, "held": 2_000, "already": 3_000},
            DedupeStyle(False),
            "1,234 files in 56 groups: 1 B reclaimed, 2.0 KB more once what else shares them lets go"
            "; 3.0 KB were shared already",
        ),
        (
            {"files": 1, "groups": 1, "won": 1, "perhaps": 7_000, "held": 1_000, "compressed": 2_000},
            DedupeStyle(False),
            "1 file in 1 group: 1 B reclaimed, 2.0 KB of compressed content"
            ", 1.0 KB more once what else shares them lets go, perhaps 4.0 KB more",
        ),
        (
            {"skipped": 1, "errors": 2, "exit": ExitCode.PARTIAL},
            DedupeStyle(False),
            "0 files in 0 groups: 0 B reclaimed; 1 file skipped; 2 problems; exit code 23",
        ),
        (
            {"files": 2, "groups": 1, "capped": True, "exit": ExitCode.MAX_DELETE},
            DedupeStyle(False),
            "2 files in 1 group: 0 B reclaimed; stopped by --max-files or --max-bytes; exit code 25",
        ),
        (
            {"files": 2, "bytes": 3_000, "won": 9, "perhaps": 9, "already": 9},
            DedupeStyle(False, undo=True),
            "2 files of 3.0 KB made separate",
        ),
        (
            {"files": 1, "bytes": 3_000, "skipped": 3},
            DedupeStyle(True, undo=True),
            "1 file of 3.0 KB would be separate; 3 files skipped (dry run: nothing was changed)",
        ),
    ],
)
def test_the_last_line_says_what_was_won(changes: dict[str, Any], style: DedupeStyle, line: str) -> None:
    assert summary_line(replace(NOTHING, **changes), style) == line


def test_a_run_for_people() -> None:
    run = Run(DedupeStyle(False))
    done = Instance(Action.LINK, HOSTILE, b"a", 5, 4096, 0)
    progress = Progressed("share", 5, 10)
    for event in (
        done,
        progress,
        Problem(ExitCode.OK, b"x", "x\n: skipped"),
        Problem(ExitCode.PARTIAL, b"y", "no"),
    ):
        run.terminal(event)
    assert run.closed == 0
    run.terminal.finish(replace(NOTHING, journal=HOSTILE))
    assert run.data == [f"link     {SHOWN} to a: 4.1 KB\n"]
    assert run.talk == [
        "rdc: note: x\\x0a: skipped\n",
        "rdc: no\n",
        "0 files in 0 groups: 0 B reclaimed\n",
        f"to undo it: rdc dedupe --undo {SHOWN}\n",
    ]
    assert progress in run.followed
    assert run.closed == 1  # the bar is gone before the last line


def test_a_quiet_run_tells_of_trouble_alone() -> None:
    run = Run(DedupeStyle(False, quiet=True))
    for event in (
        Instance(Action.LINK, b"b", b"a", 5, 4096, 0),
        Problem(ExitCode.OK, b"x", "x: skipped"),
        Problem(ExitCode.PARTIAL, b"y", "y: no"),
    ):
        run.terminal(event)
    run.terminal.finish(replace(NOTHING, journal=b"journal"))
    assert run.data == []
    assert run.talk == ["rdc: y: no\n"]
    assert run.closed == 1
    run.terminal.fail(FileError(b"x", "said by the command line"))
    assert run.closed == 2
    assert run.talk == ["rdc: y: no\n"]


def test_events_have_the_report_s_figures() -> None:
    lines: list[str] = []
    clock = FakeClock()
    clock.now = 1000.0
    events = JsonOutput(lines.append, lambda: lines.append("flush"), clock, dry_run=True)
    events.start()
    events(Instance(Action.SHARE, HOSTILE, b"a", 5, 6, 7, compressed=2, held=3))
    events(Progressed("share", 8, 9))
    events(Problem(ExitCode.PARTIAL, HOSTILE, "no"))
    clock.now += 1.5
    report = DedupeReport(1, 2, 3, 4, 5, 6, 7, 8, True, ExitCode.MAX_DELETE, compressed=1, held=2)
    events.finish(replace(report, journal=b"\xff"))
    # An event that a reader waits for is flushed; one of a million items is not.
    assert [i for i, line in enumerate(lines) if line == "flush"] == [1, 4, 6, 8]
    found = [json.loads(line) for line in lines if line != "flush"]
    assert [event.pop("v") for event in found] == [1] * 5
    path = {"path": "\x1b[2J�\n", "path_b64": "G1sySv8K"}
    item = {"source": "a", "bytes": 5, "won": 6, "perhaps": 7, "compressed": 2, "held": 3}
    assert found == [
        {"event": "start", "dry_run": True},
        {"event": "item", "action": "share", **path, **item},
        {"event": "progress", "phase": "share", "done": 8, "total": 9},
        {"event": "error", "code": 23, **path, "message": "no"},
        {
            "event": "summary",
            "groups": 1,
            "files": 2,
            "bytes": 3,
            "won": 4,
            "perhaps": 5,
            "compressed": 1,
            "held": 2,
            "already": 6,
            "skipped": 7,
            "errors": 8,
            "capped": True,
            "journal": "�",
            "seconds": 1.5,
            "exit": 25,
        },
    ]


@given(st.binary(min_size=1, max_size=20), st.binary(min_size=1, max_size=20), st.sampled_from(list(Action)))
def test_no_name_can_move_the_cursor(path: bytes, source: bytes, action: Action) -> None:
    line = instance_line(Instance(action, path, source, 5, 6, 7))
    assert line.isprintable()
    lines: list[str] = []
    events = JsonOutput(lines.append, lambda: None, FakeClock(), dry_run=False)
    events(Instance(action, path, source, 5, 6, 7))
    assert lines[0].endswith("\n")
    assert lines[0][:-1].isascii()
    assert lines[0][:-1].isprintable()


def test_a_dry_run_sums_up_by_folder() -> None:
    run = Run(DedupeStyle(True, folders=True))
    for number in range(25):
        for name in range(number + 1):
            run.terminal(Instance(Action.SHARE, b"d%d/%d" % (number, name), b"a", 5_000, 1_000, 0))
    run.terminal(Instance(Action.SHARE, b"top", b"a", 5_000, 90_000, 0))
    run.terminal.finish(NOTHING)
    assert run.data[:2] == ["  90.0 KB        1 file  ./\n", "  25.0 KB      25 files  d24/\n"]
    assert run.data[-1] == "  21.0 KB      21 files  in other folders\n"
    assert len(run.data) == 21
