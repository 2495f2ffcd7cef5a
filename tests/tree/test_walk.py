"""Walks of real trees: what is listed, in which order, what is reported, and that nothing leads out."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileError
from rdc.files.base.paths import join, temporary_name
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.model.entries import BadCall, BadEntry, Listed, strings
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Event, Problem
from rdc.tree import walk
from rdc.tree.filters import FilterList
from rdc.tree.manifest import Manifest
from rdc.tree.walk import Walk
from tests.files.root.root_entries import as_nobody
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors

NO_RULES = FilterList(())


class Reports:
    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def __call__(self, event: Event, /) -> None:
        assert isinstance(event, Problem)
        self.problems.append(event)


def build(top: Path, *entries: str) -> bytes:
    """Makes 'd/' directories, 'l@' links to '..', 'p|' fifos and files; gives the top's path."""
    for entry in entries:
        path = top / entry.rstrip("/@|")
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        elif entry.endswith("@"):
            path.symlink_to("..")
        elif entry.endswith("|"):
            os.mkfifo(path)
        else:
            # Random entries may name a fifo once more, whose reader a plain open would wait for.
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o666)
            with os.fdopen(fd, "wb") as file:
                file.write(entry.encode())
    return os.fsencode(top)


def walked(
    top: bytes, filters: FilterList = NO_RULES, only: bytes | None = None
) -> tuple[dict[bytes, list[bytes]], Reports]:
    """Names by directory in walking order."""
    root = Root.open(top)
    reports = Reports()
    found = {path: strings(listing.names) for path, listing, _ in Walk(root, filters, reports, only)}
    return found, reports


def exclude(*patterns: bytes) -> FilterList:
    return FilterList([FilterRule(RuleAction.EXCLUDE, pattern) for pattern in patterns])


def test_a_directory_comes_before_those_in_it_and_these_by_name(tmp_path: Path) -> None:
    top = build(tmp_path, "b/x/1", "b/y/", "a", "c/2", "b-/3", "b!/", "B/z", "l@")
    found, reports = walked(top)
    assert found == {
        b"": [b"B", b"a", b"b", b"b!", b"b-", b"c", b"l"],
        b"B": [b"z"],
        b"b": [b"x", b"y"],
        b"b/x": [b"1"],
        b"b/y": [],
        b"b!": [],
        b"b-": [b"3"],
        b"c": [b"2"],
    }
    assert list(found) == [b"", b"B", b"b", b"b/x", b"b/y", b"b!", b"b-", b"c"]
    assert reports.problems == []


names = st.sampled_from([b"a", b"b", b"a-", b"\xff", b"\n"])
paths = st.lists(names, min_size=1, max_size=4).map(b"/".join)


@settings(deadline=None, max_examples=examples(40))
@given(st.sets(paths, max_size=12), st.sets(paths, max_size=12), st.lists(names | paths, max_size=2))
def test_any_tree(directories: set[bytes], files: set[bytes], excluded: list[bytes]) -> None:
    filters = exclude(*excluded)
    with tempfile.TemporaryDirectory() as made:
        top = os.fsencode(made)
        for path in directories:
            os.makedirs(top + b"/" + path, exist_ok=True)
        for path in files:
            if not os.path.exists(top + b"/" + path) and os.path.isdir(os.path.dirname(top + b"/" + path)):
                os.close(os.open(top + b"/" + path, os.O_CREAT))
        expected: dict[bytes, list[bytes]] = {}

        def visit(path: bytes) -> None:
            inside = {join(path, name): name for name in sorted(os.listdir(top + b"/" + path))}
            kept = [p for p in inside if not filters.excluded(p, os.path.isdir(top + b"/" + p))]
            expected[path] = [inside[p] for p in kept]
            for child in kept:
                if os.path.isdir(top + b"/" + child):
                    visit(child)

        visit(b"")
        found, reports = walked(top, filters)
    assert list(found.items()) == list(expected.items())
    assert reports.problems == []


def test_excluded_directories_are_not_entered(tmp_path: Path) -> None:
    top = build(tmp_path, "keep/a.o", "keep/a.c", "out/a.c", "p|", "a.o")
    found, reports = walked(top, exclude(b"*.o", b"out/", b"p"))
    assert found == {b"": [b"keep"], b"keep": [b"a.c"]}
    assert reports.problems == [], "an excluded special file is nobody's business"


@pytest.mark.parametrize("only", [b"b", b"f", b"nothing", b"", b"b/c", b"a", b"z"])
def test_one_entry_of_the_root(tmp_path: Path, only: bytes) -> None:
    top = build(tmp_path, "b/c", "bb/c", "f", "p|")
    found, reports = walked(top, only=only)
    expected = {b"": [only] if only in {b"b", b"f"} else []}
    if only == b"b":
        expected[b"b"] = [b"c"]
    assert found == expected
    assert reports.problems == []


def test_special_files_are_named_once_and_stay_in_the_listing(tmp_path: Path) -> None:
    top = build(tmp_path, "d/p|", "d/f", "a\n|")
    found, reports = walked(top)
    assert found == {b"": [b"a\n", b"d"], b"d": [b"f", b"p"]}
    assert reports.problems == [
        Problem(ExitCode.OK, b"a\n", "a\\x0a: skipped, neither file, directory nor symlink"),
        Problem(ExitCode.OK, b"d/p", "d/p: skipped, neither file, directory nor symlink"),
    ]


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    top = build(tmp_path, "a/secret/f", "a/z/f", "b/f")
    os.chmod(top, 0o711)  # noqa: S103 - this is the question
    os.chmod(tmp_path / "a" / "secret", 0)
    root = Root.open(top)
    reports = Reports()
    with as_nobody(), pytest.raises(FileError):
        list(Walk(root, NO_RULES, reports))
    os.chmod(top, 0o755)  # noqa: S103 - this is the question
    walking = Walk(root, NO_RULES, reports)
    with as_nobody():
        assert [d.path for d in walking] == [b"", b"a", b"a/z", b"b"]
    assert walking.read_errors == 1
    os.chmod(tmp_path / "a" / "secret", 0o700)
    (problem,) = reports.problems
    assert (problem.code, problem.path_bytes) == (ExitCode.PARTIAL, b"a/secret")


def swapped(change: Callable[[Path], object], tmp_path: Path) -> tuple[list[bytes], list[Problem]]:
    """Walks while, after the root's listing, `change` is done to directory a."""
    build(tmp_path / "outside", "x/secret")
    top = build(tmp_path / "top", "a/x/f", "b/f")
    reports = Reports()
    walking = Walk(Root.open(top), NO_RULES, reports)
    seen = []
    for path, _, _ in walking:
        if path == b"":
            change(tmp_path / "top" / "a")
        seen.append(path)
    assert walking.read_errors == len(reports.problems)
    return seen, reports.problems


def test_a_directory_that_vanishes_meanwhile(tmp_path: Path) -> None:
    seen, (problem,) = swapped(lambda a: a.rename(a.parent.parent / "moved"), tmp_path)
    assert seen == [b"", b"b"]
    assert (problem.code, problem.path_bytes) == (ExitCode.VANISHED, b"a")


def test_a_link_in_a_directorys_place_is_not_followed(tmp_path: Path) -> None:
    def swap(a: Path) -> None:
        a.rename(a.parent.parent / "moved")
        a.symlink_to(a.parent.parent / "outside")

    seen, (problem,) = swapped(swap, tmp_path)
    assert seen == [b"", b"b"]
    assert problem.path_bytes == b"a"


def test_links_to_directories_make_no_cycles(tmp_path: Path) -> None:
    top = build(tmp_path, "a/b/up@", "a/loop@")
    (tmp_path / "a" / "self").symlink_to(tmp_path)
    assert list(walked(top)[0]) == [b"", b"a", b"a/b"]


def test_temporaries_are_no_entries(tmp_path: Path) -> None:
    top = build(tmp_path, "d/" + temporary_name(b"f").decode(), "f", temporary_name(b"f").decode() + "/")
    assert walked(top)[0] == {b"": [b"d", b"f"], b"d": []}
    assert list(Root.open(top).listed(b"d").reserved) == os.listdir(top + b"/d")


def test_paths_longer_than_a_system_call_takes(tmp_path: Path) -> None:
    name = b"deep" * 50
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(40):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    before = open_descriptors()
    found, reports = walked(os.fsencode(tmp_path))
    assert len(found) == 41
    assert max(map(len, found)) == 40 * 201 - 1
    assert reports.problems == []
    assert open_descriptors() <= before


def test_entries_that_are_only_files_and_links_cost_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are taken apart where there are directories or special files, or rules: nowhere else."""
    top = build(tmp_path, "d/a", "d/b", "e/a", "e/l@", "f")
    taken: list[bytes] = []

    def counted(names: bytes) -> list[bytes]:
        taken.append(names)
        return strings(names)

    monkeypatch.setattr(walk, "strings", counted)
    root = Root.open(top)
    assert sum(found.listing.count for found in Walk(root, NO_RULES, Reports())) == 7
    assert taken == [b"d\0e\0f\0"]
    taken.clear()
    list(Walk(root, exclude(b"nothing"), Reports()))
    assert len(taken) == 4


def test_bad_entries_are_reported_unless_they_are_excluded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is reported by its own path and counted, and everything else is listed."""
    top = build(tmp_path, "d/f", "d/g", "e/f")
    calls = [
        (b"long" * 64, errno.ENAMETOOLONG, BadCall.NAME),
        (b"mount", errno.ENOTCONN, BadCall.STAT),
        (b"link", errno.EIO, BadCall.READ_LINK),
        (b"odd", errno.EUCLEAN, BadCall.KIND),
    ]
    bad = tuple(BadEntry(name, number, call, name == b"mount") for name, number, call in calls)
    plain = Root.list_unviewed

    def listed(self: Root, path: bytes, **more: Any) -> Listed:
        found = plain(self, path, **more)
        return replace(found, bad=bad) if path == b"d" else found

    monkeypatch.setattr(Root, "list_unviewed", listed)
    found, reports = walked(top)
    assert found == {b"": [b"d", b"e"], b"d": [b"f", b"g"], b"e": [b"f"]}
    assert [(problem.code, problem.path_bytes) for problem in reports.problems] == [
        (ExitCode.PARTIAL, b"d/" + name) for name, _, _ in calls
    ]
    for problem, shown in zip(reports.problems, ("long", "ENOTCONN", "EIO", "kind"), strict=True):
        assert os.fsdecode(top) in problem.message
        assert shown in problem.message
    assert walked(top, exclude(b"mount/", b"long*", b"/d/link", b"odd"))[1].problems == []
    # A rule for directories takes what its directory calls one.
    assert [one.path_bytes for one in walked(top, exclude(b"*/"))[1].problems] == []
    walking = Walk(Root.open(top), NO_RULES, Reports())
    list(walking)
    assert walking.read_errors == 4


@settings(deadline=None, max_examples=examples(60))
@given(st.data())
def test_many_directories_are_those_of_the_walk(data: st.DataObject) -> None:
    """Whatever reports or rules there are: the same rows, reports and order."""
    parts = st.sampled_from(["a", "b", "c.x", os.fsdecode(temporary_name(b"t")), ".rdc-undo"])
    paths = st.lists(parts, min_size=1, max_size=4).map("/".join)
    entries = data.draw(st.lists(st.tuples(paths, st.sampled_from(["", "/", "@", "|"])), max_size=12))
    rules = data.draw(st.sampled_from([NO_RULES, NO_RULES, exclude(b"b"), exclude(b"*.x")]))
    with tempfile.TemporaryDirectory() as place:
        for path, kind in entries:
            with suppress(OSError):
                build(Path(place), path + kind)
        root = Root.open(os.fsencode(place))
        one, many, reports = Manifest(), Manifest(), (Reports(), Reports())
        inodes = b""
        count = 0
        for walked_one in Walk(root, rules, reports[0]):
            one.add(walked_one.path, walked_one.listing)
            inodes += walked_one.inodes.inodes
            count += 1
        single = data.draw(st.booleans())
        for listed in Walk(root, rules, reports[1]).many(single=single):
            assert not single or listed.walked == 1
            many.add_many(listed)
            inodes = inodes.removeprefix(listed.inodes.inodes)
            count -= listed.walked
        assert (count, inodes) == (0, b"")
        assert (many.text, many.firsts, many.directories) == (one.text, one.firsts, one.directories)
        assert (many.mtimes, many.targets, many.links) == (one.mtimes, one.targets, one.links)
        assert reports[0].problems == reports[1].problems
        root.release()


def test_many_directories_without_one_that_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = build(tmp_path, *(f"d{number:03}/f" for number in range(100)))
    plain = Root.list_many
    victims = [b"d000", b"d050", b"d099"]

    def before(self: Root, todo: list[bytes], **more: Any) -> Any:
        for victim in set(todo) & set(victims):
            with suppress(FileNotFoundError):
                os.rename(top + b"/" + victim, top + b"/gone-" + victim)
        return plain(self, todo, **more)

    monkeypatch.setattr(Root, "list_many", before)
    reports = Reports()
    walk = Walk(Root.open(top), NO_RULES, reports)
    found = [path for listed in walk.many() for path in listed.paths]
    gone = [problem.path_bytes for problem in reports.problems]
    assert found == [b"", *(b"d%03d" % number for number in range(100) if b"d%03d" % number not in gone)]
    assert set(gone) <= set(victims)
    assert b"d099" in gone
    assert {problem.code for problem in reports.problems} == {ExitCode.VANISHED}
    assert walk.read_errors == len(gone)
