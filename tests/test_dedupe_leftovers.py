"""What an interrupted run left is removed only while nobody else needs it: looked at right before it goes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from rdc.errors import FileChangedError
from rdc.files import hard_link
from rdc.files.confined import Root
from rdc.files.directory import Directory
from rdc.files.displaced import displaced_name
from rdc.instances import leftovers as leftovers_module
from rdc.instances.leftovers import _clear

TIME = 1_600_000_000_000_000_000
CONTENT = b"content"


def make(place: Path, name: bytes) -> Path:
    path = place / os.fsdecode(name)
    path.write_bytes(CONTENT)
    path.chmod(0o644)
    os.utime(path, ns=(TIME, TIME))
    return path


def ask_to_write(path: Path) -> None:
    """As a writer does who then waits: the lease is asked back."""
    with contextlib.suppress(BlockingIOError):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def left_of(place: Path, root: Root) -> bytes:
    """The name for what was displaced from `n`, which is there."""
    make(place, b"n")
    return displaced_name(b"n", len(CONTENT), root.metadata(b"n"))


@pytest.mark.parametrize("which", ["what was displaced", "what has the name"])
def test_somebody_asks_to_write_while_the_directory_is_synced(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root.open(os.fsencode(tmp_path))
    name = left_of(tmp_path, root)
    old = make(tmp_path, name)

    def ask_and_sync(directory: Directory) -> None:
        ask_to_write(old if which == "what was displaced" else tmp_path / "n")
        hard_link.sync_directory(directory)

    monkeypatch.setattr(leftovers_module, "sync_directory", ask_and_sync)
    with pytest.raises(FileChangedError):
        _clear(root, b"", name, [b"n"], apply=True)
    assert old.read_bytes() == CONTENT
    monkeypatch.undo()
    assert _clear(root, b"", name, [b"n"], apply=True) is not None
    assert os.listdir(tmp_path) == ["n"]


def test_its_other_names_go_before_a_spare_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root.open(os.fsencode(tmp_path))
    name = left_of(tmp_path, root)
    old = tmp_path / os.fsdecode(name)
    (tmp_path / "n").rename(old)
    (tmp_path / "other").hardlink_to(old)
    directory = Root.directory

    def remove_and_open(self: Root, path: bytes, *, fresh: bool = False) -> Directory:
        (tmp_path / "other").unlink(missing_ok=True)
        return directory(self, path, fresh=fresh)

    monkeypatch.setattr(Root, "directory", remove_and_open)
    assert _clear(root, b"", name, [], apply=True) is None
    assert old.read_bytes() == CONTENT
