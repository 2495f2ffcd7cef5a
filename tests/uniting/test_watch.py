"""`rdc unite --watch` as a real process: here, through a remote shell and with a daemon."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import rdc
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.progress import Problem
from rdc.uniting.command import parse_unite, read_unite
from rdc.uniting.records import UniteConflict, UniteReport
from rdc.uniting.watch import Watch
from rdc.watching.records import Disconnected, Halted, Resumed
from tests.support.running.uniting import ReplicaChurn, UniteWatching
from tests.support.running.watching import DaemonLine, Line, ShellLine, eventually


@pytest.fixture(params=["here", "shell", "daemon"])
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Line | None]:
    (tmp_path / "far").mkdir()
    made: Line | None = None
    if request.param == "shell":
        made = ShellLine(tmp_path)
    elif request.param == "daemon":
        made = DaemonLine(tmp_path, tmp_path / "far")
    yield made
    if made is not None:
        made.close()


@pytest.fixture
def watching(line: Line | None, tmp_path: Path) -> UniteWatching:
    left, right = tmp_path / "left", tmp_path / "far" / "right"
    left.mkdir()
    right.mkdir()
    (left / "d").mkdir()
    (left / "d" / "old").write_text("old")
    return UniteWatching(left, right, place=tmp_path, line=line)


def test_hard_links_are_followed(line: Line | None, tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "far" / "right"
    for top in (left, right):
        top.mkdir()
    (left / "old").write_text("old")
    watching = UniteWatching(left, right, "--hard-links", place=tmp_path, line=line)

    def are_one(top: Path) -> bool:
        return (top / "tied").exists() and (top / "tied").samefile(top / "old")

    with watching.running():
        watching.wait_texts("old", "old")
        os.link(left / "old", left / "tied")
        eventually(lambda: are_one(right), lambda: watching.story)
        (right / "tied").unlink()
        (right / "tied").write_text("a file of its own")
        watching.wait_texts("tied", "a file of its own")
        assert not are_one(left)
        assert not are_one(right)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_both_sides_are_followed_conflicts_named_once_and_the_end_is_clean(
    watching: UniteWatching, number: int
) -> None:
    left, right = watching.left, watching.right
    with watching.running():
        (right / "new").write_text("of the right")
        watching.wait_texts("new", "of the right")
        (left / "d" / "old").write_text("of the left")
        watching.wait_texts("d/old", "of the left")
        (left / "d").rename(left / "D")
        eventually((right / "D" / "old").exists, lambda: watching.story)
        (right / "D" / "old").write_text("below a renamed directory")
        watching.wait_texts("D/old", "below a renamed directory")
        (left / "both").write_text("left")
        (right / "both").write_text("right!")
        watching.wait("conflict")
        (left / "more").write_text("beside a conflict")
        watching.wait_texts("more", "beside a conflict")
        named = len(watching.named("conflict"))
        (right / "both").write_text("right, changed")
        watching.wait("conflict", named)
        (left / "both").unlink()
        watching.wait_texts("both", "right, changed")
        assert watching.end(number) == 0
    assert all(event["path"] == "both" for event in watching.named("conflict"))
    versions = [tuple(sorted(event.items())) for event in watching.named("conflict")]
    assert len(versions) == len(set(versions)), "named once, and again when it changed"
    assert watching.named("summary")[0]["exit"] == 0
    assert watching.named("disconnected") == []
    assert watching.differences == []
    before = {side: sorted(os.listdir(side)) for side in (left, right)}
    assert all(".rdc-unite" in names for names in before.values())


def test_a_cut_line_is_dialled_again_and_what_changed_meanwhile_arrives(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    left, right = tmp_path / "left", tmp_path / "far" / "right"
    left.mkdir()
    right.mkdir()
    line = ShellLine(tmp_path)
    watching = UniteWatching(left, right, place=tmp_path, line=line)
    try:
        with watching.running():
            line.kill()
            (right / "meanwhile").write_text("right")
            (left / "as well").write_text("left")
            watching.wait("disconnected")
            watching.wait_texts("meanwhile", "right")
            watching.wait_texts("as well", "left")
            (right / "later").write_text("later")
            watching.wait_texts("later", "later")
            assert watching.end() == 0
    finally:
        line.close()


def test_an_emptied_side_halts_it_and_its_return_resumes_it(tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.mkdir()
    right.mkdir()
    for number in range(3):
        (left / f"f{number}").write_text("text")
    watching = UniteWatching(left, right, place=tmp_path)
    with watching.running():
        aside = tmp_path / "aside"
        right.rename(aside)
        right.mkdir()
        (left / "f0").write_text("edited meanwhile")
        watching.wait("halted")
        assert len(os.listdir(left)) == 4
        shutil.rmtree(right)
        aside.rename(right)
        watching.wait("resumed")
        watching.wait_texts("f0", "edited meanwhile")
        assert watching.end() == 0
    assert "empty" in watching.named("halted")[0]["message"]


@pytest.mark.sampled(3)
def test_churn_on_both_sides_loses_nothing(watching: UniteWatching) -> None:
    """A sample of scripts/soak unite_watch."""
    churns = [ReplicaChurn(side, seed) for seed, side in enumerate((watching.left, watching.right), 1)]
    with watching.running():
        for _ in range(4):
            for churn in churns:
                churn.run(8, pause=0.01)
        conflicts = {event["path"] for event in watching.named("conflict")}
        (watching.left / "the end").write_text("end")
        watching.wait_texts("the end", "end")
        watching.end()
    report = rdc.unite(watching.left, watching.right, rdc.UniteOptions(fsync=False, keep_both=True))
    assert report.exit in (ExitCode.OK, ExitCode.CONFLICTS), conflicts
    rdc.unite(watching.left, watching.right, rdc.UniteOptions(fsync=False, prefer=rdc.Prefer.LEFT))
    assert watching.differences == []


# The loop, without processes


class Scripted(Watch):
    """A watch whose runs end as a script says."""

    def __init__(self, script: list[object], events: list[object]) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        super().__init__(
            rdc.UniteOptions(watch=True), events.append, None, clock=lambda: self.now, sleep=self._sleeps
        )
        self._script = script

    def _sleeps(self, seconds: float) -> None:
        self.now += seconds
        self.waits.append(seconds)

    def _hold(self) -> None:
        while True:
            self.begin()
            step = self._script.pop(0)
            if isinstance(step, Exception):
                raise step
            assert isinstance(step, list)
            for event in step:
                self.report(event)
            self.end(UniteReport(1, 0, 5, 0, 9, len(step), 0, True, ExitCode.OK))


CONFLICT = UniteConflict(b"a", "content", 1, 2, 3, 4)
CHANGED = UniteConflict(b"a", "content", 1, 3, 3, 5)
HELD = Problem(ExitCode.PARTIAL, b"b", "b: held")
LOST = RdcError("the line is lost", code=ExitCode.STREAM)
GUARD = RdcError("too many deletions", code=ExitCode.MAX_DELETE)


def named(script: list[object]) -> tuple[Scripted, list[object]]:
    events: list[object] = []
    watch = Scripted([*script, rdc.StoppedError()], events)
    report = watch.run()
    runs = sum(isinstance(step, list) for step in script)
    assert (report.left, report.left_bytes, report.exit, report.first) == (
        runs, 5 * runs, ExitCode.OK, False,
    )  # fmt: skip
    kinds = (UniteConflict, Problem, Halted, Resumed, Disconnected)
    return watch, [event for event in events if isinstance(event, kinds)]


def test_conflicts_and_problems_are_named_once_and_again_when_they_change() -> None:
    _, events = named([[CONFLICT, HELD], [CONFLICT, HELD], [CHANGED], [CHANGED], [], [CHANGED, HELD]])
    assert events == [CONFLICT, HELD, CHANGED, CHANGED, HELD]


def test_a_lost_line_is_waited_for_longer_each_time_and_a_run_resets_that() -> None:
    watch, events = named([[], LOST, LOST, LOST, [], LOST])
    assert watch.waits == [0.5, 1.0, 2.0, 0.5]
    assert [type(event) for event in events] == [Disconnected] * 4


def test_what_stops_a_run_halts_the_watch_until_a_run_ends() -> None:
    _, events = named([[CONFLICT], GUARD, GUARD, [CONFLICT]])
    assert events == [CONFLICT, Halted(str(GUARD)), Halted(str(GUARD)), Resumed()]


@pytest.mark.parametrize(
    "script", [[LOST], [[], UsageError("wrong")], [[], RdcError("no", code=ExitCode.REFUSED)]]
)
def test_what_no_wait_repairs_ends_it(script: list[object]) -> None:
    with pytest.raises(RdcError):
        Scripted(script, []).run()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--watch -n", "--dry-run"), ("--watch --status", "--status"), ("--watch --forget", "--forget"),
        ("--watch --resolve=a=left", "--resolve"), ("--watch --force-empty", "--force-empty"),
        ("--rescan=5", "--watch"), ("--watch --rescan=x", "--rescan=x"),
        ("--watch --rescan=999999999", "0 to 31,536,000"),
    ],
)  # fmt: skip
def test_what_a_watch_does_not_take_is_refused(words: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        read_unite(parse_unite([*words.split(), "one", "two"]))
