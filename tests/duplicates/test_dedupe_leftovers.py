"""Leftovers of an interrupted run are removed only while no other program needs them."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from rdc.duplicates import journal as leftovers_module
from rdc.duplicates.group import Tree
from rdc.duplicates.journal import Change, KeptFile, Leftover, _clear
from rdc.errors import FileChangedError
from rdc.files.base.directory_descriptors import Directory
from rdc.files.base.taking_names import make_durable
from rdc.files.root.root import Root
from rdc.model.duplicates import Action
from rdc.model.entries import Metadata

TIME = 1_600_000_000_000_000_000
CONTENT = b"content"


def make(place: Path, name: bytes) -> Path:
    path = place / os.fsdecode(name)
    path.write_bytes(CONTENT)
    path.chmod(0o644)
    os.utime(path, ns=(TIME, TIME))
    return path


def ask_to_write(path: Path) -> None:
    """Requests the lease back, as a waiting writer does."""
    with contextlib.suppress(BlockingIOError):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def left_of(place: Path) -> Change:
    """Builds leftovers: `n` became a link to another file, and its old file lies beside it. Returns its
    journal record."""
    kept = os.stat(make(place, b"n"))
    other = make(place, b"other")
    old = os.stat(other)
    mode = stat.S_IMODE(old.st_mode)
    owner = old.st_uid, old.st_gid
    record = Change(
        *(Action.LINK, os.fsencode(place), b"n"),
        KeptFile(b"/", b"kept", kept.st_ino, len(CONTENT), b""),
        *(old.st_ino, Metadata(mode, TIME, *owner)),
    )
    other.rename(os.fsdecode(record.displaced))
    return record


@pytest.mark.parametrize("which", ["what was displaced", "what has the name"])
def test_somebody_asks_to_write_while_the_directory_is_synced(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root.open(os.fsencode(tmp_path))
    record = left_of(tmp_path)
    old = Path(os.fsdecode(record.displaced))
    one = Leftover(Tree(root, os.fsencode(tmp_path)), b"", os.fsencode(old.name))

    def ask_and_sync(fds: Sequence[int], directories: Sequence[Directory]) -> None:
        ask_to_write(old if which == "what was displaced" else tmp_path / "n")
        make_durable(fds, directories)

    monkeypatch.setattr(leftovers_module, "make_durable", ask_and_sync)
    with pytest.raises(FileChangedError):
        _clear(one, [record], apply=True)
    assert old.read_bytes() == CONTENT
    monkeypatch.undo()
    assert _clear(one, [record], apply=True) is not None
    assert os.listdir(tmp_path) == ["n"]


def test_its_other_names_go_before_a_spare_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root.open(os.fsencode(tmp_path))
    record = left_of(tmp_path)
    old = Path(os.fsdecode(record.displaced))
    one = Leftover(Tree(root, os.fsencode(tmp_path)), b"", os.fsencode(old.name))
    (tmp_path / "n").rename(old)
    (tmp_path / "other").hardlink_to(old)
    directory = Root.directory

    def remove_and_open(self: Root, path: bytes, *, fresh: bool = False) -> Directory:
        (tmp_path / "other").unlink(missing_ok=True)
        return directory(self, path, fresh=fresh)

    monkeypatch.setattr(Root, "directory", remove_and_open)
    assert _clear(one, [record], apply=True) is None
    assert old.read_bytes() == CONTENT
