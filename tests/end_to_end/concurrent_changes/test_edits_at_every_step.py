"""Whatever somebody writes at the destination while a run works there stays, at every step of the run.

A run lists a directory, and from then on it changes an entry in there only if that is still the one that was
listed. Two moments are left: between the check of an entry and the call right after it, and while a file is
written in place. Edits are made everywhere else: before any call of the destination that changes nothing.
"""

from __future__ import annotations

import dataclasses
import mmap
import os
import random
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, currently_in_test_context, given, note, settings
from hypothesis import strategies as st

from rdc.errors import RdcError
from rdc.library.trees import sync
from rdc.model.options import Alternates, AlternateUse, Backup, KeepUndo
from rdc.model.sync import SyncOptions
from rdc.progress import Event, ItemChanged, Problem
from rdc.session.destination.directory_changes import DirectoryChanges
from tests.support.running.failing_calls import Made, with_fault
from tests.support.share import examples
from tests.support.trees.tree_strategies import edited, plain_trees
from tests.support.trees.trees import Directory, File, Link, Tree, parent_of, tree, write_tree

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

LOOKS = {"openat", "openat2", "pread64", "preadv", "getdents64", "newfstatat", "statx", "fstat", "readlinkat"}
"""Calls that change nothing. An edit right before another call could be between a check and that call."""

USER = b"what somebody wrote meanwhile"


# What somebody does at a path. No link is followed, since it may lead anywhere.


def write(path: Path) -> None:
    refuse_links(path)
    path.write_bytes(USER)


def append(path: Path) -> None:
    refuse_links(path)
    with path.open("ab") as file:
        file.write(USER)


def write_secretly(path: Path) -> None:
    """Other content of the same size and with the same mtime."""
    refuse_links(path)
    found = path.stat()
    with path.open("r+b") as file:
        file.write(bytes(255 - byte for byte in path.read_bytes()))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def save(path: Path) -> None:
    """Save as editors do: another file takes the name."""
    with tempfile.NamedTemporaryFile(dir=path.parent.parent, delete=False) as file:
        file.write(USER)
    os.replace(file.name, path)


def remove(path: Path) -> None:
    path.unlink()


def become_a_directory(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
    path.mkdir()
    (path / "inside").write_bytes(USER)


def become_a_link(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
    path.symlink_to("somewhere/else")


def change_mode(path: Path) -> None:
    """Of a file. A directory gets the source's mode in the end, if it is still the same directory."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise IsADirectoryError
    path.chmod(0o640 if stat.S_IMODE(path.stat().st_mode) != 0o640 else 0o604)


def put_inside(path: Path) -> None:
    refuse_links(path)
    (path / "put inside").write_bytes(USER)


def refuse_links(path: Path) -> None:
    if path.is_symlink():
        raise FileExistsError


EDITS: dict[str, Callable[[Path], None]] = {
    edit.__name__: edit
    for edit in (
        *(write, append, write_secretly, save, remove),
        *(become_a_directory, become_a_link, change_mode, put_inside),
    )
}


INSIDE = {"put_inside": "put inside", "become_a_directory": "inside"}
"""Edits that put something into a directory, and its name there."""


def state(path: Path) -> object:
    """What is at a path: everything that somebody may have wanted there."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode):
        return os.readlink(path)
    if stat.S_ISDIR(found.st_mode):
        return {entry.name: state(entry) for entry in path.iterdir() if not entry.name.startswith(".rdc-")}
    return path.read_bytes(), stat.S_IMODE(found.st_mode), found.st_mtime_ns


# A run that somebody disturbs

ITEM = "item: "


class Scene:
    """A source, a destination and a tree beside it, to be synced over and over."""

    def __init__(self, top: Path, wanted: Tree, held: Tree) -> None:
        self.wanted, self.held = wanted, held
        self.source = write_tree(top / "source", wanted)
        self.destination = top / "destination"
        write_tree(self.destination, held)
        write_tree(top / "earlier", wanted)
        self.directories = sorted(
            {parent_of(path) for path in (*wanted, *held)}
            | {path for tree in (wanted, held) for path, node in tree.items() if isinstance(node, Directory)}
            | {b""}
        )
        self._shared = mmap.mmap(-1, 8 + 2 * len(self.directories))

    def reset(self) -> None:
        shutil.rmtree(self.destination)
        write_tree(self.destination, self.held)
        self._shared[:] = bytes(len(self._shared))

    def sync(self, options: SyncOptions) -> list[str]:
        """One run. The problems that it reported and the error that ended it, and `ITEM` with each path."""
        events: list[Event] = []
        try:
            with self._watched():
                sync(f"{self.source}/", str(self.destination), options, reporter=events.append, catalog=None)
        except RdcError as error:
            events.append(Problem(error.code, b"", f"ended: {error}"))
        changes = [event for event in events if isinstance(event, ItemChanged)]
        # A rename is reported with both names.
        paths = [
            path
            for change in changes
            for path in (change.path_bytes, change.target_bytes)
            if path is not None
        ]
        items = [ITEM + os.fsdecode(path) for path in paths]
        return items + [repr(event) for event in events if isinstance(event, Problem) and event.code]

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Notes which directories were listed and compared, and the thread that does it."""
        compare = DirectoryChanges.compare

        def noted(changes: DirectoryChanges, path: bytes, *args: Any, **more: Any) -> None:
            self._shared[:8] = threading.get_native_id().to_bytes(8, "little")
            number = self.directories.index(path) if path in self.directories else None
            if number is not None:
                self._shared[8 + 2 * number] = 1
            compare(changes, path, *args, **more)
            if number is not None:
                self._shared[9 + 2 * number] = 1

        with patch.object(DirectoryChanges, "compare", noted):
            yield

    def is_destination(self, thread: int) -> bool:
        return int.from_bytes(self._shared[:8], "little") == thread

    def was_listed(self, path: bytes, *, inside: bool) -> bool:
        """Return whether the run has listed what is at a path, or that nothing is. `inside`: what is in that
        directory."""
        both = isinstance(self.wanted.get(path), Directory) and isinstance(self.held.get(path), Directory)
        if inside and both:
            return bool(self._shared[8 + 2 * self.directories.index(path)])
        above = parent_of(path)
        while above and not (isinstance(self.wanted.get(above), Directory)):
            path, above = above, parent_of(above)
        # Below an extraneous directory all is listed when its parent's comparison has found it.
        end = int(path not in self.wanted or isinstance(self.held.get(path), Directory))
        return bool(self._shared[8 + 2 * self.directories.index(above) + end])

    def run(self, options: SyncOptions, witness: Callable[[str, int], None] | None = None) -> Made:
        """One run in a child, over what was there in the beginning."""
        self.reset()
        return with_fault(lambda: self.sync(options), witness=witness)


class Meddler:
    """Makes one edit, at the given share of the calls at which it may be made."""

    def __init__(self, scene: Scene, path: bytes, edit: str, at: int) -> None:
        self._scene = scene
        self._path = scene.destination / os.fsdecode(path)
        self._name = path
        # What else is in the directory was listed and may go, and what is missing there may come.
        self._made = self._path / INSIDE[edit] if edit in INSIDE else self._path
        self._edit = EDITS[edit]
        self._at = at
        self.chances = 0
        self.wanted: object = None
        self.done = False

    def __call__(self, call: str, thread: int) -> None:
        scene = self._scene
        if call not in LOOKS or not scene.is_destination(thread) or not self._was_listed():
            return
        if self.chances == self._at:
            try:
                for above in self._path.parents:
                    if above == scene.destination:
                        break
                    refuse_links(above)
                self._edit(self._path)
            except OSError:
                self._at += 1  # not now: nothing is there, or something else
            else:
                self.done, self.wanted = True, state(self._made)
        self.chances += 1

    def _was_listed(self) -> bool:
        return self._scene.was_listed(self._name, inside=self._edit is put_inside)

    @property
    def stays(self) -> bool:
        return state(self._made) == self.wanted


def check(scene: Scene, meddler: Meddler, path: bytes, made: Made, *, silent: bool) -> None:
    assert meddler.done
    problems = [line for line in made.value if not line.startswith(ITEM)]
    if currently_in_test_context():
        note(f"{problems}")
    assert meddler.stays, f"{path!r}: {meddler.wanted!r} is lost, {problems}"
    items = {os.fsencode(line.removeprefix(ITEM)).rstrip(b"/") for line in made.value}
    # What alternate directories have is linked without a word.
    if scene.wanted.get(path) != scene.held.get(path) and path in scene.wanted and not silent:
        assert problems or path in items, f"{path!r} was neither reported nor brought up to date"


@pytest.mark.parametrize("edit", ["change_mode", "write_secretly", "write", "save"])
def test_an_edit_right_after_a_rename(tmp_path: Path, edit: str) -> None:
    """The look that follows the rename would take the edit for a part of it."""
    scene = Scene(tmp_path, tree({"a": b"0"}), tree({"b": b"0"}))
    options = SyncOptions(delete=True, force_empty=True, fsync=False)
    for at in range(5):
        meddler = Meddler(scene, b"a", edit, at)
        made = scene.run(options, meddler)
        check(scene, meddler, b"a", made, silent=False)


@pytest.mark.parametrize(
    ("edit", "undo"), [("write_secretly", False), ("write_secretly", True), ("save", False)]
)
def test_an_edit_before_a_rename(tmp_path: Path, edit: str, undo: bool) -> None:
    """Right before it, too: the check comes after all that takes time, such as the record of an undo."""
    scene = Scene(tmp_path, tree({"b": b"0"}), tree({"a": b"0"}))
    kept = KeepUndo(days=1) if undo else None
    options = SyncOptions(delete=True, force_empty=True, fsync=False, keep_undo=kept)
    scene.sync(options)
    at, edits = 0, 0
    step = 4 if undo else 1  # its record takes many calls
    while True:
        meddler = Meddler(scene, b"a", edit, at)
        made = scene.run(options, meddler)
        if not meddler.done:
            break
        check(scene, meddler, b"a", made, silent=False)
        at, edits = at + step, edits + 1
    assert edits > 8


OPTIONS = st.one_of(
    st.builds(
        SyncOptions,
        delete=st.booleans(),
        hard_links=st.booleans(),
        checksum=st.booleans(),
        fewest_bytes=st.booleans(),
        delay_updates=st.booleans(),
        force_empty=st.just(True),
        fsync=st.booleans(),
    ),
    st.builds(
        SyncOptions,
        delete=st.booleans(),
        force_empty=st.just(True),
        fsync=st.just(False),
        backup=st.sampled_from((Backup(b"~"), Backup(b"", b"../old"))),
    ),
    st.builds(
        SyncOptions,
        delete=st.booleans(),
        hard_links=st.booleans(),
        force_empty=st.just(True),
        fsync=st.just(False),
        keep_undo=st.just(KeepUndo(days=1)),
    ),
    st.builds(
        SyncOptions,
        delete=st.booleans(),
        force_empty=st.just(True),
        fsync=st.just(False),
        alternates=st.sampled_from(list(AlternateUse)).map(lambda use: Alternates(use, (b"../earlier",))),
    ),
)


def large_scene() -> tuple[Tree, Tree]:
    """Files of each way of transfer, and all kinds of changes, among some that are equal."""
    rng = random.Random(7)
    held: Tree = {b"": Directory(0o755, 10**18), b"d": Directory(0o755, 10**18)}
    wanted = dict(held)
    for name, size in {b"tiny": 200, b"small": 3_000, b"large": 400_000}.items():
        content = rng.randbytes(size)
        old, new = File(content, 0o644, 10**18), File(content[: size // 2] + b"new", 0o644, 2 * 10**18)
        held |= {b"d/old " + name: old, b"touched " + name: old, b"mode " + name: old, b"extra " + name: old}
        wanted |= {b"d/old " + name: new, b"new " + name: new, b"same " + name: new}
        wanted |= {b"touched " + name: dataclasses.replace(old, mtime_ns=3 * 10**18)}
        wanted |= {b"mode " + name: dataclasses.replace(old, mode=0o600)}
        held |= {
            b"same " + name: new,
            b"old name of " + name: dataclasses.replace(old, content=content + b"moved"),
        }
        wanted |= {b"new name of " + name: dataclasses.replace(old, content=content + b"moved")}
    for number in range(24):
        content = rng.randbytes(2_500)
        held[b"many/%02d" % number] = File(content, 0o644, 10**18)
        wanted[b"many/%02d" % number] = File(content[:2_000] + b"other", 0o644, 2 * 10**18)
        wanted[b"many new/%02d" % number] = File(content[:700], 0o644, 2 * 10**18)
    held |= {
        b"many": Directory(0o755, 10**18),
        b"link": Link(b"old", 10**18),
        b"linked": File(b"f", 0o644, 1),
    }
    wanted |= {b"many": Directory(0o755, 10**18), b"many new": Directory(0o755, 10**18)}
    wanted |= {
        b"link": Link(b"new", 10**18),
        b"linked": Link(b"instead", 10**18),
        b"unlinked": File(b"", 0o644, 1),
    }
    held |= {b"unlinked": Link(b"before", 10**18), b"opened": File(b"before", 0o644, 1)}
    wanted |= {
        b"opened": Directory(0o755, 1),
        b"opened/f": File(b"f", 0o644, 1),
        b"closed": File(b"f", 0o644, 1),
    }
    held |= {b"closed": Directory(0o755, 1), b"closed/f": File(b"f", 0o644, 1)}
    held |= {b"gone": Directory(0o755, 1), b"gone/d": Directory(0o755, 1), b"gone/d/f": File(b"f", 0o644, 1)}
    return wanted, held


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_an_edit_at_any_step_of_all_ways_of_transfer(data: st.DataObject) -> None:
    options = data.draw(OPTIONS, label="options")
    edit = data.draw(st.sampled_from(sorted(EDITS)), label="edit")
    share = data.draw(st.floats(0, 1, exclude_max=True), label="share")
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        wanted, held = large_scene()
        differing = sorted(path for path in wanted.keys() | held.keys() if wanted.get(path) != held.get(path))
        path = data.draw(st.sampled_from([path for path in differing if path]), label="path")
        scene = Scene(Path(top), wanted, held)
        scene.sync(options)
        counting = Meddler(scene, path, edit, -1)
        scene.run(options, counting)
        assume(counting.chances)
        meddler = Meddler(scene, path, edit, int(share * counting.chances))
        made = scene.run(options, meddler)
        assume(meddler.done)
        check(scene, meddler, path, made, silent=options.alternates is not None)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_an_edit_at_any_step_of_any_run(data: st.DataObject) -> None:
    held = data.draw(plain_trees(), label="held")
    wanted = data.draw(edited(held), label="wanted")
    # Entries that differ come first, as a shrunk example should have one.
    differing = sorted(path for path in wanted.keys() | held.keys() if wanted.get(path) != held.get(path))
    paths = [path for path in differing if path] + sorted(wanted.keys() & held.keys() - {b"", *differing})
    assume(paths)
    options = data.draw(OPTIONS, label="options")
    path = data.draw(st.sampled_from(paths), label="path")
    edit = data.draw(st.sampled_from(sorted(EDITS)), label="edit")
    share = data.draw(st.floats(0, 1, exclude_max=True), label="share")
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        scene = Scene(Path(top), wanted, held)
        scene.sync(options)  # imports what a run needs
        counting = Meddler(scene, path, edit, -1)
        scene.run(options, counting)
        assume(counting.chances)
        meddler = Meddler(scene, path, edit, int(share * counting.chances))
        made = scene.run(options, meddler)
        assume(meddler.done)
        check(scene, meddler, path, made, silent=options.alternates is not None)
