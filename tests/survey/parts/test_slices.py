"""Merged slices give the bytes of one scan's JSON document. Slices of anything else are refused."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc import limits
from rdc.errors import ExitCode, UsageError
from rdc.files.root.root import Root
from rdc.model.entries import PackedInodes, strings
from rdc.model.scan import DEFAULT_MEMORY, ScanOptions, ScanSlice
from rdc.model.selection import FilterRule, RuleAction
from rdc.survey.container import PartError
from rdc.survey.count import chunk_counter, chunk_locations
from rdc.survey.count import counters as outcomes
from rdc.survey.parts.merge import PartSource, merge_parts
from rdc.survey.parts.part_file import encode_part
from rdc.survey.report.terminal import scan_json
from rdc.survey.scan.scanner import survey
from rdc.survey.scan.summary import report_of
from rdc.survey.slices import SliceDivision
from rdc.survey.walk.file_columns import FileRows, Met
from tests.support.share import examples
from tests.support.trees.linked_tree import linked_tree

FIXED = ScanOptions(fixed=("fixed-4096",))


def sliced(paths: Sequence[Path], of: int, options: ScanOptions = FIXED) -> list[bytes]:
    """The parts of all slices, in order."""
    slices = [replace(options, slice=ScanSlice(number, of)) for number in range(1, of + 1)]
    return [b"".join(encode_part(survey(paths, one))) for one in slices]


def sources(parts: Sequence[bytes]) -> list[PartSource]:
    return [PartSource(f"p{number}", partial(io.BytesIO, part)) for number, part in enumerate(parts, 1)]


def document(parts: Sequence[bytes], memory: int = DEFAULT_MEMORY) -> str:
    return scan_json(report_of(merge_parts(sources(parts), memory)))


def whole(paths: Sequence[Path], options: ScanOptions = FIXED) -> str:
    return scan_json(report_of(survey(paths, options)))


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Limits that small trees reach, so that every sample is thinned and every list is full."""
    monkeypatch.setattr(chunk_counter, "SAMPLE_CHUNKS", 32)
    monkeypatch.setattr(chunk_locations, "REFERENCES", 40)
    monkeypatch.setattr(chunk_locations, "FILES", 12)
    monkeypatch.setattr(outcomes, "SCAN_PROBLEMS", 3)
    yield


@pytest.mark.parametrize("memory", [DEFAULT_MEMORY, 12_000])
@pytest.mark.usefixtures("small_limits")
def test_random_trees_in_random_slices_are_one_scan(tmp_path: Path, memory: int) -> None:
    """Trees with hard links across directories, equal and similar files, holes, and paths that overlap."""
    for seed in range(examples(12)):
        rng = random.Random(seed)
        top = tmp_path / f"{seed}"
        linked_tree(top, seed)
        below = sorted(path for path in top.rglob("*") if not path.is_symlink())
        paths = rng.choice(([top], [top, top], [*rng.sample(below, 3), top], [top, rng.choice(below)]))
        options = replace(FIXED, memory=memory, shift=rng.choice((0, 0, 2)))
        parts = sliced(paths, rng.choice((1, 2, 3, 7, 32)), options)
        rng.shuffle(parts)
        assert document(parts, memory) == whole(paths, options), seed


def test_holes_of_equal_files_do_not_depend_on_the_order(tmp_path: Path) -> None:
    """Copies of one content with no hole, and with one of several sizes, in several directories."""
    rng = random.Random(3)
    for number in range(12):
        content = rng.randbytes(20_000) + bytes(60_000) + rng.randbytes(9_000) + bytes(200_000)
        for copy, zeros in enumerate(rng.sample((0, 8_192, 40_960, 61_440), 3)):
            path = tmp_path / f"{copy}" / f"{rng.randrange(10)}" / f"{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.write(content[:20_480])
                file.seek(20_480 + zeros)
                file.write(content[20_480 + zeros :])
    paths = [tmp_path / f"{copy}" for copy in range(3)]
    options = ScanOptions()
    expected = whole(paths, options)
    assert json.loads(expected)["holes_bytes"] > 100_000
    for of in (2, 5, 16):
        parts = sliced(paths, of, options)
        for _ in range(3):
            rng.shuffle(parts)
            assert document(parts) == expected

    def figures(order: list[Path]) -> Any:
        found = json.loads(whole(order, options))
        return [(one["name"], one["unique_bytes"], one["compressed_bytes"]) for one in found["levels"]]

    assert figures(paths) == figures(paths[::-1])


def test_merged_slices_are_a_part_like_any_other(tmp_path: Path) -> None:
    for name in ("a", "b"):
        linked_tree(tmp_path / name, ord(name))
    tops = [tmp_path / "a", tmp_path / "b"]
    wholes = [b"".join(encode_part(merge_parts(sources(sliced([top], 3)), DEFAULT_MEMORY))) for top in tops]
    assert document(wholes) == whole(tops)


def test_some_slices_merge_into_a_part_with_their_numbers(tmp_path: Path) -> None:
    linked_tree(tmp_path, 5)
    parts = sliced([tmp_path], 6)
    halves = []
    for chosen in (parts[1::2], parts[0::2]):
        outcome = merge_parts(sources(chosen), DEFAULT_MEMORY, incomplete=True)
        halves.append(b"".join(encode_part(outcome)))
        assert outcome.slices is not None
        assert len(outcome.slices.numbers) == 3
    assert document(halves) == whole([tmp_path])
    with pytest.raises(UsageError, match=r"^slices 1/6, 3/6, 5/6 are missing.*rdc scan --slice=1/6"):
        document(halves[:1])
    with pytest.raises(UsageError, match=r"^p2: slice 2/6 is also in p1; give each slice once"):
        document([halves[0], parts[1]])


def test_problems_count_once(tmp_path: Path) -> None:
    linked_tree(tmp_path, 1)
    paths = [tmp_path / "gone", tmp_path]
    document_of_all = whole(paths)
    assert document(sliced(paths, 4)) == document_of_all
    assert json.loads(document_of_all)["exit"] == ExitCode.PARTIAL
    assert len(json.loads(document_of_all)["errors"]) == 1


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(1, 1 << 64 - 1), st.integers(1, 3)), max_size=20),
    st.integers(0, 3),
    st.binary(max_size=20).filter(lambda path: b"\0" not in path),
    st.booleans(),
)
@settings(deadline=None, max_examples=examples(200))
def test_each_file_and_directory_has_one_slice(
    of: int, files: list[tuple[int, int]], operand: int, path: bytes, by_inode: bool
) -> None:
    names = b"".join(b"%d\0" % number for number in range(len(files)))
    column = b"".join(inode.to_bytes(8, "little") for inode, _ in files)
    links = b"".join(count.to_bytes(4, "little") for _, count in files)
    inodes = PackedInodes(bytes(8 * len(files)), column, links, bytes(8 * len(files)), bytes(8 * len(files)))
    rows = FileRows(names, bytes(8 * len(files)), bytes(8 * len(files)), inodes)
    division, root = SliceDivision(of, by_inode=by_inode), Root.open(b"/")
    shares = division.shares(Met(operand, root, 0, path, rows))
    own = division.of_directory(operand, path)
    assert own in shares
    assert shares.keys() <= set(range(1, of + 1))
    found = {name: number for number, share in shares.items() for name in strings(share.names)}
    assert sorted(found) == sorted(strings(names))
    assert sum(map(len, shares.values())) == len(files)
    for name, number in found.items():
        inode, count = files[int(name)]
        assert number == (division.of_inode(inode) if by_inode or count > 1 else own)


def test_a_single_file_makes_no_share_of_its_directory() -> None:
    """Nobody else's part has a directory of which only one file is scanned."""
    inodes = PackedInodes(bytes(8), b"\1" * 8, b"\1\0\0\0", bytes(8), bytes(8))
    rows = FileRows(b"name\0", bytes(8), bytes(8), inodes)
    met = Met(0, Root.open(b"/"), 0, b"", rows, is_single=True)
    assert len(SliceDivision(9, by_inode=True).shares(met)) == 1


def test_slices_are_about_equal() -> None:
    division = SliceDivision(4, by_inode=False)
    chosen = sum(division.of_directory(0, b"a/%d" % number) == 1 for number in range(4_000))
    assert 900 < chosen < 1100


OTHERS = {
    "--shift differs": replace(FIXED, shift=3),
    "-x differs": replace(FIXED, one_file_system=True),
    "filters differs": replace(FIXED, rules=(FilterRule(RuleAction.EXCLUDE, b"*.x"),)),
    "--sample differs": replace(FIXED, sample=0.5),
    "--seed differs": replace(FIXED, seed=4),
    "--time differs": replace(FIXED, seconds=1000.0),
    "--level differs": ScanOptions(),
    "compression differs": replace(FIXED, compress=False),
}


@pytest.mark.parametrize("message", OTHERS)
def test_slices_of_other_options_are_refused_by_name(tmp_path: Path, message: str) -> None:
    (tmp_path / "f").write_bytes(b"x" * 9000)
    parts = [sliced([tmp_path], 2)[0], sliced([tmp_path], 2, OTHERS[message])[1]]
    with pytest.raises(UsageError, match=rf"^p2: made with other parameters than p1: {message}"):
        document(parts)


def test_slices_that_do_not_belong_together_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "f").write_bytes(b"x" * 9000)
    one, other = sliced([tmp_path / "a"], 2), sliced([tmp_path / "b"], 2)
    with pytest.raises(UsageError, match=r"^slice 2/2 is missing; scan it with"):
        document(one[:1])
    with pytest.raises(UsageError, match=r"^p3: slice 1/2 is also in p1"):
        document([*one, one[0]])
    with pytest.raises(UsageError, match=r"^p2: slice 2/3, but p1 is slice 1/2"):
        document([one[0], sliced([tmp_path / "a"], 3)[1]])
    with pytest.raises(UsageError, match=r"^p2: made with other parameters than p1: PATH differs"):
        document([one[0], other[1]])
    with pytest.raises(UsageError, match=r"^p1: slice 1/2, but p2 is a whole scan"):
        document([one[0], b"".join(encode_part(survey([tmp_path / "a"], FIXED)))])


def test_another_file_system_at_the_same_path_is_refused(tmp_path: Path) -> None:
    top = tmp_path / "mount"
    linked_tree(top, 2)
    first = sliced([top], 2)[0]
    top.rename(tmp_path / "elsewhere")
    top.mkdir()
    with pytest.raises(UsageError, match=r"^p2: slice 2/2 read another .*mount than p1 \(inode \d+ there"):
        document([first, sliced([top], 2)[1]])


def test_a_tree_that_changes_between_slices_is_reported(tmp_path: Path) -> None:
    linked_tree(tmp_path, 2)
    first = sliced([tmp_path], 2)[0]
    (tmp_path / "0 new").mkdir()
    (tmp_path / "0 new" / "file").write_bytes(b"new")
    found = json.loads(document([first, sliced([tmp_path], 2)[1]]))
    (problem,) = found["errors"]
    assert "the tree changed between the slices" in problem["message"]
    assert "slice 1/2 found" in problem["message"]
    assert found["exit"] == ExitCode.VANISHED


@pytest.mark.parametrize(("number", "of"), [(0, 4), (5, 4), (1, 0), (-1, 3), (1, limits.SCAN_SLICES + 1)])
def test_slices_are_numbered_from_one(number: int, of: int) -> None:
    with pytest.raises(UsageError, match="numbered from 1 to their number"):
        ScanSlice(number, of)


def test_a_fixed_shift_makes_parts_small(tmp_path: Path) -> None:
    """Parts of several shifts merge into the largest, and bounds still hold."""
    rng = random.Random(1)
    for number in range(400):
        (tmp_path / f"{number}").write_bytes(rng.randbytes(20_000))
    exact = survey([tmp_path], ScanOptions(compress=False))
    fixed = survey([tmp_path], ScanOptions(compress=False, shift=4))
    sizes = [len(b"".join(encode_part(one))) for one in (exact, fixed)]
    assert sizes[1] < sizes[0] / 3
    true, about = (report_of(one).level("cdc-4096") for one in (exact, fixed))
    assert true is not None
    assert about is not None
    assert (about.chunks, about.bytes, about.exact) == (true.chunks, true.bytes, False)
    assert about.low <= true.unique_bytes <= about.high
    halves = []
    for name, shift in (("a", 1), ("b", 4)):
        (tmp_path / name).mkdir()
        for number in range(200):
            (tmp_path / f"{number + 200 * (shift > 1)}").rename(tmp_path / name / f"{number}")
        outcome = survey([tmp_path / name], ScanOptions(compress=False, shift=shift))
        halves.append(b"".join(encode_part(outcome)))
    both = [tmp_path / "a", tmp_path / "b"]
    assert document(halves) == whole(both, ScanOptions(compress=False, shift=4))


@pytest.mark.parametrize("shift", [-1, 33])
def test_a_shift_has_bounds(shift: int) -> None:
    with pytest.raises(UsageError, match=f"a shift of {shift}: 0 to 32"):
        ScanOptions(shift=shift)


@pytest.mark.parametrize(
    "change",
    [
        {"of": 0},
        {"of": limits.SCAN_SLICES + 1},
        {"numbers": ()},
        {"numbers": (0,)},
        {"numbers": (3,)},
        {"numbers": (2, 1)},
        {"numbers": (1, 1)},
        {"roots": (1, 2)},
    ],
)
def test_forged_slices_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    outcome = survey([tmp_path], replace(FIXED, slice=ScanSlice(1, 2)))
    assert outcome.slices is not None
    outcome.slices = replace(outcome.slices, **change)
    with pytest.raises(PartError, match=r"^p1: damaged or forged: slices that no scan has; scan again"):
        document([b"".join(encode_part(outcome))])


@pytest.mark.parametrize(
    ("message", "directories"),
    [
        ("a directory that was walked before the one above it", [(b"a", -1, 0, 5), (b"a/b", 0, 0, 5)]),
        ("a directory in two places", [(b"a", -1, 0, 0), (b"a/b", 0, 0, 1), (b"a/b", 1, 0, 2)]),
    ],
)
def test_forged_directories_are_refused(
    tmp_path: Path, message: str, directories: list[tuple[bytes, int, int, int]]
) -> None:
    outcome = survey([tmp_path / "gone"], replace(FIXED, slice=ScanSlice(1, 1)))
    for row in directories:
        outcome.locations.add_directory(*row)
    with pytest.raises(PartError, match=f"^p1: damaged or forged: {message}"):
        document([b"".join(encode_part(outcome))])
