"""A file that was signed gives the bytes of then, or says that it changed; nothing else comes out of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.chunking import SYNC_PARAMS
from rdc.errors import FileError
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.session.transfer.bases import ChangedBaseError, SignedFile
from rdc.session.trees.sites import MismatchError
from rdc.signature.tree import sign
from tests.support.trees.descriptors import open_descriptors

OLD, NEW = b"old content", b"new content"


def write_again(file: Path) -> None:
    file.write_bytes(NEW)


def save_another(file: Path) -> None:
    """With the same content, size and mtime."""
    other = file.with_name("other")
    other.write_bytes(OLD)
    os.utime(other, ns=(0, file.stat().st_mtime_ns))
    other.replace(file)


def touch(file: Path) -> None:
    os.utime(file, ns=(0, 0))


def set_mtime_back(file: Path) -> None:
    before = file.stat().st_mtime_ns
    file.write_bytes(NEW)
    os.utime(file, ns=(0, before))


changes = pytest.mark.parametrize("change", [write_again, save_another, touch, set_mtime_back])


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "f").write_bytes(OLD)
    return Root.open(os.fsencode(tmp_path))


def signed(root: Root) -> SignedFile:
    with root.open_read(b"f") as source:
        return SignedFile(b"f", source.identity, sign(source.whole(), SYNC_PARAMS))


def content_of(file: SignedFile, root: Root) -> bytes:
    with file.open(root) as source:
        assert source.identity == file.identity
        return source.whole()


@changes
def test_what_is_read_at_its_path_is_what_was_signed(
    root: Root, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    file = signed(root)
    file.check(root)
    assert content_of(file, root) == OLD
    change(tmp_path / "f")
    before = open_descriptors()
    with pytest.raises(ChangedBaseError, match="f: the old file changed while it was used") as raised:
        file.open(root)
    assert raised.value.path_bytes == b"f"
    # Whoever handles bytes that are not the promised ones handles this, and makes the file from others.
    assert isinstance(raised.value, MismatchError)
    del raised
    assert open_descriptors() == before


@changes
def test_what_is_in_memory_is_as_it_was_and_says_that_the_file_is_not(
    root: Root, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    file = replace(signed(root), content=OLD)
    file.check(root)
    change(tmp_path / "f")
    assert content_of(file, root) == OLD
    with pytest.raises(ChangedBaseError):
        file.check(root)


def test_what_was_kept_open_is_read_wherever_it_is(root: Root, tmp_path: Path) -> None:
    """Any number of times, each by a descriptor of its own; its path is another file's by then."""
    kept: SourceFile = root.open_read(b"f")
    file = replace(signed(root), opened=kept)
    save_another(tmp_path / "f")
    (tmp_path / "f").unlink()
    before = open_descriptors()
    assert content_of(file, root) == content_of(file, root) == OLD
    assert open_descriptors() == before
    file.check(root)
    kept.close()


def test_what_is_gone_is_an_error_of_its_own(root: Root, tmp_path: Path) -> None:
    file = signed(root)
    (tmp_path / "f").unlink()
    with pytest.raises(FileError) as raised:
        file.open(root)
    assert not isinstance(raised.value, MismatchError)
    with pytest.raises(FileError):
        replace(file, content=OLD).check(root)


def test_an_empty_file_is_looked_at_as_any_other(root: Root, tmp_path: Path) -> None:
    """Nothing in memory says that all of it is there."""
    (tmp_path / "f").write_bytes(b"")
    file = signed(root)
    assert content_of(file, root) == b""
    (tmp_path / "f").write_bytes(NEW)
    with pytest.raises(ChangedBaseError):
        file.open(root)
