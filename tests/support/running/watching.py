"""Watches as real processes over real inotify, and churn to keep them busy."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from rdc.daemon.keys import trust
from tests.support.daemon.daemons import WAIT_SECONDS, certificate, key_directory, root_option
from tests.support.running.syncing import FAR, RDC
from tests.support.trees.trees import describe, read_tree

__all__ = ["DaemonLine", "HereLine", "Line", "ShellLine", "Watching", "eventually", "small_tree"]


def eventually(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    """Wait for `condition`; fail with `what` it was."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.02)


def small_tree(source: Path) -> Path:
    """Make a source of some files in three directories."""
    (source / "d" / "e").mkdir(parents=True)
    for number in range(20):
        (source / "d" / f"f{number}").write_bytes(b"%d" % number * 500)
    (source / "top").write_bytes(b"top")
    (source / "d" / "e" / "deep").write_bytes(os.urandom(30_000))
    return source


class Line(Protocol):
    """The connection of a watch to its remote side."""

    def options(self) -> list[str]:
        """What `rdc watch` needs for it."""

    def name(self, path: Path) -> str:
        """A directory on the remote side, its contents."""

    def kill(self) -> None:
        """The remote side dies at once; it is there again for the next who dials."""

    def close(self) -> None: ...


class ShellLine:
    """A child process, started through a stand-in for ssh."""

    def __init__(self, place: Path) -> None:
        self._pid = place / "far.pid"

    def options(self) -> list[str]:
        shell = f'sh -c \'echo $$ >"$0"; shift; exec "$@"\' {self._pid}'
        return ["-e", shell, "--remote-path", FAR]

    def name(self, path: Path) -> str:
        return f"far:{path}/"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
            os.kill(int(self._pid.read_text()), signal.SIGKILL)

    def close(self) -> None:
        self.kill()


class HereLine:
    """The destination is on this machine too."""

    def __init__(self) -> None:
        self.watching: Watching | None = None

    def options(self) -> list[str]:
        return []

    def name(self, path: Path) -> str:
        return f"{path}/"

    def kill(self) -> None:
        assert self.watching is not None
        pid = self.watching.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)

    def close(self) -> None: ...


class DaemonLine:
    """A daemon over loopback TLS, which keeps its port from one life to the next."""

    def __init__(self, place: Path, module: Path, rules: str = "read-only = false", limits: str = "") -> None:
        self.place = place / "daemon"
        self.place.mkdir()
        key_directory(self.place / "keys", "server", {"alice": "alice"})
        self._module = module
        self.rules = rules
        self.limits = limits
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        self._alice = self.place / "alice"
        key_directory(self._alice, "alice", {f"127.0.0.1:{self.port}": "server"})

    def configure(self) -> None:
        (self.place / "daemon.toml").write_text(
            f'listen = "127.0.0.1:{self.port}"\nkeys = "keys"\ncatalog = "off"\n{self.limits}\n'
            f'[modules.data]\npath = "{self._module}"\nallow = ["alice"]\n{self.rules}\n'
        )

    def start(self) -> None:
        self.configure()
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*RDC, "serve", "--config", self.place / "daemon.toml", *root_option()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        assert line.startswith("listening on "), self.log
        self.port = int(line.rpartition(":")[2].rstrip("/\n"))

    @property
    def log(self) -> str:
        return (self.place / "log").read_text()

    def reload(self) -> None:
        """Reload the daemon's configuration with the current `rules` and `limits`."""
        self.configure()
        before = self.log.count("event=reloaded")
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)
        eventually(lambda: self.log.count("event=reloaded") > before, lambda: self.log)

    def forget_peer(self) -> None:
        """Trust another key under the peer's name from the next `reload` on."""
        trust(self.place / "keys", "alice", certificate("bob"), replace=True)

    def options(self) -> list[str]:
        return ["--keys", str(self._alice)]

    def name(self, path: Path) -> str:
        below = path.relative_to(self._module)
        return f"rdc://127.0.0.1:{self.port}/data/" + (f"{below}/" if below.name else "")

    def stop(self) -> None:
        """Stop the daemon in order: it tells its sessions."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(WAIT_SECONDS) == 0
        self.close()

    def kill(self) -> None:
        """The daemon with all its sessions."""
        self.close()
        self.start()

    def close(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


class Watching:
    """`rdc watch --json` from `source` to `destination`, one of which is reached over `line`: the source if
    `far_source`, else the destination. Both, if `far_both`."""

    def __init__(
        self,
        source: Path,
        destination: Path,
        *options: str,
        place: Path,
        line: Line | None = None,
        far_source: bool = False,
        far_both: bool = False,
    ) -> None:
        self.source = source
        self.destination = destination
        self._options = options
        self.line = line or ShellLine(place)
        self._far_source = far_source or far_both
        self._far_destination = far_both or not far_source
        self._errors = place / "stderr"
        self.events: list[dict[str, Any]] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        words = [*RDC, "watch", "--json", "--no-fsync", *self.line.options(), *self._options]
        source, destination = f"{self.source}/", f"{self.destination}/"
        if self._far_source:
            source = self.line.name(self.source)
        if self._far_destination:
            destination = self.line.name(self.destination)
        environ = {**os.environ, "RDC_CATALOG": "off"}
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*words, source, destination],
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
        """Return how the two trees differ. They change meanwhile, so an entry may disappear or become another
        kind."""
        try:
            return describe(read_tree(self.source), read_tree(self.destination))
        except OSError as error:
            return [str(error)]

    def wait_equal(self) -> None:
        eventually(lambda: self.trees == [], lambda: f"{self.trees} {self.story}")

    def wait_told(self, path: str, times: int) -> None:
        """Wait until this many items of this path were reported, a little after the trees are equal."""

        def told() -> int:
            return [event["path"] for event in self.named("item")].count(path)

        eventually(lambda: told() >= times, lambda: f"{told()} {self.story}")

    def wait_turn(self, path: str) -> None:
        """Wait until the last turn that reported this path is over."""

        def over() -> bool:
            events = list(self.events)
            told = [
                at for at, event in enumerate(events) if event["event"] == "item" and event["path"] == path
            ]
            return bool(told) and any(event["event"] == "in_step" for event in events[told[-1] :])

        eventually(over, lambda: f"{path}: {self.story}")

    def wait_renamed(self, *paths: str) -> None:
        """Wait until exactly these paths, the old ones, were reported as renamed."""

        def renamed() -> list[str]:
            return [event["path"] for event in self.named("item") if event["change"] == "*renaming  "]

        eventually(lambda: renamed() == list(paths), lambda: f"{renamed()} {self.story}")

    def wait_gone(self, path: Path) -> None:
        eventually(lambda: not path.exists(), lambda: f"{path} is there: {self.story}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill_far(self) -> None:
        self.line.kill()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Stop the watch in order, as systemd does; return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int | None) -> int:
        assert self._process is not None
        assert self._reader is not None
        if number is not None:
            self._process.send_signal(number)
        code = self._process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        self._process = None
        return code

    def ended(self) -> int:
        """The exit code, of a watch that ends by itself."""
        return self._end(None)

    @contextlib.contextmanager
    def running(self) -> Iterator[Watching]:
        """Start, and yield once the trees are in sync. The process is killed at the end if it still runs."""
        before = len(self.named("in_step"))
        self.start()
        try:
            self.wait("in_step", before)
            yield self
        finally:
            if self._process is not None:
                self.kill()
