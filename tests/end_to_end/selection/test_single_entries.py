"""A run about one entry of a directory that may be entered and not listed: it is looked at by its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import FileError
from rdc.files.root.confined_root import ConfinedRoot
from rdc.model.sync import SyncOptions
from tests.files.root.root_entries import as_nobody
from tests.support.running.syncing import run_sync
from tests.support.trees.trees import describe, read_tree, tree, write_tree
from tests.support.trees.unprivileged import NOBODY


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """`public` may be entered, `box` may be entered and written to; neither may be listed."""
    write_tree(tmp_path / "public", tree({"file": b"hello", "other": b"o", "d/a": b"a", "d/b/c": b"c"}))
    for name in ("box", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "file").write_bytes(b"mine")
    for path in (tmp_path / "mine", tmp_path / "mine" / "file"):
        os.chown(path, NOBODY, NOBODY)
    for above in tmp_path.parents:
        if above.stat().st_mode & 0o001 == 0:
            above.chmod(above.stat().st_mode | 0o001)
    tmp_path.chmod(0o755)
    (tmp_path / "public").chmod(0o711)
    (tmp_path / "box").chmod(0o1733)
    yield tmp_path
    (tmp_path / "public").chmod(0o755)


@pytest.mark.parametrize("name", ["file", "d"])
def test_from_there(name: str, place: Path) -> None:
    with as_nobody():
        run = run_sync(os.fsencode(place / "public" / name), os.fsencode(place / "mine") + b"/")
        assert run.problems == []
        again = run_sync(os.fsencode(place / "public" / name), os.fsencode(place / "mine") + b"/")
        assert again.items == []
    found, copied = (place / "public" / name), (place / "mine" / name)
    if name == "d":
        assert describe(read_tree(found), read_tree(copied)) == []
    else:
        assert copied.read_bytes() == found.read_bytes()
    assert not (place / "mine" / "other").exists()


def test_into_it(place: Path) -> None:
    source = place / "mine" / "file"
    with as_nobody():
        for content in (b"mine", b"mine, later"):
            source.write_bytes(content)
            run = run_sync(os.fsencode(source), os.fsencode(place / "box") + b"/")
            assert run.problems == []
            assert (place / "box" / "file").read_bytes() == content
        assert run_sync(os.fsencode(source), os.fsencode(place / "box") + b"/").items == []


def test_all_of_it_cannot_be_listed(place: Path) -> None:
    with as_nobody():
        with pytest.raises(FileError, match="cannot list the directory"):
            run_sync(place / "public", place / "mine", SyncOptions(delete=True))
        assert (place / "mine" / "file").read_bytes() == b"mine"


def test_what_is_not_there_is_told(place: Path) -> None:
    with as_nobody(), pytest.raises(FileError, match="no such file or directory"):
        run_sync(os.fsencode(place / "public" / "none"), os.fsencode(place / "mine") + b"/")


def test_the_directory_of_a_single_source_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_tree(tmp_path / "src", tree({"file": b"hello", "d/a": b"a"}))
    (tmp_path / "dst").mkdir()
    listed = []
    unviewed = ConfinedRoot.list_unviewed

    def noted(root: ConfinedRoot, path: bytes, **more: Any) -> object:
        found = unviewed(root, path, **more)
        listed.append((root.shown(path), found.listing.count))
        return found

    monkeypatch.setattr(ConfinedRoot, "list_unviewed", noted)
    run_sync(os.fsencode(source / "file"), os.fsencode(tmp_path / "dst") + b"/")
    assert {count for shown, count in listed if shown.startswith(os.fsencode(source))} == {1}
