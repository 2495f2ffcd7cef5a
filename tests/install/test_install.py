"""`rdc install` through a real sshd, whose user has another home and no rdc on the PATH."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.model.location import RemoteShell
from rdc.transport.pipes import remote_argv
from tests.support.running.ssh_server import SshServer, ssh_server
from tests.support.running.syncing import Ended, command


@dataclass(frozen=True, slots=True)
class FarSide:
    server: SshServer
    home: Path
    path: Path
    """The one directory of its PATH."""

    @property
    def private(self) -> Path:
        return self.home / ".local" / "share" / "rdc"

    def rdc(self, verb: str, *words: str | Path) -> Ended:
        return command(verb, "-e", self.server.remote_shell, *words, process=True)

    def install(self, *words: str | Path) -> Ended:
        return self.rdc("install", *words, self.server.host)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[FarSide]:
    home, path = tmp_path / "a home", tmp_path / "programs"
    home.mkdir()
    path.mkdir()
    for name in ("sh", "sleep"):
        (path / name).symlink_to(shutil.which(name) or "")
    # A Python without this environment's packages.
    (path / "python3").symlink_to(getattr(sys, "_base_executable", sys.executable))
    forced = tmp_path / "forced"
    forced.write_text(
        f"#!/bin/sh\nexport HOME={shlex.quote(str(home))} PATH={shlex.quote(str(path))}\n"
        'cd\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    forced.chmod(0o755)
    with ssh_server(options=f'command="{forced}" ') as server:
        yield FarSide(server, home, path)


@pytest.mark.needs("sshd")
def test_install_sync_and_remove(far: FarSide, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("data")
    missing = far.rdc("sync", f"{source}/", f"{far.server.host}:copy/")
    assert missing.code == ExitCode.COMMAND_MISSING
    assert f"rdc install {far.server.host}" in missing.err
    assert list(far.home.iterdir()) == []

    installed = far.install()
    assert (installed.code, installed.err) == (ExitCode.OK, "")
    assert f"{far.server.host}: rdc " in installed.out
    assert far.private.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in far.home.iterdir()] == [".local"]

    synced = far.rdc("sync", f"{source}/", f"{far.server.host}:copy/")
    assert synced.code == ExitCode.OK
    assert (far.home / "copy" / "file").read_text() == "data"

    again = far.install()
    assert again.code == ExitCode.OK
    (line,) = far.install("--list").out.splitlines()
    assert line.endswith(" (in use)")

    removed = far.install("--remove")
    assert (removed.code, removed.err) == (ExitCode.OK, "")
    assert [path.name for path in far.home.iterdir()] == ["copy"]


@pytest.mark.needs("sshd")
def test_a_far_side_without_python_gives_one_line(far: FarSide) -> None:
    (far.path / "python3").unlink()
    (far.path / "python3").write_text("#!/bin/sh\nexit 3\n")
    (far.path / "python3").chmod(0o755)
    ended = far.install()
    assert ended.code == ExitCode.COMMAND_MISSING
    assert ended.err.count("\n") == 1
    assert "no Python 3.11 or newer" in ended.err
    assert list(far.home.iterdir()) == []


@pytest.mark.parametrize("host", ["-oProxyCommand=id", "", "a b"])
def test_a_host_that_ssh_would_take_for_an_option_is_refused(host: str) -> None:
    ended = command("install", "-e", "/no/such/shell", "--", host)
    assert ended.code == ExitCode.USAGE
    assert "is not a host name" in ended.err


@pytest.mark.parametrize("shell", [("ssh",), ("/usr/bin/ssh", "-p", "22")])
def test_ssh_finds_rdc_on_the_path_or_where_it_is_installed(shell: tuple[str, ...], tmp_path: Path) -> None:
    *before, line = remote_argv("h", RemoteShell(shell))
    assert before == [*shell, "h"]
    exec_, sh, option, script = shlex.split(line)
    assert (exec_, sh, option) == ("exec", "sh", "-c")
    assert "!" not in line  # which csh would expand
    assert script.endswith("exec rdc serve --stdio")
    # Each place is looked at after the one before, whatever characters the home has.
    home = tmp_path / "a 'home'"
    for place in (".local/share/rdc/bin/rdc", ".local/bin/rdc", "on the path/rdc"):
        program = home / place
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\necho "{place} $*"\n')
        program.chmod(0o755)
        path = f"{home}/on the path:/usr/bin:/bin" if place.startswith("on") else "/usr/bin:/bin"
        environ = {"HOME": str(home), "PATH": path}
        done = subprocess.run(["sh", "-c", line], env=environ, capture_output=True, text=True, check=True)
        assert done.stdout == f"{place} serve --stdio\n"
