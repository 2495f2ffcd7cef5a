"""One file that a scan reads singly: what is recorded when it is opened, and when its bytes count."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rdc.errors import FileError
from rdc.files.facts import file_systems as filesystem
from rdc.files.root.root import Root
from rdc.files.root.source_file import SPAN_BYTES, SourceFile
from rdc.survey.count.counters import FixedBlocks
from rdc.survey.scan import found_files
from rdc.survey.scan.found_files import FoundFile, ScannedFile, SharingDevices
from tests.support.trees.descriptors import open_descriptors
from tests.support.trees.sparse_files import BLOCK, write_sparse

CONTENT = bytes(range(1, 256)) * 100


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    found = Root.open(os.fsencode(tmp_path))
    yield found
    found.release()


def found_file(root: Root, name: str) -> FoundFile:
    known = os.stat(name, dir_fd=root.fileno())
    return FoundFile(root, 0, name.encode(), known.st_size, (known.st_dev, known.st_ino))


def test_what_is_there_when_it_is_opened_counts(tmp_path: Path, root: Root) -> None:
    """The opened file counts, not its listing: it may have been written to since."""
    (tmp_path / "f").write_bytes(b"listed")
    file = ScannedFile(found_file(root, "f"), SharingDevices(), None)
    assert (file.allocated, file.shared, bool(file.holes)) == (0, 0, False)
    (tmp_path / "f").write_bytes(CONTENT)
    known = (tmp_path / "f").stat()
    with file.open() as source:
        assert source.size == file.identity.size == len(CONTENT)
        assert source.whole() == CONTENT
    assert (file.identity.inode, file.identity.ctime_ns) == (known.st_ino, known.st_ctime_ns)
    assert file.allocated == known.st_blocks * 512
    assert (file.shared, bool(file.holes)) == (0, False)


# Holes


def test_holes_are_known_where_less_is_allocated(tmp_path: Path, root: Root) -> None:
    write_sparse(tmp_path / "f", [3, 4, 9], 12)
    file = ScannedFile(found_file(root, "f"), SharingDevices(), None)
    with file.open() as source:
        assert source.size == 12 * BLOCK
    assert file.allocated == 3 * BLOCK
    hollow = {block for block in range(12) if file.holes.cover(block * BLOCK, (block + 1) * BLOCK)}
    assert hollow == set(range(12)) - {3, 4, 9}
    assert file.holes.total(source.size) == 9 * BLOCK


def test_no_more_holes_are_kept_than_the_bound(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holes beyond the limit count as zeros; the first ones are known."""
    monkeypatch.setattr(found_files, "SCAN_HOLES", 3)
    write_sparse(tmp_path / "f", [1, 3, 5, 7, 9], 10)
    file = ScannedFile(found_file(root, "f"), SharingDevices(), None)
    file.open().close()
    assert file.holes.total(10 * BLOCK) == 3 * BLOCK
    assert [block for block in range(10) if file.holes.cover(block * BLOCK, (block + 1) * BLOCK)] == [0, 2, 4]


def test_fixed_blocks_take_what_is_read_but_of_files_with_holes(tmp_path: Path, root: Root) -> None:
    """A file with holes is read again where it has data: a hole must not count as blocks."""
    (tmp_path / "full").write_bytes(CONTENT)
    write_sparse(tmp_path / "hollow", [1], 3)
    offsets = {}
    for name in ("full", "hollow"):
        blocks = FixedBlocks((BLOCK,))
        file = ScannedFile(found_file(root, name), SharingDevices(), blocks)
        with file.open() as source:
            for _ in source.spans(SPAN_BYTES):
                pass
        assert file.blocks is blocks
        offsets[name] = [offset for *_, column in blocks.take() for offset in column]
    assert offsets == {"full": list(range(0, len(CONTENT), BLOCK)), "hollow": []}


# Extents that are shared


def test_shared_extents_are_counted(sharing: Path) -> None:
    (sharing / "one").write_bytes(os.urandom(64 * BLOCK))
    (sharing / "own").write_bytes(os.urandom(64 * BLOCK))
    subprocess.run(["cp", "--reflink=always", sharing / "one", sharing / "two"], check=True)
    root = Root.open(os.fsencode(sharing))
    try:
        shared = {}
        for name in ("one", "two", "own"):
            file = ScannedFile(found_file(root, name), SharingDevices(), None)
            file.open().close()
            shared[name] = file.shared
    finally:
        root.release()
    assert shared == {"one": 64 * BLOCK, "two": 64 * BLOCK, "own": 0}


def test_each_device_is_asked_once_what_it_is(
    sharing: Path, tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query costs a system call, so it is skipped on file systems that cannot share extents."""
    asked: list[int] = []
    type_of = filesystem.type_of

    def counted(fd: int) -> int:
        asked.append(os.fstat(fd).st_dev)
        return type_of(fd)

    monkeypatch.setattr(filesystem, "type_of", counted)
    mapped: list[int] = []

    def shared(fd: int) -> int:
        mapped.append(fd)
        return 7

    monkeypatch.setattr(found_files, "shared_bytes", shared)
    devices, other = SharingDevices(), Root.open(os.fsencode(sharing))
    try:
        for place, top in ((tmp_path, root), (sharing, other)):
            for name in ("a", "b", "c"):
                (place / name).write_bytes(CONTENT)
                file = ScannedFile(found_file(top, name), devices, None)
                file.open().close()
                assert file.shared == (0 if place == tmp_path else 7)
    finally:
        other.release()
    assert asked == [tmp_path.stat().st_dev, sharing.stat().st_dev]
    assert len(mapped) == 3


# What fails


@pytest.mark.parametrize("question", ["holes", "shared_bytes"])
def test_a_file_that_cannot_be_looked_at_is_closed(
    question: str, tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(5, "odd")

    monkeypatch.setattr(found_files, question, fail)
    monkeypatch.setattr(SharingDevices, "has", lambda self, source: True)
    write_sparse(tmp_path / "f", [1], 3)
    file = ScannedFile(found_file(root, "f"), SharingDevices(), None)
    before = open_descriptors()
    with pytest.raises(OSError, match="odd"):
        file.open()
    assert open_descriptors() == before


def test_what_is_gone_is_named(tmp_path: Path, root: Root) -> None:
    (tmp_path / "f").write_bytes(b"x")
    file = ScannedFile(found_file(root, "f"), SharingDevices(), None)
    (tmp_path / "f").unlink()
    with pytest.raises(FileError) as caught:
        file.open()
    assert caught.value.path_bytes == b"f"
    os.mkfifo(tmp_path / "f")
    with pytest.raises(FileError):
        file.open()


# Once more


def _rewritten(path: Path) -> None:
    known = path.stat()
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))


def _replaced(path: Path) -> None:
    known = path.stat()
    path.rename(path.with_name("before"))
    path.write_bytes(CONTENT)
    os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))


@pytest.mark.parametrize("change", [_rewritten, _replaced, Path.unlink])
def test_it_is_read_once_more_only_while_it_is_what_it_was(
    change: Callable[[Path], None], tmp_path: Path, root: Root
) -> None:
    (tmp_path / "f").write_bytes(CONTENT)
    file = ScannedFile(found_file(root, "f"), SharingDevices(), None)
    with file.open() as source:
        source.rest()
        assert isinstance(source, SourceFile)
    assert file.read(300, 1_000) == CONTENT[300:1_300]
    assert file.read(len(CONTENT) - 3, 10) is None
    change(tmp_path / "f")
    assert file.read(300, 1_000) is None
