"""What stays where no rule decides: the file of the PATH given first, which a listing shows first, too."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.running.deduping import TIME, dedupe, dupes, seen
from tests.support.share import examples

CONTENTS = (b"one" * 2_000, b"two" * 2_000)
DIRECTORIES = ("master-photos", "tmp", "a/deep/b", "a/deep", "a", "zz")
PLACES = (
    *DIRECTORIES,
    "./tmp/",
    "a/../zz",
    "to-a",
    "a/file0",
    "a/deep/file1",
    "tmp/file0",
    "zz/file1",
    "to-file",
)
"""Spellings of PATH: directories, files given by themselves, and symbolic links to both."""


def write(top: Path, files: dict[tuple[str, int], int]) -> None:
    for directory in DIRECTORIES:
        (top / directory).mkdir(parents=True, exist_ok=True)
        for number in (0, 1):
            path = top / directory / f"file{number}"
            path.write_bytes(CONTENTS[files.get((directory, number), 0)])
            os.utime(path, ns=(TIME, TIME))
    (top / "to-a").symlink_to("a")
    (top / "to-file").symlink_to("zz/file0")


def names_below(path: str) -> list[str]:
    """Real names of the files at and below `path` in the order of a walk: a directory's own before those
    below it."""
    if os.path.isfile(path):
        return [os.path.realpath(path)]
    found = []
    for directory, below, names in os.walk(os.path.realpath(path)):
        below.sort()
        found += [os.path.join(directory, name) for name in sorted(names)]
    return [name for name in found if not os.path.islink(name)]


def expected(paths: list[str]) -> dict[bytes, str]:
    """By content: the first file that the PATHs lead to, if there is another."""
    order = dict.fromkeys(name for path in paths for name in names_below(path))
    groups: dict[bytes, list[str]] = {}
    for name in order:
        groups.setdefault(Path(name).read_bytes(), []).append(name)
    return {content: names[0] for content, names in groups.items() if len(names) > 1}


@settings(max_examples=examples(40), deadline=None)
@given(
    st.dictionaries(st.tuples(st.sampled_from(DIRECTORIES), st.integers(0, 1)), st.integers(0, 1)),
    st.lists(st.sampled_from(PLACES), min_size=1, max_size=4),
    st.sampled_from([[], ["--keep=first"], ["--keep=oldest"], ["--keep=newest", "--keep=first"]]),
    st.sampled_from(["--delete", "--symlink"]),
)
@example({}, ["master-photos", "tmp"], [], "--delete")
@example({}, ["a", "a/deep/file1"], [], "--delete")
@example({}, ["zz/file1", "zz"], ["--keep=first"], "--delete")
@example({}, ["a/deep/b", "a"], ["--keep=oldest"], "--symlink")
def test_the_first_path_stays(
    files: dict[tuple[str, int], int], paths: list[str], rules: list[str], action: str
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory) / "top"
        write(top, files)
        here = os.getcwd()
        os.chdir(top)
        try:
            stays = expected(paths)
            listed = [[file["path"] for file in group["files"]] for group in dupes(*paths).of("group")]
            assert {os.path.realpath(group[0]) for group in listed} == set(stays.values())
            gone = {os.path.realpath(name) for group in listed for name in group[1:]}
            journal = top.parent / "journal"
            words = (action, *rules, f"--journal={journal}", "--apply", *paths)
            before = seen(top)
            run = dupes(*words)
            assert run.code == 0, run
            # Only regular files are seen, so neither deleted ones nor links.
            left = {os.path.join(os.path.realpath(top), name) for name in before.keys() - seen(top).keys()}
            assert left == gone
            for content, name in stays.items():
                assert not os.path.islink(name)
                assert Path(name).read_bytes() == content
            if journal.exists():
                assert dedupe("--undo", journal).code == 0
            assert seen(top) == before
        finally:
            os.chdir(here)
