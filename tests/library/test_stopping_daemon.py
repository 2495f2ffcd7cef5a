"""Another thread stops a job whose remote side is a daemon: it ends by name, and every file is old or new."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rdc
from tests.library.stop_after import StopAfter
from tests.support.daemon.daemons import Daemon, running_daemon

FILES = {f"d{number % 4}/f{number}": bytes([number]) * 20_000 for number in range(40)}
OLD = b"old"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    place = tmp_path_factory.mktemp("daemon")
    (place / "data").mkdir()
    modules = f'[modules.data]\npath = "{place / "data"}"\nallow = ["alice"]\nread-only = false\n'
    with running_daemon(place / "daemon", modules) as running:
        yield running


@pytest.fixture
def far(daemon: Daemon, request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A directory of its own in the module: its location and what it is here."""
    name = "".join(filter(str.isalnum, request.node.name))
    return daemon.url(f"data/{name}/"), daemon.place.parent / "data" / name


def fill(place: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)


def contents(place: Path) -> dict[str, bytes]:
    """The files without those that rdc keeps for the next run."""
    found = {str(path.relative_to(place)): path for path in place.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if ".rdc" not in name}


@pytest.mark.parametrize("pull", [False, True], ids=["push", "pull"])
@pytest.mark.parametrize("count", [0, 5, 60])
def test_a_stopped_sync_leaves_old_or_new_files(
    pull: bool, count: int, daemon: Daemon, far: tuple[str, Path], tmp_path: Path
) -> None:
    url, there = far
    source, top = (there, tmp_path / "copy") if pull else (tmp_path / "tree", there)
    fill(source, FILES)
    fill(top, {"d0/f0": OLD})
    operands = (url, f"{top}/") if pull else (f"{source}/", url)
    keys = daemon.keys_of("alice")
    try:
        rdc.sync(*operands, keys=keys, catalog=None, stop=StopAfter(count))
    except rdc.StoppedError as error:
        assert error.code is rdc.ExitCode.INTERRUPTED
    else:
        assert count == 60
    daemon.await_idle()
    for name, data in contents(top).items():
        assert data == FILES[name] or (name, data) == ("d0/f0", OLD)
    assert rdc.sync(*operands, keys=keys, catalog=None).exit is rdc.ExitCode.OK
    assert contents(top) == FILES


class StopOfHalted:
    """Halts the daemon's session when first asked during one; answers True from the fifth time on."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.halted: list[int] = []
        self._asked = 0

    def is_set(self) -> bool:
        if not self.halted:
            self.halted = self._daemon.children()
            for session in self.halted:
                os.kill(session, signal.SIGSTOP)
        self._asked += bool(self.halted)
        return self._asked >= 5


JOBS: list[Callable[..., Any]] = [rdc.sync, rdc.check]


@pytest.mark.parametrize("job", JOBS, ids=["sync", "check"])
def test_a_job_that_waits_for_the_daemon_is_stopped(
    job: Callable[..., Any], daemon: Daemon, far: tuple[str, Path], tmp_path: Path
) -> None:
    """The daemon's session is halted, so it never answers."""
    url, there = far
    fill(there, {"d0/f0": OLD})
    fill(tmp_path / "tree", FILES)
    daemon.await_idle()  # a session of the test before may still end, and would be halted in its place
    stop = StopOfHalted(daemon)
    try:
        with pytest.raises(rdc.StoppedError, match="stopped by the caller"):
            job(f"{tmp_path / 'tree'}/", url, keys=daemon.keys_of("alice"), catalog=None, stop=stop)
    finally:
        for session in stop.halted:
            os.kill(session, signal.SIGCONT)
    assert stop.halted
    daemon.await_idle()
    found = contents(there)
    assert found.pop("d0/f0") in {OLD, FILES["d0/f0"]}
    assert found.items() <= FILES.items()
