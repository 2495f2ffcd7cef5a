"""Runs of jobs: lock, hooks, record and exit code."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.cli.environment import OutputClosedError
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.jobs.records import Figure, Job, JobKind, JobRun, JobSettings, Outcome
from rdc.jobs.run import JobRunner, JobState, run_hook

DONE = Outcome(ExitCode.OK)


class Run:
    """A runner whose verb and lines are recorded."""

    def __init__(self, place: Path, outcome: Outcome | BaseException = DONE) -> None:
        self.lines: list[str] = []
        self.performed = 0
        self.outcome = outcome
        self.state = JobState(str(place / "state"))
        self.log = place / "log"
        environ = {**os.environ, "LOG": str(self.log)}
        self.runner = JobRunner(self.state, environ, self._perform, self.lines.append, lambda: 1000.5)

    def _perform(self, _job: Job) -> Outcome:
        self.performed += 1
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    @property
    def logged(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def job(**chosen: Any) -> Job:
    settings = JobSettings(source=("/a",), destination="/b", **chosen)
    return Job("photos", JobKind.SYNC, ("/a",), "/b", settings)


LOGS = ("sh", "-c", 'echo "$RDC_JOB $RDC_HOOK ${RDC_EXIT_CODE-none}" >> "$LOG"')
FAILS = ("sh", "-c", "exit 7", "secret-token")


def test_hooks_run_around_a_job_and_the_run_is_recorded(tmp_path: Path) -> None:
    run = Run(tmp_path, Outcome(ExitCode.OK, (Figure("created_entries", 3),)))
    assert run.runner.run(job(before=LOGS, after=LOGS, on_failure=LOGS)) is ExitCode.OK
    assert run.logged == ["photos before none", "photos after 0"]
    assert run.lines == []
    found = run.state.last_run("photos")
    assert found is not None
    assert (found.started, found.code, found.succeeded) == (1000, 0, 1000)
    assert found.figures == (Figure("created_entries", 3),)


def test_a_hook_before_that_fails_stops_the_job(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.runner.run(job(before=FAILS, after=LOGS, on_failure=LOGS)) is ExitCode.FILE_IO
    assert run.performed == 0
    assert run.logged == ["photos on-failure 11"]
    assert run.lines == [
        "photos: the hook before (sh) failed with exit code 7",
        "photos: nothing was done, because the hook before it failed",
    ]


def test_a_hook_after_that_fails_is_a_failure(tmp_path: Path) -> None:
    run = Run(tmp_path, Outcome(ExitCode.OK, (Figure("errors", 0),)))
    assert run.runner.run(job(after=FAILS, on_failure=LOGS)) is ExitCode.PARTIAL
    assert run.logged == ["photos on-failure 23"]
    found = run.state.last_run("photos")
    assert found is not None and (found.code, found.succeeded) == (23, 0)
    assert found.figures == (Figure("errors", 0),)


def test_a_job_that_fails_keeps_its_code_and_the_last_success(tmp_path: Path) -> None:
    assert Run(tmp_path).runner.run(job()) is ExitCode.OK
    run = Run(tmp_path, RdcError("no route to nas", code=ExitCode.STREAM))
    assert run.runner.run(job(after=LOGS, on_failure=FAILS)) is ExitCode.STREAM
    assert run.logged == []
    assert run.lines == [
        "photos: no route to nas",
        "photos: the hook on-failure (sh) failed with exit code 7",
    ]
    found = run.state.last_run("photos")
    assert found is not None and (found.code, found.succeeded) == (12, 1000)


def test_an_interrupted_job_is_recorded_and_ends_all(tmp_path: Path) -> None:
    run = Run(tmp_path, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run.runner.run(job(on_failure=LOGS))
    assert run.logged == ["photos on-failure 20"]
    found = run.state.last_run("photos")
    assert found is not None and found.code == ExitCode.INTERRUPTED


@pytest.mark.parametrize("error", [OutputClosedError(), MemoryError(), AssertionError("an error of rdc")])
def test_a_job_that_ends_in_any_other_way_has_failed_too(error: Exception, tmp_path: Path) -> None:
    """Its last success would otherwise look like its last run."""
    assert Run(tmp_path).runner.run(job()) is ExitCode.OK
    run = Run(tmp_path, error)
    with pytest.raises(type(error)):
        run.runner.run(job(after=LOGS, on_failure=LOGS))
    assert run.logged == ["photos on-failure 1"]
    found = run.state.last_run("photos")
    assert found is not None and (found.code, found.succeeded) == (1, 1000)


def test_a_job_that_its_own_hook_starts_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    inner = JobRunner(run.state, {"RDC_JOB": "photos"}, run.runner.perform, run.lines.append)
    assert inner.run(job()) is ExitCode.USAGE
    assert run.performed == 0
    assert "its hook starts this job again" in run.lines[0]


def test_a_second_run_is_refused_while_the_first_one_runs(tmp_path: Path) -> None:
    run = Run(tmp_path)
    with run.state.locked("photos"):
        assert run.state.is_running("photos")
        assert run.runner.run(job()) is ExitCode.BUSY
    assert run.performed == 0
    assert run.lines == [f"photos: it is running already (process {os.getpid()}); wait for its end"]
    assert not run.state.is_running("photos")
    assert run.runner.run(job()) is ExitCode.OK


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    run = Run(tmp_path)
    child = os.fork()
    if child == 0:
        with run.state.locked("photos"):
            (tmp_path / "locked").touch()
            time.sleep(60)
        os._exit(0)
    try:
        _wait_for((tmp_path / "locked").exists)
        assert run.state.is_running("photos")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert run.runner.run(job()) is ExitCode.OK


def test_what_a_hook_leaves_behind_holds_no_lock(tmp_path: Path) -> None:
    run = Run(tmp_path)
    left = ("sh", "-c", 'sleep 60 <&- >&- 2>&- & echo $! > "$LOG"')
    assert run.runner.run(job(before=left)) is ExitCode.OK
    try:
        assert run.runner.run(job()) is ExitCode.OK
    finally:
        os.kill(int(run.logged[0]), signal.SIGKILL)


def _wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen")


def test_a_hook_that_hangs_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    """The shell and its child both ignore SIGTERM."""
    script = f"trap '' TERM; sh -c 'echo $$ > {tmp_path}/inner; sleep 60; sleep 60'; sleep 60"
    failure = run_hook(("sh", "-c", script), os.environ, 0.3, grace=0.1)
    assert failure == "did not end within 0.3 s and was stopped; hook-seconds sets another limit"
    inner = int((tmp_path / "inner").read_text())
    _wait_for(lambda: not _runs(inner))


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_hook_that_cannot_start_or_is_killed_says_so() -> None:
    assert run_hook(("/no/such/program",), {}, 1) == "cannot be started: No such file or directory"
    assert run_hook(("sh", "-c", "kill -9 $$"), os.environ, 5) == "was ended by signal 9"
    assert run_hook(("true",), os.environ, 5) == ""


def test_output_of_hooks_goes_to_stderr() -> None:
    script = "import os, rdc.jobs.run as r; r.run_hook(('echo', 'words'), os.environ, 5)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "words\n")


RUNS = st.builds(
    JobRun,
    st.just("a"),
    st.integers(0, 1 << 39),
    st.integers(0, 10**9).map(lambda thousandths: thousandths / 1000),
    st.integers(0, 255),
    st.integers(0, 1 << 39),
    st.just((Figure("errors", 2),)),
)


@given(run=RUNS)
def test_a_record_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, run: JobRun) -> None:
    state = JobState(str(tmp_path_factory.getbasetemp() / "records"))
    state.record(run)
    assert state.last_run("a") == run


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[1]",
        b'{"started": "x"}',
        b"\xff",
        b"[" * 5000,
        b" " * (65 << 10),
        json.dumps({"started": -1, "seconds": 0, "code": 0, "succeeded": 0, "figures": {}}).encode(),
    ],
)
def test_a_record_that_cannot_be_read_is_none(data: bytes, tmp_path: Path) -> None:
    state = JobState(str(tmp_path))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.json").write_bytes(data)
    assert state.last_run("a") is None


@pytest.mark.parametrize("kept", [0, 10])
def test_a_full_disk_costs_no_earlier_record(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, earlier = JobState(str(tmp_path)), JobRun("a", 1, 1.0, 0, 1)
    state.record(earlier)
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if kept:
            return write(fd, data[:kept])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(
        RdcError, match=r"cannot record the run: No space left on device; .* make room"
    ) as caught:
        state.record(JobRun("a", 2, 1.0, 23, 1))
    assert caught.value.code is ExitCode.FILE_IO
    assert state.last_run("a") == earlier


def test_a_link_is_no_record_and_no_lock(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "victim").write_text("kept")
    for ending in ("json", "lock", "new"):
        (tmp_path / f"jobs/a.{ending}").symlink_to(tmp_path / "victim")
    state = JobState(str(tmp_path))
    assert state.last_run("a") is None
    with pytest.raises(RdcError), state.locked("a"):
        pass
    with pytest.raises(RdcError):
        state.record(JobRun("a", 1, 1.0, 0))
    assert (tmp_path / "victim").read_text() == "kept"


def test_without_a_home_there_are_no_jobs() -> None:
    with pytest.raises(UsageError, match="HOME is set"):
        JobState(None)
