"""Real daemons on the loopback interface, each with keys and a configuration of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from rdc.daemon.keys import make_identity, trust
from rdc.transport.keys import Certificate
from tests.support.running.syncing import RDC, Ended, command

__all__ = ["WAIT_SECONDS", "Daemon", "certificate", "key_directory", "running_daemon", "wait_until"]

WAIT_SECONDS = 120.0
"""After which what was waited for will not come, however slow and busy the machine is."""

EXPIRED = ("expired", "expired-server")


@cache
def _identities() -> Path:
    """Made once a run; removed with the process's other temporary files."""
    place = Path(tempfile.mkdtemp(prefix="rdc-keys-"))
    import atexit

    atexit.register(shutil.rmtree, place)
    return place


@cache
def certificate(who: str) -> Certificate:
    """The certificate of `who`, made when first asked for."""
    back = timedelta(days=40 if who in EXPIRED else 20 if who.endswith("expires-soon") else 0)
    return make_identity(_identities() / who, who, days=30, now=datetime.now(UTC) - back)


def key_directory(place: Path, own: str, trusted: Mapping[str, str]) -> Path:
    """A key directory at `place` for `own`, which trusts others: name to whom."""
    certificate(own)
    place.mkdir(mode=0o700)
    shutil.copy(_identities() / own / "identity.pem", place / "identity.pem")
    for name, who in trusted.items():
        trust(place, name, certificate(who))
    return place


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class Daemon:
    process: subprocess.Popen[bytes]
    place: Path
    """Holds daemon.toml, keys/, the peers' keys and the log."""
    port: int

    @property
    def config(self) -> Path:
        return self.place / "daemon.toml"

    def url(self, path: str) -> str:
        return f"rdc://127.0.0.1:{self.port}/{path}"

    def keys_of(self, who: str) -> Path:
        """The key directory of a peer that trusts this daemon's certificate."""
        place = self.place / f"keys-{who}"
        if not place.exists():
            key_directory(place, who, {f"127.0.0.1:{self.port}": "server"})
        return place

    def sync(self, *words: str | Path, who: str = "alice", process: bool = False) -> Ended:
        return command("sync", "--keys", self.keys_of(who), *words, process=process)

    @property
    def log(self) -> list[dict[str, str]]:
        """The log's lines, read back."""
        text = (self.place / "log").read_text()
        return [dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', line)) for line in text.splitlines()]

    def logged(self, event: str, **fields: str) -> list[dict[str, str]]:
        return [
            line
            for line in self.log
            if line.get("event") == event
            and all(value in line.get(name, "") for name, value in fields.items())
        ]

    def await_log(self, event: str, **fields: str) -> dict[str, str]:
        wait_until(lambda: self.logged(event, **fields))
        return self.logged(event, **fields)[0]

    def children(self) -> list[int]:
        """Process ids of the sessions that run."""
        pid = self.process.pid
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def await_idle(self) -> None:
        wait_until(lambda: not self.children())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.terminate()
        return self.process.wait(WAIT_SECONDS)


def root_option() -> list[str]:
    return ["--allow-root"] if os.geteuid() == 0 else []


@contextmanager
def running_daemon(
    place: Path,
    modules: str,
    *,
    top: str = "",
    trusted: Mapping[str, str] | None = None,
    own: str = "server",
    before: Sequence[str] = (),
) -> Iterator[Daemon]:
    """A daemon in a process of its own, as a user starts it. `modules`: TOML tables; `top`: what stands
    before them. Without `trusted` it knows alice and bob. `before`: words of a program that becomes it."""
    place.mkdir(exist_ok=True)
    known = {"alice": "alice", "bob": "bob"} if trusted is None else trusted
    key_directory(place / "keys", own, known)
    (place / "daemon.toml").write_text(
        f'listen = "127.0.0.1:0"\nkeys = "keys"\ncatalog = "off"\n{top}\n{modules}'
    )
    # Whatever the umask of the test: others must not be able to change it.
    (place / "daemon.toml").chmod(0o644)
    place.chmod(place.stat().st_mode & ~0o022)
    with (place / "log").open("ab") as log:
        process = subprocess.Popen(
            [*before, *RDC, "serve", "--config", place / "daemon.toml", *root_option()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        assert process.stdout is not None
        try:
            line = process.stdout.readline().decode()
            found = re.fullmatch(r"listening on rdc://127\.0\.0\.1:(\d+)/\n", line)
            assert found, (line, (place / "log").read_text())
            yield Daemon(process, place, int(found[1]))
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(WAIT_SECONDS)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
