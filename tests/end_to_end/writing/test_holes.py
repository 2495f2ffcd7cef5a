"""Holes of the source's files, and of old versions, stay holes: whatever way content comes, and without room
for more than what is written."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import RdcError
from rdc.model.sync import SyncOptions
from tests.end_to_end.writing.huge_files import huge_directory
from tests.support.running.syncing import Way, command, run_sync
from tests.support.share import examples
from tests.support.trees.loop_images import memory_mounted

PLAIN = SyncOptions(fsync=False)
WAYS_OF_CONTENT = {
    "default": PLAIN,
    "every block of zeros": replace(PLAIN, sparse=True),
    "in place": replace(PLAIN, inplace=True),
    "whole": replace(PLAIN, whole_file=True),
    "whole, in place": replace(PLAIN, whole_file=True, inplace=True),
    "elsewhere first": replace(PLAIN, temp_dir=b"t"),
}
"""All the ways in which the new content of a file is written."""

PAIRS = [
    (way, content)
    for way in Way
    for content in WAYS_OF_CONTENT
    if way is Way.HERE or content in {"default", "whole"}
]
"""What is written does not depend on where the source is, but for what is sent."""

SLACK = 64 << 10
"""Bytes that a copy may take more than its original: parts of blocks at the ends of holes, and extents."""

Piece = tuple[bool, int]
"""Data, or a hole, and its bytes."""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system of 16 MiB."""
    with memory_mounted(tmp_path_factory.mktemp("small")) as place:
        yield place


@pytest.fixture
def small(memory: Path) -> Iterator[Path]:
    """An empty directory on it."""
    place = memory / "d"
    (place / "t").mkdir(parents=True)
    yield place
    for entry in sorted(memory.rglob("*"), reverse=True):
        if entry.is_dir() and not entry.is_symlink():
            entry.rmdir()
        else:
            entry.unlink()


def write_pieces(path: Path, pieces: Sequence[Piece], seed: int) -> None:
    rng, at = random.Random(seed), 0
    with path.open("wb") as file:
        for data, length in pieces:
            if data:
                os.pwrite(file.fileno(), rng.randbytes(length), at)
            at += length
        file.truncate(at)


def taken(path: Path) -> int:
    return path.stat().st_blocks * 512


pieces = st.lists(
    st.tuples(st.booleans(), st.integers(1, 9) | st.integers(1, 60_000) | st.integers(1, 700_000)),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(("way", "content"), PAIRS)
@settings(
    max_examples=examples(9),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(old=pieces, new=pieces, seed=st.integers(0, 1), same=st.integers(0, 8))
def test_a_new_version_takes_about_what_it_takes_at_the_source(
    ext4: Path, way: Way, content: str, old: list[Piece], new: list[Piece], seed: int, same: int
) -> None:
    """Its first `same` pieces are those of the old version, or others of the same lengths."""
    new = old[:same] + new
    source, top = ext4 / "s", ext4 / "d"
    source.mkdir(exist_ok=True)
    (top / "t").mkdir(parents=True, exist_ok=True)
    write_pieces(top / "f", old, 0)
    write_pieces(source / "f", new, seed)
    options = WAYS_OF_CONTENT[content]
    assert run_sync(source, top, options, way=way).problems == []
    assert (top / "f").read_bytes() == (source / "f").read_bytes()
    assert taken(top / "f") <= taken(source / "f") + SLACK
    assert run_sync(source, top, options, way=way).items == []


SPARSE: list[Piece] = [(True, 300_001), (False, 300 << 20), (True, 1_000_001), (False, 60 << 20), (True, 3)]
"""378 MB, of which 1.3 MB have data."""

RAGGED: list[Piece] = [(True, 8192), (False, 8192)] * 450
"""7 MiB, of which half are holes, all of them short."""


@pytest.mark.needs("mount")
@pytest.mark.sampled(3)
@pytest.mark.parametrize(("way", "content"), PAIRS)
@pytest.mark.parametrize("new", [SPARSE, RAGGED])
def test_a_file_larger_than_the_free_space_arrives(
    small: Path, tmp_path: Path, way: Way, content: str, new: list[Piece]
) -> None:
    """And its next version beside it, and one that has nothing in common with it."""
    options = WAYS_OF_CONTENT[content]
    source = tmp_path / "s"
    source.mkdir()
    filler = small.parent / "filler"
    for number, version in enumerate((new, [*new, (True, 5)], [(True, 70_000), *new])):
        write_pieces(source / "f", version, number // 2)
        # Room for two versions, which lie beside each other for a moment.
        filler.unlink(missing_ok=True)
        found = os.statvfs(small)
        needed = 2 * taken(source / "f") - (taken(small / "f") if number else 0) + (1 << 20)
        filler.write_bytes(bytes(max(1, found.f_bavail * found.f_bsize - needed)))
        run = run_sync(source, small, options, way=way)
        assert run.problems == []
        assert taken(small / "f") <= taken(source / "f") + SLACK
        assert run_sync(source, small, replace(options, checksum=True), way=way).items == []


@pytest.mark.needs("mount")
@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("copy", [{}, {"inplace": True}, {"temp_dir": b"t"}])
def test_equal_ones_arrive(small: Path, tmp_path: Path, way: Way, copy: dict[str, Any]) -> None:
    options = replace(PLAIN, **copy)
    source = tmp_path / "s"
    source.mkdir()
    for name in "abc":
        write_pieces(source / name, SPARSE, 1)
    run = run_sync(source, small, options, way=way)
    assert run.problems == []
    assert run.done.bytes_received + run.done.bytes_sent < 2_000_000 or way is Way.HERE
    assert [taken(small / name) <= taken(source / name) + SLACK for name in "abc"] == [True] * 3
    write_pieces(source / "n", SPARSE, 1)
    for name in "abc":
        write_pieces(source / name, [*SPARSE, (True, 9)], 1)
    assert run_sync(source, small, options, way=way).problems == []
    assert [taken(small / name) <= taken(source / name) + SLACK for name in "abcn"] == [True] * 4
    assert run_sync(source, small, replace(options, checksum=True), way=way).items == []


@pytest.mark.needs("mount")
@pytest.mark.parametrize("way", Way)
def test_many_small_ones_arrive_new_and_changed(small: Path, tmp_path: Path, way: Way) -> None:
    """30 MB, of which 2 MB have data: written in bulk, then as a bundle."""
    source = tmp_path / "s"
    source.mkdir()
    for number in range(300):
        write_pieces(source / f"{number}", [(True, 3000), (False, 95_000), (True, 3000)], number)
    assert run_sync(source, small, PLAIN, way=way).problems == []
    for number in range(200):
        write_pieces(source / f"{number}", [(True, 2900), (False, 99_000), (True, 3000)], number)
    assert run_sync(source, small, PLAIN, way=way).problems == []
    assert run_sync(source, small, replace(PLAIN, checksum=True), way=way).items == []
    assert all(taken(small / f"{number}") <= 20_000 for number in range(300))


@pytest.mark.needs("mount")
@pytest.mark.parametrize("options", [{"allocate": True}, {}])
def test_what_is_written_and_does_not_fit_is_refused_first(
    small: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    """All of it with --preallocate; a file without holes in any case."""
    source = tmp_path / "s"
    source.mkdir()
    write_pieces(source / "f", SPARSE if options else [(True, 20 << 20)], 1)
    with pytest.raises(RdcError, match="f: cannot make a temporary file beside it"):
        run_sync(source, small, replace(PLAIN, **options))
    assert os.listdir(small) == ["t"]


@pytest.mark.needs("mount")
def test_copies_that_are_made_here_arrive(small: Path, tmp_path: Path) -> None:
    """Backups on another file system, copies of an alternate directory, and files with several names."""
    source, other = tmp_path / "s", tmp_path / "other"
    source.mkdir()
    other.mkdir()
    write_pieces(source / "f", SPARSE, 1)
    os.utime(source / "f", (1, 1))
    command("sync", "-q", f"{source}/", f"{other}/")
    assert command("sync", "-q", f"--copy-dest={other}", f"{source}/", f"{small}/").code == 0
    assert taken(small / "f") <= taken(source / "f") + SLACK
    backups = tmp_path / "backups"
    write_pieces(source / "f", [*SPARSE, (True, 1)], 1)
    os.utime(source / "f", (1, 1))
    assert command("sync", "-q", f"--backup-dir={backups}", f"{source}/", f"{small}/").code == 0
    assert taken(backups / "f") <= taken(source / "f") + SLACK
    # One of two names gets another time, and so becomes a file of its own.
    os.link(small / "f", small / "g")
    write_pieces(source / "g", [*SPARSE, (True, 1)], 1)
    os.utime(source / "g", (2, 2))
    assert command("sync", "-q", f"{source}/", f"{small}/").code == 0
    assert (small / "g").stat().st_ino != (small / "f").stat().st_ino
    assert taken(small / "g") <= taken(source / "g") + SLACK


# Sizes that add up to more than 2^63


@pytest.fixture
def huge() -> Iterator[Path]:
    with huge_directory() as place:
        yield place


def write_huge(top: Path, count: int, more: bytes = b"") -> None:
    """Files of 8 EiB - 1, with some data at both ends and in the middle."""
    top.mkdir(exist_ok=True)
    for number in range(count):
        with (top / f"f{number}").open("ab") as file:
            file.truncate((1 << 63) - 1 - number // 2)
        fd = os.open(top / f"f{number}", os.O_WRONLY)
        for at in (0, (1 << 61) + 12_345, (1 << 63) - 70_000):
            os.pwrite(fd, random.Random(number // 2).randbytes(60_000), at)
        os.pwrite(fd, more, (1 << 62) + number)
        os.close(fd)


@pytest.mark.parametrize(("way", "content"), PAIRS)
def test_files_of_any_size_arrive(huge: Path, way: Way, content: str) -> None:
    options = WAYS_OF_CONTENT[content]
    (huge / "d" / "t").mkdir(parents=True)
    for more in (b"", b"more"):
        write_huge(huge / "s", 4, more)
        run = run_sync(huge / "s", huge / "d", options, way=way)
        assert run.problems == []
        assert run.done.total_bytes == 4 * ((1 << 63) - 1) - 2
        assert run_sync(huge / "s", huge / "d", replace(options, checksum=True), way=way).items == []
        assert all(taken(huge / "d" / f"f{number}") < 300_000 for number in range(4))
        assert [os.stat(huge / "d" / f"f{number}").st_size for number in range(4)] == [
            (1 << 63) - 1 - number // 2 for number in range(4)
        ]


VERBS = [
    ("sync", "-n", "--stats", "s/", "d/"),
    ("sync", "-n", "--json", "s/", "d/"),
    ("sync", "-n", "--delete", "--guard=10", "--max-delete=10%", "d/", "s/"),
    ("sync", "--list-only", "s/"),
    ("check", "s/", "d/"),
    ("check", "s/", "s/"),
    ("scan", "s"),
    ("scan", "--json", "s"),
    ("scan", "-o", "a.rdcscan", "s"),
    ("merge", "a.rdcscan", "b.rdcscan", "-o", "c.rdcscan"),
    ("merge", "c.rdcscan"),
    ("similar", "s"),
    ("dupes", "s"),
    ("index", "s"),
    ("catalog", "show"),
    ("signature", "s/f0"),
]


def test_every_total_of_such_files(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(huge)
    write_huge(huge / "s", 6)
    write_huge(huge / "d", 2)
    assert command("scan", "-q", "-o", "b.rdcscan", "d").code == 0
    for words in VERBS:
        ended = command(*words)
        assert ended.code in (0, 1) and "internal error" not in ended.err, (words, ended)
        assert "EB" in ended.out + ended.err or words[0] != "merge"
