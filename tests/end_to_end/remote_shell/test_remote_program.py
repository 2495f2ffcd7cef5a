"""What is found at the other end of the remote shell: an exit code and one line that says what to do."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from rdc.chunking import SYNC_PARAMS
from rdc.errors import ExitCode
from rdc.protocol.connection import DIALECT, MAGIC, NEGOTIATING, Connection
from rdc.session.serve import greeting
from tests.support.project_paths import PSEUDO_SSH
from tests.support.running.syncing import FAR, Ended, command
from tests.support.trees.trees import describe, read_tree, tree, write_tree

HELD = tree({"f": b"older", "extra": b"e"})


def speaking(place: Path, body: str) -> Path:
    """A remote shell that is this shell script."""
    script = place / "remote shell"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return script


def sync_through(remote: Path, place: Path, *words: str, pull: bool = False) -> Ended:
    """Whichever end is the far one, the destination is left alone."""
    source = write_tree(place / "source", tree({"f": b"new"}))
    destination = write_tree(place / "destination", HELD)
    ends = (f"far:{source}/", destination) if pull else (f"{source}/", f"far:{destination}")
    ended = command("sync", "--delete", "-e", shlex.quote(str(remote)), *words, *ends)
    assert describe(HELD, read_tree(destination)) == []
    assert len(ended.complaints) == 1, ended.err
    assert "internal" not in ended.err
    return ended


pull_too = pytest.mark.parametrize("pull", [False, True], ids=["push", "pull"])


@pull_too
@pytest.mark.parametrize(
    "body",
    [
        "echo 'Welcome to far!'",
        "printf 'Last login: today\\r\\n'; shift; exec \"$@\"",
        "cat /etc/passwd",
        "printf 'R'; echo",
        "printf '\\033[2J'",
        "head -c 100000 /dev/urandom | tr -d R",
    ],
)
def test_not_rdc(body: str, pull: bool, tmp_path: Path) -> None:
    ended = sync_through(speaking(tmp_path, body), tmp_path, "--remote-path", FAR, pull=pull)
    assert ended.code == ExitCode.INCOMPATIBLE
    assert "the remote side is not rdc: it began with" in ended.complaints[0]
    assert "\x1b" not in ended.err


@pull_too
@pytest.mark.parametrize("version", [0, 6, 7, NEGOTIATING + 1, 255])
def test_another_version_of_the_protocol(version: int, pull: bool, tmp_path: Path) -> None:
    preamble = "".join(f"\\{byte:03o}" for byte in MAGIC + bytes([version]))
    ended = sync_through(speaking(tmp_path, f"printf '{preamble}'; cat >/dev/null"), tmp_path, pull=pull)
    assert ended.code == ExitCode.INCOMPATIBLE
    assert f"speaks version {version} of the protocol" in ended.complaints[0]
    assert "update rdc on the remote side" in ended.complaints[0]


@pull_too
@pytest.mark.parametrize("newer", [False, True])
def test_a_far_side_without_a_common_version_is_told(newer: bool, pull: bool, tmp_path: Path) -> None:
    """Both read the other's Hello, and neither goes on or hangs."""
    version = DIALECT.newest + (1 if newer else -1)
    code = "import rdc.protocol.connection as d"
    code += f"; d.DIALECT = d.Dialect({version}, {version}, d.DIALECT.features, {{}}, {{}})"
    code += "; from rdc.cli.main import entry; entry()"
    body = f"shift; exec {shlex.quote(sys.executable)} -c {shlex.quote(code)} serve --stdio"
    ended = sync_through(speaking(tmp_path, body), tmp_path, pull=pull)
    assert ended.code == ExitCode.INCOMPATIBLE
    assert f"speaks version {version} of the protocol" in ended.complaints[0]
    assert f"update rdc on {'this' if newer else 'the remote'} side" in ended.complaints[0]


@pull_too
def test_a_cut_line_says_that_the_next_run_resumes(pull: bool, tmp_path: Path) -> None:
    hello = Connection(False, greeting(SYNC_PARAMS)).data_to_send()
    # Both sides wait by then: the line ends because its shell does.
    cut = f"{{ head -c {len(hello) + 1}; kill -9 $$; }}"
    body = f"shift; {shlex.quote(sys.executable)} -m rdc serve --stdio | {cut}"
    ended = sync_through(speaking(tmp_path, body), tmp_path, pull=pull)
    assert ended.code == ExitCode.STREAM
    assert ended.complaints[0].endswith("; the next run resumes where this one ended")


@pull_too
def test_no_rdc_over_there(pull: bool, tmp_path: Path) -> None:
    body = 'shift; eval "$@"'  # as ssh: the far shell looks for the command, and says that it is missing
    ended = sync_through(speaking(tmp_path, body), tmp_path, "--remote-path=no-such-rdc", pull=pull)
    assert ended.code == ExitCode.COMMAND_MISSING
    assert "no no-such-rdc on far: install it there (rdc install far)" in ended.complaints[0]
    assert "--remote-path" in ended.complaints[0]


@pull_too
@pytest.mark.parametrize("status", [1, 126, 127, 255])
def test_a_remote_shell_that_fails(status: int, pull: bool, tmp_path: Path) -> None:
    ended = sync_through(speaking(tmp_path, f"exit {status}"), tmp_path, pull=pull)
    if status in {126, 127}:
        assert ended.code == ExitCode.COMMAND_MISSING
    else:
        assert ended.code == ExitCode.STREAM
        assert f"ended with status {status} before rdc answered" in ended.complaints[0]


@pull_too
def test_a_remote_shell_that_is_not_there(pull: bool, tmp_path: Path) -> None:
    ended = sync_through(tmp_path / "nowhere" / "ssh", tmp_path, pull=pull)
    assert ended.code == ExitCode.COMMAND_MISSING
    assert "cannot start" in ended.complaints[0] and "No such file or directory" in ended.complaints[0]


@pull_too
def test_a_far_side_that_dies_at_once(pull: bool, tmp_path: Path) -> None:
    ended = sync_through(speaking(tmp_path, "kill -9 $$"), tmp_path, pull=pull)
    assert ended.code == ExitCode.STREAM
    assert "before" in ended.complaints[0]


@pull_too
def test_stray_output_of_the_far_rdc_does_no_harm(pull: bool, tmp_path: Path) -> None:
    """Anything printed over there, by a library or a child, goes to stderr and not into the stream."""
    code = """
import os
from rdc.session.runtime import driver
run = driver.run

def noisy(*arguments):
    print("stray", flush=True)
    os.system("echo child")
    return run(*arguments)

driver.run = noisy
from rdc.cli.main import entry
entry()
"""
    body = (
        f"shift; exec {shlex.quote(sys.executable)} -c {shlex.quote(code)} serve --stdio 2>{tmp_path}/stderr"
    )
    remote = speaking(tmp_path, body)
    source = write_tree(tmp_path / "source", tree({"f": b"new"}))
    destination = write_tree(tmp_path / "destination", HELD)
    ends = (f"far:{source}/", destination) if pull else (f"{source}/", f"far:{destination}")
    ended = command("sync", "-e", shlex.quote(str(remote)), *ends)
    assert (ended.code, ended.complaints) == (ExitCode.OK, [])
    assert (destination / "f").read_bytes() == b"new"
    assert sorted((tmp_path / "stderr").read_text().split()) == ["child", "stray"]


def test_options_of_the_remote_shell(tmp_path: Path) -> None:
    """-e is words, the host one word, and paths never pass through a shell."""
    log = tmp_path / "log"
    body = f'for word; do echo "$word"; done >{shlex.quote(str(log))}; shift 3; exec "$@"'
    remote = speaking(tmp_path, body)
    source = write_tree(tmp_path / "source", tree({"f": b"new"}))
    evil = tmp_path / "d; touch evil $(touch evil) `touch evil` 'x\" *"
    rsh = f"{shlex.quote(str(remote))} -p '22 22'"
    ended = command("sync", "-e", rsh, "--remote-path", FAR, f"{source}/", f"me@host:{evil}", cwd=tmp_path)
    assert (ended.code, ended.complaints) == (ExitCode.OK, [])
    assert log.read_text().splitlines() == ["-p", "22 22", "me@host", *FAR.split(), "serve", "--stdio"]
    assert (evil / "f").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == sorted(["remote shell", "log", "source", evil.name])


def test_the_pseudo_ssh_is_what_it_says(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"f": b"new"}))
    ended = command(
        *("sync", "-e", PSEUDO_SSH, "--remote-path", FAR, "--info=stats"),
        *(f"{source}/", f"far:{tmp_path}/new"),
        process=True,
    )
    assert ended.code == ExitCode.OK
    line = r"2 new; sent \d+ B of \d+ B in [\d.]+ s\n"
    assert re.fullmatch(line, ended.err)
