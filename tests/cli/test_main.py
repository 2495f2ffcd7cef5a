"""Each failure of the `rdc` command is one line and one exit code."""

from __future__ import annotations

import errno
import io
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rdc import __version__
from rdc.cli import main
from rdc.cli.environment import Environment
from rdc.cli.verb import VERBS
from rdc.cli.verbs import serve, sync
from rdc.errors import CommandMissingError, ExitCode, RdcError, StreamError, UsageError
from rdc.kernel import kernel_name
from tests.cli.ending_rdc import STARTED
from tests.support.project_paths import PSEUDO_SSH, TOP
from tests.support.running.fake_environment import BrokenStream, FakeProcess

RDC = [sys.executable, "-m", "rdc"]


def stub(monkeypatch: pytest.MonkeyPatch, end: BaseException) -> None:
    def run(_words: list[str], environment: Environment) -> ExitCode:
        environment.data("part\n")
        raise end

    monkeypatch.setattr(sync, "run", run)


@pytest.mark.parametrize(
    ("end", "code", "line"),
    [
        (UsageError("no such thing"), 1, "rdc: no such thing"),
        (StreamError("cut"), 12, "rdc: cut"),
        (RdcError("two\nlines\x1b"), 23, "rdc: two\\x0alines\\x1b"),
        (CommandMissingError("h: no rdc there"), 127, "rdc: h: no rdc there"),
        (KeyboardInterrupt(), 20, "rdc: interrupted"),
        (
            OSError(errno.EMFILE, "Too many open files", "module.py"),
            11,
            "rdc: too many open files; raise their limit to the usual 1,024 (ulimit -n) and run again",
        ),
        (
            ZeroDivisionError("by\n0"),
            1,
            "rdc: internal error: ZeroDivisionError: by\\x0a0 (set RDC_DEBUG=1 for the traceback)",
        ),
    ],
)
def test_each_end_is_one_line_and_a_code(
    end: BaseException, code: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub(monkeypatch, end)
    process = FakeProcess()
    assert main.run(["sync"], process.environment) == code
    assert process.err == line + "\n"
    assert process.out == "part\n"


def test_an_interrupt_is_one_whatever_it_met(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = RuntimeError("Error calling __set_name__ on 'cached_property' instance")
    wrapped.__cause__ = KeyboardInterrupt()
    stub(monkeypatch, wrapped)
    process = FakeProcess()
    assert main.run(["sync"], process.environment) == 20
    assert process.err == "rdc: interrupted\n"


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    for end in (ZeroDivisionError(), UsageError("u")):
        stub(monkeypatch, end)
        process = FakeProcess(environ={"RDC_DEBUG": "1"})
        main.run(["sync"], process.environment)
        assert "Traceback" in process.err
        assert "RDC_DEBUG" not in process.err


@pytest.mark.parametrize("verb", VERBS)
def test_h_alone_is_help(verb: str) -> None:
    short, long = FakeProcess(), FakeProcess()
    assert main.run([verb, "-h"], short.environment) == 0
    assert main.run([verb, "--help"], long.environment) == 0
    assert short.out == long.out


VERB_LIST = ", ".join(VERBS)
NO_VERB, SEE = "rdc: rdc has no verb '{}';", "(see rdc --help)"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], f"rdc: a verb is needed: {VERB_LIST} (see rdc --help)"),
        (["-av", "a", "b"], "rdc: -av comes before the verb; write rdc sync -av ... (see rdc --help)"),
        (["snyc", "b"], "rdc: rdc has no verb 'snyc'; did you mean sync? (see rdc --help)"),
        (["a", "b"], "rdc: rdc has no verb 'a'; to sync, write: rdc sync SRC DST (see rdc --help)"),
        (
            ["verify"],
            f"{NO_VERB.format('verify')} to compare two directories, write: rdc check SRC DST {SEE}",
        ),
        (
            ["Diff", "a"],
            f"{NO_VERB.format('Diff')} to compare two directories, write: rdc check SRC DST {SEE}",
        ),
        (
            ["status"],
            f"{NO_VERB.format('status')} to see what a sync would change, write: rdc sync -n -i SRC DST"
            f" {SEE}",
        ),
        (
            ["restore"],
            f"{NO_VERB.format('restore')} to revert the last sync, write: rdc undo DST; a snapshot:"
            f" rdc sync STORE/@latest/ DST {SEE}",
        ),
        (["rsync", "a", "b"], f"{NO_VERB.format('rsync')} to sync, write: rdc sync SRC DST {SEE}"),
        (
            ["prune"],
            f"{NO_VERB.format('prune')} snapshots: rdc store forget and gc; signatures: rdc catalog prune"
            f" {SEE}",
        ),
        (["find", "a"], f"{NO_VERB.format('find')} to find identical files, write: rdc dupes PATH {SEE}"),
        (["unison", "a"], f"{NO_VERB.format('unison')} to sync both ways, write: rdc unite LEFT RIGHT {SEE}"),
        (["man"], "rdc: rdc has no verb 'man'; write: rdc --man | man -l - (see rdc --help)"),
        (["help", "snyc"], "rdc: rdc has no verb 'snyc'; did you mean sync? (see rdc --help)"),
        (
            ["dupes", "-r", "a"],
            "rdc: rdc dupes has no -r: directories are always searched with all below them",
        ),
        (
            ["sync", "--itemize", "a", "b"],
            "rdc: unknown option --itemize; did you mean --itemize-changes? (see rdc sync --help)",
        ),
        (["version"], f"{NO_VERB.format('version')} write: rdc --version {SEE}"),
        (["daemon"], f"{NO_VERB.format('daemon')} write: rdc serve --config=FILE {SEE}"),
        (["bisync"], f"{NO_VERB.format('bisync')} to sync both ways, write: rdc unite LEFT RIGHT {SEE}"),
        (["serve"], "rdc: rdc serve needs --config=FILE for a daemon, or --stdio (see rdc serve --help)"),
        (["serve", "--stdio", "x"], "rdc: rdc serve takes no x (see rdc serve --help)"),
        (["serve", "--std"], "rdc: unknown option --std; did you mean --stdio? (see rdc serve --help)"),
        (["signature"], "rdc: one FILE is needed, 0 were given (see rdc signature --help)"),
    ],
)
def test_usage(words: list[str], line: str) -> None:
    process = FakeProcess()
    assert main.run(words, process.environment) == 1
    assert (process.out, process.err) == ("", line + "\n")


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_names_each_verb(words: list[str]) -> None:
    process = FakeProcess()
    assert main.run(words, process.environment) == 0
    assert all(f"  {verb} " in process.out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_two_ways(verb: str) -> None:
    first, second = FakeProcess(), FakeProcess()
    assert main.run([verb, "--help"], first.environment) == 0
    assert main.run(["help", verb], second.environment) == 0
    assert first.out == second.out
    assert first.out.startswith(f"Usage: rdc {verb} ")


def test_serve_calls_the_server() -> None:
    code = serve.run(["--stdio"], FakeProcess().environment, serve_stdio=lambda *_: ExitCode.PARTIAL)
    assert code is ExitCode.PARTIAL


def test_a_reader_that_left_is_no_error() -> None:
    process = FakeProcess(stdout=BrokenStream(BrokenPipeError(32, "Broken pipe")))
    assert main.run(["--help"], process.environment) == 141
    assert process.err == ""


def test_a_full_disk_under_stdout_is_one() -> None:
    process = FakeProcess(stdout=BrokenStream(OSError(28, "No space left on device")))
    assert main.run(["--help"], process.environment) == 11
    assert process.err == "rdc: cannot write to standard output: No space left on device\n"


def test_nobody_left_to_tell_is_no_traceback() -> None:
    broken = BrokenStream(BrokenPipeError(32, "Broken pipe"))
    process = FakeProcess(stdout=io.StringIO(), stderr=broken)
    assert main.run([], process.environment) == 1


# --- real processes -----------------------------------------------------------------------------------------


def test_python_m_rdc_version() -> None:
    done = subprocess.run([*RDC, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"rdc {__version__} (kernel: {kernel_name()})\n"


def test_version_and_help_load_no_heavy_module() -> None:
    script = (
        "import sys\n"
        "from rdc.cli.main import run\n"
        "from rdc.cli.environment import process_environment\n"
        "code = run(sys.argv[1:], process_environment())\n"
        "heavy = {'rich', 'watchdog', 'ssl', 'msgpack', 'sqlite3', 'asyncio', 'blake3', 'zstandard'}\n"
        "sys.exit(code or ' '.join(heavy & set(sys.modules)) or 0)\n"
    )
    for words in (
        ["--version"],
        ["--help"],
        ["sync", "--help"],
        ["signature", "--help"],
        ["serve", "--help"],
    ):
        done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), words


def test_a_closed_pipe_is_quiet() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        done = subprocess.run([*RDC, "sync", "--help"], stdout=stdout, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_device_is_named() -> None:
    with Path("/dev/full").open("wb") as stdout:
        done = subprocess.run([*RDC, "sync", "--help"], stdout=stdout, stderr=subprocess.PIPE)
    assert done.returncode == 11
    assert done.stderr == b"rdc: cannot write to standard output: No space left on device\n"


def test_closed_streams_are_no_traceback() -> None:
    command = f"'{sys.executable}' -m rdc --version >&- 2>&- <&-"
    assert subprocess.run(["sh", "-c", command]).returncode == 0


def test_an_interrupt_where_python_drops_what_is_raised_ends_the_run() -> None:
    script = (
        "import os, signal\n"
        "from rdc.cli import main\n"
        "class Dropped:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "def run(words, environment):\n"
        "    Dropped()\n"
        "    return 0\n"
        "main.run = run\n"
        "main.entry()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (20, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_anything_is_begun_ends_the_process_without_a_traceback(number: int) -> None:
    script = (
        "import os\n"
        "from rdc import __main__\n"
        "from rdc.cli import main\n"
        f"main.process_environment = lambda: os.kill(os.getpid(), {int(number)})\n"
        "__main__.main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-number, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_told_to_stop(number: int) -> None:
    script = (
        "import sys, time\n"
        "from rdc.cli import main\n"
        "from rdc.cli.verbs import sync\n"
        "def run(words, environment):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "sync.run = run\n"
        "sys.argv = ['rdc', 'sync']\n"
        "main.entry()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(number)
        _, err = child.communicate()
    assert (child.returncode, err) == (20, "rdc: interrupted\n")


def test_a_run_that_had_threads_ends_without_taking_python_apart(tmp_path: Path) -> None:
    content = os.urandom(32 << 20)
    for name, mtime in (("source", 10**9), ("destination", 2 * 10**9)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(content)
        os.utime(tmp_path / name / "file", (mtime, mtime))
    near, far = tmp_path / "near", tmp_path / "far"
    command = [sys.executable, "-m", "tests.cli.ending_rdc"]
    ends = ["-e", str(PSEUDO_SSH), "--remote-path", shlex.join([*command, str(far)])]
    places = [f"{tmp_path / 'source'}/", f"host:{tmp_path / 'destination'}/"]
    subprocess.run([*command, str(near), "sync", *ends, *places], cwd=TOP, check=True)
    assert set(near.read_text().splitlines()) == {STARTED}
    assert set(far.read_text().splitlines()) == {STARTED}
