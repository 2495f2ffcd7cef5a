"""What undoing a removal of duplicates gives back besides files, and what it clears."""

from __future__ import annotations

import os
import shutil
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.running.deduping import TIME, Seen, blob, dedupe, dupes, messages, seen
from tests.support.trees.loop_images import image_directory, mounted

ACTIONS = ("--delete", "--move", "--symlink")

NOBODY = (1 << 32) - 1
"""In place of a user's number."""

ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in ((0x01, 7, NOBODY), (0x02, 5, 1234), (0x04, 5, NOBODY), (0x10, 5, NOBODY), (0x20, 0, NOBODY))
)
"""user::rwx, user:1234:r-x, group::r-x, mask::r-x, other::---, as in linux/posix_acl_xattr.h."""


@dataclass(frozen=True, slots=True)
class SeenDirectory:
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    attributes: tuple[tuple[str, bytes], ...]


def directories(top: Path) -> dict[str, SeenDirectory]:
    found = {}
    for path in [top, *top.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            now = os.stat(path)
            attributes = tuple((key, os.getxattr(path, key)) for key in sorted(os.listxattr(path)))
            found[str(path.relative_to(top))] = SeenDirectory(
                stat.S_IMODE(now.st_mode), now.st_uid, now.st_gid, now.st_mtime_ns, attributes
            )
    return found


class Scene:
    """`kept` and its copies, alone in directories of their own."""

    def __init__(self, place: Path) -> None:
        self.top = place / "top"
        self.journal = place / "journal"
        self.out = place / "out"
        for number, path in enumerate(("a/kept", "b/copy", "b/deep/er/copy", "c/copy", "c/two")):
            file = self.top / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(blob(1, 20_000))
            os.utime(file, ns=(TIME + number, TIME + number))
        os.link(self.top / "c/copy", self.top / "b/deep/linked")
        for number, path in enumerate(("b/deep/er", "b/deep", "b", "c", "a", "")):
            directory = self.top / path
            os.setxattr(directory, "user.number", b"%d" % number)
            os.chown(directory, 10 + number, 20 + number)
            directory.chmod((0o700, 0o2750, 0o1777, 0o755, 0o755, 0o755)[number])
            if path == "b/deep":
                os.setxattr(directory, "system.posix_acl_access", ACL)
                os.setxattr(directory, "system.posix_acl_default", ACL)
            os.utime(directory, ns=(TIME + number, TIME + number))
        self.files, self.directories = seen(self.top), directories(self.top)

    def run(self, action: str) -> None:
        words = [f"--move={self.out}" if action == "--move" else action]
        run = dupes("--apply", *words, f"--journal={self.journal}", self.top)
        assert run.code == 0, run

    def undo(self, *words: str) -> None:
        run = dedupe("--undo", self.journal, *words)
        assert run.code == 0, run

    def remove_empty(self) -> list[str]:
        """As `find -type d -empty -delete`: the directories that have nothing left, or only links."""
        removed = []
        for path in sorted(self.top.rglob("*"), reverse=True):
            if path.is_symlink():
                path.unlink()
        for path in sorted(self.top.rglob("*"), reverse=True):
            if path.is_dir() and not os.listdir(path):
                path.rmdir()
                removed.append(str(path.relative_to(self.top)))
        return removed


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("action", ACTIONS)
def test_directories_that_are_gone_come_back_as_they_were(scene: Scene, action: str) -> None:
    scene.run(action)
    removed = scene.remove_empty()
    assert set(removed) == {"b", "b/deep", "b/deep/er", "c"}
    before = directories(scene.top)
    scene.undo("--dry-run")
    assert directories(scene.top) == before
    scene.undo()
    assert seen(scene.top) == scene.files
    assert os.stat(scene.top / "c/copy").st_ino == os.stat(scene.top / "b/deep/linked").st_ino
    found = directories(scene.top)
    # What was never removed has the time of its last change, as after any.
    assert {path: found[path] for path in removed} == {path: scene.directories[path] for path in removed}
    assert found.keys() == scene.directories.keys()
    assert not list(scene.top.rglob(".rdc-*"))


def test_the_tree_itself_comes_back(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for top in (one, two):
        top.mkdir()
        (top / "file").write_bytes(blob(1, 10_000))
        os.utime(top / "file", ns=(TIME, TIME))
    two.chmod(0o710)
    os.utime(two, ns=(TIME, TIME))
    files, before = seen(tmp_path), directories(two)
    assert dupes("--delete", "--apply", f"--journal={tmp_path}/journal", one, two).code == 0
    two.rmdir()
    assert dedupe("--undo", tmp_path / "journal").code == 0
    (tmp_path / "journal").unlink()
    assert seen(tmp_path) == files
    assert directories(two) == before


def test_directories_of_a_journal_without_them_come_back_plainly(scene: Scene) -> None:
    """As journals of version 1 are."""
    scene.run("--delete")
    lines = scene.journal.read_bytes().splitlines(keepends=True)
    scene.journal.write_bytes(b"".join(line for line in lines if b'"directory"' not in line))
    scene.remove_empty()
    scene.undo()
    assert seen(scene.top) == scene.files


def test_something_else_in_the_place_of_a_directory_stays(scene: Scene) -> None:
    scene.run("--delete")
    scene.remove_empty()
    (scene.top / "b").write_bytes(b"mine")
    run = dedupe("--undo", scene.journal)
    assert run.code == 23
    assert (scene.top / "b").read_bytes() == b"mine"
    assert (scene.top / "c/copy").read_bytes() == blob(1, 20_000)


def test_a_directory_that_lies_elsewhere_is_not_entered(scene: Scene, tmp_path: Path) -> None:
    scene.run("--delete")
    scene.remove_empty()
    outside = tmp_path / "outside"
    outside.mkdir()
    (scene.top / "b").symlink_to(outside)
    run = dedupe("--undo", scene.journal)
    assert run.code == 23
    assert os.listdir(outside) == []


def test_directories_that_a_move_made_go_if_they_are_empty(scene: Scene) -> None:
    scene.out.mkdir()
    (scene.out / "mine").mkdir()
    scene.run("--move")
    (scene.out / "c" / "later").write_bytes(b"later")
    assert (scene.out / "b/deep/er/copy").is_file()
    scene.undo()
    assert seen(scene.top) == scene.files
    assert {str(path.relative_to(scene.out)) for path in scene.out.rglob("*")} == {"mine", "c", "c/later"}


@pytest.fixture(scope="module")
def other() -> Iterator[Path]:
    with image_directory() as directory, mounted("ext4", directory) as point:
        yield point


@pytest.mark.needs("ext4")
def test_holes_stay_holes_on_the_way_and_back(tmp_path: Path, other: Path) -> None:
    top, journal = tmp_path / "top", tmp_path / "journal"
    top.mkdir()
    for name in ("kept", "moved"):
        with (top / name).open("wb") as file:
            file.seek(1 << 31)
            file.write(b"x")
            file.truncate(1 << 32)
        os.utime(top / name, ns=(TIME, TIME))
    for words in ([f"--move={other}/out"], ["--delete"]):
        before = {path: os.stat(top / path).st_blocks for path in ("kept", "moved")}
        run = dupes("--apply", *words, f"--journal={journal}", top)
        assert run.code == 0, run
        assert run.summary["won"] == before["moved"] * 512
        assert sum(path.stat().st_blocks for path in [*other.rglob("moved"), top]) < 2_000
        assert dedupe("--undo", journal).code == 0
        journal.unlink()
        assert os.stat(top / "moved").st_blocks < 2_000
        assert os.stat(top / "moved").st_size == 1 << 32
        assert not list(other.rglob("moved"))


def test_a_file_that_changed_on_its_way_stays_where_it_is(scene: Scene) -> None:
    scene.run("--move")
    moved = scene.out / "b" / "copy"
    moved.write_bytes(b"newer")
    scene.undo()
    assert moved.read_bytes() == b"newer"
    assert seen(scene.top) == scene.files


def test_a_kept_file_that_changed_is_no_source(scene: Scene) -> None:
    scene.run("--delete")
    (scene.top / "a/kept").write_bytes(b"newer")
    run = dedupe("--undo", scene.journal)
    assert run.code == 24
    assert run.summary["files"] == 0
    assert messages(run).count("the content that it had") == 5
    assert not (scene.top / "b/copy").exists()


def test_everything_at_once_is_as_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the C parts and without: the same files, the same events."""
    found: list[tuple[dict[str, Seen], list[object]]] = []
    for together in (True, False):
        place = tmp_path / str(together)
        scene = Scene(place)
        if not together:
            monkeypatch.setattr("rdc.files.names.leased_files._extension", None)
            monkeypatch.setattr("rdc.files.names.return_name._extension", None)
        run = dupes("--apply", "--delete", f"--journal={scene.journal}", scene.top)
        left = seen(scene.top)
        undone = dedupe("--undo", scene.journal)
        assert (run.code, undone.code) == (0, 0)
        assert seen(scene.top) == scene.files
        events = [
            {**event, "seconds": 0, "journal": ""}
            for event in (*run.events, *undone.events)
            if event["event"] in ("item", "summary")
        ]
        text = repr(events).replace(str(place), "PLACE")
        found.append((left, [text]))
        shutil.rmtree(place)
    assert found[0] == found[1]
