"""One slice of a job as a task: what goes to a worker, what worker and giver must have in common, what
it does, and what comes back.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import secrets
import socket
import time

from blake3 import blake3

from rdc.errors import RdcError, UsageError, one_line, printable
from rdc.files.base.paths import failure
from rdc.files.objects.object_store import is_url
from rdc.lean.records import Record
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.cluster.jobs import SliceJob
    from rdc.model.scan import ScanSlice


# RunMarker: a file beside the parts. While it is there, workers go on; without it, they end.
#
# It needs no connection of its own, so it works with every engine. A worker that does not see it writes to
# another directory than the machine that waits for its part.

LOOK_SECONDS = 0.5
"""The time between two looks of a worker. A look over a network takes some 100 us."""

_NAME = re.compile(rb"\.rdcparts-[0-9a-f]{16}(\.run|-\d+\.list)")


class RunMarker:
    """A file that exists from `begin` to `end` of a run. A run that begins in the same directory ends the
    previous one. The lists of slices lie beside the file and are deleted with it."""

    def __init__(self, directory: bytes) -> None:
        self._directory = directory
        self._stem = os.path.join(directory, b".rdcparts-%b" % secrets.token_hex(8).encode())
        self.path = self._stem + b".run"

    def list_path(self, number: int) -> bytes:
        """Return where the list of a slice is, until it is dropped or the run ends."""
        return b"%b-%d.list" % (self._stem, number)

    def drop_list(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.list_path(number))

    def begin(self) -> None:
        """Create the empty file. Raises FileError if the directory cannot be written to."""
        try:
            self._clear(_NAME)
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        except OSError as error:
            raise failure(error, self.path, self.path, "write a file beside the parts") from error

    def end(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)
            self._clear(re.compile(re.escape(os.path.basename(self._stem)) + rb"-\d+\.list"))

    def _clear(self, pattern: re.Pattern[bytes]) -> None:
        for name in os.listdir(self._directory):
            if pattern.fullmatch(name):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._directory, name))


def looking(path: bytes, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Return a function that says whether the marker at `path` is gone. It looks every LOOK_SECONDS."""
    gone, next_look = False, clock()

    def ended() -> bool:
        nonlocal gone, next_look
        if not gone and clock() >= next_look:
            next_look = clock() + LOOK_SECONDS
            gone = not os.path.exists(path)
        return gone

    return ended


# WorkerFacts: what a worker must have in common with the machine that gives it work.

NAMES = 64
"""Names compared of each directory. If two lists of names have a share j in common, so have the 64 names with
the least hashes, to 0.06 (Broder 1997)."""


class RootFacts(Record):
    """One path of a job, as one machine sees it."""

    path: bytes
    inode: int
    """0 if it could not be looked at, and of a URL."""
    names: tuple[int, ...]
    """The NAMES least hashes of names in a directory, increasing."""


class WorkerFacts(Record):
    host: str
    version: str
    """The version of rdc, and the parameters of the job."""
    roots: tuple[RootFacts, ...]


def worker_facts(paths: Sequence[bytes], method: str) -> WorkerFacts:
    """Return the facts of this process for a job of these paths. `method`: its parameters."""
    return WorkerFacts(socket.gethostname(), f"{__version__}; {method}", tuple(map(_root, paths)))


def _root(path: bytes) -> RootFacts:
    if is_url(path):
        return RootFacts(path, 0, ())
    try:
        inode = os.stat(path).st_ino
    except (OSError, ValueError):
        return RootFacts(path, 0, ())
    try:
        names = os.listdir(path)
    except OSError:
        names = []
    hashes = sorted(int.from_bytes(blake3(name).digest(8), "big") for name in names)
    return RootFacts(path, inode, tuple(hashes[:NAMES]))


def difference(here: WorkerFacts, there: WorkerFacts) -> str:
    """Return why a worker with the facts `there` cannot do work for a machine with the facts `here`; '' if it
    can.

    A mount is compared by the inode number of its root and by half of the names there. Device numbers differ
    between machines anyway, and a tree in use may get another name while slices wait.
    """
    if here.version != there.version:
        return (
            f"worker {printable(there.host)} has another rdc: expected {here.version!r}, found"
            f" {there.version[:200]!r}; install the same version there"
        )
    for one, other in zip(here.roots, there.roots, strict=True):
        if one.inode != other.inode or not _alike(one.names, other.names):
            seen = "is not there" if not other.inode else "is another directory there than here"
            return (
                f"worker {printable(there.host)}: {printable(one.path)} {seen}; mount the same file system at"
                " this path, and give absolute paths"
            )
    return ""


def _alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    least = sorted({*one, *other})[:NAMES]
    return 2 * len({*least} & {*one} & {*other}) >= len(least)


# One slice of a job as a task: what goes to a worker, what it does, and what comes back.


class SliceTask(Record):
    job: SliceJob
    slice: ScanSlice
    part: bytes
    """The file to write, an absolute path."""
    list: bytes
    """The path of a list of what the slice reads, if there is one."""
    marker: bytes
    """Path of the RunMarker."""
    threads: int
    facts: WorkerFacts
    """The facts of the machine that gives the task; a worker compares its own."""


class SliceResult(Record):
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
    """Return the result in what a worker sent. Raises TypeError for anything that run_slice does not
    return."""
    result = pickle.loads(content)  # noqa: S301 - an engine runs code of its workers anyway
    if not isinstance(result, SliceResult):
        raise TypeError(f"a worker returned {type(result).__name__}")
    return result


def run_slice(version: str, packed: bytes) -> bytes | str:
    """Run a task that packed_task made, and return a packed SliceResult.

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
