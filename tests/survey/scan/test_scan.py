"""The counts of a scan against an independent count, over trees with unusual content."""

from __future__ import annotations

import os
import random
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.catalog.catalog import Catalog
from rdc.errors import ExitCode, UsageError
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.library.scans import scan
from rdc.model.entries import Listed, strings
from rdc.model.scan import ScanOptions
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Event, Progressed
from rdc.survey.count.chunk_locations import ChunkLocations, suffix_of
from rdc.survey.scan import scanner as scan_module
from tests.support.running.expected_counts import count
from tests.support.trees.mixed_tree import agree, mixed_tree

FIXED = ("fixed-4096", "fixed-131072")
PLAIN = ScanOptions(compress=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    mixed_tree(tmp_path / "t")
    return tmp_path / "t"


@pytest.mark.parametrize("fixed", [(), FIXED], ids=["nested", "and fixed"])
@pytest.mark.parametrize("workers", [1, 3])
def test_levels_equal_an_independent_count(
    tree: Path, fixed: tuple[str, ...], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rdc.catalog.signer._usable_cpus", lambda: workers)
    report = scan([tree], ScanOptions(fixed=fixed), catalog=None)
    agree(report, count([tree], fixed=[4096, 131_072] if fixed else []))
    assert report.exit is ExitCode.OK
    assert report.coverage.complete
    assert [level.name for level in report.levels] == ["file", "cdc-4096", "cdc-16384", "cdc-65536", *fixed]
    for level in report.levels:
        assert level.compressed_bytes is not None
        assert 0 < level.compressed_bytes < level.unique_bytes


def test_holes_do_not_make_the_rest_look_compressible(tmp_path: Path) -> None:
    noise = random.Random(7).randbytes(1_000_000)
    (tmp_path / "noise").write_bytes(noise)
    with (tmp_path / "hollow").open("wb") as file:
        file.truncate(300_000_000)
        # Pieces of 128 KiB: a hole, data, and data between holes.
        for offset, data in ((1_000_000, noise[:600_000]), (50_000_000, noise[600_000:])):
            file.seek(offset)
            file.write(data)
        for number in range(20):
            file.seek(100_000_000 + 65_536 * number)
            file.write(random.Random(number).randbytes(4096))
    report = scan([tmp_path], catalog=None)
    assert report.holes_bytes > 290_000_000
    (level,) = (one for one in report.levels if one.name == "file")
    assert level.compressed_bytes is not None
    assert 0.95 * level.unique_bytes < level.compressed_bytes <= level.unique_bytes


parts_of_files = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 3]), st.integers(0, 30_000), st.booleans()), min_size=0, max_size=6
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(parts_of_files, min_size=1, max_size=6))
def test_any_tree(tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[int, int, bool]]]) -> None:
    top = tmp_path_factory.mktemp("t")
    sources = [random.Random(i).randbytes(40_000) for i in range(3)] + [bytes(40_000)]
    for number, parts in enumerate(files):
        with (top / str(number)).open("wb") as file:
            for which, size, skip in parts:
                if skip:
                    file.seek(size * 37, os.SEEK_CUR)
                else:
                    file.write(sources[which][:size])
            file.truncate()
    agree(scan([top], PLAIN, catalog=None), count([top]))


def test_the_catalog_spares_reading_and_changes_nothing(tree: Path, tmp_path: Path) -> None:
    later = max(path.lstat().st_ctime_ns for path in tree.rglob("*")) + 3_600_000_000_000
    read: list[bytes] = []
    original = SourceFile.spans

    def spans(source: SourceFile, size: int) -> Iterator[bytes]:
        read.append(source.path)
        return original(source, size)

    with Catalog(tmp_path / "catalog", clock=lambda: later) as catalog:
        first = scan([tree], PLAIN, catalog=catalog)
        again = scan([tree], PLAIN, catalog=catalog)
        assert again == replace(first, coverage=again.coverage)
        assert first.coverage.known_bytes == 0
        assert again.coverage.known_bytes == again.bytes + again.holes_bytes
        (tree / "a" / "1.txt").write_bytes(b"changed")
        monkey = pytest.MonkeyPatch()
        with monkey.context() as patch:
            patch.setattr(SourceFile, "spans", spans)
            third = scan([tree], PLAIN, catalog=catalog)
        assert not read
        assert third.coverage.known_bytes == third.bytes + third.holes_bytes - 7
        agree(third, count([tree]))


def test_paths_that_overlap_count_once(tree: Path) -> None:
    plain = count([tree])
    for paths in (
        [tree, tree / "a"],
        [tree / "a" / "deep", tree],
        [tree, tree],
        [tree, tree / "a" / "1.txt"],
        [tree / "a" / "1.txt", tree / "a" / "1.txt", tree],
    ):
        report = scan(paths, PLAIN, catalog=None)
        assert (report.files, report.bytes) == (plain.files, plain.bytes)


def test_a_file_alone(tree: Path) -> None:
    report = scan([tree / "a" / "large"], PLAIN, catalog=None)
    assert (report.files, report.bytes) == (1, 5_600_000)
    assert [one.path_bytes for one in report.directories] == [os.fsencode(tree / "a")]
    level = report.level("cdc-4096")
    assert level is not None
    assert level.unique_bytes < 720_000


def test_filters_and_file_systems(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.txt"), FilterRule(RuleAction.EXCLUDE, b"/b/"))
    report = scan([tree], replace(PLAIN, rules=rules), catalog=None)
    assert report.files == 3
    original = Root.list_unviewed

    def listed(root: Root, path: bytes, **more: Any) -> Listed:
        found = original(root, path, **more)
        listing, inodes = found.listing, found.inodes
        if path == b"a":
            row = strings(listing.names).index(b"deep")
            devices = array("Q", inodes.devices)
            devices[row] = 99
            inodes = replace(inodes, devices=devices.tobytes())
        return replace(found, inodes=inodes)

    monkeypatch.setattr(Root, "list_unviewed", listed)
    everything = scan([tree], PLAIN, catalog=None)
    stayed = scan([tree], replace(PLAIN, one_file_system=True), catalog=None)
    assert stayed.files == everything.files - 1


def test_a_mount_that_leads_back_up_is_walked_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, top = Root.list_unviewed, tree.stat()

    def listed(root: Root, path: bytes, **more: Any) -> Listed:
        found = original(root, path, **more)
        listing, inodes = found.listing, found.inodes
        if path == b"a":
            row = strings(listing.names).index(b"deep")
            numbers = array("Q", inodes.inodes)
            numbers[row] = top.st_ino
            inodes = replace(inodes, inodes=numbers.tobytes())
        return replace(found, inodes=inodes)

    monkeypatch.setattr(Root, "list_unviewed", listed)
    said: list[Event] = []
    report = scan([tree], PLAIN, catalog=None, reporter=said.append)
    assert report.files == count([tree]).files - 1
    assert any("counted already" in getattr(event, "message", "") for event in said)
    assert report.exit is ExitCode.OK


def test_names_that_are_not_text(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    for name in (b"a\xff.t\xe9xt", b"b\n\x1b[31m"):
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(b"same" * 3000)
    report = scan([tmp_path], PLAIN, catalog=None)
    assert report.files == 2
    assert folder in [one.path_bytes for one in report.directories]
    assert report.duplicate_bytes == 12_000


def test_one_path_is_not_taken_apart(tree: Path) -> None:
    wanted = scan([tree], PLAIN, catalog=None)
    for path in (tree, str(tree), os.fsencode(tree)):
        assert scan(path, PLAIN, catalog=None) == wanted


def test_nothing_at_all(tmp_path: Path) -> None:
    report = scan([tmp_path], catalog=None)
    assert (report.files, report.bytes, report.exit) == (0, 0, ExitCode.OK)
    assert all(level.ratio == 1 and level.unique_bytes == 0 for level in report.levels)
    (tmp_path / "empty").touch()
    (tmp_path / "too").touch()
    report = scan([tmp_path], catalog=None)
    assert (report.files, report.duplicate_groups) == (2, 0)
    with pytest.raises(UsageError, match="at least one path"):
        scan([], catalog=None)


def test_progress_grows_to_the_total(tree: Path) -> None:
    said: list[Event] = []
    scan([tree], PLAIN, catalog=None, reporter=said.append)
    steps = [event for event in said if isinstance(event, Progressed)]
    done = [event.done for event in steps]
    assert done == sorted(done)
    assert {event.total for event in steps} == {steps[-1].done}


def test_duplicate_bytes_are_shared_out(tree: Path) -> None:
    report = scan([tree], PLAIN, catalog=None)
    level = report.level("cdc-16384")
    assert level is not None
    saved = level.bytes - level.unique_bytes
    top = next(one for one in report.directories if one.path_bytes == os.fsencode(tree))
    assert top.files == report.files
    assert top.bytes == report.bytes
    # Runs within long zeros are followed by two references, and a file's share is capped at its content. So
    # some bytes may be missing, but none may be invented.
    assert 0.5 * saved < top.duplicate_bytes <= saved + 5
    assert sum(one.own_bytes for one in report.directories) == report.bytes
    assert abs(sum(one.own_duplicate_bytes for one in report.directories) - top.duplicate_bytes) <= 10
    assert sum(one.bytes for one in report.types) == report.bytes
    assert sum(one.files for one in report.types) == report.files
    assert {one.name for one in report.types} == {"", ".txt"}


def test_exactly_half_of_a_pair_is_duplicate(tmp_path: Path) -> None:
    noise = random.Random(2).randbytes(100_000)
    for name in ("x/p", "y/p"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(noise)
    report = scan([tmp_path], PLAIN, catalog=None)
    shares = {one.path_bytes: one.duplicate_bytes for one in report.directories}
    top = os.fsencode(tmp_path)
    assert shares == {top: 100_000, top + b"/x": 50_000, top + b"/y": 50_000}
    (pair,) = report.overlaps
    assert (pair.first, pair.second) == (top + b"/x", top + b"/y")
    assert pair.shared_bytes == pair.first_bytes == pair.second_bytes == 100_000


def test_overlaps_are_named_where_they_begin_and_as_deep_as_they_go(tmp_path: Path) -> None:
    drawn = random.Random(4)
    for release in ("v1", "v2"):
        drawn.seed(5)
        for number in range(12):
            folder = tmp_path / "src" / release / f"part{number}" / "code"
            folder.mkdir(parents=True)
            (folder / "main").write_bytes(drawn.randbytes(30_000))
    # One directory that was copied from deep inside the tree to an unrelated place.
    deep = tmp_path / "home" / "me" / "old" / "stuff"
    deep.mkdir(parents=True)
    copied = (tmp_path / "src" / "v1" / "part3" / "code" / "main").read_bytes()
    (deep / "m").write_bytes(copied)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_bytes(drawn.randbytes(200_000))
    report = scan([tmp_path], PLAIN, catalog=None)
    top = os.fsencode(tmp_path)
    first = report.overlaps[0]
    assert (first.first, first.second) == (top + b"/src/v1", top + b"/src/v2")
    assert first.shared_bytes == 360_000
    assert {(one.first, one.second, one.shared_bytes) for one in report.overlaps[1:]} == {
        (top + b"/home/me/old/stuff", top + b"/src/v1/part3/code", 30_000),
        (top + b"/home/me/old/stuff", top + b"/src/v2/part3/code", 30_000),
    }


def test_one_scan_does_not_fill_the_catalog(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_module, "CATALOG_BYTES", 20_000)
    later = max(path.lstat().st_ctime_ns for path in tree.rglob("*")) + 3_600_000_000_000
    with Catalog(tmp_path / "catalog", clock=lambda: later) as catalog:
        scan([tree], PLAIN, catalog=catalog)
        again = scan([tree], PLAIN, catalog=catalog)
    assert 0 < again.coverage.known_bytes < again.bytes


def test_files_that_resemble_each_other(tmp_path: Path) -> None:
    drawn = random.Random(11)
    text = b"\n".join(drawn.randbytes(20).hex().encode() for _ in range(3000))
    large = drawn.randbytes(5_000_000)
    for name, content in (
        ("a/draft", text),
        ("a/final", text.replace(b"00", b"zz", 9)),
        ("b/final2", text[:100_000] + b"more" + text[100_000:]),
        ("b/copy of final2", text[:100_000] + b"more" + text[100_000:]),
        ("b/unlike", drawn.randbytes(100_000)),
        ("b/large", large),
        ("b/large too", large[:4_500_000] + b"end"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    report = scan([tmp_path], PLAIN, catalog=None)
    groups = [{os.path.basename(path) for path in group.paths_bytes} for group in report.similar]
    assert groups[0] == {b"large", b"large too"}
    # One of the two identical files represents both.
    assert groups[1] - {b"copy of final2", b"final2"} == {b"draft", b"final"}
    assert len(groups[1]) == 3
    assert len(groups) == 2
    assert report.similar[0].bytes == 9_500_003
    assert all(0.6 < group.resemblance <= 1 for group in report.similar)
    assert all(Path(os.fsdecode(path)).exists() for group in report.similar for path in group.paths_bytes)


@given(st.lists(st.text("aB.", min_size=1, max_size=7).map(str.encode), max_size=12))
def test_files_of_one_type_share_a_location(names: list[bytes]) -> None:
    together, alone = ChunkLocations(), ChunkLocations()
    found = together.locations_of(3, names)
    assert found == [alone.location(3, suffix_of(name)) for name in names]
    assert together.suffixes == alone.suffixes
