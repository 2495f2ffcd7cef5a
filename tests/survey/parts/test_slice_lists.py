"""Lists of slices: a slice that reads its list writes the part that it would write after a walk."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode, FileError, RdcError
from rdc.model.entries import PackedInodes
from rdc.model.scan import ScanOptions, ScanSlice
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Problem, silent
from rdc.survey.container import PartError
from rdc.survey.count.chunk_locations import ChunkLocations
from rdc.survey.count.counters import Outcome
from rdc.survey.parts import slice_lists
from rdc.survey.parts.part_file import encode_part
from rdc.survey.parts.sections import MAGIC, encode_section, read_sections
from rdc.survey.parts.slice_lists import OWN, ListColumns, ListedRow, ListedWalk, SliceLists, directories_in
from rdc.survey.scan.found_files import Found
from rdc.survey.scan.scanner import survey
from rdc.survey.scan.walk import Explorer, Gatherer, Walked, is_single_file
from rdc.survey.slices import SliceDivision
from rdc.survey.walk.file_columns import FileRows, Met
from tests.support.share import examples
from tests.support.trees.linked_tree import linked_tree

FIXED = ScanOptions(fixed=("fixed-4096",))


def listing(
    paths: Sequence[bytes],
    of: int,
    to: Path,
    options: ScanOptions = FIXED,
    kind: type[SliceLists] = SliceLists,
) -> SliceLists:
    """Writes the lists of all slices, each as the file of its number in `to`."""
    to.mkdir(exist_ok=True)
    division = SliceDivision(of, by_inode=any(map(is_single_file, paths)))
    lists = kind(division, range(1, of + 1), lambda number: os.fsencode(to / f"{number}"))
    explorer = Explorer(options, lists, lambda: False, paths)
    for path in paths:
        explorer.explore(path)
    lists.finish(explorer.walked)
    return lists


def listed(list_: Path, paths: Sequence[bytes], options: ScanOptions) -> Outcome:
    return survey(paths, options, listed=ListedWalk(os.fsencode(list_), paths, options, lambda: False))


def part(outcome: Outcome) -> bytes:
    return b"".join(encode_part(outcome))


@pytest.mark.parametrize(("rows", "pending"), [(16_384, 32 << 20), (1, 1), (2, 900), (3, 1 << 14)])
def test_a_listed_slice_writes_the_part_of_a_slice_that_walks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, pending: int
) -> None:
    """Trees with hard links across directories, paths that overlap, single files, links and a lost path."""
    monkeypatch.setattr(slice_lists, "ROWS", rows)
    monkeypatch.setattr(slice_lists, "PENDING_BYTES", pending)
    for seed in range(examples(4)):
        rng = random.Random(seed)
        top = tmp_path / f"{seed}"
        linked_tree(top, seed)
        below = sorted(path for path in top.rglob("*") if not path.is_symlink())
        chosen = rng.choice(([top], [top, top], [*rng.sample(below, 3), top], [top, top / "gone", below[-1]]))
        paths = [os.fsencode(path) for path in chosen]
        options = FIXED
        if rng.randrange(2):
            options = replace(options, rules=(FilterRule(RuleAction.EXCLUDE, b"*.txt"),))
        of = rng.choice((1, 2, 5, 32))
        to = tmp_path / f"{seed} lists"
        listing(paths, of, to, options)
        for number in range(1, of + 1):
            own = replace(options, slice=ScanSlice(number, of))
            assert part(listed(to / f"{number}", paths, own)) == part(survey(paths, own)), (seed, number)


def test_only_wanted_slices_have_a_list(tmp_path: Path) -> None:
    linked_tree(tmp_path / "tree", 2)
    division = SliceDivision(5, by_inode=False)
    (tmp_path / "lists").mkdir()
    lists = SliceLists(division, (2, 4), lambda number: os.fsencode(tmp_path / "lists" / f"{number}"))
    paths = [os.fsencode(tmp_path / "tree")]
    explorer = Explorer(FIXED, lists, lambda: False, paths)
    explorer.explore(paths[0])
    lists.finish(explorer.walked)
    assert sorted(os.listdir(tmp_path / "lists")) == ["2", "4"]
    own = replace(FIXED, slice=ScanSlice(4, 5))
    assert part(listed(tmp_path / "lists" / "4", paths, own)) == part(survey(paths, own))


def test_the_slices_that_take_longest_come_first(tmp_path: Path) -> None:
    """Bytes count, and so do files, however small."""
    for number in range(40):
        directory = tmp_path / "tree" / f"{number}"
        directory.mkdir(parents=True)
        for name in range(number):
            (directory / f"{name}").write_bytes(bytes(3 * number))
    paths = [os.fsencode(tmp_path / "tree")]
    ordered = listing(paths, 7, tmp_path / "lists").by_cost
    cost = {}
    for number in range(1, 8):
        found = survey(paths, replace(FIXED, slice=ScanSlice(number, 7)))
        cost[number] = found.found_bytes + slice_lists.FILE_COST * found.found_files
    assert ordered == sorted(cost, key=lambda number: -cost[number])
    assert len(set(cost.values())) == 7


class FromElsewhere(SliceLists):
    """The lists of a machine on which all devices have another number."""

    def take(self, met: Met) -> None:
        files = met.files
        devices = b"".join(
            (1 + int.from_bytes(files.inodes.devices[at : at + 8], "little")).to_bytes(8, "little")
            for at in range(0, len(files.inodes.devices), 8)
        )
        inodes = replace(files.inodes, devices=devices)
        super().take(replace(met, files=replace(files, inodes=inodes)))


def test_devices_have_the_numbers_of_the_machine_that_reads(tmp_path: Path) -> None:
    linked_tree(tmp_path / "tree", 3)
    paths = [os.fsencode(tmp_path / "tree")]
    listing(paths, 1, tmp_path / "lists", kind=FromElsewhere)
    found = Found()
    walk = ListedWalk(os.fsencode(tmp_path / "lists" / "1"), paths, FIXED, lambda: False)
    walk(Gatherer(found, ChunkLocations(), silent))
    files = [run.file(row) for run in found.in_order() for row in range(run.start, run.stop)]
    assert len(files) > 20
    for file in files:
        assert file.inode == (os.stat(file.shown).st_dev, os.stat(file.shown).st_ino)
    found.release()


def test_files_that_change_after_the_walk_are_read_as_in_any_scan(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a").mkdir(parents=True)
    for name, size in (("gone", 5_000), ("grown", 5_000), ("same", 6_000)):
        (tree / "a" / name).write_bytes(random.Random(name).randbytes(size))
    paths = [os.fsencode(tree)]
    listing(paths, 1, tmp_path / "lists")
    (tree / "a" / "gone").unlink()
    (tree / "a" / "grown").write_bytes(b"x" * 70_000)
    (tree / "a" / "new").write_bytes(b"y")
    found = listed(tmp_path / "lists" / "1", paths, replace(FIXED, slice=ScanSlice(1, 1)))
    assert (found.files, found.bytes) == (2, 76_000)
    assert [(os.path.basename(one.path_bytes), one.code) for one in found.problems] == [
        (b"gone", ExitCode.VANISHED)
    ]


def test_a_single_file_that_is_gone_ends_no_slice(tmp_path: Path) -> None:
    for name in ("gone", "there"):
        (tmp_path / name).write_bytes(b"x" * 5_000)
    paths = [os.fsencode(tmp_path / name) for name in ("gone", "there")]
    listing(paths, 1, tmp_path / "lists")
    (tmp_path / "gone").unlink()
    found = listed(tmp_path / "lists" / "1", paths, replace(FIXED, slice=ScanSlice(1, 1)))
    assert found.files == 1
    assert [(one.path_bytes, one.code) for one in found.problems] == [(paths[0], ExitCode.VANISHED)]


def test_problems_of_the_walk_are_those_of_their_slice(tmp_path: Path) -> None:
    linked_tree(tmp_path / "tree", 4)
    paths = [os.fsencode(tmp_path / name) for name in ("gone", "tree", "lost")]
    listing(paths, 3, tmp_path / "lists")
    found: list[tuple[bytes, ExitCode]] = []
    for number in range(1, 4):
        outcome = listed(tmp_path / "lists" / f"{number}", paths, replace(FIXED, slice=ScanSlice(number, 3)))
        found += [(one.path_bytes, one.code) for one in outcome.problems]
    assert sorted(found) == [(paths[0], ExitCode.PARTIAL), (paths[2], ExitCode.PARTIAL)]


def test_damaged_lists_are_refused(tmp_path: Path) -> None:
    linked_tree(tmp_path / "tree", 5)
    paths = [os.fsencode(tmp_path / "tree")]
    listing(paths, 1, tmp_path / "lists")
    content = (tmp_path / "lists" / "1").read_bytes()
    rng = random.Random(1)
    bad = tmp_path / "bad"
    for _ in range(examples(60)):
        at = rng.randrange(len(content))
        bad.write_bytes(
            rng.choice((content[:at], content[:at] + b"\xff" + content[at + 2 :], content + b"x"))
        )
        with pytest.raises(PartError, match=r"bad: "):
            listed(bad, paths, replace(FIXED, slice=ScanSlice(1, 1)))
    with pytest.raises(FileError, match="cannot read the list of a slice"):
        listed(tmp_path / "none", paths, replace(FIXED, slice=ScanSlice(1, 1)))
    with pytest.raises(PartError, match="another number of paths"):
        listed(tmp_path / "lists" / "1", [*paths, *paths], replace(FIXED, slice=ScanSlice(1, 1)))


def test_columns_of_several_lengths_are_refused() -> None:
    columns = ListColumns()
    files = FileRows(
        b"a\0b\0", bytes(16), bytes(16), PackedInodes(bytes(16), bytes(16), bytes(16), bytes(16), bytes(16))
    )
    columns.add(ListedRow(OWN, 0, 0, b"", files))
    stream = io.BytesIO(MAGIC + columns.encoded() + encode_section(b"LAST"))
    ((_, fields),) = read_sections(stream, "it")
    with pytest.raises(ValueError, match="several lengths"):
        list(directories_in(fields))


@pytest.mark.parametrize(("to", "code"), [("/dev/full", ExitCode.FILE_IO), ("no/list", ExitCode.PARTIAL)])
def test_a_list_that_cannot_be_written_ends_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, code: ExitCode
) -> None:
    """It is no problem of what is walked: a list that lacks something would be taken for a whole one."""
    monkeypatch.setattr(slice_lists, "PENDING_BYTES", 1)
    linked_tree(tmp_path / "tree", 6)
    lists = SliceLists(SliceDivision(1, by_inode=False), (1,), lambda _: os.fsencode(tmp_path / to))
    explorer = Explorer(FIXED, lists, lambda: False)
    with pytest.raises(RdcError, match=f"{to}: cannot write the list of a slice") as raised:
        explorer.explore(os.fsencode(tmp_path / "tree"))
    assert raised.value.code is code


def test_notices_are_no_part_of_a_list(tmp_path: Path) -> None:
    lists = SliceLists(SliceDivision(1, by_inode=False), (1,), lambda _: os.fsencode(tmp_path / "list"))
    lists.take_problem(0, Problem(ExitCode.OK, b"fifo", "skipped"))
    lists.finish(Walked((0,), False, 0, 0, 0))
    told: list[object] = []
    ListedWalk(os.fsencode(tmp_path / "list"), [b"x"], FIXED, lambda: False)(
        Gatherer(Found(), ChunkLocations(), told.append)
    )
    assert told == []
