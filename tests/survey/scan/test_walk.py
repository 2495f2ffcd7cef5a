"""The walk of a scan: each directory once, files by names that can be opened, everything else reported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.files.base.paths import join
from rdc.model.scan import ScanOptions
from rdc.progress import Event, Problem
from rdc.survey.count.chunk_locations import ChunkLocations
from rdc.survey.scan.found_files import Found
from rdc.survey.scan.walk import Explorer, Gatherer


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All names are relative to this directory."""
    for name in ("d/a", "d/deep/c", "e/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "e" / "to-file").symlink_to("../d/a")
    (tmp_path / "to-directory").symlink_to("d")
    os.mkfifo(tmp_path / "e" / "fifo")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Explored:
    def __init__(self, paths: Sequence[str], *, stops_after: int = 1 << 20) -> None:
        self.events: list[Event] = []
        self.locations = ChunkLocations()
        found, left = Found(), iter([False] * stops_after)
        gatherer = Gatherer(found, self.locations, self.events.append)
        explorer = Explorer(ScanOptions(), gatherer, lambda: next(left, True))
        for path in paths:
            explorer.explore(os.fsencode(path))
        self.single_files = explorer.walked.single_files
        files = [run.file(row) for run in found.in_order() for row in range(run.start, run.stop)]
        self.files = [os.fsdecode(file.shown) for file in files]
        self.directories = [os.fsdecode(self.locations.directories[file.directory]) for file in files]
        for file in files:
            with file.open() as source:
                assert (source.identity.device, source.identity.inode) == file.inode
                assert os.path.samestat(os.stat(file.shown), os.fstat(source.fileno()))
            # Problems of a single file name the directory that contains it.
            name = file.path.rpartition(b"/")[2]
            assert os.path.samefile(join(self.locations.directories[file.directory], name), file.shown)

    @property
    def told(self) -> list[tuple[str, ExitCode]]:
        return [(os.fsdecode(one.path_bytes), one.code) for one in self.events if isinstance(one, Problem)]


@pytest.mark.parametrize(
    ("paths", "files", "again"),
    [
        (["d"], ["d/a", "d/deep/c"], []),
        (["d/", "."], ["d/a", "d/deep/c", "./e/a"], ["./d"]),
        (["d", "d", "to-directory"], ["d/a", "d/deep/c"], ["d", "to-directory"]),
        (["d/deep", "d"], ["d/deep/c", "d/a"], ["d/deep"]),
        (["to-directory"], ["to-directory/a", "to-directory/deep/c"], []),
        (["d/a"], ["d/a"], []),
        (["to-directory/a"], ["to-directory/a"], []),
    ],
)
def test_each_directory_is_walked_over_once(
    top: Path, paths: list[str], files: list[str], again: list[str]
) -> None:
    """A directory reached a second time is reported, and is no error."""
    found = Explored(paths)
    assert found.files == files
    assert [one for one in found.told if "fifo" not in one[0]] == [(path, ExitCode.OK) for path in again]
    assert found.single_files == (paths[0].endswith("/a"))


def test_directories_know_which_one_is_above(top: Path) -> None:
    locations = Explored(["d", "e"]).locations
    assert dict(zip(locations.directories, locations.parents, strict=True)) == {
        b"d": -1,
        b"d/deep": 0,
        b"e": -1,
    }


def test_a_file_in_the_current_directory(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(top / "d")
    found = Explored(["a"])
    assert (found.files, found.directories) == (["./a"], ["."])


def test_a_link_to_a_file_is_that_file(top: Path) -> None:
    """A link's target is shown by its own name: a file beside the link may have that name too."""
    found = Explored(["e/to-file"])
    assert (found.files, found.directories) == ([f"{top}/d/a"], [f"{top}/d"])


@pytest.mark.parametrize("path", ["nowhere", "d/a/", "d\0a", "e/fifo", "x" * 300])
def test_what_cannot_be_walked_over_is_named(top: Path, path: str) -> None:
    found = Explored([path, "d"])
    assert found.files == ["d/a", "d/deep/c"]
    assert found.told == [(path, ExitCode.PARTIAL)]


def test_what_is_neither_file_nor_directory_is_said(top: Path) -> None:
    assert Explored(["e"]).told == [("e/fifo", ExitCode.OK)]


def test_who_stops_it_has_what_was_found(top: Path) -> None:
    assert Explored(["d", "e"], stops_after=1).files == ["d/a"]
    assert Explored(["d"], stops_after=0).files == []
