"""Ends of every kind: real ssh, daemons over TLS on either side, and an older rdc."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.limits import SMALL_MANIFEST
from rdc.protocol.connection import DIALECT
from tests.support.daemon.daemons import Daemon, running_daemon
from tests.support.project_paths import TOP
from tests.support.relay.two_hosts import between, summary
from tests.support.running.killed_sync import HELD, WANTED
from tests.support.running.older_versions import kernel_of, older_rdc
from tests.support.running.ssh_server import ssh_server
from tests.support.running.syncing import FAR, PSEUDO_SSH, RDC, command
from tests.support.trees.trees import describe, read_tree, tree, write_tree


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def daemon(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    modules = f'[modules.data]\npath = "{data}"\nallow = ["alice"]\nread-only = false\n'
    with running_daemon(tmp_path_factory.mktemp("daemon"), modules) as running:
        yield running


@pytest.mark.needs("sshd")
def test_through_ssh(tmp_path: Path) -> None:
    """Two hosts are one machine under two names; ssh knows either."""
    write_tree(tmp_path / "one", tree({"d/f": b"f" * 100_000, "g": b"new"}))
    write_tree(tmp_path / "two", tree({"d/f": b"f" * 99_000, "old": b"old"}))
    program = tmp_path / "far-rdc"
    program.write_text(f'#!/bin/sh\nexec {" ".join(RDC)} "$@"\n')
    program.chmod(0o755)
    with ssh_server() as server:
        words = (
            "--delete",
            "--json",
            "--fewest-bytes",
            f"{server.host}:{tmp_path}/one/",
            f"{server.host}:{tmp_path}/two",
        )
        got = summary(between(*words, shell=server.remote_shell, program=str(program)))
    assert describe(read_tree(tmp_path / "one"), read_tree(tmp_path / "two")) == []
    assert (got["changed"], got["deleted"]) == (2, 1) and got["literal_bytes"] < 10_000, got


@pytest.mark.parametrize("way", ["to", "from", "within"])
def test_a_daemon(way: str, daemon: Daemon, data: Path, tmp_path: Path) -> None:
    one = write_tree(tmp_path / "one", WANTED) if way == "to" else write_tree(data / f"one-{way}", WANTED)
    two = tmp_path / "two" if way == "from" else data / f"two-{way}"
    write_tree(two, HELD)
    source = f"a:{one}/" if way == "to" else daemon.url(f"data/one-{way}/")
    target = f"b:{two}" if way == "from" else daemon.url(f"data/two-{way}")
    line = ("--json", "--delete", "-e", PSEUDO_SSH, "--remote-path", FAR)
    got = summary(daemon.sync(*line, source, target))
    assert describe(WANTED, read_tree(two)) == []
    again = summary(daemon.sync(*line, source, target))
    assert (again["changed"], again["deleted"], again["round_trips"]) == (0, 0, 2)
    assert got["bytes_sent"] + got["bytes_received"] > 100 * (again["bytes_sent"] + again["bytes_received"])


def test_a_daemon_that_refuses_is_named(daemon: Daemon, tmp_path: Path) -> None:
    write_tree(tmp_path / "one", tree({"f": b"f"}))
    line = ("-e", PSEUDO_SSH, "--remote-path", FAR)
    ended = daemon.sync(*line, f"a:{tmp_path}/one/", daemon.url("none/x"))
    assert (ended.code, len(ended.complaints)) == (ExitCode.REFUSED, 1)
    assert ended.complaints[0].startswith("rdc: 127.0.0.1: ")
    ended = daemon.sync(*line, f"a:{tmp_path}/one/", daemon.url("data/x"), who="bob")
    assert ended.code == ExitCode.REFUSED and ended.complaints[0].startswith("rdc: 127.0.0.1: ")


@pytest.mark.parametrize("old_host", ["a", "b"])
def test_an_older_rdc_on_one_host(
    old_host: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The rdc of the oldest version that is still spoken."""
    old = older_rdc(DIALECT.oldest, tmp_path_factory)
    shell = tmp_path / "shell"
    shell.write_text(
        f"#!/bin/sh\nPYTHONPATH={TOP}\n"
        f"test $1 = {old_host} && PYTHONPATH={old} && RDC_KERNEL={kernel_of(old)}\n"
        f"export PYTHONPATH RDC_KERNEL\nexec {sys.executable} -P -m rdc serve --stdio\n"
    )
    shell.chmod(0o755)
    source, top = tmp_path / "one", tmp_path / "two"
    write_tree(source, tree({f"{n}/f": b"content" for n in range(SMALL_MANIFEST)}))
    subprocess.run(["cp", "-a", f"{source}/.", str(top)], check=True)
    os.mkfifo(source / "1/fifo")
    (top / "2/f").write_bytes(b"older")
    ended = command("sync", "--no-catalog", "-e", str(shell), f"a:{source}/", f"b:{top}")
    assert (ended.code, ended.complaints) == (ExitCode.OK, []), ended
    assert (top / "2/f").read_bytes() == b"content"
    assert stat.S_ISFIFO(os.stat(top / "1/fifo").st_mode)
