"""In a local sync on one file system whole files are cloned, after the checks that a copy would have."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.files.base.syscalls import clone_range
from rdc.files.replace import cloning, staged_clones
from rdc.files.replace.staged_clones import StagedClones
from rdc.files.root.source_file import SourceFile
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.reflinks import own_bytes, rewrite

FAST = SyncOptions(fsync=False)
LONG = random.Random(4).randbytes(2_000_100)
FILES = {f"file{size}": random.Random(size).randbytes(size) for size in (0, 9, 131_072, 131_073, 1_000_000)}
"""Small ones share messages and are copied."""


def source_of(top: Path, files: dict[str, bytes]) -> Path:
    source = top / "src"
    source.mkdir()
    for name, content in files.items():
        (source / name).write_bytes(content)
    return source


def test_a_long_file_takes_no_new_blocks(sharing: Path) -> None:
    files = {"long": LONG * 12, **FILES}
    source = source_of(sharing, files)
    run_sync(source, sharing / "dst")
    for name, content in files.items():
        assert (sharing / "dst" / name).read_bytes() == content
    assert own_bytes(sharing / "dst" / "long") == 0
    assert own_bytes(sharing / "dst" / "file1000000") == 0
    assert os.stat(sharing / "dst" / "long").st_mtime_ns == os.stat(source / "long").st_mtime_ns


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
def test_not_from_or_to_another_process(sharing: Path, way: Way) -> None:
    source = source_of(sharing, {"file": LONG[:1_000_000]})
    run_sync(source, sharing / "dst", FAST, way=way)
    assert own_bytes(sharing / "dst" / "file") >= 1_000_000


def test_equal_files(sharing: Path) -> None:
    source = source_of(sharing, {"one": LONG[:2_000_000], "two": LONG[:2_000_000]})
    run_sync(source, sharing / "dst", FAST)
    for name in ("one", "two"):
        assert (sharing / "dst" / name).read_bytes() == (source / name).read_bytes()
        assert own_bytes(sharing / "dst" / name) == 0
    # A copy of what the destination has already.
    (source / "four").write_bytes(LONG[:2_000_000])
    (source / "one").unlink()
    run_sync(source, sharing / "dst", FAST)
    assert (sharing / "dst" / "four").read_bytes() == LONG[:2_000_000]
    assert own_bytes(sharing / "dst" / "four") == 0


def test_holes_stay(sharing: Path) -> None:
    source = source_of(sharing, {})
    with (source / "holes").open("wb") as file:
        file.truncate(8 << 20)
        file.seek(4 << 20)
        file.write(b"in the middle")
    run_sync(source, sharing / "dst", FAST)
    assert (sharing / "dst" / "holes").read_bytes() == (source / "holes").read_bytes()
    assert os.stat(sharing / "dst" / "holes").st_blocks * 512 <= 1 << 20


@pytest.fixture
def changing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The first file of the list is changed right after it was cloned."""
    paths: list[Path] = []
    stage = StagedClones.stage

    def stage_and_change(self: StagedClones, number: int, source: SourceFile) -> SourceFile | None:
        clone = stage(self, number, source)
        assert clone is not None
        if paths:
            rewrite(paths.pop(), b"other")
        return clone

    monkeypatch.setattr(StagedClones, "stage", stage_and_change)
    yield paths


def test_a_source_that_changes_is_named_as_ever(sharing: Path, changing: list[Path]) -> None:
    source = source_of(sharing, {"file": LONG[:1_000_000]})
    changing.append(source / "file")
    run = run_sync(source, sharing / "dst", FAST)
    assert [problem.code for problem in run.problems] == [24]
    assert not (sharing / "dst" / "file").exists()
    run_sync(source, sharing / "dst", FAST)
    assert (sharing / "dst" / "file").read_bytes() == b"other"


def test_a_clone_that_is_none_is_not_used(sharing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone, wrong = clone_range, iter(range(1))

    def spoiled(source: int, offset: int, length: int, destination: int, at: int) -> None:
        clone(source, offset, length, destination, at)
        for _ in wrong:
            os.pwrite(destination, b"spoiled", 500_000)

    for module in (cloning, staged_clones):
        monkeypatch.setattr(module, "clone_range", spoiled)
    source = source_of(sharing, {"file": LONG[:1_000_000]})
    run_sync(source, sharing / "dst", FAST)
    assert (sharing / "dst" / "file").read_bytes() == LONG[:1_000_000]
    assert own_bytes(sharing / "dst" / "file") >= 1_000_000


@pytest.mark.parametrize(("code", "calls"), [(errno.EOPNOTSUPP, 1), (errno.EXDEV, 1), (errno.EINVAL, 8)])
def test_a_refusal_is_remembered(
    tmp_path: Path, code: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(*numbers: int) -> None:
        asked.append(numbers)
        raise OSError(code, os.strerror(code))

    for module in (cloning, staged_clones):
        monkeypatch.setattr(module, "clone_range", refuse)
    source = source_of(tmp_path, {str(number): LONG[number : 200_000 + number] for number in range(12)})
    run_sync(source, tmp_path / "dst", FAST)
    assert len(asked) == calls
    for number in range(12):
        assert (tmp_path / "dst" / str(number)).read_bytes() == LONG[number : 200_000 + number]


def test_many_files_leave_no_descriptor_open(sharing: Path) -> None:
    source = source_of(sharing, {str(number): LONG[number : 140_000 + number] for number in range(80)})
    before = os.listdir("/proc/self/fd")
    run_sync(source, sharing / "dst", FAST)
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert sum(own_bytes(sharing / "dst" / str(number)) for number in range(80)) <= 8 * 140_000


@pytest.mark.parametrize(
    "options", [SyncOptions(fsync=False, sparse=True), SyncOptions(fsync=False, allocate=True)]
)
def test_holes_that_have_to_be_made_or_filled_are_copied(sharing: Path, options: SyncOptions) -> None:
    """A clone would have the source's."""
    source = source_of(sharing, {"written": LONG[:900_000] + bytes(1 << 20) + b"x", "holes": b""})
    with (source / "holes").open("r+b") as file:
        file.write(LONG[:1_000_000])
        file.seek(2 << 20)
        file.write(b"x")
    run_sync(source, sharing / "dst", options)
    for name in ("written", "holes"):
        assert (sharing / "dst" / name).read_bytes() == (source / name).read_bytes()
        with (sharing / "dst" / name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            assert (os.lseek(file.fileno(), 0, os.SEEK_HOLE) < size) is options.sparse
        assert own_bytes(sharing / "dst" / name) >= (900_000 if options.sparse else size)
