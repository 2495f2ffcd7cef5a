"""A real sshd on the loopback interface: its own keys, configuration and port, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SshServer", "ssh_server"]

START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class SshServer:
    remote_shell: str
    """A value for -e."""
    host: str
    """What stands before the ':' of a location."""


@contextmanager
def ssh_server(options: str = "") -> Iterator[SshServer]:
    """sshd refuses keys in places that others could write to, so it does not live in pytest's. `options`:
    what stands before the key in authorized_keys."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert sshd, "these tests need sshd (Debian: apt-get install openssh-server)"
    place = Path(tempfile.mkdtemp(prefix="rdc-sshd-"))
    if os.geteuid() == 0:
        # Each connection of an sshd that root started needs it, also those of the servers that other test
        # processes run. So it stays, as it does after a start of the system's own sshd.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    try:
        port = _free_port()
        _write_configuration(place, port, options)
        log = (place / "log").open("wb")
        server = subprocess.Popen(
            [sshd, "-D", "-e", "-f", place / "config"], stdin=subprocess.DEVNULL, stderr=log
        )
        try:
            _await(server, port, place / "log")
            words = ["ssh", "-F", "none", "-p", str(port), "-i", str(place / "user_key"), *_CLIENT]
            words += ["-o", f"UserKnownHostsFile={place}/known_hosts"]
            yield SshServer(shlex.join(words), f"{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1")
        finally:
            server.terminate()
            server.wait()
            log.close()
    finally:
        shutil.rmtree(place)


_CLIENT = ("-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes", "-q")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _write_configuration(place: Path, port: int, options: str) -> None:
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / name], check=True)
    (place / "authorized_keys").write_text(options + (place / "user_key.pub").read_text())
    host_key = (place / "host_key.pub").read_text()
    (place / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}")
    (place / "config").write_text(
        f"""Port {port}
ListenAddress 127.0.0.1
HostKey {place}/host_key
AuthorizedKeysFile {place}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
"""
    )


def _await(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"sshd did not start:\n{log.read_text()}")
