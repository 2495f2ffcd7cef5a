"""Pairs of trees that differ and need nothing: remembered, until anything about them changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rdc.files.root.lister import Run
from rdc.files.root.root import Root
from rdc.model.entries import Listed
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from rdc.session.destination.conversation import WholeTurn
from tests.support.running.paired_sync import Remembering, sync_in_turns
from tests.support.trees.manifest_runs import DIALLERS, equal, many, wire
from tests.support.trees.trees import tree, write_tree


@DIALLERS
@pytest.mark.parametrize("entries", [50, 400])
def test_a_destination_with_more_is_settled_after_one_run(
    entries: int, dialler: Role, tmp_path: Path
) -> None:
    source = write_tree(tmp_path / "source", many(entries))
    more = tree({"extra/deep/er": b"", "directory-0000/extra": b"x"})
    destination = write_tree(tmp_path / "destination", many(entries - 10) | more)
    catalog = Remembering()
    first = sync_in_turns(source, destination, dialler=dialler, catalog=catalog)
    assert first.done.changed > 0
    for _ in range(3):
        run = sync_in_turns(source, destination, dialler=dialler, catalog=catalog)
        assert (run.done.changed, run.done.deleted) == (0, 0)
        assert wire(run) <= 600
        assert run.done.round_trips <= 4
    assert (destination / "directory-0000" / "extra").exists()
    # Without the memory it costs more, and no more is done.
    forgetful = sync_in_turns(source, destination, dialler=dialler)
    assert forgetful.done.changed == 0
    assert wire(forgetful) > wire(run)


def test_a_source_with_special_files_is_settled(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(300))
    os.mkfifo(source / "directory-0001" / "fifo")
    destination, catalog = tmp_path / "destination", Remembering()
    sync_in_turns(source, destination, catalog=catalog)
    run = sync_in_turns(source, destination, catalog=catalog)
    assert run.done.changed == 0
    assert wire(run) <= 750  # the fifo is named each time


@pytest.mark.parametrize("delete", [False, True])
def test_what_is_settled_without_deleting_is_not_settled_with(delete: bool, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(300))
    destination = write_tree(tmp_path / "destination", many(300) | tree({"extra": b"x"}))
    catalog = Remembering()
    for _ in range(2):
        sync_in_turns(source, destination, catalog=catalog)
    run = sync_in_turns(source, destination, SyncOptions(delete=delete), catalog=catalog)
    assert run.done.deleted == delete
    assert (destination / "extra").exists() != delete


@pytest.mark.parametrize(
    "change",
    [
        lambda top: (top / "directory-0001" / "file-00060").write_bytes(b"changed"),
        lambda top: (top / "directory-0001" / "file-00060").unlink(),
        lambda top: (top / "directory-0001" / "file-00060").chmod(0o600),
        lambda top: (top / "directory-0001").chmod(0o700),
        lambda top: os.utime(top, ns=(5, 5)),
    ],
    ids=["content", "removed", "mode", "directory", "top"],
)
def test_a_settled_pair_is_that_pair_and_no_other(change: Callable[[Path], object], tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(300))
    destination = write_tree(tmp_path / "destination", many(300) | tree({"extra/x": b"x"}))
    catalog = Remembering()
    for _ in range(2):
        sync_in_turns(source, destination, catalog=catalog)
    for top in (destination, source):
        change(top)
        sync_in_turns(source, destination, SyncOptions(delete=True, fsync=False), catalog=catalog)
        equal(source, destination)
        (destination / "extra").mkdir()
        os.utime(destination, ns=(os.stat(source).st_atime_ns, os.stat(source).st_mtime_ns))
        for _ in range(2):
            sync_in_turns(source, destination, catalog=catalog)


@pytest.mark.parametrize("entries", [50, 400])
def test_what_somebody_meddles_with_is_not_settled(
    entries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file changed behind the back of the run that wrote it must be put right by the next."""
    source = write_tree(tmp_path / "source", many(entries))
    destination = write_tree(tmp_path / "destination", many(entries) | tree({"extra": b""}))
    (source / "directory-0000" / "file-00007").write_bytes(b"new text")
    victim, begin = destination / "directory-0000" / "file-00007", WholeTurn._build

    def meddled(self: WholeTurn) -> None:
        begin(self)
        directories = self.directories
        last = directories.finish

        def after() -> None:
            last()
            if victim.read_bytes() == b"new text":
                victim.write_bytes(b"meddled!")

        directories.finish = after  # type: ignore[method-assign] # of this object alone

    catalog = Remembering()
    monkeypatch.setattr(WholeTurn, "_build", meddled)
    sync_in_turns(source, destination, catalog=catalog)
    assert victim.read_bytes() == b"meddled!"
    monkeypatch.setattr(WholeTurn, "_build", begin)
    for changed in (1, 0):
        run = sync_in_turns(source, destination, catalog=catalog)
        assert victim.read_bytes() == b"new text"
        assert run.done.changed == changed
    assert wire(run) <= 600


@pytest.mark.parametrize("delete", [False, True])
def test_directories_are_not_read_again_to_settle(
    delete: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_tree(tmp_path / "source", many(400))
    more = tree({"extra/deep": b"", "directory-0003/extra": b"x"})
    destination = write_tree(tmp_path / "destination", many(390) | more)
    for name in ("0000", "0003", "0005"):
        (source / f"directory-{name}" / "new").write_bytes(b"new text")
    read: list[bytes] = []
    listed = Root.list_unviewed

    def counted(self: Root, path: bytes, **more: Any) -> Listed:
        read.append(path)
        return listed(self, path, **more)

    list_many = Root.list_many

    def counted_many(self: Root, todo: Sequence[bytes], **more: Any) -> Run | None:
        run = list_many(self, todo, **more)
        if run is not None:
            read.extend(
                run.directories.paths if run.alone is None else [*run.directories.paths, run.alone[0]]
            )
        return run

    monkeypatch.setattr(Root, "list_unviewed", counted)
    monkeypatch.setattr(Root, "list_many", counted_many)
    catalog = Remembering()
    sync_in_turns(source, destination, SyncOptions(delete=delete), catalog=catalog)
    # Each side's walk, and in what vanished a search for what is new; what goes is emptied.
    assert sorted(set(read)) == sorted({b"", b"extra", *(b"directory-%04d" % i for i in range(8))})
    assert len(read) <= 9 + 10 + 2 + delete
    assert bool(catalog.settled) != delete
    assert wire(sync_in_turns(source, destination, SyncOptions(delete=delete), catalog=catalog)) <= 600


def test_a_dry_run_and_a_failed_one_settle_nothing(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(300))
    destination = write_tree(tmp_path / "destination", many(290) | tree({"extra": b"x"}))
    catalog = Remembering()
    sync_in_turns(source, destination, SyncOptions(dry_run=True), catalog=catalog)
    assert not catalog.settled
    sync_in_turns(source, destination, SyncOptions(delete=True, max_delete=0), catalog=catalog)
    assert not catalog.settled
