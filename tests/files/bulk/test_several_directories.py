"""New small files of several directories, several calls in flight: what is said and left is that of one at a
time."""

from __future__ import annotations

import os
import random
import tempfile
from array import array
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import FileError
from rdc.files.base.paths import is_temporary
from rdc.files.bulk.small_files import ListedFiles, read_small, read_together
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import Root, WritePolicy
from rdc.model.entries import Kind, Listing, PackedListing
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors
from tests.support.trees.trees import File, read_tree

NOW = 1_700_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class Directory:
    """New files of one directory, and what it meets."""

    files: int
    trouble: str = ""


TROUBLES = st.sampled_from(("", "", "", "missing", "in the way", "moved", "hole"))
directories = st.lists(st.builds(Directory, st.integers(1, 14), TROUBLES), min_size=1, max_size=12)


def listing(count: int) -> PackedListing:
    return Listing(
        tuple(b"f%02d" % number for number in range(count)),
        bytes(count),
        array("H", [0o644] * count),
        array("Q", [7 + number for number in range(count)]),
        array("q", [NOW + number for number in range(count)]),
        array("I", [os.geteuid()] * count),
        array("I", [os.getegid()] * count),
        (),
    ).packed()


@dataclass(frozen=True, slots=True)
class Left:
    """What a group said and left."""

    committed: list[bytes]
    errors: list[str]
    rows: list[list[int]]
    """Of each directory, those that are left to the caller."""
    tree: dict[bytes, File]
    """Files only: directories have the times of now."""


def grouped(top: Path, wanted: list[Directory], depth: int, most: int, fsync: bool) -> Left:
    """Commits new files of all directories, as WholeFiles does with those of one message."""
    top.mkdir()
    root = Root.open(os.fsencode(top))
    root = root.having(ReadPolicy(depth=depth), WritePolicy(sparse=True))
    committed: list[bytes] = []
    failed: list[FileError] = []
    files, contents = [], []
    for number, directory in enumerate(wanted):
        place = top / f"d{number:02}"
        if directory.trouble != "missing":
            place.mkdir()
        if directory.trouble == "in the way":
            (place / "f00").write_bytes(b"of another")
            os.utime(place / "f00", ns=(NOW, NOW))
        rows = listing(directory.files)
        content = random.Random(number).randbytes(rows.total_size)
        files.append(ListedFiles(os.fsencode(place.name), rows))
        contents.append(bytes(len(content)) if directory.trouble == "hole" else content)
    starts = list(accumulate(map(len, contents), initial=0))
    left, ahead = [], 0
    with CommitGroup(
        root, fsync=fsync, on_commit=committed.append, on_error=failed.append, files=most
    ) as group:
        for number, one in enumerate(files):
            if number >= ahead:
                rest = memoryview(b"".join(contents))[starts[number] :]
                ahead = number + group.stage_ahead(files[number:], rest, owner=False)
            left.append(group.add_small(one.directory, one.listing, contents[number], owner=False))
            if wanted[number].trouble == "moved":
                (top / f"d{number:02}").rename(top / f"moved{number:02}")
    root.release()
    said = [str(error).replace(os.fspath(top), "TOP") for error in failed]
    return Left(
        committed,
        said,
        left,
        {path: entry for path, entry in read_tree(top).items() if isinstance(entry, File)},
    )


@settings(max_examples=examples(24), deadline=None)
@given(directories, st.sampled_from((5, 16, 256)), st.booleans())
def test_a_group_does_the_same_at_each_depth(wanted: list[Directory], most: int, fsync: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        before = open_descriptors()
        alone, together = (grouped(Path(place) / str(depth), wanted, depth, most, fsync) for depth in (1, 16))
        assert open_descriptors() <= before
    assert together == alone
    assert not any(is_temporary(path.rpartition(b"/")[2]) for path in together.tree)


def test_what_was_staged_ahead_and_is_abandoned_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    before = open_descriptors()
    root = Root.open(os.fsencode(tmp_path))
    root = root.having(ReadPolicy(depth=16))
    group = CommitGroup(root, fsync=False, on_commit=lambda _: None)
    files = [ListedFiles(name, listing(3)) for name in (b"a", b"b")]
    content = bytes(range(2 * files[0].listing.total_size))
    assert group.stage_ahead(files, memoryview(content), owner=False) == 2
    assert len(os.listdir(tmp_path / "b")) == 3
    assert group.add_small(b"a", files[0].listing, content[: len(content) // 2], owner=False) == []
    group.abandon()
    root.release()
    assert (os.listdir(tmp_path / "a"), os.listdir(tmp_path / "b")) == ([], [])
    assert open_descriptors() <= before


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_files_are_read_as_those_of_each_directory(counts: list[int], drawn: random.Random) -> None:
    """Some of them are not as listed, or their directory is gone."""
    with tempfile.TemporaryDirectory() as place:
        files = []
        for number, count in enumerate(counts):
            there = Path(place) / f"d{number}"
            there.mkdir()
            for name in range(count):
                (there / f"f{name}").write_bytes(drawn.randbytes(drawn.randrange(50)))
            found = Root.open(os.fsencode(there)).list(b"")
            rows = found.rows(found.rows_of(Kind.FILE)).packed()
            files.append(ListedFiles(os.fsencode(there.name), rows))
            if drawn.random() < 0.3:
                (there / f"f{drawn.randrange(count)}").write_bytes(
                    b"another content, of another size and time"
                )
            elif drawn.random() < 0.2:
                there.rename(Path(place) / f"moved{number}")
        alone = [read_small(Root.open(os.fsencode(place)), one.directory, one.listing) for one in files]
        for depth in (1, 16):
            root = Root.open(os.fsencode(place))
            root = root.having(ReadPolicy(depth=depth))
            content, good = read_together(root, files)
            assert content == b"".join(each for each, _ in alone)
            assert good == b"".join(fine for _, fine in alone)
