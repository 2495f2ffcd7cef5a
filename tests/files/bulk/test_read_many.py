"""Reading many files in C gives what its definition in Python gives, and proves that they were left alone."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
import threading
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import FileChangedError, FileError
from rdc.files import _files
from rdc.files.bulk import open_many as contents
from rdc.files.bulk.open_many import REPLACED, RESIZED, TOUCHED, Contents, content_bytes, content_error
from rdc.files.root import lister
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

Reader = Callable[[int, bytes, "array[int]", int, int], Contents]
READERS = [contents.read_contents, contents._read_contents]
every_reader = pytest.mark.parametrize("read", READERS, ids=["C", "Python"])


def test_the_extension_is_what_is_tested() -> None:
    assert contents._reader is _files


def wanted_of(top: Path, names: list[bytes]) -> array[int]:
    column = array("Q")
    for name in names:
        found = os.lstat(os.fsencode(top) + b"/" + name)
        column.extend([found.st_dev, found.st_ino, found.st_size])
    return column


def read_below(
    read: Reader, top: Path, names: list[bytes], wanted: array[int], head: int = 8, tail: int = 8
) -> Contents:
    fd = os.open(top, os.O_PATH)
    try:
        return read(fd, b"".join(name + b"\0" for name in names), wanted, head, tail)
    finally:
        os.close(fd)


sizes = st.sampled_from([0, 1, 7, 8, 9, 15, 16, 17, 100]) | st.integers(0, 40)


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(st.tuples(st.booleans(), sizes), max_size=8), st.integers(0, 20), st.integers(0, 20))
def test_any_files(files: list[tuple[bool, int]], head: int, tail: int) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        top = Path(made)
        (top / "a" / "b").mkdir(parents=True)
        names, whole = [], []
        for number, (deep, size) in enumerate(files):
            names.append((b"a/b/" if deep else b"") + b"\xff\n%d" % number)
            whole.append(bytes((number * 31 + at) % 256 for at in range(size)))
            Path(os.fsdecode(os.fsencode(top) + b"/" + names[-1])).write_bytes(whole[-1])
        wanted = wanted_of(top, names)
        expected = b"".join(
            data if len(data) <= head + tail else data[:head] + data[len(data) - tail :] for data in whole
        )
        assert sum(content_bytes(len(data), head, tail) for data in whole) == len(expected)
        for read in READERS:
            found = read_below(read, top, names, wanted, head, tail)
            assert not any(found.outcomes)
            assert len(found.outcomes) == len(names)
            assert found.data == expected


@every_reader
def test_what_is_not_as_it_was_listed(read: Reader, tmp_path: Path) -> None:
    names = [b"same", b"gone", b"longer", b"shorter", b"other", b"link", b"fifo", b"directory", b"way/file"]
    (tmp_path / "way").mkdir()
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(b"x" * 10)
    wanted = wanted_of(tmp_path, names)
    (tmp_path / "gone").unlink()
    (tmp_path / "longer").write_bytes(b"x" * 11)
    (tmp_path / "shorter").write_bytes(b"x" * 9)
    (tmp_path / "new").write_bytes(b"y" * 10)
    (tmp_path / "new").rename(tmp_path / "other")
    for replaced in ("link", "fifo", "directory"):
        (tmp_path / replaced).unlink()
    (tmp_path / "link").symlink_to("same")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    (tmp_path / "way").rename(tmp_path / "moved")
    (tmp_path / "way").symlink_to("moved")
    found = read_below(read, tmp_path, names, wanted)
    expected = [0, errno.ENOENT, RESIZED, RESIZED, REPLACED, errno.ELOOP, REPLACED, REPLACED]
    assert list(found.outcomes)[:-1] == expected
    # One call says that there is a link, another that it is no directory.
    assert found.outcomes[-1] in {errno.ELOOP, errno.ENOTDIR}
    assert found.data[:10] == b"x" * 10
    for outcome, name in zip(found.outcomes, names, strict=True):
        if outcome:
            error = content_error(outcome, name, b"top/" + name)
            assert isinstance(error, FileChangedError)
            assert error.path_bytes == name
            assert str(error).startswith(f"top/{name.decode()}: ")


@every_reader
def test_what_may_not_be_read_is_an_error_of_its_own(read: Reader) -> None:
    with place_of_nobody() as place:
        (place / "file").write_bytes(b"secret")
        (place / "file").chmod(0)
        wanted = wanted_of(place, [b"file"])
        found = as_nobody(lambda: list(read_below(read, place, [b"file"], wanted).outcomes))
        assert found == [errno.EACCES]
        error = content_error(errno.EACCES, b"file", b"file")
        assert isinstance(error, FileError)
        assert not isinstance(error, FileChangedError)


@every_reader
def test_paths_longer_than_one_call_takes(read: Reader, tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    parts = [b"%03d" % level + b"d" * 200 for level in range(30)]
    for part in parts:
        os.mkdir(part, dir_fd=fd)
        below = os.open(part, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    file = os.open(b"file", os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    os.write(file, b"deep")
    status = os.fstat(file)
    os.close(file)
    os.close(fd)
    path = b"/".join([*parts, b"file"])
    assert len(path) > 5_000
    wanted = array("Q", [status.st_dev, status.st_ino, 4])
    assert read_below(read, tmp_path, [path], wanted).data == b"deep"
    top = os.open(tmp_path, os.O_PATH)
    for extension in (lister._extension, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lister, "_extension", extension)
            opened = lister.open_directory(top, b"/".join(parts))
            assert os.listdir(opened) == ["file"]
            os.close(opened)
    os.close(top)


@pytest.mark.parametrize("path", [b"../x", b"a/../../x", b"/etc", b"a//b", b".", b"..", b"a/"])
def test_nothing_leads_out_of_the_tree(path: bytes, tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    (tmp_path / "x").mkdir()
    descriptor = os.open(top, os.O_PATH)
    before = open_descriptors()
    for padding in (b"", b"a/" * 2_100):
        for extension in (lister._extension, None):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(lister, "_extension", extension)
                if extension is not None and not padding and path in {b".", b"a//b", b"a/"}:
                    # openat2 reads these as directories of the tree, which they are.
                    os.close(lister.open_directory(descriptor, path))
                    continue
                with pytest.raises(OSError, match=r"Invalid|cross|No such|Too many|link"):
                    lister.open_directory(descriptor, padding + path)
    assert open_descriptors() == before
    os.close(descriptor)


@every_reader
def test_a_change_while_it_is_read_is_noticed(read: Reader, tmp_path: Path) -> None:
    """A thread keeps setting times; sooner or later that falls between the two looks at a file. Its size puts
    some 10 ms between them, so that a busy machine runs the thread meanwhile."""
    path, size = tmp_path / "file", 64 << 20
    path.touch()
    os.truncate(path, size)
    wanted = wanted_of(tmp_path, [b"file"])
    stop = threading.Event()

    def touch() -> None:
        for turn in itertools.count(1):
            if stop.is_set():
                return
            os.utime(path, ns=(turn, turn))

    toucher = threading.Thread(target=touch)
    toucher.start()
    try:
        outcomes: set[int] = set()
        for _ in range(100):
            outcomes.update(read_below(read, tmp_path, [b"file"], wanted, size, 0).outcomes)
            if TOUCHED in outcomes:
                break
    finally:
        stop.set()
        toucher.join()
    assert TOUCHED in outcomes
    assert outcomes <= {0, TOUCHED}


@every_reader
def test_arguments_that_do_not_fit(read: Reader, tmp_path: Path) -> None:
    for paths, rows in ((b"a", 1), (b"a\0", 2), (b"a\0b\0", 1), (b"", 1), (b"a\0b", 2)):
        fd = os.open(tmp_path, os.O_PATH)
        with pytest.raises(ValueError, match="as many paths"):
            read(fd, paths, array("Q", [0, 0, 1] * rows), 8, 8)
        os.close(fd)


def test_more_than_a_caller_can_want_is_refused(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_PATH)
    for sizes, head, tail in (
        ([1 << 62, 1 << 62], 1 << 62, 0),
        ([(1 << 64) - 1], 1 << 31, 1 << 31),
        ([1 << 29] * 3, 1 << 30, 0),
        ([5], (1 << 64) - 1, 1),
    ):
        rows = array("Q", [number for size in sizes for number in (0, 0, size)])
        with pytest.raises(ValueError, match="at most 1 GiB"):
            _files.read_contents(fd, b"a\0" * len(sizes), rows, head, tail, 1, 1)
    with pytest.raises(ValueError, match="24 bytes"):
        _files.read_contents(fd, b"a\0", b"x" * 23, 1, 1, 1, 1)
    os.close(fd)
