"""Ways to run a sync from a test: in one process, through a child, and as a user types it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from rdc.cli.main import run as run_command_line
from rdc.library.trees import sync
from rdc.model.location import Location, RemoteShell
from rdc.model.runs import SyncReport
from rdc.model.sync import SyncOptions
from rdc.progress import Event, ItemChanged, Problem
from tests.support.project_paths import PSEUDO_SSH
from tests.support.running.fake_environment import FakeProcess

__all__ = ["FAR", "PSEUDO_SSH", "RDC", "Ended", "Run", "Way", "command", "contents_of", "run_sync", "shell"]


RDC = (sys.executable, "-m", "rdc")
"""A process of this very checkout, whatever is on PATH."""

FAR = " ".join(RDC)
"""The command of this rdc, as a value of --remote-path."""


class Way(Enum):
    """The side that runs in a child process, if any."""

    HERE = "both ends in this process"
    PUSH = "the destination is a child"
    PULL = "the source is a child"


def shell(*command: str | Path) -> RemoteShell:
    """A remote shell that is `command`, which starts the far rdc of this checkout."""
    return RemoteShell(tuple(map(str, command or (PSEUDO_SSH,))), FAR)


SUMMARY = re.compile(
    r"(?:dry run, nothing was changed: )?[\d,]+ (?:new|updated|moved|deleted|unchanged)(?:[,;]| in )"
)
"""The start of a summary's line."""


@dataclass(slots=True)
class Run:
    """A sync that came to its end, and all it said on the way."""

    events: list[Event] = field(default_factory=list)
    report: SyncReport | None = None

    @property
    def done(self) -> SyncReport:
        assert self.report is not None
        return self.report

    @property
    def items(self) -> list[str]:
        """rsync's code and path, a line each."""
        return [f"{e.change} {os.fsdecode(e.path_bytes)}" for e in self.events if isinstance(e, ItemChanged)]

    @property
    def problems(self) -> list[Problem]:
        """The problems that are more than notices."""
        return [e for e in self.events if isinstance(e, Problem) and e.code]


def contents_of(directory: Path) -> bytes:
    """Return how a user names the contents of `directory`."""
    return os.fsencode(directory) + b"/"


def run_sync(
    source: bytes | Path,
    destination: bytes | Path,
    options: SyncOptions | None = None,
    *,
    way: Way = Way.HERE,
    remote: RemoteShell | None = None,
) -> Run:
    """Sync one place to the other; a Path means what is in that directory. Raises what sync raises."""
    source, destination = (
        contents_of(place) if isinstance(place, Path) else place for place in (source, destination)
    )
    run = Run()
    run.report = sync(
        Location("far" if way is Way.PULL else None, source),
        Location("far" if way is Way.PUSH else None, destination),
        options,
        shell=remote or shell(),
        reporter=run.events.append,
    )
    return run


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a command line."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """Lines on stderr but for the summary."""
        return [line for line in self.err.splitlines() if not SUMMARY.match(line)]


def command(*words: str | Path, process: bool = False, cwd: Path | None = None) -> Ended:
    """`rdc WORDS`; in a process of its own, or (ten times as fast) in this one."""
    texts = list(map(str, words))
    if process or cwd:
        return _process([*RDC, *texts], cwd)
    fake = FakeProcess()
    return Ended(run_command_line(texts, fake.environment), fake.out, fake.err)


def _process(argv: Sequence[str], cwd: Path | None) -> Ended:
    done = subprocess.run(argv, capture_output=True, cwd=cwd, timeout=600, check=False)
    return Ended(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))
