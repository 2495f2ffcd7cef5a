"""Watches as real processes over real inotify, and churn to keep them busy."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.syncing import FAR, RDC
from tests.trees import describe, read_tree

__all__ = ["Churn", "Watching", "eventually"]

PATIENCE = 8.0
"""Seconds after which what was waited for will not come."""


def eventually(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    """Waits for `condition`; fails with `what` it was."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.02)


class Watching:
    """`rdc watch --json` from `source` to `destination`, whose far side is a process that can be killed."""

    def __init__(self, source: Path, destination: Path, *options: str, place: Path) -> None:
        self.source = source
        self.destination = destination
        self._options = options
        self._far = place / "far.pid"
        self._errors = place / "stderr"
        self.events: list[dict[str, Any]] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        shell = f'sh -c \'echo $$ >"$0"; shift; exec "$@"\' {self._far}'
        words = [*RDC, "watch", "--json", "--no-fsync", "-e", shell, "--remote-path", FAR, *self._options]
        environ = {**os.environ, "RDC_CATALOG": "off"}
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*words, f"{self.source}/", f"far:{self.destination}/"],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environ,
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

    def wait(self, kind: str, more_than: int = 0) -> None:
        eventually(lambda: len(self.named(kind)) > more_than, lambda: f"no {kind}: {self.story}")

    @property
    def story(self) -> str:
        return f"{self.events[-8:]} {self._errors.read_text()[-2000:]}"

    @property
    def trees(self) -> list[str]:
        """How the two trees differ."""
        try:
            return describe(read_tree(self.source), read_tree(self.destination))
        except FileNotFoundError as error:
            return [str(error)]

    def wait_equal(self) -> None:
        eventually(lambda: self.trees == [], lambda: f"{self.trees} {self.story}")

    def kill_far(self) -> None:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
            os.kill(int(self._far.read_text()), signal.SIGKILL)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """In order, as by systemd."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        assert self._process is not None
        assert self._reader is not None
        self._process.send_signal(number)
        code = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self._process = None
        return code

    @contextlib.contextmanager
    def running(self) -> Iterator[Watching]:
        """In step at first; killed at the end if it still runs."""
        before = len(self.named("in_step"))
        self.start()
        try:
            self.wait("in_step", before)
            yield self
        finally:
            if self._process is not None:
                self.kill()


class Churn:
    """Seeded changes of a tree: what people and build tools do, some of it at once."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._rng = random.Random(seed)
        self._made = 0

    def step(self) -> None:
        acts = [self._create, self._create, self._edit, self._edit, self._save, self._rename, self._delete]
        acts += [self._make_path, self._touch, self._swap, self._link, self._replace]
        act = self._rng.choice(acts)
        # What another step took away, or a name that is taken.
        with contextlib.suppress(OSError, IndexError, shutil.Error):
            act()

    def run(self, steps: int, pause: float = 0.004) -> None:
        for _ in range(steps):
            self.step()
            if self._rng.random() < 0.3:
                time.sleep(self._rng.uniform(0, pause))

    def _all(self) -> list[Path]:
        return sorted(self._root.rglob("*"))

    def _files(self) -> list[Path]:
        return [path for path in self._all() if path.is_file() and not path.is_symlink()]

    def _directories(self) -> list[Path]:
        return [self._root, *(path for path in self._all() if path.is_dir() and not path.is_symlink())]

    def _new(self) -> Path:
        self._made += 1
        return self._rng.choice(self._directories()) / f"n{self._made}"

    def _bytes(self) -> bytes:
        # Of different lengths: two files of one size that are made in one tick of the clock and swapped look
        # the same to a comparison by size and mtime, here as in a sync.
        return self._rng.randbytes(self._rng.choice([0, 10, 3_000, 40_000]) + self._rng.randrange(1_000))

    def _create(self) -> None:
        self._new().write_bytes(self._bytes())

    def _edit(self) -> None:
        with self._rng.choice(self._files()).open("r+b") as file:
            file.seek(self._rng.randrange(5_000))
            file.write(self._bytes()[:100] or b"x")

    def _save(self) -> None:
        target = self._rng.choice(self._files())
        beside = target.with_name("." + target.name + ".swp")
        beside.write_bytes(self._bytes())
        beside.replace(target)

    def _rename(self) -> None:
        self._rng.choice(self._all()).rename(self._new())

    def _delete(self) -> None:
        path = self._rng.choice(self._all())
        if path.is_dir() and not path.is_symlink():
            if len(self._all()) > 30:
                shutil.rmtree(path)
        else:
            path.unlink()

    def _make_path(self) -> None:
        top = self._new()
        (top / "a" / "b").mkdir(parents=True)
        (top / "a" / "b" / "deep").write_bytes(self._bytes())
        if self._rng.random() < 0.5:
            (top / "a").rename(top / "c")

    def _touch(self) -> None:
        path = self._rng.choice(self._all())
        if not path.is_symlink():
            path.chmod(self._rng.choice([0o755, 0o700, 0o750]))

    def _swap(self) -> None:
        one, other = self._rng.sample(self._files(), 2)
        aside = one.with_name("aside")
        one.rename(aside)
        other.rename(one)
        aside.rename(other)

    def _link(self) -> None:
        self._new().symlink_to("anywhere")

    def _replace(self) -> None:
        path = self._rng.choice(self._files())
        path.unlink()
        path.mkdir()
        (path / "inside").write_bytes(self._bytes())
