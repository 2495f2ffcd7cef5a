"""How a watch between two hosts reaches them."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from tests.support.running.syncing import FAR
from tests.support.running.watching import DaemonLine

__all__ = ["HostsLine", "MixedLine"]


class HostsLine:
    """A Line: each directory is on a host of its own name, behind a stand-in for ssh."""

    def __init__(self, top: Path) -> None:
        self._top = top

    def options(self) -> list[str]:
        shell = f'sh -c \'echo $$ >"$0/$1.pid"; shift; exec "$@"\' {self._top}'
        return ["-e", shell, "--remote-path", FAR]

    def name(self, path: Path) -> str:
        return f"{path.name}:{path}/"

    def kill_host(self, name: str) -> None:
        """The rdc of a host dies at once."""
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
            os.kill(int((self._top / f"{name}.pid").read_text()), signal.SIGKILL)

    def kill(self) -> None:
        for name in ("src", "dst"):
            self.kill_host(name)

    def close(self) -> None:
        self.kill()


class MixedLine(HostsLine):
    """The same, but one of both directories is in the module of a daemon."""

    def __init__(self, top: Path, daemon: DaemonLine, module: Path) -> None:
        super().__init__(top)
        self._daemon = daemon
        self._module = module

    def options(self) -> list[str]:
        return [*super().options(), *self._daemon.options()]

    def name(self, path: Path) -> str:
        return self._daemon.name(path) if path.is_relative_to(self._module) else super().name(path)

    def close(self) -> None:
        super().close()
        self._daemon.close()
