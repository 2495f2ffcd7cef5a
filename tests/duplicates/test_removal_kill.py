"""kill -9 before every step of a removal, and of its undo: each content stays, and a second run finishes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.running.deduping import Run, Seen, dedupe, dupes, seen, write_duplicates
from tests.support.running.killed_calls import CallKiller, call_killer
from tests.support.running.killed_dedupe import killed_at, leftovers
from tests.support.trees.loop_images import image_directory, mounted

pytestmark = pytest.mark.needs("ext4")

EVERY = 3
"""Steps between two kills. With 1, each step is tried."""

ACTIONS = ("delete", "move", "symlink", "move to another file system")


@pytest.fixture(scope="module")
def other() -> Iterator[Path]:
    """A directory on another file system."""
    with image_directory() as directory, mounted("ext4", directory) as point:
        yield point


class Scene:
    """A tree with duplicates, the state directory with its journals, and where files are moved."""

    def __init__(self, directory: Path, other: Path, action: str, number: int) -> None:
        self.top = directory / f"tree{number}"
        self.top.mkdir(parents=True)
        self.wanted = write_duplicates(self.top, groups=2)
        os.link(self.top / "a/group0-copy1", self.top / "linked")
        if action == ACTIONS[3]:
            os.unlink(self.top / "linked")
        self.wanted = seen(self.top)
        self.out = (other if action == ACTIONS[3] else directory) / f"{directory.name}-{number}"
        self.state = directory / f"state{number}"
        self.environ = {"XDG_STATE_HOME": str(self.state)}
        self.words: list[str | Path] = ["--apply", "--keep=newest", self.top]
        self.words += [f"--move={self.out}"] if action.startswith("move") else [f"--{action}"]

    def dupes(self, *words: str | Path) -> Run:
        return dupes(*words, environ=self.environ)

    def undo(self, *words: str | Path) -> Run:
        return dedupe(*words, environ=self.environ)

    def journals(self) -> list[Path]:
        """Those that were begun: before its first line is written, nothing has changed."""
        found = sorted((self.state / "rdc").glob("dupes-*.journal"))
        return [path for path in found if path.stat().st_size]

    def look(self) -> None:
        """Each path has its file or has lost it whole, and each content is under a name that is not
        reserved, with its metadata."""
        found = seen(self.top)
        for path in leftovers(self.top):
            found.pop(str(path.relative_to(self.top)), None)
        assert found.items() <= self.wanted.items()
        assert set(found.values()) == set(self.wanted.values())

    def finished(self) -> None:
        """Of each content one file is left."""
        assert not leftovers(self.top)
        found = seen(self.top)
        inodes = {os.stat(self.top / path).st_ino for path in found}
        assert len(inodes) == len(set(found.values())) == 3

    def moved(self) -> dict[str, Seen]:
        return {path: one for path, one in seen(self.out).items() if "/.rdc-" not in f"/{path}"}


@pytest.mark.parametrize("action", ACTIONS)
def test_the_next_run_finishes_and_undo_restores(tmp_path: Path, other: Path, action: str) -> None:
    littered = 0
    for at in count(0, EVERY):
        scene = Scene(tmp_path, other, action, at)
        killed = killed_at(at, *scene.words, run=scene.dupes)
        scene.look()
        littered += bool(leftovers(scene.top))
        if killed and at % 2:
            run = scene.dupes(*scene.words)
            # A copy that was complete is not overwritten: the file is named, and stays.
            taken = action == ACTIONS[3] and run.code == 23
            assert run.code == 0 or (taken and "is taken" in run.out), run
            if not taken:
                scene.finished()
            scene.look()
        for journal in reversed(scene.journals()):
            run = scene.undo("--undo", journal)
            assert run.code == 0, run
        assert seen(scene.top) == scene.wanted, at
        assert not leftovers(scene.top)
        assert not scene.journals() or (not scene.moved() and not leftovers(scene.out)), at
        if not killed:
            assert at > 20
            break
    assert action == "move" or littered > 1


@pytest.mark.parametrize("action", ACTIONS)
def test_undo_killed(tmp_path: Path, other: Path, action: str) -> None:
    for at in count(0, 2 * EVERY):
        scene = Scene(tmp_path, other, action, at)
        assert scene.dupes(*scene.words).code == 0
        (journal,) = scene.journals()
        killed = killed_at(at, "--undo", journal, run=scene.undo)
        scene.look()
        run = scene.undo("--undo", journal)
        assert run.code == 0, run
        assert not leftovers(scene.top)
        assert seen(scene.top) == scene.wanted
        assert not scene.moved()
        if not killed:
            assert at > 8
            break


@pytest.fixture(scope="module")
def killer() -> Iterator[CallKiller]:
    with call_killer() as started:
        yield started


@pytest.mark.parametrize("action", ACTIONS)
def test_killed_at_any_call(tmp_path: Path, other: Path, action: str, killer: CallKiller) -> None:
    """As above, in the C code that changes many names at a time as well: undo leaves no trace."""
    littered = 0
    for at in count(0, 1 if action == "delete" else 4):
        scene = Scene(tmp_path, other, action, at)
        killed = killer(at, *scene.words, verb="dupes", environ=scene.environ)
        scene.look()
        littered += bool(leftovers(scene.top))
        for journal in scene.journals():
            run = scene.undo("--undo", journal)
            assert run.code == 0, run
            assert not scene.moved(), at
            assert not leftovers(scene.out), at
        assert seen(scene.top) == scene.wanted, at
        assert not leftovers(scene.top), at
        if not killed:
            assert at > 20
            break
    assert action == "move" or littered > 1


@pytest.mark.parametrize("action", ["delete", "symlink"])
def test_undo_killed_at_any_call(tmp_path: Path, other: Path, action: str, killer: CallKiller) -> None:
    for at in count(0, 1 if action == "delete" else 4):
        scene = Scene(tmp_path, other, action, at)
        assert scene.dupes(*scene.words).code == 0
        (journal,) = scene.journals()
        killed = killer(at, "--undo", journal, environ=scene.environ)
        scene.look()
        run = scene.undo("--undo", journal)
        assert run.code == 0, run
        assert not leftovers(scene.top), at
        assert seen(scene.top) == scene.wanted, at
        if not killed:
            assert at > 20
            break
