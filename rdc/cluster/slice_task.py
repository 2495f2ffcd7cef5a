"""One slice of a job as a task: what goes to a worker, what it does, and what comes back."""

from __future__ import annotations

import os
import pickle
import socket

from rdc.cluster.run_marker import looking
from rdc.cluster.worker_facts import WorkerFacts, difference, worker_facts
from rdc.errors import RdcError, UsageError, one_line, printable
from rdc.lean.records import dataclass
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cluster.jobs import SliceJob
    from rdc.model.scan import ScanSlice

__all__ = ["SliceResult", "SliceTask", "packed_task", "run_slice", "unpacked_result"]


@dataclass(frozen=True, slots=True)
class SliceTask:
    job: SliceJob
    slice: ScanSlice
    part: bytes
    """The file to write, an absolute path."""
    list: bytes
    """Where the slice may have a list of what it reads."""
    marker: bytes
    """Path of the RunMarker."""
    threads: int
    facts: WorkerFacts
    """The facts of the machine that gives the task; a worker compares its own."""


@dataclass(frozen=True, slots=True)
class SliceResult:
    """The outcome of a task. A failure is text, since not every exception can be pickled."""

    host: str
    error: str = ""
    """Why there is no part; '' if there is one."""
    is_final: bool = False
    """True if every other attempt would fail as well."""
    is_stopped: bool = False
    """True if the run ended before the slice was read."""


def packed_task(task: SliceTask) -> bytes:
    return pickle.dumps(task)


def unpacked_result(content: bytes) -> SliceResult:
    """Raises TypeError for anything that run_slice does not return."""
    result = pickle.loads(content)  # noqa: S301 - an engine runs code of its workers anyway
    if not isinstance(result, SliceResult):
        raise TypeError(f"a worker returned {type(result).__name__}")
    return result


def run_slice(version: str, packed: bytes) -> bytes | str:
    """Runs a task that packed_task made, and returns a packed SliceResult.

    A worker of another version of rdc may not have the same records, so `version` is compared before anything
    is unpacked. A str is returned if it differs: the worker's own version.
    """
    if version != __version__:
        return f"{__version__} on {socket.gethostname()}"
    host = socket.gethostname()
    try:
        task: SliceTask = pickle.loads(packed)  # noqa: S301 - from the machine that this worker serves
        result = _run(task, host)
    except (RdcError, OSError, MemoryError, RecursionError) as error:
        text = one_line(str(error)) or type(error).__name__
        result = SliceResult(host, f"worker {printable(host)}: {text}", isinstance(error, UsageError))
    return pickle.dumps(result)


def _run(task: SliceTask, host: str) -> SliceResult:
    problem = difference(task.facts, worker_facts(task.job.paths, task.job.method))
    if problem:
        return SliceResult(host, problem, is_final=True)
    directory = os.path.dirname(task.part)
    if not os.path.isdir(directory):
        return SliceResult(
            host,
            f"worker {printable(host)}: {printable(directory)} is not there; all machines must see"
            " the directory of the parts",
            is_final=True,
        )
    ended = looking(task.marker)
    if ended():
        return SliceResult(host, is_stopped=True)
    is_written = task.job.write(task.slice, task.part, task.list, ended, task.threads)
    return SliceResult(host, is_stopped=not is_written)
