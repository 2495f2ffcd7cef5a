"""The remote side of a sync in a process of its own, which a loaded server forks: no Python starts for it.

Most tests with a child start `rdc serve --stdio` through PSEUDO_SSH. A start takes 0.1 s of CPU, mostly to
load modules. Only that is left out here: the process, its pipes, its signals and its end are as after a
start. Tests of starts, and all with another remote shell, do not come here.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rdc.transport.pipes import Process, SignalledProcess, start_process
from tests.support.project_paths import PSEUDO_SSH, TOP

__all__ = ["REQUEST_BYTES", "FarProcess", "FarServer", "ForcedCommand"]

REQUEST_BYTES = 1 << 17
"""Most bytes of a request: words and the environment."""

SECONDS = 300
"""The time in which a server answers, even one that has to load its modules first."""

BEFORE_LOADING = ("LD_", "PYTHON", "RDC_KERNEL", "RDC_TABLE")
"""Beginnings of variables that count when a program is loaded."""

FAR = [sys.executable, "-m", "rdc"]


@dataclass(frozen=True, slots=True)
class FarProcess:
    """One process to start."""

    words: list[str]
    environ: dict[str, str]
    directory: str
    umask: int

    def packet(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, packet: bytes) -> FarProcess:
        return cls(**json.loads(packet))


def _umask() -> int:
    # os.umask can only tell it by a change, which would hold for other threads.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("\nUmask:")[2].split(None, 1)[0], 8)


def _fixed() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(BEFORE_LOADING)}


def _can_serve() -> bool:
    """Return whether the kernel tells of the end of a process by a descriptor, as the server needs."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


class FarServer:
    """Starts processes of rdc. Belongs to the process that made it."""

    def __init__(self) -> None:
        # Both ends stay open here from the start: to tests that count descriptors they are nothing new.
        self._socket, self._other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(SECONDS)
        self._owner = (os.getpid(), os.geteuid())
        self._fixed = _fixed()
        self._can_serve = _can_serve()
        self._server: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        self._socket.close()
        self._other.close()
        if self._server is not None:
            self._server.wait()

    def _request(self, process: FarProcess, stdin: int, stdout: int) -> _Forked:
        if self._server is None:
            end = self._other.fileno()
            words = [sys.executable, "-m", "tests.support.children.far_server", str(end)]
            self._server = subprocess.Popen(words, cwd=TOP, pass_fds=(end,))
        return _Forked(self._socket, process, stdin, stdout)

    def start(self, argv: Sequence[str], stdin: int, stdout: int) -> Process:
        """Start a process as `start_process` does, but by a fork if the result is the same."""
        here = (os.getpid(), os.geteuid()) == self._owner and _fixed() == self._fixed
        process = _started_by(argv) if here and self._can_serve else None
        return (
            start_process(argv, stdin, stdout) if process is None else self._request(process, stdin, stdout)
        )


def _started_by(argv: Sequence[str]) -> FarProcess | None:
    """The process that a command becomes, if it is one of rdc."""
    if argv[0] == str(PSEUDO_SSH) and list(argv[2:5]) == FAR:
        return FarProcess(list(argv[5:]), dict(os.environ), os.getcwd(), _umask())
    forced = _FORCED.get(argv[0])
    if forced is None or Path(argv[0]).read_text() != forced.script():
        return None
    environ = {**os.environ, **forced.environ, "SSH_ORIGINAL_COMMAND": " ".join(argv[1:])}
    return FarProcess(list(forced.words), environ, forced.directory, _umask())


@dataclass(frozen=True, slots=True)
class ForcedCommand:
    """The command that a remote shell runs instead of the client's, as sshd does with a forced command."""

    words: tuple[str, ...]
    environ: dict[str, str]
    directory: str

    def script(self) -> str:
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.environ.items())
        return (
            f'#!/bin/sh\nexport SSH_ORIGINAL_COMMAND="$*" {settings}\n'
            f"cd {shlex.quote(self.directory)} && exec {shlex.join([*FAR, *self.words])}\n"
        )

    def write(self, path: Path) -> str:
        """Write the remote shell. Returns its path as a command."""
        path.write_text(self.script())
        path.chmod(0o755)
        _FORCED[str(path)] = self
        return str(path)


_FORCED: dict[str, ForcedCommand] = {}
"""Remote shells that were written here. One that was changed since is started as it is."""


class _Forked(SignalledProcess):
    """A process of the server, as `start_process` returns one."""

    def __init__(self, server: socket.socket, process: FarProcess, stdin: int, stdout: int) -> None:
        self._status, status = os.pipe()
        try:
            socket.send_fds(server, [process.packet()], [stdin, stdout, 2, status])
            super().__init__(int(server.recv(64)))
        finally:
            os.close(status)
        self._ended = select.poll()  # select.select takes only descriptors below 1,024
        self._ended.register(self._status, select.POLLIN)
        self._code: int | None = None

    def __del__(self) -> None:
        if self._code is None:
            os.close(self._status)

    def poll(self) -> int | None:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> int | None:
        if self._code is None:
            if not self._ended.poll(None if timeout is None else timeout * 1000):
                return None
            # Nothing, not even a status, comes of a server that was killed.
            self._code = int(os.read(self._status, 64) or b"-9")
            os.close(self._status)
        return self._code
