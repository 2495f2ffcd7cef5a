"""The rows of walked directories against a slow look at each directory by itself."""

from __future__ import annotations

import os
import stat
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.files.root.root import Root
from rdc.model.entries import EMPTY_LISTING, NO_INODES
from rdc.progress import Event, Problem
from rdc.survey.walk.directory_rows import DIGEST_BYTES, NO_PARENT, DirectoryRows
from rdc.survey.walk.walk_paths import walk_paths
from rdc.tree.walk import WalkedDirectory
from tests.support.share import examples

NAMES = ["a", "b", "ab", "b.c"]

Tree = dict[str, Any]
LEAVES = st.sampled_from([b"", b"", b"x", "a", "b", None])
"""Files, symlinks, and a FIFO."""


def trees(depth: int) -> st.SearchStrategy[Tree]:
    below = LEAVES if not depth else st.one_of(LEAVES, trees(depth - 1))
    return st.dictionaries(st.sampled_from(NAMES), below, max_size=4)


def write(top: Path, tree: Tree) -> None:
    top.mkdir()
    for name, what in tree.items():
        path = top / name
        match what:
            case dict():
                write(path, what)
            case bytes():
                path.write_bytes(what)
            case str():
                path.symlink_to(what)
            case _:
                os.mkfifo(path)


def walked(*paths: str) -> tuple[DirectoryRows, list[Event]]:
    rows, events = DirectoryRows(), list[Event]()
    walk_paths(
        [os.fsencode(path) for path in paths], (), events.append, one_file_system=False, directories=rows
    )
    return rows, events


def others_of(path: str) -> tuple[tuple[str, ...], ...]:
    """The empty files, and the symlinks with their targets."""
    entries = sorted(os.scandir(path), key=lambda each: os.fsencode(each.name))
    return (
        tuple(
            each.name for each in entries if each.is_file(follow_symlinks=False) and not each.stat().st_size
        ),
        *((each.name, os.readlink(each.path)) for each in entries if each.is_symlink()),
    )


def check(rows: DirectoryRows, paths: list[str]) -> None:
    """Compare each row with what its directory contains, and the rows with each other."""
    wanted = [
        (top, number) for number, path in enumerate(paths) for top, _, _ in os.walk(os.path.join(path, ""))
    ]
    shown = [os.fsdecode(rows.shown(number)) for number in range(len(rows))]
    assert Counter(shown) == Counter(top.rstrip("/") for top, _ in wanted)
    operands = {top.rstrip("/"): number for top, number in wanted}
    for number, path in enumerate(shown):
        kinds = Counter(stat.S_IFMT(each.stat(follow_symlinks=False).st_mode) for each in os.scandir(path))
        empty = len(others_of(path)[0])
        assert rows.operands[number] == operands[path]
        assert rows.files[number] == kinds[stat.S_IFREG] - empty
        assert rows.subdirectories[number] == kinds[stat.S_IFDIR]
        assert rows.incomplete[number] == bool(kinds[stat.S_IFIFO])
        above = rows.parents[number]
        if path in paths:
            assert (above, os.fsdecode(rows.name(number))) == (NO_PARENT, path)
        else:
            assert above < number
            assert (shown[above], os.fsdecode(rows.name(number))) == os.path.split(path)
    digests: dict[tuple[object, ...], set[bytes]] = {}
    for number, path in enumerate(shown):
        digest = bytes(rows.others[number * DIGEST_BYTES :][:DIGEST_BYTES])
        digests.setdefault(others_of(path), set()).add(digest)
    assert [len(found) for found in digests.values()] == [1] * len(digests)
    assert len(set.union(*digests.values())) == len(digests)


@settings(max_examples=examples(60), deadline=None)
@given(trees(3), trees(2))
@example({"a": {"a": b"", "b": b""}, "b": {"afb": b""}}, {})
@example({"a": {"a": "bb"}, "b": {"ab": "b"}}, {})
@example({"a": {"a": "x", "blc": "y"}, "b": {"a": "xlb", "c": "y"}}, {})
@example({"a": {"lb": b"", "t": b""}, "b": {"b": "t"}}, {})
@example({"a": {"a": b"", "z": b""}, "b": {"fa": "fz"}}, {})
@example({"a": {"a": {}, "b": {}}, "ab": {"a": {}}}, {"a": {"a": {"a": {}}}})
def test_rows_are_what_a_slow_look_finds(one: Tree, two: Tree) -> None:
    """The examples have names and targets that would be mistaken for others if nothing separated them."""
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        paths = [f"{top}/one", f"{top}/one.more"]
        for path, tree in zip(paths, (one, two), strict=True):
            write(Path(path), tree)
        rows, _ = walked(*paths)
        check(rows, paths)


@pytest.mark.parametrize("typed", ["d", "d/", "./d", "."])
def test_a_path_is_shown_as_typed(typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d/e").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    rows, events = walked(typed)
    shown = [os.fsdecode(rows.shown(number)) for number in range(len(rows))]
    assert shown == [top.rstrip("/") for top, _, _ in os.walk(typed)]
    assert events == []


def test_the_root_of_the_machine() -> None:
    """Its name is its slash, which no other name ends in."""
    rows = DirectoryRows()
    rows.noting(lambda _: None)(Problem(ExitCode.FILE_IO, b"/lost", "cannot look at it"))
    with closing(Root.open(b"/")) as root:
        for path in (b"", b"bin"):
            rows.add(0, root, WalkedDirectory(path, EMPTY_LISTING.packed(), NO_INODES))
    assert [rows.shown(number) for number in range(2)] == [b"/", b"/bin"]
    assert list(rows.incomplete) == [1, 0]


@pytest.mark.parametrize("typed", ["d", "d/", "."])
def test_a_directory_that_lacks_an_entry_is_incomplete(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the directory of the entry is, and neither its parent nor its neighbour of a similar name."""
    for name in ("e", "ee", "e/below"):
        (tmp_path / "d" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    rows, events = DirectoryRows(), list[Event]()
    place = os.path.join(typed, "" if typed != "." else "d", "e")
    lost = Problem(ExitCode.FILE_IO, os.fsencode(place) + b"/lost", "cannot look at it")

    def report(event: Event, /) -> None:
        events.append(event)

    rows.noting(report)(lost)
    walk_paths([typed.encode()], (), report, one_file_system=False, directories=rows)
    found = {rows.shown(number): rows.incomplete[number] for number in range(len(rows))}
    assert {path for path, incomplete in found.items() if incomplete} == {os.fsencode(place)}
    assert len(found) == 4 + (typed == ".")
    assert events == [lost]
