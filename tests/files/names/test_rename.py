"""Moving a file: one step, never over anything, never another file than the one that was meant."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import rdc.files.names.entry_names
from rdc.errors import FileError
from rdc.files.names.entry_names import Moved, make_durable, move_file
from rdc.files.root.root import Root
from rdc.model.entries import Identity, Metadata


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "from").mkdir()
    (tmp_path / "to").mkdir()
    (tmp_path / "from" / "file").write_bytes(b"content")
    return tmp_path


def identity(place: Path) -> Identity:
    return Root.open(os.fsencode(place)).identity(b"from/file")


def move(place: Path, expected: Identity, new: bytes = b"to/file") -> Moved:
    root = Root.open(os.fsencode(place))
    return move_file(root, b"from/file", new, expected, Metadata(0o644, 0, 0, 0), owner=False)


def test_the_same_inode_has_the_new_name(place: Path) -> None:
    expected = identity(place)
    assert move(place, expected) is Moved.DONE
    assert not (place / "from" / "file").exists()
    assert (place / "to" / "file").stat().st_ino == expected.inode
    make_durable(Root.open(os.fsencode(place)), [b"to"])


def test_nothing_is_replaced(place: Path) -> None:
    expected = identity(place)
    for other in (place / "to" / "file", place / "to" / "directory"):
        other.mkdir() if other.name == "directory" else other.write_bytes(b"mine")
        with pytest.raises(FileError, match="move a file there"):
            move(place, expected, b"to/" + other.name.encode())
    assert (place / "to" / "file").read_bytes() == b"mine"
    assert (place / "from" / "file").read_bytes() == b"content"


@pytest.mark.parametrize("how", ["written", "replaced", "removed", "a directory", "a link"])
def test_another_file_than_was_meant_stays(place: Path, how: str) -> None:
    expected, file = identity(place), place / "from" / "file"
    if how == "written":
        os.utime(file, ns=(1, 1))
    else:
        file.unlink()
    if how == "replaced":
        file.write_bytes(b"CONTENT")
    elif how == "a directory":
        file.mkdir()
    elif how == "a link":
        file.symlink_to("../to")
    assert move(place, expected) is Moved.CHANGED
    assert os.path.lexists(file) == (how != "removed")
    assert list((place / "to").iterdir()) == []


def test_a_file_with_other_names_stays(place: Path) -> None:
    os.link(place / "from" / "file", place / "other")
    assert move(place, identity(place)) is Moved.SHARED
    assert (place / "from" / "file").exists()


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.ENOSYS, errno.EINVAL])
def test_where_it_cannot_be_done_nothing_is(
    place: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(rdc.files.names.entry_names, "rename_no_replace_between", refuse)
    assert move(place, identity(place)) is Moved.IMPOSSIBLE
    assert (place / "from" / "file").exists()


def test_links_on_the_way_are_not_followed(place: Path) -> None:
    (place / "way").symlink_to("to")
    with pytest.raises(FileError):
        move(place, identity(place), b"way/file")
    assert (place / "from" / "file").exists()


def test_a_missing_directory_is_named(place: Path) -> None:
    with pytest.raises(FileError, match="gone/file"):
        move(place, identity(place), b"gone/file")
