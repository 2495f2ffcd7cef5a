"""Identical files by name, ages and growth: against what a plain walk says, and bad parts."""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import UsageError
from rdc.library.scans import merge, scan
from rdc.model.scan import ScanOptions, ScanReport
from rdc.survey.count import identical
from rdc.survey.count.chunk_locations import suffix_of
from rdc.survey.count.identical import NAMES, YEARS, IdenticalFiles
from tests.support.share import examples

PLAIN = ScanOptions(compress=False)
YEARS_USED = [1960, 1970, 1999, 2000, 2024, 2150]


@st.composite
def trees(draw: st.DrawFn) -> dict[str, tuple[bytes, int]]:
    """Paths with content and year."""
    names = st.sampled_from(["a.txt", "b.jpg", "libx.so.1", "libx.so", "c", "d/a.txt", "d/e/c", "d/b.jpg"])
    content = st.sampled_from([b"", b"x", b"yy" * 900, b"z" * 70_000])
    return draw(st.dictionaries(names, st.tuples(content, st.sampled_from(YEARS_USED)), max_size=8))


def write(top: Path, tree: dict[str, tuple[bytes, int]]) -> None:
    for name, (content, year) in tree.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        seconds = datetime(year, 6, 1, tzinfo=UTC).timestamp()
        os.utime(path, (seconds, seconds))


def check(report: ScanReport, top: Path, tree: dict[str, tuple[bytes, int]]) -> None:
    contents: dict[bytes, list[str]] = defaultdict(list)
    ages: Counter[int] = Counter()
    for name, (content, year) in tree.items():
        contents[content].append(str(top / name))
        ages[min(max(year, YEARS[0]), YEARS[-1])] += len(content)
    expected = {
        tuple(sorted(paths)): (len(paths), len(content))
        for content, paths in contents.items()
        if len(paths) > 1 and content
    }
    assert {tuple(sorted(one.paths)): (one.files, one.size) for one in report.identical} == expected
    wastes = [one.waste for one in report.identical]
    assert wastes == sorted(wastes, reverse=True)
    assert sum(wastes) == report.duplicate_bytes
    assert Counter({one.year: one.bytes for one in report.ages}) + Counter() == ages + Counter()
    assert sum(one.files for one in report.ages) == report.files
    assert sum(one.bytes for one in report.ages) == report.bytes


@settings(deadline=None, max_examples=examples(40))
@given(trees(), trees())
def test_any_tree_and_its_growth(
    before: dict[str, tuple[bytes, int]], now: dict[str, tuple[bytes, int]]
) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        top, part = Path(made) / "top", Path(made) / "part"
        top.mkdir()
        write(top, before)
        check(scan(top, PLAIN, part=part, catalog=None), top, before)
        check(merge([part]), top, before)
        for name in before:
            (top / name).unlink()
        write(top, now)
        report = scan(top, PLAIN, since=part, catalog=None)
        growth = report.growth
        assert growth is not None
        assert (growth.before_files, growth.before_bytes) == (
            len(before),
            sum(len(one) for one, _ in before.values()),
        )
        by_type: Counter[str] = Counter()
        for tree, sign in ((before, -1), (now, 1)):
            for name, (content, _) in tree.items():
                by_type[suffix_of(name.encode()).decode()] += sign * len(content)
        changes = {kind: change for kind, change in by_type.items() if change}
        assert {one.name: one.bytes - one.before_bytes for one in growth.types} == changes
        listed = {one.path: (one.before_bytes, one.bytes) for one in growth.directories}
        for path, sizes in listed.items():
            below = [
                sum(len(tree[name][0]) for name in tree if str(top / name).startswith(path + "/"))
                for tree in (before, now)
            ]
            assert sizes == tuple(below)
        # Every change of the whole is in some directory that is listed.
        if sum(len(one) for one, _ in now.values()) != growth.before_bytes:
            assert listed


def test_versions_of_libraries_are_no_types() -> None:
    names = [b"libx.so.1", b"libX.SO.1.2.3", b"x.so", b"a.1", b".so.1", b"x.so.1a", b"x.tar.gz", b"so.1"]
    assert [suffix_of(name) for name in names] == [
        b".so", b".so", b".so", b".1", b".1", b".1a", b".gz", b".1"
    ]  # fmt: skip


def test_another_tree_is_no_earlier_scan(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    part = tmp_path / "part.rdcscan"
    scan(tmp_path / "one", PLAIN, part=part, catalog=None)
    with pytest.raises(
        UsageError, match=r"part.rdcscan: expected a scan of .*/two, found one of .*/one; name"
    ):
        scan(tmp_path / "two", PLAIN, since=part, catalog=None)


def test_the_order_of_files_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where most contents are left out."""
    monkeypatch.setattr(identical, "CONTENTS", 50)
    rng = random.Random(1)
    directories = [b"d%d" % number for number in range(9)]
    rows = [(key, 1 + key % 97, rng.randrange(9), b"f%d" % rng.randrange(30)) for key in range(200)] * 2
    rows += [(7, 8, number % 9, b"n%d" % number) for number in range(40)]
    found = []
    for _ in range(3):
        rng.shuffle(rows)
        one, two = IdenticalFiles(directories), IdenticalFiles(directories)
        for number, (key, size, directory, name) in enumerate(rows):
            (one if number % 3 else two).add_column((key,), (size,), (directory,), (name,))
        both = IdenticalFiles(directories)
        for each in (one, two):
            both.drop(each.least)
            keys, sizes, counts, places, names = zip(*each.rows(), strict=True)
            both.add_column(keys, sizes, places, names, counts)
        found.append(both.groups())
    assert found[0] == found[1] == found[2]
    assert all(len(group.paths_bytes) <= NAMES for group in found[0])
