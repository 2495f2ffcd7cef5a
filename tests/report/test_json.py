"""The events of --json: fields, order, rate, and names that are not text."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileError, RdcError
from rdc.model.runs import MessageCost, Purpose, SyncReport
from rdc.progress import ItemChanged, PlanKnown, Problem, Progressed
from rdc.report.json_output import JsonOutput
from tests.support.event_schemas import check_event
from tests.support.running.fake_environment import FakeClock

REPORT = SyncReport(
    files=3,
    total_bytes=300,
    changed=2,
    deleted=1,
    moved=0,
    bytes_sent=48_000,
    bytes_received=1_200,
    literal_bytes=100,
    reused_bytes=200,
    round_trips=4,
    errors=0,
    exit=ExitCode.OK,
    by_kind=(
        MessageCost("Data", 2, 49_000, 50_000, Purpose.LITERALS),
        MessageCost("Hello", 2, 200, 200, Purpose.OVERHEAD),
    ),
)


class Recorder:
    """A JsonOutput whose lines are checked and stored."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.clock = FakeClock()
        self.flushed = 0
        self.json = JsonOutput(lambda text: void(self.stream.write(text)), self.flush, self.clock)

    def flush(self) -> None:
        self.flushed = len(self.stream.getvalue())

    @property
    def events(self) -> list[dict[str, Any]]:
        return [check_event(line) for line in self.stream.getvalue().splitlines(keepends=True)]


def void(_: object) -> None:
    """Drops a result."""


def test_a_whole_run() -> None:
    recorder = Recorder()
    recorder.json.start()
    recorder.json(PlanKnown(2, 300, 1))
    recorder.json(ItemChanged(">f.st......", b"a/b"))
    recorder.json(ItemChanged("cL+++++++++", b"link", b"target"))
    recorder.json(Progressed("transfer", 300, 300))
    recorder.json(Problem(ExitCode.PARTIAL, b"x", "x: cannot be read"))
    recorder.clock.now = 1.23456
    recorder.json.finish(REPORT)
    assert recorder.stream.getvalue() == (
        '{"v":1,"event":"start"}\n'
        '{"v":1,"event":"plan","files":2,"bytes":300,"deletes":1}\n'
        '{"v":1,"event":"item","change":">f.st......","path":"a/b"}\n'
        '{"v":1,"event":"item","change":"cL+++++++++","path":"link"}\n'
        '{"v":1,"event":"progress","phase":"transfer","done":300,"total":300}\n'
        '{"v":1,"event":"error","code":23,"path":"x","message":"x: cannot be read"}\n'
        '{"v":1,"event":"summary","files":3,"changed":2,"deleted":1,"moved":0,"bytes_sent":48000,"bytes_received":1200,'
        '"literal_bytes":100,"reused_bytes":200,"round_trips":4,'
        '"bytes_by_purpose":{"manifest":0,"roots":0,"nodes":0,"sub-chunks":0,"literals":49000,"overhead":200},'
        '"created":0,"updated":2,"unchanged":0,"content_bytes":300,'
        '"seconds":1.235,"exit":0}\n'
    )
    assert len(recorder.events) == 7


def test_moves_are_counted() -> None:
    recorder = Recorder()
    recorder.json.finish(replace(REPORT, moved=2))
    assert recorder.events[-1]["moved"] == 2


def test_a_failed_run_ends_with_an_error() -> None:
    recorder = Recorder()
    recorder.json.start()
    recorder.json.fail(FileError(b"d\xff", "d: gone", code=ExitCode.VANISHED))
    recorder.json.fail(RdcError("no space", code=ExitCode.FILE_IO))
    first, second = recorder.events[1:]
    assert first == {"event": "error", "code": 24, "path": "d�", "path_b64": "ZP8=", "message": "d: gone"}
    assert second == {"event": "error", "code": 11, "path": "", "message": "no space"}


def test_progress_comes_five_times_a_second_and_at_its_end() -> None:
    recorder = Recorder()
    for step in range(1001):
        recorder.clock.now = step / 100
        recorder.json(Progressed("compare", step, None))
        recorder.json(Progressed("transfer", step, 1000))
    transfer = [event for event in recorder.events if event["phase"] == "transfer"]
    compare = [event for event in recorder.events if event["phase"] == "compare"]
    assert 45 <= len(transfer) <= 52
    assert 45 <= len(compare) <= 52
    assert transfer[-1] == {"event": "progress", "phase": "transfer", "done": 1000, "total": 1000}
    assert compare[0] == {"event": "progress", "phase": "compare", "done": 0}


def test_progress_never_goes_back() -> None:
    recorder = Recorder()
    for done in (5, 3, 5, 7, 10, 10, 2):
        recorder.clock.now += 1
        recorder.json(Progressed("transfer", done, 10))
    assert [event["done"] for event in recorder.events] == [5, 7, 10]


def test_what_a_reader_waits_for_is_flushed() -> None:
    recorder = Recorder()
    recorder.json.start()
    assert recorder.flushed == len(recorder.stream.getvalue())
    recorder.json(ItemChanged(">f+++++++++", b"a"))
    assert recorder.flushed < len(recorder.stream.getvalue())
    recorder.json(Progressed("transfer", 1, 10))
    assert recorder.flushed == len(recorder.stream.getvalue())


@given(st.binary(max_size=40), st.text(max_size=40))
def test_any_path_and_message_make_one_plain_line(path: bytes, message: str) -> None:
    recorder = Recorder()
    recorder.json(Problem(ExitCode.PARTIAL, path, message))
    (event,) = recorder.events
    assert event["message"] == message
    if "path_b64" in event:
        assert base64.b64decode(event["path_b64"]) == path
        assert "�" in event["path"]
    else:
        assert event["path"].encode() == path
