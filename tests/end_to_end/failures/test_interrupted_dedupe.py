"""A dedupe that was interrupted: what its journal names is taken up, anything else is named and left."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.duplicates.journal import Change, JournalWriter, KeptFile
from rdc.model.duplicates import Action
from rdc.model.entries import Metadata
from tests.support.running.deduping import Run as DedupeRun
from tests.support.running.deduping import dedupe, messages
from tests.support.trees.reserved_entries import CONTENT, TIME, seen
from tests.support.trees.unprivileged import NOBODY


class Interrupted:
    """`n` was being made a link to `kept`; what it was lies beside it, and a journal says so."""

    def __init__(self, place: Path) -> None:
        self.top, self.state = place / "top", place / "state" / "rdc"
        self.top.mkdir()
        self.state.mkdir(parents=True)
        for name in ("kept", "old"):
            (self.top / name).write_bytes(CONTENT)
            (self.top / name).chmod(0o644)
            os.utime(self.top / name, ns=(TIME, TIME))
        os.link(self.top / "kept", self.top / "n")
        self.old = os.stat(self.top / "old")
        top = os.fsencode(self.top.resolve())
        self.record = Change(
            Action.LINK,
            top,
            b"n",
            KeptFile(top, b"kept", os.stat(self.top / "kept").st_ino, len(CONTENT), b""),
            self.old.st_ino,
            Metadata(0o644, TIME, self.old.st_uid, self.old.st_gid),
        )
        self.left = Path(os.fsdecode(self.record.displaced))
        (self.top / "old").rename(self.left)
        self.journal = self.state / "dedupe-1.journal"

    def write(self, record: Change) -> None:
        journal = JournalWriter(os.fsencode(self.journal))
        journal.write([record])
        journal.close()

    def recover(self) -> DedupeRun:
        return dedupe("--apply", self.top, environ={"XDG_STATE_HOME": str(self.state.parent)})


def test_what_the_journal_names_is_taken_up(tmp_path: Path) -> None:
    scene = Interrupted(tmp_path)
    scene.write(scene.record)
    scene.recover()
    assert sorted(os.listdir(scene.top)) == ["kept", "n"]


def test_the_next_run_finds_a_journal_that_was_put_elsewhere(tmp_path: Path) -> None:
    scene = Interrupted(tmp_path)
    elsewhere = JournalWriter(os.fsencode(tmp_path / "mine"), os.fsencode(scene.journal))
    elsewhere.write([scene.record])
    elsewhere.close()
    scene.recover()
    assert sorted(os.listdir(scene.top)) == ["kept", "n"]


def _another_file(scene: Interrupted) -> None:
    content = scene.left.with_name("tmp")
    content.write_bytes(CONTENT)
    os.utime(content, ns=(TIME, TIME))
    content.rename(scene.left)


def _instead(scene: Interrupted, make: Callable[..., None], *words: object) -> None:
    scene.left.unlink()
    make(*words)


def _move(scene: Interrupted) -> None:
    scene.top = scene.top.rename(scene.top.with_name("moved"))
    scene.left = scene.top / scene.left.name


MISFITS: dict[str, Callable[[Interrupted], None]] = {
    "no journal": lambda scene: scene.journal.unlink(),
    "a journal of another user": lambda scene: os.chown(scene.journal, NOBODY, NOBODY),
    "a journal that others may write": lambda scene: scene.journal.chmod(0o666),
    "a damaged journal": lambda scene: os.truncate(scene.journal, 5),
    "another owner": lambda scene: os.chown(scene.left, NOBODY, -1),
    "another group": lambda scene: os.chown(scene.left, -1, NOBODY),
    "another mode": lambda scene: scene.left.chmod(0o755),
    "another inode": _another_file,
    "a link": lambda scene: _instead(scene, scene.left.symlink_to, "kept"),
    "a fifo": lambda scene: _instead(scene, os.mkfifo, scene.left),
    "a directory": lambda scene: _instead(scene, scene.left.mkdir),
    "another place": _move,
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_the_journal_is_named_and_left(misfit: str, tmp_path: Path) -> None:
    scene = Interrupted(tmp_path)
    scene.write(scene.record)
    MISFITS[misfit](scene)
    before = {path: seen(path) for path in scene.top.iterdir()}
    run = scene.recover()
    assert {path: seen(path) for path in scene.top.iterdir()} == before
    assert scene.left.name in messages(run)
