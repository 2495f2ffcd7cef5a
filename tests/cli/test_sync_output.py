"""`rdc sync` shows progress, results and errors in each form of output, and runs for real."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rdc.catalog.store import SignatureStore, UserCatalog
from rdc.cli.verbs import sync
from rdc.errors import ExitCode, FileError, OutOfSpaceError, RdcError, UsageError
from rdc.model.location import Location, RemoteShell
from rdc.model.runs import SyncReport
from rdc.model.sync import SyncOptions
from rdc.progress import PlanKnown, Problem, Progressed, Reporter, StopSignal
from tests.cli.fake_syncer import REPORT, FakeSyncer, asked
from tests.support.event_schemas import check_event
from tests.support.running.fake_environment import FakeProcess


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal can move its cursor."""
    monkeypatch.setenv("TERM", "xterm")


def outcome(words: Sequence[str], syncer: FakeSyncer, process: FakeProcess) -> ExitCode:
    return sync.run([*words, "src", "dst"], process.environment, syncer=syncer)


def test_what_is_shown() -> None:
    process = FakeProcess()
    assert outcome(["-i", "-v"], FakeSyncer(), process) is ExitCode.OK
    assert process.out == ">f+++++++++ a\n"
    assert process.err == "1 new; copied 10 B of 10 B in 0.00 s\n"
    quiet = FakeProcess()
    outcome(["-qiv", "--stats"], FakeSyncer(), quiet)
    assert (quiet.out, quiet.err) == ("", "")
    human = FakeProcess()
    outcome(["-h", "--stats"], FakeSyncer(), human)
    assert "Bytes received:       1.2 KB\n" in human.out


def test_exit_code_is_the_reports() -> None:
    report = replace(REPORT, errors=2, exit=ExitCode.PARTIAL)
    process = FakeProcess()
    assert outcome([], FakeSyncer(report), process) is ExitCode.PARTIAL
    assert process.err.endswith("; 2 problems, exit code 23\n")


def events(process: FakeProcess) -> list[dict[str, object]]:
    return [json.loads(line) for line in process.out.splitlines()]


def test_json_ends_with_a_summary() -> None:
    process = FakeProcess()
    # Options for terminal output do not change the JSON.
    outcome(["--json", "-qvi", "--stats"], FakeSyncer(replace(REPORT, exit=ExitCode.VANISHED)), process)
    assert [event["event"] for event in events(process)] == ["start", "plan", "item", "progress", "summary"]
    assert events(process)[-1]["exit"] == 24
    assert process.err == ""


@pytest.mark.parametrize(
    ("end", "code", "path"),
    [
        (OutOfSpaceError("disk full"), 11, ""),
        (FileError(b"x", "x: not readable"), 23, "x"),
        (KeyboardInterrupt(), 20, ""),
        (ZeroDivisionError("bug"), 1, ""),
    ],
)
def test_json_tells_fatal_errors(end: BaseException, code: int, path: str) -> None:
    process = FakeProcess()
    with pytest.raises(RdcError if isinstance(end, KeyboardInterrupt) else type(end)):
        outcome(["--json"], FakeSyncer(end=end), process)
    assert [event["event"] for event in events(process)] == ["start", "plan", "item", "error"]
    assert events(process)[-1]["code"] == code
    assert events(process)[-1]["path"] == path


class InterruptedSyncer(FakeSyncer):
    """A sync that a signal ends halfway through the transfer."""

    def __call__(self, *operands: Any, reporter: Reporter, **others: Any) -> SyncReport:
        reporter(Progressed("compare", 50, 100))
        if self.act is not None:
            reporter(Progressed("transfer", 1_200_000, 3_400_000))
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("words", "began", "said"),
    [
        ([], True, "interrupted: 1.2 MB of 3.4 MB arrived; complete files are in place, and the next run"),
        ([], False, "interrupted: complete files are in place, and the next run resumes from there"),
        (["-n"], True, "interrupted; nothing was changed"),
    ],
)
def test_an_interrupted_run_says_what_came(words: list[str], began: bool, said: str) -> None:
    with pytest.raises(RdcError, match=said) as caught:
        outcome(words, InterruptedSyncer(act=(lambda: None) if began else None), FakeProcess())
    assert caught.value.code is ExitCode.INTERRUPTED


def test_problems_come_after_the_names_before_them() -> None:
    """One file gets both streams, such as of `rdc sync -v a b > log 2>&1`."""
    together = io.StringIO()
    process = FakeProcess(stdout=Buffered(together), stderr=together)
    outcome(["-v"], FakeSyncer(), process)
    assert together.getvalue().splitlines() == ["a", "1 new; copied 10 B of 10 B in 0.00 s"]


class Buffered(io.StringIO):
    """A stream that passes its text on when it is flushed."""

    def __init__(self, to: io.StringIO) -> None:
        super().__init__()
        self._to = to

    def flush(self) -> None:
        self._to.write(self.getvalue())
        self.seek(0)
        self.truncate()


def test_json_tells_usage_errors_too() -> None:
    process = FakeProcess()
    with pytest.raises(UsageError):
        sync.run(["--json", "--write-batch=x", "a", "b"], process.environment, syncer=FakeSyncer())
    (event,) = events(process)
    assert event["event"] == "error"
    assert event["code"] == 1
    assert str(event["message"]).startswith("rdc has no --write-batch")


def bar_shown(
    words: Sequence[str], *, terminal: bool = True, both: bool = False, term: str = "xterm"
) -> bool:
    process = FakeProcess(terminal=terminal, out_is_terminal=both, environ={"TERM": term})
    process.clock.step = 1.0
    outcome(words, FakeSyncer(), process)
    return "\x1b[J" in process.err


def test_a_bar_only_on_a_terminal() -> None:
    assert bar_shown([])
    assert bar_shown(["-v"])
    assert bar_shown([], both=True)
    assert bar_shown(["-v"], both=True)
    assert bar_shown(["-i"], both=True)
    assert not bar_shown(["-q"])
    assert not bar_shown(["--json"])
    assert not bar_shown([], terminal=False)
    assert not bar_shown([], term="dumb")


@pytest.mark.parametrize("environ", [{"TERM": "xterm-256color"}, {"TERM": "xterm-256color", "NO_COLOR": "1"}])
def test_no_color_is_honoured(environ: dict[str, str]) -> None:
    process = FakeProcess(terminal=True, environ=environ)
    process.clock.step = 1.0
    outcome([], FakeSyncer(), process)
    assert ("\x1b[32m" in process.err) == ("NO_COLOR" not in environ)


def test_trouble_is_told_above_the_bar() -> None:
    process = FakeProcess(terminal=True, environ={"TERM": "xterm", "NO_COLOR": "1"})
    process.clock.step = 1.0

    class Troubled(FakeSyncer):
        def __call__(
            self,
            source: Location | Sequence[Location],
            destination: Location,
            options: SyncOptions,
            *,
            shell: RemoteShell,
            reporter: Reporter,
            catalog: SignatureStore | UserCatalog | None,
            keys: str | os.PathLike[str] | None,
            stop: StopSignal | None = None,
        ) -> SyncReport:
            reporter(PlanKnown(1, 10, 0))
            reporter(Problem(ExitCode.PARTIAL, b"x", "x: cannot be read"))
            return self.report

    outcome([], Troubled(), process)
    assert "rdc: x: cannot be read\n" in process.err
    assert re.search(r"1 new; copied 10 B of 10 B in \d+\.0 s", process.err)


# --- real syncs ---------------------------------------------------------------------------------------------


def grow(root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "data").write_bytes(b"0123456789" * 20_000)
    (root / "d" / "e" / "skipped.o").write_bytes(b"x")
    (root / "link").symlink_to("d/data")


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


FAR = ["-e", "sh -c 'shift; exec \"$@\"' far", "--remote-path", f"{sys.executable} -m rdc"]
"""A stand-in for ssh that drops the host name and runs the command here."""


@pytest.mark.parametrize("host", ["", "host:"])
def test_a_whole_run_ends_equal_and_tells_so(host: str, tmp_path: Path) -> None:
    source, destination = tmp_path / "source", tmp_path / "destination"
    source.mkdir()
    grow(source)
    words = [
        "--json",
        "--exclude=*.o",
        "--delete",
        *(FAR if host else []),
        f"{source}/",
        f"{host}{destination}",
    ]
    first, second = FakeProcess(), FakeProcess()
    assert sync.run(words, first.environment) is ExitCode.OK
    expected = contents(source)
    del expected["d/e/skipped.o"]
    assert contents(destination) == expected
    for line in first.stdout.getvalue().splitlines(keepends=True):
        check_event(line)
    assert [event["event"] for event in events(first)][0 :: len(events(first)) - 1] == ["start", "summary"]
    assert {event["path"] for event in events(first) if event["event"] == "item"} >= {"d/", "d/data", "link"}
    assert events(first)[-1]["literal_bytes"] == 200_000
    (destination / "extra").write_bytes(b"")
    assert sync.run(words, second.environment) is ExitCode.OK
    items = [(event["change"], event["path"]) for event in events(second) if event["event"] == "item"]
    assert ("*deleting  ", "extra") in items
    assert events(second)[-1]["literal_bytes"] == 0
    assert contents(destination) == expected


@pytest.mark.parametrize("alternates", [(), ("--link-dest=../first",), ("--copy-dest=../first",)])
@pytest.mark.parametrize("host", ["", "host:"])
def test_the_totals_are_those_of_the_listed_changes(
    host: str, alternates: tuple[str, ...], tmp_path: Path
) -> None:
    """New entries have nine plus signs. Those that an alternate directory has are new as well."""
    source, destination = tmp_path / "source", tmp_path / "second"
    source.mkdir()
    grow(source)
    assert sync.run(["-q", f"{source}/", f"{tmp_path}/first"], FakeProcess().environment) is ExitCode.OK
    words = ["--json", *alternates, *(FAR if host else []), f"{source}/", f"{host}{destination}"]

    def totals() -> tuple[dict[str, Any], list[str]]:
        process = FakeProcess()
        assert sync.run(words, process.environment) is ExitCode.OK
        found = events(process)
        return found[-1], [str(event["change"]) for event in found if event["event"] == "item"]

    entries = 1 + len(list(source.rglob("*")))
    first, _ = totals()
    assert (first["created"], first["updated"], first["unchanged"]) == (entries, 0, 0)
    (source / "d" / "data").write_bytes(b"0123456789" * 20_001)
    (source / "new").write_bytes(b"new")
    (source / "link").unlink()
    second, codes = totals()
    new = sum(code.endswith("+++++++++") for code in codes)
    assert (second["created"], second["updated"]) == (new, len(codes) - new) == (1, 2)
    assert second["unchanged"] == entries - 1 - 2
    assert second["content_bytes"] == 200_013


@pytest.mark.parametrize(("word", "lines"), [("-P", True), ("--progress", True), ("--partial", False)])
def test_progress_is_shown_without_a_terminal_where_it_is_asked_for(word: str, lines: bool) -> None:
    process = FakeProcess()
    asked(word, process=process)
    assert ("transferring: 10 B of 10 B" in process.err) == lines
    quiet = FakeProcess()
    asked(word, "-q", process=quiet)
    assert quiet.err == ""
