"""`rdc jobs`: what it prints of jobs and writes of timers, against what a shell, a clock and a file tell."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from pathlib import Path

import pytest

from rdc.cli import main
from rdc.errors import ExitCode
from rdc.jobs import timer
from tests.support.running.fake_environment import FakeProcess

TEXT = """
[jobs.photos]
source = "~/a b/"
destination = "nas:$photos/"
schedule = "daily 03:30"

[jobs.states]
kind = "store"
source = "~/a b"
destination = "~/st"
"""


class Home:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.environ = {"HOME": str(place)}
        (place / ".config/rdc").mkdir(parents=True)
        (place / ".config/rdc/config.toml").write_text(TEXT)
        self.units = place / ".config/systemd/user"

    def jobs(self, *words: str) -> tuple[int, list[str], str]:
        """Return the exit code, the lines of stdout, and stderr."""
        process = FakeProcess(environ=self.environ)
        code = main.run(("jobs", *words), process.environment)
        return code, process.out.splitlines(), process.err


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A machine that runs systemd."""
    monkeypatch.setattr(timer, "runs_systemd", lambda: True)
    return Home(tmp_path)


def test_a_job_that_never_ran(home: Home) -> None:
    code, (head, *rows), err = home.jobs("list")
    assert (code, err) == (0, "")
    assert re.split(" {2,}", head) == ["JOB", "KIND", "LAST RUN", "TOOK", "RESULT", "NEXT"]
    assert [re.split(" {2,}", row)[:5] for row in rows] == [
        ["photos", "sync", "never", "-", "-"],
        ["states", "store", "never", "-", "-"],
    ]
    assert rows[0].endswith(" 03:30") and rows[1].endswith("-")
    assert home.jobs() == home.jobs("list")


def test_the_shown_command_is_the_job_for_a_shell(home: Home) -> None:
    _, (first, *_), _ = home.jobs("show", "photos")
    name, _, line = first.partition(": ")
    assert name == "photos"
    assert shlex.split(line) == ["rdc", "sync", "--", f"{home.place}/a b/", "nas:$photos/"]
    assert home.jobs("show", "photos", "states")[0] == ExitCode.USAGE


@pytest.mark.parametrize("name", ["rdc", "rdc 100%"])
def test_the_crontab_line_starts_this_program(name: str, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """cron(8) takes an unescaped % as the end of the line; sh reads the rest."""
    program = home.place / name / "rdc"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [os.path.relpath(program)])
    _, (line,), err = home.jobs("timer", "--cron", "photos")
    *when, command = line.split(" ", 5)
    assert when == ["30", "3", "*", "*", "*"]
    assert re.search(r"(?<!\\)%", command) is None
    assert shlex.split(command.replace("\\%", "%")) == [str(program), "run", "--quiet", "photos"]
    assert "crontab -e" in err
    assert not home.units.exists()


@pytest.mark.parametrize("kind", ["no program", "not executable", "a directory", "another name"])
def test_python_starts_it_where_there_is_no_program(
    kind: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home.place / ("pytest" if kind == "another name" else "rdc")
    if kind == "a directory":
        program.mkdir()
    elif kind != "no program":
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755 if kind == "another name" else 0o644)
    monkeypatch.setattr(sys, "argv", [str(program)])
    _, (line,), _ = home.jobs("timer", "--cron", "photos")
    command = shlex.split(line.split(" ", 5)[5].replace("\\%", "%"))
    assert command == [sys.executable, "-m", "rdc", "run", "--quiet", "photos"]


def test_the_next_run_is_the_first_minute_of_the_schedule(home: Home) -> None:
    """Each minute from now on is looked at."""
    minute = int(time.time()) // 60 * 60
    _, written, err = home.jobs("timer", "states", "weekly", "sun", "04:05")
    later = int(time.time()) // 60 * 60
    due = {
        next(
            at
            for at in range(begun + 60, begun + 9 * 86_400, 60)
            if time.strftime("%a %H:%M", time.localtime(at)) == "Sun 04:05"
        )
        for begun in (minute, later)
    }
    said = re.search(r"next run: (.*);", err)
    assert said is not None
    assert said[1] in {time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) for at in due}
    assert written == [str(home.units / f"rdc-states.{ending}") for ending in ("service", "timer")]
    assert sorted(map(str, home.units.iterdir())) == written


def test_the_schedule_typed_is_taken_and_not_that_of_the_settings(home: Home) -> None:
    for words, calendar in ((("6h",), "00/6:00:00"), ((), "03:30:00")):
        assert home.jobs("timer", "photos", *words)[0] == 0
        assert f"OnCalendar=*-*-* {calendar}\n" in (home.units / "rdc-photos.timer").read_text()


def test_units_are_below_xdg_config_home(home: Home) -> None:
    other = home.place / "other"
    (home.place / ".config").rename(other)
    home.environ["XDG_CONFIG_HOME"] = str(other)
    assert home.jobs("timer", "photos")[1][0] == str(other / "systemd/user/rdc-photos.service")
    assert not (home.place / ".config").exists()


@pytest.mark.parametrize("place", ["", "relative"])
def test_a_timer_needs_a_home(place: str, home: Home) -> None:
    settings = home.place / ".config/rdc/config.toml"
    settings.write_text(TEXT.replace("~", str(home.place)))
    home.environ = {"HOME": place, "XDG_CONFIG_HOME": str(home.place / ".config")}
    code, out, err = home.jobs("timer", "photos")
    assert (code, out, err) == (ExitCode.USAGE, [], "rdc: HOME is not set; a timer is written there\n")
    assert not home.units.exists()


def test_a_home_that_a_job_needs_is_asked_for(home: Home) -> None:
    home.environ = {"XDG_CONFIG_HOME": str(home.place / ".config")}
    code, _, err = home.jobs()
    assert code == ExitCode.USAGE
    assert "jobs.photos.source: HOME is not set, which '~/a b/' needs; write /PATH" in err


def test_a_removed_timer_leaves_nothing_of_its_own(home: Home) -> None:
    """systemctl enable made the link. The other job's timer stays."""
    home.jobs("timer", "photos")
    home.jobs("timer", "states", "daily")
    wants = home.units / "timers.target.wants"
    wants.mkdir()
    for name in ("photos", "states"):
        (wants / f"rdc-{name}.timer").symlink_to(home.units / f"rdc-{name}.timer")
    code, out, err = home.jobs("timer", "--remove", "photos")
    assert code == 0
    assert out == [f"removed {home.units}/rdc-photos.{ending}" for ending in ("timer", "service")]
    assert "systemctl --user stop rdc-photos.timer" in err
    left = sorted(path.name for path in home.units.rglob("*") if path != wants)
    assert left == ["rdc-states.service", "rdc-states.timer", "rdc-states.timer"]
    assert home.jobs("timer", "--remove", "photos") == (
        0, [], f"there is no timer of photos in {home.units}\n"
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["symlink", "fifo", "directory", "empty", "begins otherwise"])
def test_what_rdc_did_not_write_is_not_removed(kind: str, home: Home) -> None:
    home.units.mkdir(parents=True)
    path = home.units / "rdc-photos.timer"
    target = home.place / "target"
    target.write_text(timer.MARK)
    match kind:
        case "symlink":
            path.symlink_to(target)
        case "fifo":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case _:
            path.write_text("" if kind == "empty" else " " + timer.MARK)
    before = os.lstat(path)
    code, out, err = home.jobs("timer", "--remove", "photos")
    assert code in (ExitCode.USAGE, ExitCode.FILE_IO)
    assert (out, err.count("\n")) == ([], 1)
    assert str(path) in err
    assert os.lstat(path) == before
    assert target.read_text() == timer.MARK
