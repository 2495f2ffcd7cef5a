"""The pairs that a user united on this machine, with their last results: what `rdc unite` alone lists.

It is a log of lines in the user's state directory, and the last line of a pair counts. Nothing depends on it:
a line that cannot be read or written costs one line of that list.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress

from rdc.errors import ExitCode
from rdc.files.own.record_log import (
    RecordError,
    complete_lines,
    encoded,
    path_of,
    signed,
    value_of,
)
from rdc.lean.records import Record
from rdc.limits import UNITE_LOG_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "united"
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LastRun(Record):
    """The result of the last run of a pair that changed or decided anything."""

    left: bytes
    """Both directories, as absolute paths without links; one of another machine as it was named."""
    right: bytes
    seconds: int
    """The end of the run, in seconds since 1970."""
    code: int
    """Its exit code."""
    conflicts: int
    """Conflicts that it left."""
    forgotten: bool = False
    """The pair was forgotten since, and is not listed."""

    @property
    def result(self) -> str:
        """The result as a text."""
        if self.conflicts:
            return "1 conflict" if self.conflicts == 1 else f"{self.conflicts:,} conflicts"
        words = {
            int(ExitCode.OK): "the same at both sides",
            int(ExitCode.PARTIAL): "some entries were held or failed",
            int(ExitCode.MAX_DELETE): "stopped by the guard",
            int(ExitCode.INTERRUPTED): "interrupted",
        }
        return words.get(self.code, f"failed with exit code {self.code}")


def last_runs(state: str | None) -> list[LastRun]:
    """Return the last run of each pair, sorted by their paths. `state`: the user's state directory; None: the
    user has none."""
    found = {(run.left, run.right): run for run in _read(state)}
    return [run for _, run in sorted(found.items()) if not run.forgotten]


def note(state: str | None, run: LastRun, *, changed: bool) -> None:
    """Note a run. If it changed nothing and ended as the one before, nothing is written."""
    if state is None:
        return
    known = {(each.left, each.right): each for each in _read(state)}
    before = known.get((run.left, run.right))
    if run.forgotten and (before is None or before.forgotten):
        return
    if before is not None and not changed and before.seconds and _outcome(before) == _outcome(run):
        return
    known[run.left, run.right] = run
    path = os.path.join(state, NAME)
    with suppress(OSError):
        os.makedirs(state, 0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > UNITE_LOG_BYTES // 2:
            _write(path + ".new", [each for each in known.values() if not each.forgotten], os.O_TRUNC)
            os.rename(path + ".new", path)
        else:
            _write(path, [run], os.O_APPEND)


def _outcome(run: LastRun) -> tuple[int, int, bool]:
    return run.code, run.conflicts, run.forgotten


def _write(path: str, runs: Iterable[LastRun], flag: int) -> None:
    lines = [
        signed(
            json.dumps(
                [
                    encoded(run.left).decode(),
                    encoded(run.right).decode(),
                    run.seconds,
                    run.code,
                    run.conflicts,
                    run.forgotten,
                ]
            ).encode()
        )
        for run in runs
    ]
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | flag | _FLAGS, 0o600)
    try:
        os.write(fd, b"".join(lines))
    finally:
        os.close(fd)


def _read(state: str | None) -> list[LastRun]:
    if state is None:
        return []
    try:
        fd = os.open(os.path.join(state, NAME), os.O_RDONLY | _FLAGS)
    except OSError:
        return []
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > UNITE_LOG_BYTES:
            return []
        data = os.pread(fd, found.st_size, 0)
    except OSError:
        return []
    finally:
        os.close(fd)
    runs: list[LastRun] = []
    for line in complete_lines(data):
        with suppress(RecordError):
            runs.append(_run_of(value_of(line)))
    return runs


def _run_of(items: object) -> LastRun:
    match items:
        case [left, right, int(seconds), int(code), int(conflicts), bool(forgotten)] if (
            0 <= seconds < 1 << 40 and min(code, conflicts) >= 0
        ):
            return LastRun(path_of(left), path_of(right), seconds, code, conflicts, forgotten)
    raise RecordError("two paths, three numbers and a flag")
