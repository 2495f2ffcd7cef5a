"""`rdc jobs`: list named jobs, show one, and write a timer for it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words, settings_file
from rdc.cli.verb import HelpText
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.jobs.config import chosen_jobs, read_jobs, unknown_job
from rdc.jobs.records import Job
from rdc.jobs.run import JobState
from rdc.model.location import state_directory
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.jobs.timer import Schedule, UnitFile

SUMMARY = "list named jobs with their last and next runs; write timers for them"

SUBVERBS = ("list", "show", "timer")

OPTIONS = (
    OptionGroup(
        "Options",
        (
            Option(
                ("--cron",),
                "timer: print a line for crontab, even if this machine runs systemd",
                example="timer --cron photos daily",
            ),
            Option(
                ("--remove",),
                "timer: remove the unit files of the job's systemd timer",
                example="timer --remove photos",
            ),
            HELP,
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc jobs [list]
       rdc jobs show NAME
       rdc jobs timer [--cron] NAME [SCHEDULE]
       rdc jobs timer --remove NAME

Examples:
  rdc jobs                                list jobs, their last runs and when they are due
  rdc jobs show photos                    show the command of a job and all figures of its last run
  rdc jobs timer photos daily 03:30       write a systemd user timer, or print a crontab line
  rdc jobs timer photos                   the same with the schedule of config.toml

Jobs are tables [jobs.NAME] of ~/.config/rdc/config.toml; rdc run --help has the keys.

A SCHEDULE is hourly, daily 03:30, weekly sun 04:00, monthly 15 05:00, or a part of an hour or day such as 15m
or 6h. Times are local; without one, it is midnight. On a machine with systemd, rdc jobs timer writes
rdc-NAME.service and rdc-NAME.timer to ~/.config/systemd/user and prints the command that starts the timer.
Elsewhere it prints a line for crontab -e.
"""

help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc jobs` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc jobs")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    what, *rest = parsed.operands or ("list",)
    if what not in SUBVERBS:
        raise UsageError(f"rdc jobs is followed by {', '.join(SUBVERBS)} (see rdc jobs --help)")
    if what != "timer" and parsed.given:
        raise UsageError(f"{parsed.given[0].key} is for rdc jobs timer")
    path = settings_file(environment.environ)
    jobs = read_jobs(path, environment.environ)
    if what == "list":
        if rest:
            raise UsageError("rdc jobs list takes no NAME; to show one job, write: rdc jobs show NAME")
        return _list(list(jobs.values()), path, environment)
    if not rest or (what == "show" and len(rest) > 1):
        raise UsageError(f"rdc jobs {what} takes the NAME of a job (see rdc jobs --help)")
    (job,) = chosen_jobs(jobs, rest[:1], path)
    if what == "show":
        return _show(job, environment)
    return _timer(job, rest[1:], parsed, environment)


def _list(jobs: Sequence[Job], path: str | None, environment: Environment) -> ExitCode:
    if not jobs:
        environment.talk(unknown_job("", {}, path) + "\n")
        return ExitCode.OK
    from rdc.jobs.report import job_lines

    state = JobState(state_directory(environment.environ))
    for line in job_lines(jobs, state.last_run, state.is_running, time.time()):
        environment.data(line)
    return ExitCode.OK


def _show(job: Job, environment: Environment) -> ExitCode:
    import shlex

    from rdc.jobs.report import job_text

    state = JobState(state_directory(environment.environ))
    line = f"rdc {job.kind.value} {shlex.join(job.words)}"
    for text in job_text(job, state.last_run(job.name), line):
        environment.data(text)
    return ExitCode.OK


def _timer(job: Job, schedule_words: Sequence[str], words: Words, environment: Environment) -> ExitCode:
    from rdc.jobs.timer import cron_line, parse_schedule, runs_systemd, unit_directory, unit_files

    environ = environment.environ
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        raise UsageError("HOME is not set; a timer is written there")
    directory = unit_directory(home, environ.get("XDG_CONFIG_HOME", ""))
    if words.has("--remove"):
        if schedule_words or words.has("--cron"):
            raise UsageError("--remove takes only a NAME; a line of crontab is removed with crontab -e")
        _remove(job.name, directory, environment)
        return ExitCode.OK
    text = " ".join(schedule_words) or job.settings.schedule
    if not text:
        raise UsageError(
            f"the job {job.name} has no schedule; name one, such as: rdc jobs timer {job.name} daily 03:30"
        )
    schedule = parse_schedule(text)
    command = (*_program(environ), "run", "--quiet", job.name)
    if words.has("--cron") or not runs_systemd():
        environment.data(cron_line(schedule, command) + "\n")
        environment.talk("add this line with: crontab -e\n")
        return ExitCode.OK
    _write(unit_files(job.name, schedule, command), directory, job.name, schedule, environment)
    return ExitCode.OK


def _program(environ: object) -> tuple[str, ...]:
    """Return the words that start this rdc from anywhere: its program, or Python with the package."""
    program = os.path.abspath(sys.argv[0])
    if os.path.basename(program) == "rdc" and os.access(program, os.X_OK) and os.path.isfile(program):
        return (program,)
    return (sys.executable, "-m", "rdc")


def _write(
    files: Sequence[UnitFile], directory: str, job: str, schedule: Schedule, environment: Environment
) -> None:
    from rdc.files.own.output_file import Output, OutputKind, claim_outputs, make_directory, write_output
    from rdc.jobs.timer import MARK

    kind = OutputKind("a unit file of rdc jobs timer", lambda head: head.startswith(MARK.encode()))
    make_directory(os.fsencode(directory))
    outputs = [Output(os.fsencode(os.path.join(directory, file.name)), kind) for file in files]
    claim_outputs(outputs)
    for output, file in zip(outputs, files, strict=True):
        write_output(output, (file.text.encode(),))
        environment.data(f"{printable(output.path)}\n")
    due = time.strftime("%Y-%m-%d %H:%M", time.localtime(schedule.next_after(time.time())))
    environment.talk(
        f"next run: {due}; start the timer with:\n"
        f"systemctl --user daemon-reload && systemctl --user enable --now rdc-{job}.timer\n"
    )


def _remove(job: str, directory: str, environment: Environment) -> None:
    """Remove the unit files of a job. Raises RdcError; files that rdc did not write stay."""
    from rdc.jobs.timer import MARK

    removed = False
    for ending in ("timer", "service"):
        path = os.path.join(directory, f"rdc-{job}.{ending}")
        try:
            with open(
                os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb"
            ) as file:
                if file.read(len(MARK)) != MARK.encode():
                    raise UsageError(
                        f"{printable(path)}: expected a unit file of rdc jobs timer, found another file; it"
                        " stays"
                    )
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RdcError(
                f"{printable(path)}: cannot remove it: {error.strerror}", code=ExitCode.FILE_IO
            ) from error
        environment.data(f"removed {printable(path)}\n")
        removed = True
    with suppress(OSError):
        # The link that systemctl enable made.
        link = os.path.join(directory, "timers.target.wants", f"rdc-{job}.timer")
        if os.path.islink(link):
            os.unlink(link)
    if removed:
        environment.talk(
            f"stop the timer with: systemctl --user stop rdc-{job}.timer; systemctl --user daemon-reload\n"
        )
    else:
        environment.talk(f"there is no timer of {job} in {printable(directory)}\n")
