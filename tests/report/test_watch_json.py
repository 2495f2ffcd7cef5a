"""The events of `rdc watch --json`: their names and fields, and a line for each turn at once."""

from __future__ import annotations

import io
import json
from typing import Any, get_args

import pytest

from rdc.errors import ExitCode, FileError, RdcError
from rdc.progress import ItemChanged, Problem
from rdc.report.json_output import JsonOutput
from rdc.watching.records import Disconnected, Halted, InStep, Limited, Resumed, WatchEvent, WatchReport
from tests.support.running.fake_environment import FakeClock


class Recorder:
    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.clock = FakeClock()
        self.flushed = 0
        self.json = JsonOutput(self.write, self.flush, self.clock)

    def write(self, text: str) -> None:
        self.stream.write(text)

    def flush(self) -> None:
        self.flushed = len(self.stream.getvalue())

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events that a reader has received so far."""
        lines = self.stream.getvalue()[: self.flushed].splitlines()
        events = [json.loads(line) for line in lines]
        assert all(event.pop("v") == 1 for event in events)
        return events


EVENTS: list[tuple[WatchEvent, dict[str, object]]] = [
    (
        InStep(True, 3, 2, 1, 480, 120, 0.12345),
        {
            "event": "in_step",
            "whole": True,
            "files": 3,
            "changed": 2,
            "deleted": 1,
            "bytes_sent": 480,
            "bytes_received": 120,
            "seconds": 0.123,
        },
    ),
    (Halted("it is\ngone"), {"event": "halted", "message": "it is\ngone"}),
    (Resumed(), {"event": "resumed"}),
    (Limited("too many", 60), {"event": "limited", "message": "too many", "seconds": 60}),
    (Disconnected("why", 1.99996), {"event": "disconnected", "message": "why", "seconds": 2.0}),
]


def test_no_event_is_passed_over() -> None:
    assert {type(event) for event, _ in EVENTS} == set(get_args(WatchEvent))


@pytest.mark.parametrize(("event", "expected"), EVENTS, ids=lambda value: type(value).__name__)
def test_the_fields_of_each_event(event: WatchEvent, expected: dict[str, object]) -> None:
    recorder = Recorder()
    recorder.json(event)
    assert recorder.events == [expected]


def test_items_come_with_the_turn_that_they_belong_to() -> None:
    recorder = Recorder()
    recorder.json.start()
    recorder.json(ItemChanged(">f+++++++++", b"new"))
    assert [event["event"] for event in recorder.events] == ["start"]
    recorder.json(EVENTS[0][0])
    assert [event["event"] for event in recorder.events] == ["start", "item", "in_step"]
    recorder.json(Problem(ExitCode.PARTIAL, b"f", "why"))
    assert recorder.events[-1] == {"event": "error", "code": 23, "path": "f", "message": "why"}


def test_the_last_event_is_of_all_turns_or_says_why_there_are_no_more() -> None:
    recorder = Recorder()
    recorder.clock.now += 3.5
    recorder.json.finish(WatchReport(9, 4, 1, 1_000, 2_000, 2))
    recorder.json.fail(FileError(b"src", "src: gone", code=ExitCode.VANISHED))
    recorder.json.fail(RdcError("refused", code=ExitCode.STREAM))
    assert recorder.events == [
        {
            "event": "stopped",
            "turns": 9,
            "changed": 4,
            "deleted": 1,
            "bytes_sent": 1_000,
            "bytes_received": 2_000,
            "errors": 2,
            "seconds": 3.5,
        },
        {"event": "error", "code": 24, "path": "src", "message": "src: gone"},
        {"event": "error", "code": int(ExitCode.STREAM), "path": "", "message": "refused"},
    ]
