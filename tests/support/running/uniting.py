"""`rdc unite --watch` as a real process, between two directories here or over a line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rdc.cli.main import run as run_command
from tests.support.daemon.daemons import WAIT_SECONDS
from tests.support.running.churn import Churn
from tests.support.running.deduping import Run
from tests.support.running.fake_environment import FakeProcess
from tests.support.running.syncing import RDC
from tests.support.running.watching import Line, eventually
from tests.support.trees.trees import Directory, Link, Tree, describe, read_tree

__all__ = ["ReplicaChurn", "UniteWatching", "united"]


def united(*words: str | Path, environ: dict[str, str] | None = None) -> Run:
    """One command line of `rdc unite` in this process."""
    process = FakeProcess(environ=environ or {})
    code = run_command(["unite", *map(str, words)], process.environment)
    return Run(code, process.out, process.err)


class ReplicaChurn(Churn):
    """Churn that leaves rdc's own directories alone."""

    def _all(self) -> list[Path]:
        return sorted(path for path in self._root.rglob("*") if ".rdc-" not in str(path))


class UniteWatching:
    """A process that runs `rdc unite --watch --json` on `left` and `right`; the right one is reached over
    `line`, if there is one."""

    def __init__(self, left: Path, right: Path, *options: str, place: Path, line: Line | None = None) -> None:
        self.left = left
        self.right = right
        self._options = options
        self._line = line
        self._place = place
        self.events: list[dict[str, Any]] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        words = [*RDC, "unite", "--watch", "--json", "--no-fsync", *self._options]
        words += self._line.options() if self._line is not None else []
        right = str(self.right) if self._line is None else self._line.name(self.right)
        environ = {**os.environ, "RDC_CATALOG": "off", "XDG_STATE_HOME": str(self._place / "state")}
        with (self._place / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(
                [*words, str(self.left), right], stdout=subprocess.PIPE, stderr=errors, text=True, env=environ
            )
        self._reader = threading.Thread(target=self._read, args=(self._process,))
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                with contextlib.suppress(ValueError):  # half a line, of a killed process
                    self.events.append(json.loads(line))

    def named(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in list(self.events) if event["event"] == kind]

    @property
    def story(self) -> str:
        return f"{self.events[-8:]} {(self._place / 'stderr').read_text()[-2000:]}"

    def wait(self, kind: str, more_than: int = 0) -> None:
        eventually(lambda: len(self.named(kind)) > more_than, lambda: f"no {kind}: {self.story}")

    def wait_texts(self, name: str, text: str) -> None:
        """Wait until both sides have the file and the run that brought it is over."""

        def are_there() -> bool:
            runs = [at for at, event in enumerate(list(self.events)) if event["event"] == "united"]
            items = [at for at, event in enumerate(list(self.events)) if event.get("path") == name]
            paths = [self.left / name, self.right / name]
            with contextlib.suppress(OSError):
                if [path.read_text() for path in paths] == [text] * 2:
                    return bool(runs and items and runs[-1] > items[-1])
            return False

        eventually(are_there, lambda: f"{name}: {self.story}")

    @property
    def differences(self) -> list[str]:
        """Return how the two trees differ, except for the times of directories and symlinks."""
        try:
            return describe(_shared(self.left), _shared(self.right))
        except OSError as error:
            return [str(error)]

    @property
    def different(self) -> list[str]:
        """The paths at which they differ."""
        left, right = _shared(self.left), _shared(self.right)
        paths = sorted(path for path in left.keys() | right.keys() if left.get(path) != right.get(path))
        return [os.fsdecode(path) for path in paths]

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> int:
        assert self._process is not None
        assert self._reader is not None
        self._process.send_signal(number)
        code = self._process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        self._process = None
        return code

    @contextlib.contextmanager
    def running(self) -> Iterator[UniteWatching]:
        """Start, and yield after the first run. The process is killed at the end if it still runs."""
        before = len(self.named("united"))
        self.start()
        try:
            self.wait("united", before)
            yield self
        finally:
            if self._process is not None:
                self.kill()


def _shared(top: Path) -> Tree:
    """A tree as far as a run makes both sides equal."""
    found: Tree = {}
    for path, entry in read_tree(top).items():
        if not path or b".rdc-" in path:
            continue
        if isinstance(entry, Directory):
            found[path] = Directory(entry.mode, 0)
        else:
            found[path] = Link(entry.target, 0) if isinstance(entry, Link) else entry
    return found
