"""Directories that the last put saw are taken over unread, and no change of them is missed."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rdc.catalog.catalog import Catalog
from rdc.errors import ExitCode, FileError
from rdc.files.base.metadata import file_clock
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.store import notes, put
from rdc.store.changed_files import WaitingDirectory
from rdc.store.place import PackStore
from rdc.store.reader import StoreReader
from rdc.store.records import StoreOptions
from rdc.store.snapshot_tree import SnapshotTree
from rdc.tree.walk import WalkedDirectory
from tests.support.store.stores import put_tree

STEP_SECONDS = 0.02
"""More than a step of the clock that stamps files, between a put and the next change."""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A catalog for which files that were just written are old enough to be remembered."""
    with Catalog(str(tmp_path / "catalog"), clock=lambda: file_clock() + 10**10) as made:
        yield made


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The directories that puts look at entry by entry."""
    found: list[bytes] = []
    look = put._Put._looked_at

    def noted(self: put._Put, walked: WalkedDirectory) -> WaitingDirectory:
        found.append(walked.path)
        return look(self, walked)

    monkeypatch.setattr(put._Put, "_looked_at", noted)
    return found


def write_tree(top: Path) -> None:
    for name in ("a", "a/b", "c", "empty", "links"):
        (top / name).mkdir(parents=True)
    for name in ("a/one", "a/two", "a/b/three", "c/four"):
        (top / name).write_bytes(name.encode() * 900)
    (top / "c" / "link").symlink_to("four")
    (top / "links" / "x").write_bytes(b"x")
    os.link(top / "links" / "x", top / "links" / "y")


def records_of(store: Path, series: str) -> bytes:
    """The tree of the newest snapshot of a series."""
    with PackStore.open(os.fsencode(store)) as opened:
        reader = StoreReader(opened)
        try:
            snapshots = [opened.snapshot(number) for number in opened.numbers()]
            own = [one for one in snapshots if one.series == series.encode()]
            tree = SnapshotTree(reader, own[-1])
            return b"".join(tree.records(0, len(tree)))
        finally:
            reader.close()


def test_only_a_changed_directory_is_looked_at(
    tmp_path: Path, catalog: Catalog, looked_at: list[bytes]
) -> None:
    top, store = tmp_path / "tree", tmp_path / "st"
    write_tree(top)
    put_tree(top, store, catalog=catalog)
    assert set(looked_at) == {b"", b"a", b"a/b", b"c", b"empty", b"links"}
    looked_at.clear()
    put_tree(top, store, catalog=catalog)
    assert looked_at == [b"links"], "numbers of hard links differ from put to put"
    looked_at.clear()
    time.sleep(STEP_SECONDS)
    (top / "a" / "b" / "three").write_bytes(b"other")
    put_tree(top, store, catalog=catalog)
    assert looked_at == [b"a/b", b"links"]


def _edit(path: Path) -> None:
    then = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))


def _retarget(path: Path) -> None:
    path.unlink()
    path.symlink_to("five")


def _swap(one: Path, other: Path) -> None:
    aside = one.parent / "aside"
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


CHANGES: dict[str, Callable[[Path], object]] = {
    "content with the old size and times": lambda top: _edit(top / "a" / "one"),
    "mode": lambda top: (top / "a" / "one").chmod(0o600),
    "attribute": lambda top: os.setxattr(top / "a" / "one", "user.x", b"1"),
    "attribute of a directory": lambda top: os.setxattr(top / "a", "user.x", b"1"),
    "mode of a directory": lambda top: (top / "a" / "b").chmod(0o711),
    "owner": lambda top: os.chown(top / "a" / "one", 7, 8),
    "target": lambda top: _retarget(top / "c" / "link"),
    "new link": lambda top: os.link(top / "a" / "one", top / "c" / "one"),
    "removed": lambda top: (top / "a" / "two").unlink(),
    "renamed": lambda top: (top / "a" / "b").rename(top / "a" / "d"),
    "swapped": lambda top: _swap(top / "a" / "one", top / "a" / "two"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_is_missed(tmp_path: Path, catalog: Catalog, change: str) -> None:
    top, store = tmp_path / "tree", tmp_path / "st"
    write_tree(top)
    put_tree(top, store, catalog=catalog)
    time.sleep(STEP_SECONDS)
    CHANGES[change](top)
    put_tree(top, store, catalog=catalog)
    put_tree(top, store, StoreOptions(name="other"))
    assert records_of(store, "tree") == records_of(store, "other")


def test_random_changes_give_the_trees_that_a_put_without_notes_gives(
    tmp_path: Path, catalog: Catalog
) -> None:
    drawn, top, store = random.Random(8), tmp_path / "tree", tmp_path / "st"
    write_tree(top)
    for step in range(25):
        time.sleep(STEP_SECONDS)
        for _ in range(drawn.randrange(3)):
            directory = drawn.choice([path for path in (top, *top.rglob("*")) if path.is_dir()])
            files = sorted(path for path in directory.iterdir() if path.is_file() and not path.is_symlink())
            match drawn.randrange(4):
                case 0:
                    (directory / f"new {step}").write_bytes(drawn.randbytes(drawn.randrange(3000)))
                case 1:
                    (directory / f"sub {step}").mkdir(exist_ok=True)
                case 2 if files:
                    drawn.choice(files).unlink()
                case _ if files:
                    _edit(drawn.choice(files))
        put_tree(top, store, catalog=catalog)
        put_tree(top, store, StoreOptions(name="other"))
        assert records_of(store, "tree") == records_of(store, "other")


def test_what_changed_too_recently_is_not_remembered(tmp_path: Path, looked_at: list[bytes]) -> None:
    top, store = tmp_path / "tree", tmp_path / "st"
    write_tree(top)
    with Catalog(str(tmp_path / "catalog")) as catalog:
        for _ in range(2):
            put_tree(top, store, catalog=catalog)
    assert looked_at.count(b"a") == 2


def test_young_files_are_remembered_for_this_boot_alone(
    tmp_path: Path, catalog: Catalog, looked_at: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    top, store = tmp_path / "tree", tmp_path / "st"
    write_tree(top)
    put_tree(top, store, catalog=catalog)
    looked_at.clear()
    monkeypatch.setattr(notes, "boot", lambda: b"another")
    put_tree(top, store, catalog=catalog)
    assert b"a" in looked_at


def test_a_note_of_another_tree_or_of_others_is_not_used(
    tmp_path: Path, catalog: Catalog, looked_at: list[bytes]
) -> None:
    top, store = tmp_path / "tree", tmp_path / "st"
    write_tree(top)
    put_tree(top, store, catalog=catalog)
    (note,) = (tmp_path / "catalog").glob("*.seen")
    first = note.read_bytes()
    time.sleep(STEP_SECONDS)
    (top / "a" / "new").write_bytes(b"new")
    put_tree(top, store, catalog=catalog)

    def link() -> None:
        note.unlink()
        note.symlink_to("/dev/zero")

    spoiled: tuple[Callable[[], object], ...] = (
        lambda: note.write_bytes(first),
        lambda: note.write_bytes(b"short"),
        lambda: note.chmod(0o622),
        link,
        note.unlink,
    )
    for spoil in spoiled:
        spoil()
        looked_at.clear()
        put_tree(top, store, catalog=catalog)
        assert set(looked_at) == {b"", b"a", b"a/b", b"c", b"empty", b"links"}


def test_a_file_that_could_not_be_read_is_tried_again(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, store = tmp_path / "tree", tmp_path / "st"
    write_tree(top)
    (top / "a" / "large").write_bytes(bytes(5 << 20))

    open_read = Root.open_read

    def fail(root: Root, path: bytes) -> SourceFile:
        if path == b"a/large":
            raise FileError(path, "cannot be read today")
        return open_read(root, path)

    with monkeypatch.context() as patched:
        patched.setattr(Root, "open_read", fail)
        assert put_tree(top, store, catalog=catalog).exit is ExitCode.PARTIAL
    report = put_tree(top, store, catalog=catalog)
    assert (report.exit, report.files_read) == (ExitCode.OK, 1)
    put_tree(top, store, StoreOptions(name="other"))
    assert records_of(store, "tree") == records_of(store, "other")
