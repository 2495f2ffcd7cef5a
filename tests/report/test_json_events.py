"""Events as JSON: lines that scripts can rely on, and progress that only grows."""

from __future__ import annotations

import base64
import json
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc import model, progress
from rdc.errors import ExitCode, FileError, RdcError
from rdc.progress import Problem, Progressed
from rdc.report.json_output import (
    EVENT_VERSION,
    EVENTS,
    PROGRESS_INTERVAL,
    JsonOutput,
    json_line,
    path_fields,
)
from rdc.undoing.records import UndoItem, UndoReport
from tests.support.running.fake_environment import FakeClock


class Told:
    def __init__(self) -> None:
        self.clock = FakeClock(100.0)
        self.written: list[str] = []
        self.flushed = 0
        self.events = JsonOutput(self.written.append, self._flush, self.clock)

    def _flush(self) -> None:
        self.flushed += 1

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.written]


@given(st.text(), st.text())
def test_an_event_is_one_line_whatever_its_strings_hold(event: str, value: str) -> None:
    line = json_line(event, value=value)
    assert line.endswith("\n")
    assert all(0x20 <= ord(char) < 0x7F for char in line[:-1])
    assert json.loads(line) == {"v": EVENT_VERSION, "event": event, "value": value}


@given(st.binary())
def test_a_path_can_be_had_back(path: bytes) -> None:
    fields = path_fields(path, "from")
    if "from_b64" in fields:
        assert base64.b64decode(str(fields["from_b64"])) == path
        assert "\ufffd" in str(fields["from"])
    else:
        assert str(fields["from"]).encode() == path
    json.loads(json_line("event", **fields))


def test_what_is_queued_goes_out_with_what_is_told() -> None:
    told = Told()
    told.events(UndoItem("restored", b"a"))
    assert (len(told.written), told.flushed) == (1, 0)
    told.events.start()
    assert (len(told.written), told.flushed) == (2, 1)


def test_progress_is_told_now_and_then_and_at_the_end() -> None:
    told = Told()
    for step in range(101):
        told.events(Progressed("transfer", step, 100))
        told.clock.now += PROGRESS_INTERVAL / 10
    done = [line["done"] for line in told.lines]
    assert done == sorted(set(done))
    assert (done[0], done[-1]) == (0, 100)
    assert 10 <= len(done) <= 12
    # Each phase has its own progress.
    told.events(Progressed("delete", 0, None))
    assert told.lines[-1] == {"v": 1, "event": "progress", "phase": "delete", "done": 0}


def test_progress_never_goes_backwards() -> None:
    told = Told()
    for done, total in ((5, None), (3, None), (5, None), (5, 5), (4, 4), (6, 9)):
        told.clock.now += 1
        told.events(Progressed("compare", done, total))
    assert [line["done"] for line in told.lines] == [5, 6]


@pytest.mark.parametrize(
    ("error", "path"), [(RdcError("lost", code=ExitCode.STREAM), ""), (FileError(b"a\xff", "bad"), "a\ufffd")]
)
def test_a_run_that_fails_says_where(error: RdcError, path: str) -> None:
    told = Told()
    told.events.fail(error)
    (line,) = told.lines
    assert (line["event"], line["code"], line["path"], line["message"]) == (
        "error",
        error.code,
        path,
        str(error),
    )
    assert told.flushed == 1


def test_a_problem_and_a_summary() -> None:
    told = Told()
    told.events(Problem(ExitCode.PARTIAL, b"a", "a: unreadable"))
    told.events("no event of all verbs")
    told.clock.now += 1.23456
    told.events.finish(UndoReport(None, 1, 2, 3, 4, 5, 6, ExitCode.PARTIAL))
    assert told.lines == [
        {"v": 1, "event": "error", "code": 23, "path": "a", "message": "a: unreadable"},
        {
            "v": 1,
            "event": "summary",
            "restored": 1,
            "removed": 2,
            "moved": 3,
            "changed": 4,
            "left_alone": 5,
            "older": 6,
            "seconds": 1.235,
            "exit": 23,
        },
    ]


PACKAGE = Path(progress.__file__).parent


@pytest.mark.parametrize("name", EVENTS)
def test_each_event_is_made_of_one_record_that_has_its_fields(name: str) -> None:
    modules = [
        progress,
        *(import_module(f"rdc.model.{one.name}") for one in pkgutil.iter_modules(model.__path__)),
        *(import_module(f"rdc.{path.parent.name}.records") for path in PACKAGE.glob("*/records.py")),
    ]
    (record,) = {vars(module)[name] for module in modules if name in vars(module)}
    for text in EVENTS[name][1].split():
        source = text.rstrip("?!").rpartition("=")[2].removeprefix("*")
        assert hasattr(record, source.partition(".")[0]), source
