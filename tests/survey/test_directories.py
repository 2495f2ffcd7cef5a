"""Equal directories against a slow search of whole trees, and what makes directories incomparable."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.model.duplicates import DuplicateOptions, DuplicateOrder
from rdc.model.selection import FilterRule, RuleAction
from rdc.survey.duplicates import Duplicates, find_duplicates
from tests.support.share import examples
from tests.support.trees.duplicate_files import make
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

NAMES = ["a", "b", "c"]
Tree = dict[str, Any]
LEAVES = st.sampled_from([b"", b"x", b"y", b"longer", ("hard", 0), ("hard", 1), ("soft", "x"), ("soft", "y")])


def trees(depth: int) -> st.SearchStrategy[Tree]:
    """A directory: names with contents, links, or directories."""
    below = LEAVES if not depth else st.one_of(LEAVES, trees(depth - 1))
    return st.dictionaries(st.sampled_from(NAMES), below, max_size=3)


def write(top: Path, tree: Tree, originals: list[Path]) -> None:
    """Write a tree. ("hard", n) is a further name of the nth of `originals`."""
    top.mkdir(exist_ok=True)
    for name, what in tree.items():
        path = top / name
        if isinstance(what, dict):
            write(path, what, originals)
        elif isinstance(what, bytes):
            path.write_bytes(what)
        elif what[0] == "hard":
            path.hardlink_to(originals[what[1]])
        else:
            path.symlink_to(what[1])


def value(top: Path) -> Tree:
    """All that counts of a directory, read entry by entry."""
    found: Tree = {}
    for path in top.iterdir():
        if path.is_symlink():
            found[path.name] = ("link", os.readlink(path))
        else:
            found[path.name] = value(path) if path.is_dir() else path.read_bytes()
    return found


def has_content(tree: Tree) -> bool:
    return any(
        has_content(one) if isinstance(one, dict) else isinstance(one, bytes) and one for one in tree.values()
    )


def in_walk_order(top: Path) -> list[Path]:
    found = [top]
    for path in sorted(top.iterdir(), key=os.fsencode):
        if path.is_dir() and not path.is_symlink():
            found += in_walk_order(path)
    return found


def obvious(tops: list[Path]) -> dict[Path, list[Path]]:
    """The further copies of each first directory, by comparing whole trees with all trees before."""
    firsts: list[tuple[Path, Tree]] = []
    further: dict[Path, list[Path]] = {}
    copies: list[Path] = []
    for path in [path for top in tops for path in in_walk_order(top)]:
        tree = value(path)
        if any(copy in path.parents for copy in copies) or not has_content(tree):
            continue
        first = next((one for one, known in firsts if known == tree), None)
        if first is None:
            firsts.append((path, tree))
        else:
            further.setdefault(first, []).append(path)
            copies.append(path)
    return further


def names_of(path: str, everything: list[Path]) -> list[Path]:
    """All names of a file."""
    return [one for one in everything if not one.is_symlink() and one.is_file() and one.samefile(path)]


@settings(deadline=None, max_examples=examples(150))
@given(trees(3), trees(2), st.sampled_from(list(DuplicateOrder)))
def test_any_trees(one: Tree, two: Tree, order: DuplicateOrder) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        place = Path(made)
        originals = [place / "first", place / "second"]
        for original in originals:
            original.write_bytes(b"x" if original.name == "first" else b"linked")
        tops = [place / "one", place / "two"]
        # Both have the other tree inside, so that equal directories are common at every depth.
        write(tops[0], {**one, "d": two}, originals)
        write(tops[1], {**two, "d": one, "e": two}, originals)
        found = find_duplicates(
            list(map(os.fsencode, tops)), DuplicateOptions(order=order, links=True), directories=True
        )
        expected = obvious(tops)
        copies = [copy for further in expected.values() for copy in further]
        everything = [path for top in tops for path in top.rglob("*")]
        covered = 0
        worth: set[Path] = set()
        for group in found:
            left = group.uncovered
            assert not group.files[0].covered
            assert group.waste == sum(group.size - one.unallocated for one in group.files[1:])
            for file in group.files:
                names = names_of(file.path, everything)
                inside = [copy for name in names for copy in copies if copy in name.parents]
                assert file.covered == (len(inside) == len(names)), file
                if file.covered:
                    covered += group.size - file.unallocated
                    worth |= {copy for copy in copies if copy in Path(file.path).parents}
            kept = [file for file in group.files if not file.covered]
            assert (() if left is None else left.files) == (tuple(kept) if len(kept) > 1 else ())
        # A group is listed if it covers a file under its first name.
        assert {group.paths for group in found.directories} == {
            (str(first), *map(str, further)) for first, further in expected.items() if worth & set(further)
        }
        assert sum(group.waste for group in found.directories) == covered
        for directories in found.directories:
            files = [
                path
                for path in Path(directories.paths[0]).rglob("*")
                if path.is_file() and not path.is_symlink()
            ]
            sizes = [path.stat().st_size for path in files if path.stat().st_size]
            assert (directories.files, directories.bytes) == (len(sizes), sum(sizes))
        weights = {
            DuplicateOrder.WASTE: [group.waste for group in found.directories],
            DuplicateOrder.SIZE: [group.bytes for group in found.directories],
            DuplicateOrder.COUNT: [len(group.paths) for group in found.directories],
            DuplicateOrder.PATH: [],
        }[order]
        assert weights == sorted(weights, reverse=True)


def listed(found: Duplicates, top: Path) -> list[tuple[str, ...]]:
    return [tuple(os.path.relpath(path, top) for path in group.paths) for group in found.directories]


def search(top: Path, *paths: str, options: DuplicateOptions = DuplicateOptions()) -> list[tuple[str, ...]]:  # noqa: B008 - frozen
    given = [os.fsencode(top / path) for path in paths] or [os.fsencode(top)]
    return listed(find_duplicates(given, options, directories=True), top)


def test_only_the_topmost_are_listed(tmp_path: Path) -> None:
    make(tmp_path, p__s__f=b"1", q__s__f=b"1", r__s__f=b"1", r__other=b"2")
    assert search(tmp_path) == [("p", "q"), ("p/s", "r/s")]


@pytest.mark.parametrize("what", ["file", "fifo", "link", "size", "empty directory", "excluded", "bad"])
def test_what_makes_directories_differ(tmp_path: Path, what: str) -> None:
    make(tmp_path, a__f=b"content", b__f=b"content", a__sub__g=b"long content", b__sub__g=b"long content")
    assert search(tmp_path) == [("a", "b")]
    options = DuplicateOptions()
    below: list[tuple[str, ...]] = [("a/sub", "b/sub")]
    if what == "file":
        (tmp_path / "b" / "more").write_bytes(b"")
    elif what == "fifo":
        os.mkfifo(tmp_path / "a" / "pipe")
        os.mkfifo(tmp_path / "b" / "pipe")
    elif what == "link":
        (tmp_path / "a" / "l").symlink_to("f")
        (tmp_path / "b" / "l").symlink_to("g")
    elif what == "size":  # the small files are not compared, so nobody knows
        options = DuplicateOptions(min_size=8)
    elif what == "empty directory":
        (tmp_path / "a" / "e").mkdir()
    elif what == "excluded":  # what differs is excluded, so nothing does
        (tmp_path / "a" / "t").write_bytes(b"other")
        options = DuplicateOptions(rules=(FilterRule(RuleAction.EXCLUDE, b"t"),))
        below = [("a", "b")]
    else:  # a name that rdc keeps for itself is in no listing
        (tmp_path / "a" / ".rdc-mine").write_bytes(b"1")
    assert search(tmp_path, options=options) == below


def test_empty_directories_are_no_groups(tmp_path: Path) -> None:
    for name in ("a/e", "b/e", "c"):
        (tmp_path / name).mkdir(parents=True)
    make(tmp_path, d__f=b"", e__f=b"")
    assert search(tmp_path, options=DuplicateOptions(min_size=0)) == []


def test_links_of_one_file_waste_nothing(tmp_path: Path) -> None:
    make(tmp_path, a__f=b"content")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "f").hardlink_to(tmp_path / "a" / "f")
    assert search(tmp_path) == []
    make(tmp_path, c__f=b"content")
    (group,) = find_duplicates([os.fsencode(tmp_path)], DuplicateOptions(), directories=True).directories
    assert (listed_one(group.paths, tmp_path), group.waste) == (("a", "b", "c"), 7)


def listed_one(paths: tuple[str, ...], top: Path) -> tuple[str, ...]:
    return tuple(os.path.relpath(path, top) for path in paths)


def test_a_file_with_a_name_elsewhere_is_not_covered(tmp_path: Path) -> None:
    make(tmp_path, a__f=b"content", b__f=b"content", a__g=b"2", b__g=b"2")
    (tmp_path / "z").hardlink_to(tmp_path / "b" / "f")
    found = find_duplicates([os.fsencode(tmp_path)], DuplicateOptions(), directories=True)
    assert [group.waste for group in found.directories] == [1]
    left = [one for group in found if (one := group.uncovered) is not None]
    names = [[os.path.relpath(file.path, tmp_path) for file in group.files] for group in left]
    assert names == [["z", "a/f"]]


def test_reference_and_across(tmp_path: Path) -> None:
    make(tmp_path, ref__a__f=b"1", ref__b__f=b"1", x__c__f=b"1", x__d__f=b"2", x__e__f=b"2", y__k__f=b"2")
    reference = DuplicateOptions(reference=(os.fsencode(tmp_path / "ref"),))
    assert search(tmp_path, "x", options=reference) == [("ref/a", "x/c")]
    assert search(tmp_path, "x", options=DuplicateOptions(across=True)) == []
    across = search(tmp_path, "ref", "x", "y", options=DuplicateOptions(across=True))
    assert sorted(across) == [("ref/a", "ref/b", "x/c"), ("x/d", "x/e", "y/k")]


def test_a_directory_that_cannot_be_read_is_equal_to_none() -> None:
    with place_of_nobody() as place:
        make(place, a__f=b"1", b__f=b"1", a__s__g=b"2", b__s__g=b"2")
        (place / "b" / "s").chmod(0)
        try:
            assert as_nobody(lambda: search(place)) == []
        finally:
            (place / "b" / "s").chmod(0o755)


def test_the_parts_of_a_walk_that_are_skipped(tmp_path: Path) -> None:
    # A PATH inside another one is met before it, so the outer walk does not see it.
    make(tmp_path, a__s__f=b"1", b__s__f=b"1", a__g=b"2", b__g=b"2")
    assert search(tmp_path, "a/s", ".") == [("a/s", "b/s")]
