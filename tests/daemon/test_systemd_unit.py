"""The systemd unit that is installed: systemd takes it, and a daemon works in what it leaves."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.daemon.daemons import running_daemon
from tests.support.project_paths import TOP
from tests.support.trees.trees import read_tree, tree, write_tree
from tests.support.trees.unprivileged import NOBODY, place_of_nobody

UNIT = TOP / "data" / "lib" / "systemd" / "system" / "rdc-daemon.service"
DOCUMENT = TOP / "rdc" / "daemon" / "DAEMON.md"

EXPOSURE = 2.5
"""What systemd makes of the unit, 0 to 10, at most; a daemon on a network cannot come to 0."""


def unit(place: Path) -> Path:
    """The unit as a file, with a program that is there."""
    program = place / "rdc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = place / "rdc-daemon.service"
    path.write_text(UNIT.read_text().replace("=rdc serve", f"={program} serve"))
    return path


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)


def test_the_document_shows_the_unit() -> None:
    text = DOCUMENT.read_text().partition("## A systemd unit")[2]
    lines = [line[4:] for line in text.splitlines() if line.startswith("    ") or not line]
    assert "\n".join(lines).strip() + "\n" == UNIT.read_text()


@pytest.mark.needs("systemd")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    done = analyze("verify", "--man=no", unit(tmp_path))
    named = [line for line in (done.stdout + done.stderr).splitlines() if "rdc-daemon" in line]
    assert (done.returncode, named) == (0, [])


@pytest.mark.needs("systemd")
def test_the_unit_leaves_little_to_attack(tmp_path: Path) -> None:
    done = analyze("security", "--offline=true", "--no-pager", unit(tmp_path))
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done
    assert float(found[1]) <= EXPOSURE, done.stdout


@pytest.mark.needs("unshare")
def test_a_daemon_works_where_all_but_its_modules_is_read_only(tmp_path: Path) -> None:
    """As nearly as this can be had without systemd: file systems read-only but for one module, a /tmp of its
    own, no capability but those with which it gives up root, no program that gives any."""
    assert os.geteuid() == 0, "this test makes a mount namespace, for which it needs root"
    with place_of_nobody() as nobodys:
        nobodys.chmod(0o755)  # without capabilities root is bound by modes too
        for name in ("data", "closed"):
            (nobodys / name).mkdir()
            write_tree(nobodys / name, tree({"f": b"f"}))
            os.chown(nobodys / name, NOBODY, NOBODY)
        modules = "".join(
            f'[modules.{name}]\npath = "{nobodys / name}"\nallow = ["alice"]\nread-only = false\n'
            for name in ("data", "closed")
        )
        script = f"""\
set -e
mount --make-rprivate /
mount --rbind / /
mount --bind {shlex.quote(str(nobodys))} {shlex.quote(str(nobodys))}
mount --bind {shlex.quote(str(nobodys / "data"))} {shlex.quote(str(nobodys / "data"))}
mount -o remount,bind,ro {shlex.quote(str(nobodys))}
mount -o remount,bind,ro /
exec setpriv --no-new-privs --bounding-set=-all,+setuid,+setgid --inh-caps=-all "$@"
"""
        sandbox = ("unshare", "--mount", "--ipc", "--uts", "sh", "-c", script, "sh")
        with running_daemon(nobodys / "daemon", modules, top='user = "nobody"', before=sandbox) as daemon:
            source = write_tree(tmp_path / "source", tree({"d/new": b"new" * 50_000, "f": b"newer"}))
            assert daemon.sync("--delete", f"{source}/", daemon.url("data/")).code == 0
            assert read_tree(nobodys / "data").keys() == read_tree(source).keys()
            assert daemon.sync(daemon.url("closed/"), tmp_path / "fetched").code == 0
            refused = daemon.sync(f"{source}/", daemon.url("closed/"))
            assert refused.code == ExitCode.FILE_IO and len(refused.complaints) == 1
            assert "Read-only file system" in refused.complaints[0]
            status = Path(f"/proc/{daemon.process.pid}/status").read_text()
            assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
            assert daemon.end() == 0
