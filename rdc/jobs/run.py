"""Runs a job: its lock, its hooks, the verb, and the record of the run.

One run of a job at a time: a flock on a file of the job, which ends with the process that holds it, however
that process ends. No child inherits it, so a program that a hook leaves behind blocks nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import stat
import time

from rdc.errors import ExitCode, RdcError, UsageError, one_line, printable
from rdc.jobs.config import hook_command
from rdc.jobs.records import FIGURES, Figure, Job, JobRun, Outcome
from rdc.lean.records import Record
from rdc.limits import JOB_RECORD_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

VARIABLE = "RDC_JOB"
"""The variable that names the job to its hooks."""

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TRIES, _PAUSE = 5, 0.05
"""Attempts to take a lock: `rdc jobs` holds it for an instant to see whether a job runs."""

GRACE = 5.0
"""Seconds from SIGTERM to SIGKILL for a hook that exceeds its time limit."""


class JobState:
    """The directory with locks and records of jobs, `jobs` in the user's state directory."""

    def __init__(self, state: str | None) -> None:
        """`state`: the user's state directory. Raises UsageError if there is none."""
        if state is None:
            raise UsageError(
                "neither XDG_STATE_HOME nor HOME is set; jobs keep their locks and results there"
            )
        self._directory = os.path.join(state, "jobs")

    @contextlib.contextmanager
    def locked(self, job: str) -> Iterator[None]:
        """Hold the lock of a job. Raises RdcError (BUSY) if another process holds it, RdcError (11) if it
        cannot be taken."""
        fd = self._open(job, os.O_CREAT | os.O_RDWR, "lock")
        try:
            for last in (*[False] * (_TRIES - 1), True):
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if last:
                        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
                        process = f" (process {holder})" if holder.isdigit() else ""
                        raise RdcError(
                            f"it is running already{process}; wait for its end",
                            code=ExitCode.BUSY,
                        ) from None
                    time.sleep(_PAUSE)
                except OSError as error:
                    raise self._failure(error, "lock it") from error
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
            yield
        finally:
            os.close(fd)

    def is_running(self, job: str) -> bool:
        """Return whether a process holds the lock of a job."""
        try:
            fd = os.open(self._path(job, "lock"), os.O_RDONLY | _FLAGS)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(fd)
        return False

    def last_run(self, job: str) -> JobRun | None:
        """Return the record of the last run; None if there is none, or if it cannot be read."""
        try:
            fd = os.open(self._path(job, "json"), os.O_RDONLY | _FLAGS)
        except OSError:
            return None
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > JOB_RECORD_BYTES:
                return None
            return _run_of(job, json.loads(os.pread(fd, JOB_RECORD_BYTES, 0)))
        except (OSError, ValueError, RecursionError):
            return None
        finally:
            os.close(fd)

    def record(self, run: JobRun) -> None:
        """Record a run, under the lock of its job. Raises RdcError (11)."""
        value = {
            "started": run.started,
            "seconds": round(run.seconds, 3),
            "code": run.code,
            "succeeded": run.succeeded,
            "figures": {figure.name: figure.value for figure in run.figures},
        }
        fd = self._open(run.job, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, "new")
        try:
            data = json.dumps(value).encode() + b"\n"
            if os.write(fd, data) < len(data):  # a full disk may take a part, which would be no record
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.rename(self._path(run.job, "new"), self._path(run.job, "json"))
        except OSError as error:
            raise self._failure(error, "record the run") from error
        finally:
            os.close(fd)

    def _open(self, job: str, flags: int, ending: str) -> int:
        try:
            os.makedirs(self._directory, 0o700, exist_ok=True)
            return os.open(self._path(job, ending), flags | _FLAGS, 0o600)
        except OSError as error:
            raise self._failure(error, "write there") from error

    def _path(self, job: str, ending: str) -> str:
        return os.path.join(self._directory, f"{job}.{ending}")

    def _failure(self, error: OSError, what: str) -> RdcError:
        return RdcError(
            f"{printable(self._directory)}: cannot {what}: {error.strerror}; jobs keep their locks and"
            " results there: make room, or name another state directory with XDG_STATE_HOME",
            code=ExitCode.FILE_IO,
        )


def _run_of(job: str, value: object) -> JobRun | None:
    match value:
        case {
            "started": int(started),
            "seconds": int() | float() as seconds,
            "code": int(code),
            "succeeded": int(succeeded),
            "figures": dict(figures),
        } if 0 <= min(started, succeeded) <= max(started, succeeded) < 1 << 40 and 0 <= code < 256:
            known = (
                Figure(name, figures[name])
                for name in FIGURES
                if isinstance(figures.get(name), int) and 0 <= figures[name] < 1 << 80
            )
            return JobRun(job, started, float(seconds), code, succeeded, tuple(known))
    return None


class JobRunner(Record):
    """The surroundings of a run: what it takes from the process that starts it."""

    state: JobState
    environ: Mapping[str, str]
    perform: Callable[[Job], Outcome]
    """Runs the verb of a job. Raises RdcError and KeyboardInterrupt."""
    tell: Callable[[str], None]
    """Shows a line for people."""
    clock: Callable[[], float] = time.time
    """Seconds since 1970."""

    def run(self, job: Job) -> ExitCode:
        """Run a job with its hooks, record the run and return its exit code. Failures are shown. An
        exception that is no RdcError is raised again, after the hook for failures and the record."""
        if self.environ.get(VARIABLE) == job.name:
            self.tell(f"{job.name}: its hook starts this job again; take rdc run {job.name} out of the hook")
            return ExitCode.USAGE
        try:
            with self.state.locked(job.name):
                return self._run(job)
        except RdcError as error:
            self.tell(f"{job.name}: {error}")
            return error.code

    def _run(self, job: Job) -> ExitCode:
        began, timer = int(self.clock()), time.monotonic()
        stopped: BaseException | None = None
        try:
            outcome = self._hooked(job)
        except KeyboardInterrupt as error:
            outcome, stopped = Outcome(ExitCode.INTERRUPTED), error
        except Exception as error:  # noqa: BLE001 - raised again: an error of rdc itself, or stdout is closed
            outcome, stopped = Outcome(ExitCode.USAGE), error
        if outcome.code is not ExitCode.OK:
            self._hook(job, "on-failure", job.settings.on_failure, outcome.code)
        before = self.state.last_run(job.name)
        kept = 0 if before is None else before.succeeded
        self.state.record(
            JobRun(
                job.name,
                began,
                time.monotonic() - timer,
                int(outcome.code),
                began if outcome.code is ExitCode.OK else kept,
                outcome.figures,
            )
        )
        if stopped is not None:
            raise stopped
        return outcome.code

    def _hooked(self, job: Job) -> Outcome:
        """Run the verb between the hooks before and after."""
        if not self._hook(job, "before", job.settings.before, None):
            self.tell(f"{job.name}: nothing was done, because the hook before it failed")
            return Outcome(ExitCode.FILE_IO)
        try:
            outcome = self.perform(job)
        except RdcError as error:
            self.tell(f"{job.name}: {error}")
            return Outcome(error.code)
        ends_well = outcome.code is ExitCode.OK
        if ends_well and not self._hook(job, "after", job.settings.after, outcome.code):
            return Outcome(ExitCode.PARTIAL, outcome.figures)
        return outcome

    def _hook(self, job: Job, which: str, words: Sequence[str], code: ExitCode | None) -> bool:
        """Run a hook, if the job has it. Return whether it succeeded; a failure is shown."""
        if not words:
            return True
        command = hook_command(words, self.environ)
        environ = {**self.environ, VARIABLE: job.name, "RDC_HOOK": which}
        if code is not None:
            environ["RDC_EXIT_CODE"] = str(int(code))
        failure = run_hook(command, environ, job.settings.hook_seconds)
        if failure:
            # Only the program is shown: arguments may hold a token.
            self.tell(f"{job.name}: the hook {which} ({printable(command[0])}) {failure}")
        return not failure


def run_hook(command: Sequence[str], environ: Mapping[str, str], seconds: float, grace: float = GRACE) -> str:
    """Run a program without a shell, in a process group of its own, and return how it failed, or "".

    Its output goes to stderr, since stdout may carry JSON. `seconds`: its time limit, after which its group
    gets SIGTERM and, `grace` seconds later, SIGKILL. The same happens if KeyboardInterrupt ends the wait.
    """
    import subprocess  # slow to load, and most jobs have no hooks

    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=2, env=dict(environ), start_new_session=True
        )
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        _end(process, grace)
        return f"did not end within {seconds:g} s and was stopped; hook-seconds sets another limit"
    except BaseException:
        _end(process, grace)
        raise
    if code < 0:
        return f"was ended by signal {-code}"
    return f"failed with exit code {code}" if code else ""


def _end(process: subprocess.Popen[Any], grace: float) -> None:
    """End the process group of a hook and wait for the hook."""
    import subprocess

    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            continue
        if number is signal.SIGTERM:
            # Programs that the hook started may ignore SIGTERM and would go on without it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        return


def described(code: int) -> str:
    """Return the result of a run as text."""
    words = {
        int(ExitCode.OK): "ok",
        int(ExitCode.FILE_IO): "stopped",
        int(ExitCode.INTERRUPTED): "interrupted",
        int(ExitCode.PARTIAL): "some failed",
        int(ExitCode.VANISHED): "some changed",
        int(ExitCode.MAX_DELETE): "guard",
        int(ExitCode.CONFLICTS): "conflicts",
    }
    return one_line(f"{words.get(code, 'failed')} ({code})" if code else words[0])
