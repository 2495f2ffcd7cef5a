"""--on-sync: a command after changes, never two at once, whose failure ends nothing."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.library.trees import watch
from rdc.model.options import Backup
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from rdc.watching.records import InStep, WatchOptions
from rdc.watching.watch_loop import Changes, Hook, run_command
from tests.support.running.syncing import command
from tests.support.running.watching import HereLine, Watching, eventually, small_tree

WRITES = "import json, os, sys; open(sys.argv[1], 'a').write(json.dumps(dict(os.environ)) + '\\n')"


def turn(changed: int = 1, deleted: int = 0, files: int = 5) -> InStep:
    return InStep(False, files, changed, deleted, 0, 0, 0.0)


def complain(problem: Problem) -> None:
    raise AssertionError(problem)


class Runs:
    """Takes the place of the command; each run waits until it may end."""

    def __init__(self) -> None:
        self.began: list[Changes] = []
        self.at_once = self.most_at_once = 0
        self.ends = threading.Semaphore(0)

    def __call__(self, words: Sequence[str], changes: Changes) -> str | None:
        self.began.append(changes)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.ends.acquire(timeout=60)
        self.at_once -= 1
        return None


def test_what_changes_during_a_run_leads_to_one_more() -> None:
    runs = Runs()
    hook = Hook(["x"], complain, run=runs, quiet=0)
    hook.note(turn(2, 1, files=3))
    eventually(lambda: len(runs.began) == 1, lambda: str(runs.began))
    for _ in range(3):
        hook.note(turn(1, 1, files=9))
    hook.note(turn(0, 0))
    runs.ends.release(2)
    hook.close()
    assert runs.began == [Changes(1, 2, 1, 3), Changes(3, 3, 3, 9)]
    assert runs.most_at_once == 1


def test_nothing_runs_where_nothing_changed() -> None:
    runs = Runs()
    hook = Hook(["x"], complain, run=runs, quiet=0)
    hook.note(turn(0, 0))
    hook.close()
    assert runs.began == []


def test_the_end_does_not_wait_for_quiet() -> None:
    runs = Runs()
    runs.ends.release()
    hook = Hook(["x"], complain, run=runs, quiet=1e6)
    hook.note(turn())
    hook.close()
    assert len(runs.began) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((sys.executable, "-c", "raise SystemExit(3)"), "ended with exit code 3"),
        ((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"), "ended by signal 9"),
        (("/nowhere/at-all",), "cannot be run: No such file or directory"),
        (("a\0b",), "cannot be run"),
        ((sys.executable, "-c", "pass"), None),
    ],
)
def test_a_failure_is_named(words: Sequence[str], said: str | None) -> None:
    found = run_command(words, Changes())
    assert found == said or (said is not None and found is not None and found.startswith(said))


def test_a_watch_tells_what_changed_and_goes_on_after_a_failure(tmp_path: Path) -> None:
    """No word reaches a shell."""
    source, log, stop, told = small_tree(tmp_path / "s"), tmp_path / "log", threading.Event(), []

    def report(event: object) -> None:
        told.append(event)
        if isinstance(event, Problem):
            stop.set()

    words = (sys.executable, "-c", WRITES + "; raise SystemExit(7)", str(log), "$(touch x); *")
    options = WatchOptions(SyncOptions(fsync=False), on_sync=words)
    report_ = watch(f"{source}/", f"{tmp_path}/d/", options, reporter=report, catalog=None, stop=stop)
    (line,) = log.read_text().splitlines()
    found = {key: value for key, value in json.loads(line).items() if key.startswith("RDC_WATCH_")}
    changed = next(event.changed for event in told if isinstance(event, InStep))
    assert found == {
        "RDC_WATCH_TURNS": "1",
        "RDC_WATCH_CHANGED": str(changed),
        "RDC_WATCH_DELETED": "0",
        "RDC_WATCH_FILES": "22",
    }
    (problem,) = [event for event in told if isinstance(event, Problem)]
    assert problem.code is ExitCode.PARTIAL
    assert "ended with exit code 7; the watch goes on" in problem.message
    assert (report_.turns, report_.errors) == (1, 1)


def test_from_the_command_line(tmp_path: Path) -> None:
    source, log = small_tree(tmp_path / "s"), tmp_path / "log"
    script = tmp_path / "hook.py"
    script.write_text("print('on stdout')\n" + WRITES)
    hook = f"--on-sync={sys.executable} '{script}' {log}"
    watching = Watching(source, tmp_path / "d", hook, place=tmp_path, line=HereLine())
    with watching.running():
        eventually(log.exists, lambda: watching.story)
        (source / "new").write_bytes(b"new")
        watching.wait_told("new", 1)
        watching.wait_turn("new")
        # The command runs after its sync was told: a stop before it begins leaves it out.
        eventually(lambda: len(log.read_text().splitlines()) > 1, lambda: watching.story)
        assert watching.stop() == 0
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [int(run["RDC_WATCH_FILES"]) for run in told] == [22, 23]
    assert "on stdout" not in json.dumps(watching.events)


@pytest.mark.parametrize("value", ["", "  ", "'unclosed"])
def test_what_is_no_command(value: str, tmp_path: Path) -> None:
    ended = command("watch", f"--on-sync={value}", f"{tmp_path}/", f"{tmp_path}/d/")
    assert ended.code == ExitCode.USAGE
    assert "--on-sync" in ended.err


@pytest.mark.parametrize("far_source", [False, True])
def test_options_of_sync_that_a_watch_has(far_source: bool, tmp_path: Path) -> None:
    """--inplace, --backup and --mkpath, whichever side dialled."""
    source, top = small_tree(tmp_path / "s"), tmp_path / "not" / "there" / "d"
    options = ("--inplace", "-b", "--suffix=.old", "--mkpath", "--delete")
    watching = Watching(source, top, *options, place=tmp_path, far_source=far_source)
    with watching.running():
        inode = (top / "top").stat().st_ino
        (source / "top").write_bytes(b"changed")
        (source / "d" / "f3").unlink()
        eventually(lambda: (top / "top").read_bytes() == b"changed", lambda: watching.story)
        # The old name goes right after the new one is there.
        eventually((top / "d" / "f3.old").exists, lambda: watching.story)
        eventually(lambda: not (top / "d" / "f3").exists(), lambda: watching.story)
        assert (top / "top").stat().st_ino == inode
        assert (top / "top.old").read_bytes() == b"top"
        assert (top / "top.old").stat().st_ino != inode
        assert watching.stop() == 0
    assert watching.named("error") == []


def test_a_library_call_takes_words_alone() -> None:
    with pytest.raises(TypeError, match="on_sync"):
        WatchOptions(on_sync="systemctl reload nginx")  # type: ignore[arg-type] # this is the question
    assert WatchOptions(SyncOptions(backup=Backup(b"~"))).on_sync == ()
    assert os.environ.get("RDC_WATCH_TURNS") is None
