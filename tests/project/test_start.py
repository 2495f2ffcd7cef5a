"""What a start of rdc may load: a slow module only if the run uses it.

Both sides of a remote sync pay for a start. bench/start.py measures the CPU time of starts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = """
import sys
before = set(sys.modules)
from rdc.cli.main import run
from rdc.cli.environment import process_environment
code = run(sys.argv[2:], process_environment())
loaded = sorted(set(sys.modules) - before)
import json
with open(sys.argv[1], "w") as file:
    json.dump({"code": code, "modules": loaded}, file)
"""

SLOW = {
    "asyncio",
    "concurrent.futures",
    "cryptography",
    "dataclasses",
    "enum",
    "hashlib",
    "inspect",
    "json",
    "locale",
    "pathlib",
    "platform",
    "random",
    "re",
    "rich",
    "selectors",
    "shlex",
    "shutil",
    "signal",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "tomllib",
    "typing",
    "urllib",
    "watchdog",
    "zstandard",
    "zstandard.backend_c",
}
"""Modules that are slow to load. A run may load one only if it uses it."""


@dataclass(frozen=True)
class Start:
    """The result of one run of rdc."""

    code: int
    modules: list[str]
    """The modules that the run loaded, without those of an empty Python."""


def started(place: Path, *words: object) -> Start:
    """Runs rdc with `words` in a new process."""
    account = place / "account"
    command = [sys.executable, "-I", "-c", SCRIPT, str(account), *map(str, words)]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(place / "home")}
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environ, check=True)
    return Start(**json.loads(account.read_text()))


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Two equal trees of one file."""
    for name in ("source", "destination"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"the same")
    for entry in ("file", "."):
        times = (tmp_path / "source" / entry).stat()
        os.utime(tmp_path / "destination" / entry, ns=(times.st_atime_ns, times.st_mtime_ns))
    return tmp_path / "source", tmp_path / "destination"


def check(start: Start, *, heavy: set[str] = SLOW) -> None:
    """Check that a start loaded none of the modules in `heavy`."""
    assert not heavy & set(start.modules)


def test_the_version(tmp_path: Path) -> None:
    start = started(tmp_path, "--version")
    assert start.code == 0
    check(start, heavy=SLOW | {"msgpack", "blake3", "ctypes"})


def test_the_installed_script_adds_nothing() -> None:
    script = Path(sys.executable).with_name("rdc")
    command = [sys.executable, "-I", "-X", "importtime", str(script), "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    loaded = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    assert "rdc.cli.main" in loaded
    assert not SLOW & loaded


def test_a_sync_of_equal_trees_here(tmp_path: Path, places: tuple[Path, Path]) -> None:
    source, destination = places
    start = started(tmp_path, "sync", f"{source}/", f"{destination}/")
    assert start.code == 0
    # Modules that transfer, chunk or compare files are for runs that change something.
    idle = {
        "rdc.session.transfer.delta",
        "rdc.session.transfer.renames",
        "rdc.session.transfer.whole",
        "rdc.similarity",
    }
    idle |= {
        "rdc.session.source.answers",
        "rdc.session.runtime.driver",
        "rdc.session.destination.comparison",
    }
    idle |= {"rdc.session.runtime.driver", "rdc.session.source.file_sender"}
    idle |= {
        "rdc.session.transfer.transfers",
        "rdc.session.destination.directory_changes",
        "rdc.session.transfer.commits",
        "rdc.files.replace.commit_group",
    }
    idle |= {"rdc.session.destination.in_sync_tree", "rdc.plan.compare"}
    idle |= {"rdc.kernel.blake3_many", "rdc.plan.descent", "rdc.plan.search", "rdc.signature.tree"}
    check(start, heavy=(SLOW | idle) - {"threading"})


def test_a_sync_of_one_new_file_here(tmp_path: Path, places: tuple[Path, Path]) -> None:
    source, destination = places
    (destination / "file").unlink()
    start = started(tmp_path, "sync", f"{source}/", f"{destination}/")
    assert start.code == 0
    assert (destination / "file").read_bytes() == b"the same"
    # Modules of hollow files and of names that a directory spells in two ways.
    few = {"rdc.files.facts.extents", "rdc.files.names.entry_names"}
    check(start, heavy=(SLOW | few) - {"threading"})


def test_the_far_side_of_a_sync_up_to_the_hello(tmp_path: Path) -> None:
    start = started(tmp_path, "serve", "--stdio")
    assert start.code == 12
    later = {
        "rdc.report.output",
        "rdc.session.source.conversation",
        "rdc.session.destination.conversation",
        "rdc.tree.manifest",
        "rdc.kernel",
    }
    check(start, heavy=SLOW | later)


def test_the_near_side_of_a_sync_up_to_the_hello(tmp_path: Path, places: tuple[Path, Path]) -> None:
    # The shell reads one byte before it ends, because rdc makes its first message after it starts the shell.
    script = tmp_path / "shell"
    script.write_text("#!/bin/sh\nhead -c 1 > /dev/null\n")
    script.chmod(0o755)
    start = started(tmp_path, "sync", "-e", script, f"{places[0]}/", "host:x")
    assert start.code == 12
    later = {
        "rdc.session.destination.conversation",
        "rdc.session.runtime.in_process",
        "rdc.session.transfer.transfers",
    }
    later |= {"rdc.session.source.file_sender"}
    check(start, heavy=SLOW | later)


@pytest.mark.parametrize("verb", ["catalog", "completions", "config", "install", "keys", "signature"])
def test_the_help_of_a_verb_without_options_of_a_sync(tmp_path: Path, verb: str) -> None:
    start = started(tmp_path, verb, "--help=all")
    assert start.code == 0
    jobs = {"rdc.lean.checks", "rdc.lean.typed", "rdc.model.location", "rdc.model.sync", "rdc.report.output"}
    check(start, heavy=jobs)


def test_the_help_of_a_verb_that_writes_files(tmp_path: Path) -> None:
    start = started(tmp_path, "similar", "--help=all")
    assert start.code == 0
    check(start, heavy={"rdc.files.own.output_file", "rdc.files.base.taking_names", "rdc.model.preserved"})


@pytest.mark.parametrize("verb", ["dupes", "similar"])
def test_a_search(tmp_path: Path, places: tuple[Path, Path], verb: str) -> None:
    start = started(tmp_path, verb, places[0])
    assert start.code == 0
    session = {"rdc.session", "rdc.protocol", "msgpack"}
    check(start, heavy=(SLOW | session) - {"enum", "json", "re", "threading"})


@pytest.mark.parametrize("module", ["rdc.cli.main", "rdc.errors"])
def test_an_interrupt_while_rdc_is_loaded_prints_no_traceback(tmp_path: Path, module: str) -> None:
    hook = (
        "import os, sys\n"
        "def note(event, arguments):\n"
        f"    if event == 'import' and arguments[0] == '{module}':\n"
        f"        os.kill(os.getpid(), {signal.SIGINT:d})\n"
        "sys.addaudithook(note)\n"
    )
    (tmp_path / "sitecustomize.py").write_text(hook)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    for argv in ([sys.executable, "-m", "rdc"], [str(Path(sys.executable).with_name("rdc"))]):
        ended = subprocess.run([*argv, "--version"], env=environment, capture_output=True, check=False)
        assert ended.returncode == -signal.SIGINT
        assert ended.stdout + ended.stderr == b""


DIAL = """
import json, sys
from rdc.cli.environment import process_environment
from rdc.cli.main import run
from rdc.transport.pipes import ChildTransport

dials = []
start = ChildTransport.start


def dial(*arguments):
    dials.append(sorted(sys.modules))
    return start(*arguments)


ChildTransport.start = staticmethod(dial)
code = run(sys.argv[2:], process_environment())
with open(sys.argv[1], "w") as file:
    json.dump({"code": code, "dials": dials}, file)
"""


def dials(place: Path, *words: object) -> list[list[str]]:
    """Return which modules were loaded at each dial of a run whose remote shell ends at once."""
    account = place / "account"
    command = [sys.executable, "-I", "-c", DIAL, str(account), "sync", "-e", "false", *map(str, words)]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(place / "home")}
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environ, check=True)
    found: list[list[str]] = json.loads(account.read_text())["dials"]
    return found


def test_the_remote_shell_starts_before_this_end_loads_its_session(
    tmp_path: Path, places: tuple[Path, Path]
) -> None:
    source, _ = places
    for words in ((f"{source}/", "host:copy/"), ("host:data/", f"{tmp_path}/new/")):
        [modules] = dials(tmp_path, *words)
        assert "rdc.session.far.far_host" in modules
        late = (
            "rdc.catalog.catalog",
            "rdc.session.sync_run",
            "rdc.protocol",
            "rdc.session.source",
            "rdc.session.destination",
            "rdc.kernel",
            "blake3",
        )
        assert not [name for name in modules if name.startswith(late)]


def test_no_remote_shell_starts_for_a_source_that_is_not_there(tmp_path: Path) -> None:
    """A mistyped path must not first ask for a password."""
    assert dials(tmp_path, tmp_path / "missing", "host:copy/") == []
