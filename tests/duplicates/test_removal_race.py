"""Other programs act at the worst moments of a removal: none of their bytes are lost, nor the last copy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import rdc.files.names.name_change
from tests.support.running.deduping import TIME, Run, blob, dupes, messages, write_duplicates
from tests.support.running.killed_dedupe import leftovers
from tests.support.trees.racing_writer import Writer

CONTENT = b"content" * 1000
ACTIONS = ("delete", "move", "symlink")


@contextmanager
def struck(step: int, event: Callable[[], None]) -> Iterator[list[int]]:
    """Calls `event` before that step. Yields a list of one number, the steps made."""
    made = [0]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            if made[0] == step:
                event()
            made[0] += 1
            return call(*arguments, **named)

        return run

    with pytest.MonkeyPatch.context() as patch:
        module = rdc.files.names.name_change
        for name in ("rename_exchange", "rename_no_replace", "rename_no_replace_between"):
            patch.setattr(module, name, counted(getattr(module, name)))
        for name in ("fsync", "symlink"):
            patch.setattr(os, name, counted(getattr(os, name)))
        yield made


class Pair:
    """Two equal files, of which `old` is to go."""

    def __init__(self, directory: Path, action: str) -> None:
        self.top = directory / "top"
        self.top.mkdir(parents=True)
        for name in ("first", "old"):
            (self.top / name).write_bytes(CONTENT)
            os.utime(self.top / name, ns=(TIME, TIME))
        self.out = directory / "out"
        self.found = os.open(self.top / "old", os.O_PATH)
        self.original = os.open(self.top / "first", os.O_PATH)
        self.words: list[str | Path] = ["--apply", f"--journal={directory}/journal", self.top]
        self.words.append(f"--move={self.out}" if action == "move" else f"--{action}")

    def run(self) -> Run:
        return dupes(*self.words)

    def is_there(self) -> bool:
        """Return whether `old` is the file that it was."""
        return os.path.samestat(os.lstat(self.top / "old"), os.fstat(self.found))

    def has_moved(self) -> bool:
        """Return whether it is the same file at its destination."""
        moved = self.out / "old"
        return moved.exists() and os.path.samestat(os.lstat(moved), os.fstat(self.found))

    def close(self) -> None:
        os.close(self.found)
        os.close(self.original)


def ask_to_write(fd: int) -> None:
    """Breaks the lease, as a program does that waits for it, and gives up."""
    with suppress(BlockingIOError):
        os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK))


EVENTS: dict[str, Callable[[Pair], None]] = {
    "a writer opens it": lambda pair: ask_to_write(pair.found),
    "a writer opens the other": lambda pair: ask_to_write(pair.original),
    "its mode changes": lambda pair: os.chmod(f"/proc/self/fd/{pair.found}", 0o600),
    "its time changes": lambda pair: os.utime(f"/proc/self/fd/{pair.found}", ns=(1, 1)),
    "the other goes": lambda pair: os.unlink(pair.top / "first"),
    "the other is moved over": lambda pair: move_over(pair, "first"),
}
"""After each of them the file must stay."""


def move_over(pair: Pair, name: str) -> None:
    (pair.top / "newer").write_bytes(b"newer")
    os.rename(pair.top / "newer", pair.top / name)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("event", EVENTS)
def test_it_stays_and_is_named(tmp_path: Path, action: str, event: str) -> None:
    for step in count():
        pair = Pair(tmp_path / f"{step}", action)
        with struck(step, partial(EVENTS[event], pair)) as made:
            run = pair.run()
        if made[0] <= step:
            break
        if pair.has_moved():
            # One rename, after which both files were looked at: the move is over, and the file is whole.
            pair.close()
            continue
        assert pair.is_there(), (step, run)
        assert run.code in (23, 24), run
        assert "old" in messages(run)
        assert leftovers(pair.top) == []
        assert not (pair.out / "old").exists()
        assert run.summary["files"] == 0
        pair.close()
    assert step > 3


@pytest.mark.parametrize("action", ACTIONS)
def test_a_file_moved_over_it_stays(tmp_path: Path, action: str) -> None:
    for step in count():
        pair = Pair(tmp_path / f"{step}", action)
        with struck(step, partial(move_over, pair, "old")) as made:
            run = pair.run()
        if made[0] <= step:
            break
        assert (pair.top / "old").read_bytes() == b"newer", (step, run)
        assert not (pair.top / "old").is_symlink()
        assert (pair.top / "first").read_bytes() == CONTENT
        assert leftovers(pair.top) == []
        pair.close()


def test_two_runs_that_choose_each_others_files(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    contents = {blob(group, 30_000 + 4096 * group) for group in range(40)} | {blob(99, 30_000)}
    for number in range(3):
        write_duplicates(top, groups=40, copies=4)
        writers = [Writer(partial(one_run, tmp_path, top, rule, number)) for rule in ("in:a", "in:b")]
        codes = [writer.result() for writer in writers]
        assert set(codes) <= {0, 23, 24}
        assert {path.read_bytes() for path in top.rglob("*") if path.is_file()} == contents
        assert leftovers(top) == []


def one_run(directory: Path, top: Path, rule: str, number: int) -> int:
    rule = f"{rule[:3]}{top}/{rule[3:]}"
    journal = directory / f"{rule[-1]}{number}"
    return dupes("--delete", "--apply", f"--keep={rule}", f"--journal={journal}", top).code
