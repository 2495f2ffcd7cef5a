"""Identical files against a slow search, the cost of a search, and files that change during it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.model.duplicates import DuplicateOptions, DuplicateOrder
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Event, Problem, Progressed, Reporter
from rdc.survey import read as content
from rdc.survey.duplicates import Duplicates, find_duplicates
from rdc.survey.read import BATCHED_BYTES, END_BYTES, Comparison
from rdc.survey.walk import walk_paths
from rdc.survey.walk.file_columns import FileColumns
from rdc.tree.filters import FilterList
from rdc.tree.walk import Walk, measuring_walk
from tests.support.share import examples
from tests.support.trees.duplicate_files import Collector, make, names_in
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

SIZES = (0, 1, 3, 2 * END_BYTES, 2 * END_BYTES + 1, BATCHED_BYTES, BATCHED_BYTES + 1, 300_000)
"""Sizes around the limits between files read whole at once, in batches, and singly."""


def data_of(size: int, change: int) -> bytes:
    """Zeros with one byte changed at the start, in the middle or at the end."""
    data = bytearray(size)
    if change and size:
        data[(0, size // 2, size - 1)[change % 3]] = change
    return bytes(data)


@st.composite
def file_trees(draw: st.DrawFn) -> dict[bytes, bytes | tuple[str, bytes]]:
    """Paths with content, or with ("hard" or "soft", path of another entry)."""
    names = st.sampled_from([b"a", b"b", b"c", b"\xff\xfe", b"new\nline", b"\x1b[2J", b"-0", b" "])
    paths = draw(st.lists(st.lists(names, min_size=1, max_size=3).map(b"/".join), max_size=14, unique=True))
    found: dict[bytes, bytes | tuple[str, bytes]] = {}
    for path in sorted(paths, key=lambda path: (path.count(b"/"), path)):
        if any(path[: len(other)] == other for other in found if path.startswith(other + b"/")):
            continue
        kind = draw(st.integers(0, 5))
        if kind < 2 and found:
            link = "hard" if kind else "soft"
            found[path] = (link, draw(st.sampled_from(sorted(found))))
        else:
            found[path] = data_of(draw(st.sampled_from(SIZES)), draw(st.integers(0, 3)))
    return found


def write(top: Path, tree: dict[bytes, bytes | tuple[str, bytes]]) -> None:
    base = os.fsencode(top)
    for path, what in tree.items():
        os.makedirs(os.path.dirname(base + b"/" + path), exist_ok=True)
        if isinstance(what, bytes):
            with open(base + b"/" + path, "wb") as file:
                file.write(what)
        elif what[0] == "hard":
            os.link(base + b"/" + what[1], base + b"/" + path, follow_symlinks=False)
        else:
            os.symlink(base + b"/" + what[1], base + b"/" + path)


def obvious(top: Path, smallest: int = 1) -> set[frozenset[bytes]]:
    """The slow search: compares each file with one file of each class so far. Hard links count as one
    file."""
    names: dict[int, bytes] = {}
    for directory, _, files in os.walk(os.fsencode(top)):
        for name in files:
            path = directory + b"/" + name
            if not os.path.islink(path) and os.path.getsize(path) >= smallest:
                inode = os.stat(path).st_ino
                names[inode] = min(names.get(inode, path), path)
    classes: list[list[bytes]] = []
    for path in names.values():
        for one in classes:
            if Path(os.fsdecode(one[0])).read_bytes() == Path(os.fsdecode(path)).read_bytes():
                one.append(path)
                break
        else:
            classes.append([path])
    return {frozenset(map(inode_of, one)) for one in classes if len(one) > 1}


def inode_of(path: bytes) -> bytes:
    return b"%d" % os.stat(path).st_ino


def found_in(found: Duplicates) -> set[frozenset[bytes]]:
    """Each file by its inode, since any of its names may represent it."""
    return {frozenset(inode_of(file.path_bytes) for file in group.files) for group in found}


def no_problems(event: Event) -> None:
    assert not isinstance(event, Problem), event


@settings(deadline=None, max_examples=examples(60))
@given(
    file_trees(), st.booleans(), st.booleans(), st.sampled_from([1, 3]), st.sampled_from(list(DuplicateOrder))
)
def test_any_tree(
    tree: dict[bytes, bytes | tuple[str, bytes]],
    empty: bool,
    verify: bool,
    workers: int,
    order: DuplicateOrder,
) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        top = Path(made)
        write(top, tree)
        options = DuplicateOptions(
            min_size=0 if empty else 1, links=True, verify=verify, order=order, workers=workers
        )
        found = find_duplicates([os.fsencode(top)], options, no_problems)
        groups = list(found)
        assert found_in(found) == obvious(top, 0 if empty else 1)
        assert found.summary.groups == len(groups)
        assert found.summary.files == sum(len(group.files) for group in groups)
        assert found.summary.waste == sum(group.waste for group in groups)
        for group in groups:
            for file in group.files:
                assert os.path.getsize(file.path_bytes) == group.size
                # Exactly the names of the tree.
                same = [n for n in (top / "x").parent.rglob("*") if n.is_file() and not n.is_symlink()]
                names = {
                    os.fsencode(n) for n in same if inode_of(os.fsencode(n)) == inode_of(file.path_bytes)
                }
                assert {file.path_bytes, *file.links_bytes} == names
                assert len(file.links_bytes) == len(names) - 1
        keys = {
            DuplicateOrder.WASTE: [group.waste for group in groups],
            DuplicateOrder.SIZE: [group.size for group in groups],
            DuplicateOrder.COUNT: [len(group.files) for group in groups],
            DuplicateOrder.PATH: [],
        }[order]
        assert keys == sorted(keys, reverse=True)


# What is read


def test_files_that_differ_in_their_ends_are_never_read_whole(tmp_path: Path) -> None:
    size = 5_000_000
    paths = make(tmp_path, a=b"1" + bytes(size), b=b"2" + bytes(size), c=bytes(size) + b"3", d=bytes(7))
    found = find_duplicates(paths)
    assert list(found) == []
    assert found.summary.bytes_read == 3 * 2 * END_BYTES
    assert found.summary.files_read == 3


def test_each_file_is_read_once_and_its_ends_twice(tmp_path: Path) -> None:
    small, medium, large = bytes(2 * END_BYTES), bytes(BATCHED_BYTES), bytes(BATCHED_BYTES + 1)
    paths = make(tmp_path, a=small, b=small, c=medium, d=medium, e=large, f=large, g=bytes(500), h=bytes(501))
    progress: list[Progressed] = []

    def report(event: Event) -> None:
        assert isinstance(event, Progressed)
        progress.append(event)

    found = find_duplicates(paths, DuplicateOptions(), report)
    assert names_in(found) == [[b"e", b"f"], [b"c", b"d"], [b"a", b"b"]]
    assert found.summary.files_read == 6
    ends = 2 * END_BYTES
    whole = 2 * (len(medium) + len(large))
    assert found.summary.bytes_read == 6 * ends + whole
    assert [event.done for event in progress] == sorted(event.done for event in progress)
    assert progress[-1] == Progressed("compare", 6 * ends + whole, 6 * ends + whole)


def test_names_of_one_file_and_lone_sizes_are_not_read(tmp_path: Path) -> None:
    paths = make(tmp_path, a=bytes(40_000), b=bytes(30_000))
    (tmp_path / "c").hardlink_to(tmp_path / "a")
    (tmp_path / "d").hardlink_to(tmp_path / "b")
    (tmp_path / "e").symlink_to("a")
    found = find_duplicates(paths)
    assert list(found) == []
    assert (found.summary.bytes_read, found.summary.files_read, found.summary.searched) == (0, 0, 5)


def test_verification_reads_each_pair_once_more(tmp_path: Path) -> None:
    paths = make(tmp_path, a=bytes(100), b=bytes(100), c=bytes(100))
    found = find_duplicates(paths, DuplicateOptions(verify=True))
    assert names_in(found) == [[b"a", b"b", b"c"]]
    assert found.summary.bytes_read == 300 + 2 * 200


def test_verification_sees_what_digests_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {name: bytes(100) + name.encode() for name in "abcd"}
    paths = make(tmp_path, **files, e=files["b"], f=files["c"])

    def deceiving(data: bytes, sizes: list[int], head: int, tail: int) -> list[bytes]:
        return [bytes(32)] * len(sizes)

    monkeypatch.setattr(content, "_digests", deceiving)
    assert names_in(find_duplicates(paths)) == [[b"a", b"b", b"c", b"d", b"e", b"f"]]
    found = find_duplicates(paths, DuplicateOptions(verify=True, order=DuplicateOrder.PATH))
    assert names_in(found) == [[b"b", b"e"], [b"c", b"f"]]


# Which files


def test_places_that_overlap_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, a__x=b"same", a__b__y=b"same", a__b__z=b"other", c=b"other")
    (tmp_path / "link").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    expected = {frozenset({b"x", b"y"}), frozenset({b"z", b"c"})}
    for paths in (
        [b"a/b", b"a", b"c", b"."],
        [b".", b"a", b"a/b/y"],
        [b"a/b/z", b"./a/b/../b/z", b"c", b"a/b/y", b"a/x", b"link"],
        [b"link", b"a", b"c", b"c", b"link/b/z"],
    ):
        found = find_duplicates(paths, DuplicateOptions(links=True), no_problems)
        assert {frozenset(names) for names in names_in(found)} == expected
        assert not any(file.links_bytes for group in found for file in group.files)


def test_names_are_shown_as_they_were_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, a__x=b"same", d__y=b"same", z=b"same", e__w=b"same")
    (tmp_path / "link").symlink_to("d")
    (tmp_path / "file").symlink_to("e/w")
    monkeypatch.chdir(tmp_path)
    [group] = find_duplicates([b"a/", b"link", b"z", b"file"])
    shown = sorted(file.path_bytes for file in group.files)
    assert shown == sorted([b"a/x", b"link/y", b"z", os.fsencode(tmp_path.resolve()) + b"/e/w"])


def test_sizes_filters_and_empty_files(tmp_path: Path) -> None:
    paths = make(
        tmp_path, a=b"", b=b"", c=b"1", d=b"1", e=b"12", f=b"12", g=b"123", h=b"123", no__c=b"1", i__no=b"12"
    )
    (tmp_path / "empty").mkdir()

    def groups(min_size: int = 1, max_size: int | None = None) -> list[list[bytes]]:
        options = DuplicateOptions(min_size=min_size, max_size=max_size, order=DuplicateOrder.PATH)
        return names_in(find_duplicates(paths, options, no_problems))

    assert groups() == [[b"c", b"d", b"c"], [b"e", b"f", b"no"], [b"g", b"h"]]
    assert groups(min_size=0, max_size=1) == [[b"a", b"b"], [b"c", b"d", b"c"]]
    assert groups(min_size=2, max_size=2) == [[b"e", b"f", b"no"]]
    rules = (FilterRule(RuleAction.EXCLUDE, b"no"), FilterRule(RuleAction.EXCLUDE, b"/g"))
    found = find_duplicates(paths, DuplicateOptions(rules, order=DuplicateOrder.PATH))
    assert names_in(found) == [[b"c", b"d"], [b"e", b"f"]]


def test_one_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that reports another device simulates a mount."""
    paths = make(tmp_path, a=b"same", b=b"same", mount__c=b"same")
    mount = (tmp_path / "mount").stat().st_ino
    real = measuring_walk

    def elsewhere(
        root: Root, filters: FilterList, report: Reporter, descend: Callable[[int, int], bool]
    ) -> Walk:
        return real(root, filters, report, lambda device, inode: descend(device + (inode == mount), inode))

    monkeypatch.setattr(walk_paths, "measuring_walk", elsewhere)
    assert names_in(find_duplicates(paths)) == [[b"a", b"b", b"c"]]
    assert names_in(find_duplicates(paths, DuplicateOptions(one_file_system=True))) == [[b"a", b"b"]]


# Files that do not stay


@pytest.mark.parametrize("size", [100, 50_000, 300_000])
def test_what_changes_after_the_walk_is_named_and_left_out(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes happen between the walk and the reading of the ends, and of the rest of large files."""
    data = bytes(size)
    for stage in ("ends", "whole") if size > 2 * END_BYTES else ("ends",):
        top = tmp_path / stage
        paths = make(top, **dict.fromkeys("abcdefg", data))

        def change(top: Path = top) -> None:
            (top / "b").unlink()
            with (top / "c").open("ab") as file:
                file.write(b"more")
            os.truncate(top / "d", size - 1)
            (top / "new").write_bytes(bytes(size))
            (top / "new").replace(top / "e")
            (top / "f").unlink()
            (top / "f").symlink_to("a")

        real = content.ContentReader.ends if stage == "ends" else content.ContentReader.expect

        def first(self: object, argument: object, real: Any = real) -> object:
            change()
            return real(self, argument)

        with monkeypatch.context() as patch:
            patch.setattr(content.ContentReader, "ends" if stage == "ends" else "expect", first)
            collector = Collector()
            found = find_duplicates(paths, DuplicateOptions(), collector)
        assert names_in(found) == [[b"a", b"g"]]
        assert sorted(collector.problems) == [
            (ExitCode.VANISHED, name) for name in (b"b", b"c", b"d", b"e", b"f")
        ]


def test_what_changes_while_it_is_read_or_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = make(tmp_path, **dict.fromkeys("abcd", bytes(400_000)))
    real = SourceFile.pread
    touched: list[int] = []

    def pread(self: SourceFile, offset: int, length: int) -> bytes:
        data = real(self, offset, length)
        if self.identity.inode == touched[0]:
            os.utime(self.fileno())
        return data

    monkeypatch.setattr(SourceFile, "pread", pread)
    classes = Comparison.classes
    for name, verify in ((b"b", False), (b"a", False), (b"c", True), (b"a", True)):
        inode = (tmp_path / os.fsdecode(name)).stat().st_ino
        touched[:] = [0 if verify else inode]

        def begun(self: Comparison, rows: list[int], inode: int = inode) -> list[list[int]]:
            touched[:] = [inode]
            return classes(self, rows)

        collector = Collector()
        with monkeypatch.context() as patch:
            patch.setattr(Comparison, "classes", begun)
            found = find_duplicates(paths, DuplicateOptions(verify=verify), collector)
        assert names_in(found) == [[other for other in (b"a", b"b", b"c", b"d") if other != name]]
        assert collector.problems == [(ExitCode.VANISHED, name)]


def test_what_vanishes_before_the_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = make(tmp_path, **dict.fromkeys("abcd", bytes(100)))
    opened: list[int] = []
    real = FileColumns.open

    def vanish(self: FileColumns, row: int) -> SourceFile:
        opened.append(row)
        if len(opened) == 4:  # the first of the class, to be compared with the third
            (tmp_path / "a").unlink()
        return real(self, row)

    monkeypatch.setattr(FileColumns, "open", vanish)
    collector = Collector()
    found = find_duplicates(paths, DuplicateOptions(verify=True), collector)
    assert names_in(found) == [[b"b", b"c", b"d"]]
    assert collector.problems == [(ExitCode.VANISHED, b"a")]


def test_what_may_not_be_read_is_named_and_the_rest_found() -> None:
    with place_of_nobody() as place:
        paths = make(place, **dict.fromkeys(("a", "b", "c", "closed__d", "large", "large2"), bytes(300)))
        make(place, **dict.fromkeys(("large", "large2", "large3"), bytes(300_000)))
        (place / "b").chmod(0)
        (place / "large2").chmod(0)
        (place / "closed").chmod(0)

        def search() -> tuple[list[list[bytes]], list[tuple[ExitCode, bytes]]]:
            collector = Collector()
            return names_in(find_duplicates(paths, DuplicateOptions(), collector)), collector.problems

        names, problems = as_nobody(search)
        assert names == [[b"large", b"large3"], [b"a", b"c"]]
        assert sorted(problems) == [(ExitCode.PARTIAL, name) for name in (b"b", b"closed", b"large2")]


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    make(tmp_path, a=b"same", b=b"same")
    os.mkfifo(tmp_path / "fifo")
    top = os.fsencode(tmp_path)
    collector = Collector()
    found = find_duplicates([top + b"/none", top + b"/fifo", top], DuplicateOptions(), collector)
    assert names_in(found) == [[b"a", b"b"]]
    assert collector.problems == [(ExitCode.PARTIAL, b"none"), (ExitCode.PARTIAL, b"fifo")]
    seen: list[Event] = []
    assert list(find_duplicates([b"a\0b"], DuplicateOptions(), seen.append)) == []
    [problem] = seen
    assert isinstance(problem, Problem)
    assert problem.code == ExitCode.PARTIAL


def test_an_error_in_a_thread_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = make(tmp_path, **{f"f{n}": bytes(200_000) for n in range(12)})

    def broken(self: SourceFile, offset: int, length: int) -> object:
        raise MemoryError

    monkeypatch.setattr(SourceFile, "pread", broken)
    with pytest.raises(MemoryError):
        find_duplicates(paths, DuplicateOptions(workers=3))


@pytest.mark.parametrize("verify", [False, True])
def test_holes_are_neither_read_nor_counted(tmp_path: Path, verify: bool) -> None:
    """Files of one content, some with holes; and one that differs in a byte deep inside."""
    size, at = 8 << 30, 5 << 30
    for name in ("a", "b", "differs"):
        with (tmp_path / name).open("wb") as file:
            file.seek(at)
            file.write(b"y" if name == "differs" else b"x")
            file.truncate(size)
    for name, written in (("dense", bytes(1 << 20)), ("sparse", b"")):
        (tmp_path / name).write_bytes(written)
        os.truncate(tmp_path / name, 1 << 20)
    found = find_duplicates([os.fsencode(tmp_path)], DuplicateOptions(verify=verify), no_problems)
    assert names_in(found) == [[b"a", b"b"], [b"dense", b"sparse"]]
    assert found.summary.bytes_read < 8 << 20
    blocks = os.stat(tmp_path / "b").st_blocks * 512
    assert [group.waste for group in found] == [blocks, 0]
    assert found.summary.waste == blocks < 1 << 20
