"""What a start of rdc loads, counted: each module costs every run its time, on both sides of a sync."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

# Audit events tell what is compiled: modules have the name of their file, what runs by exec has another.
SCRIPT = """
import sys
compiled = []
def note(event, arguments):
    if event == "compile" and not str(arguments[1]).endswith(".py"):
        compiled.append(str(arguments[1]))
sys.addaudithook(note)
before = set(sys.modules)
from rdc.cli.main import run
from rdc.cli.environment import process_environment
code = run(sys.argv[2:], process_environment())
loaded = sorted(set(sys.modules) - before)
import json
with open(sys.argv[1], "w") as file:
    json.dump({"code": code, "modules": loaded, "compiled": len(compiled)}, file)
"""

SLOW = {
    "asyncio",
    "concurrent.futures",
    "cryptography",
    "dataclasses",
    "hashlib",
    "importlib",
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
    "warnings",
    "watchdog",
    "zstandard",
    "zstandard.backend_c",
}
"""No module of these is for a run that does nothing of what it is there for."""


@dataclass(frozen=True)
class Start:
    code: int
    modules: list[str]
    """Loaded by the run, beyond what Python itself needs."""
    compiled: int
    """Pieces of code that were compiled from text made on the way."""

    @property
    def own(self) -> int:
        return sum(name.partition(".")[0] == "rdc" for name in self.modules)


def started(place: Path, *words: object) -> Start:
    account = place / "account"
    command = [sys.executable, "-I", "-c", SCRIPT, str(account), *map(str, words)]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(place / "home")}
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environ, check=True)
    return Start(**json.loads(account.read_text()))


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("source", "destination"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"the same")
    for entry in ("file", "."):
        times = (tmp_path / "source" / entry).stat()
        os.utime(tmp_path / "destination" / entry, ns=(times.st_atime_ns, times.st_mtime_ns))
    return tmp_path / "source", tmp_path / "destination"


def check(start: Start, *, modules: int, own: int, compiled: int, heavy: set[str] = SLOW) -> None:
    assert not heavy & set(start.modules)
    assert len(start.modules) <= modules, start.modules
    assert start.own <= own, [name for name in start.modules if name.startswith("rdc")]
    assert start.compiled <= compiled


def test_the_version(tmp_path: Path) -> None:
    start = started(tmp_path, "--version")
    assert start.code == 0
    check(start, modules=30, own=15, compiled=1, heavy=SLOW | {"msgpack", "blake3", "ctypes"})


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
    # What transfers files, cuts them and looks for similar ones is for runs that have something to do.
    idle = {"rdc.session.file_descents", "rdc.session.origins", "rdc.session.whole_files", "rdc.similarity"}
    idle |= {"rdc.session.file_answers", "rdc.session.driver", "rdc.session.manifest_comparison"}
    idle |= {"rdc.session.bandwidth", "rdc.session.file_sender", "rdc.catalog.eviction"}
    idle |= {"rdc.session.receiving", "rdc.session.directories", "rdc.session.landing", "rdc.files.commit"}
    idle |= {"rdc.session.settled_tree", "rdc.plan.compare"}
    idle |= {"rdc.chunking.chunker", "rdc.plan.descent", "rdc.plan.blocks", "rdc.signature.build"}
    check(start, modules=145, own=111, compiled=11, heavy=(SLOW | idle) - {"threading"})


def test_the_far_side_of_a_sync_up_to_the_hello(tmp_path: Path) -> None:
    start = started(tmp_path, "serve", "--stdio")
    assert start.code == 12
    later = {"rdc.session.source", "rdc.session.destination", "rdc.tree.manifest", "rdc.kernel"}
    check(start, modules=124, own=91, compiled=3, heavy=SLOW | later)


def test_the_near_side_of_a_sync_up_to_the_hello(tmp_path: Path, places: tuple[Path, Path]) -> None:
    # It ends once the first words are here: one that ends at once may do so before these are made.
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\nhead -c 1 > /dev/null\n")
    shell.chmod(0o755)
    start = started(tmp_path, "sync", "-e", shell, f"{places[0]}/", "host:x")
    assert start.code == 12
    later = {"rdc.session.destination", "rdc.session.local", "rdc.session.transfer"}
    later |= {"rdc.session.file_sender", "rdc.session.overlap", "rdc.session.heartbeat"}
    check(start, modules=146, own=113, compiled=8, heavy=SLOW | later)


@pytest.mark.parametrize("verb", ["dupes", "similar"])
def test_a_search(tmp_path: Path, places: tuple[Path, Path], verb: str) -> None:
    start = started(tmp_path, verb, places[0])
    assert start.code == 0
    session = {"rdc.session", "rdc.protocol", "msgpack"}
    check(start, modules=118, own=82, compiled=2, heavy=(SLOW | session) - {"json", "re", "threading"})


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
