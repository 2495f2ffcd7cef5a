"""Batches of small files: the rows are the files that were added, in whatever runs they came, and only files
that match their listing are signed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from array import array
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rdc.catalog.catalog import Catalog
from rdc.catalog.small_files import SMALL_BYTES
from rdc.catalog.store import NoCatalog
from rdc.files.bulk.open_many import REPLACED
from rdc.files.root.root import Root
from rdc.library.scans import scan
from rdc.model.entries import strings
from rdc.model.scan import ScanOptions
from rdc.signature.tree import sign
from rdc.survey.count.counters import FINE_PARAMS
from rdc.survey.scan.found_files import (
    Found,
    Run,
    SharingDevices,
    SignedBatch,
    SmallBatch,
    located,
    named,
    reader,
    sign_batch,
)
from rdc.survey.scan.scanner import LEAD_IN, PERIOD, Scanner, rows_with_long_runs
from rdc.survey.walk.file_columns import FileRows, Met
from tests.support.trees.sparse_files import BLOCK, write_sparse
from tests.support.trees.trees import tree, write_tree

FILES = {
    "a": b"one", "b.txt": b"", "d/c": b"three" * 2_000, "d/e/f.py": b"four" * 5_000, "d/e/g": b"five",
    "d/e/h": os.urandom(SMALL_BYTES), "z": b"last",
}  # fmt: skip


def found_in(root: Root, *directories: bytes) -> Found:
    found = Found()
    for number, path in enumerate(directories):
        listed = root.listed(path)
        files = FileRows.of_listing(listed.listing, listed.inodes)
        found.add_met(Met(0, root, number, path, files), 10 + number, files)
    return found


def batched(runs: list[Run]) -> SmallBatch:
    """The place of a file is its directory's number and its row there, as decimal digits."""
    batch = SmallBatch()
    for run in runs:
        batch.add(run, [100 * run.directory.number + row for row in range(run.start, run.stop)])
    return batch


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    write_tree(tmp_path / "t", tree(FILES))
    found = Root.open(os.fsencode(tmp_path / "t"))
    yield found
    found.release()


@pytest.fixture
def batch(root: Root) -> SmallBatch:
    return batched(list(found_in(root, b"", b"d", b"d/e").in_order()))


def path_of(batch: SmallBatch, row: int) -> str:
    return os.fsdecode(batch.file(row).path)


def signed_by_hand(batch: SmallBatch, result: SignedBatch) -> None:
    """Compares every signed row with its file, read and signed singly."""
    assert sorted([*result.outcome.read.rows, *result.outcome.known.rows]) == sorted(
        set(range(len(batch))) - {row for row, _ in result.outcome.failed} - set(result.hollow)
    )
    for part in (result.outcome.read, result.outcome.known):
        columns, locations, (directories, names) = part.signatures, located(batch, part), named(batch, part)
        again = reader(batch, part)
        at = 0
        for number, row in enumerate(part.rows):
            found = batch.file(row)
            content = FILES[path_of(batch, row)]
            whole = sign(content, FINE_PARAMS)
            assert columns.roots[32 * number : 32 * number + 32] == whole.root
            assert columns.sizes[number] == len(content)
            assert locations[number] == batch.locations[row]
            assert (directories[number], names[number]) == (found.directory, os.path.basename(found.path))
            count, level = columns.counts[number], whole.levels[0]
            digests = [bytes(level.digests[32 * i : 32 * i + 32]) * one for i, one in enumerate(level.counts)]
            assert columns.digests[32 * at : 32 * (at + count)] == b"".join(digests)
            at += count
            for offset, length in ((0, len(content)), (len(content) // 2, len(content) // 3)):
                part_ = again(number, offset, length)
                assert part_ is not None
                assert bytes(part_) == content[offset : offset + length]


# What is in it


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_rows_are_the_files_that_were_put_in(root: Root, data: st.DataObject) -> None:
    """Files in any order, and any part of a directory's files at a time."""
    single = list(found_in(root, b"", b"d", b"d/e").shuffled(data.draw(st.integers(0, 99))))
    runs = []
    for whole in found_in(root, b"", b"d", b"d/e").in_order():
        cut = data.draw(st.integers(whole.start, whole.stop))
        runs += [part for part in (whole.part(whole.start, cut), whole.part(cut, whole.stop)) if part.names]
    chosen = data.draw(st.lists(st.sampled_from(single + [run for run in runs if run.start < run.stop])))
    batch = batched(chosen)
    wanted = [(run, row) for run in chosen for row in range(run.start, run.stop)]
    assert len(batch) == len(wanted)
    assert batch.bytes == sum(run.found.sizes[row] for run, row in wanted)
    assert list(batch.locations) == [100 * run.directory.number + row for run, row in wanted]
    if not wanted:
        return
    assert batch.root is root
    assert [batch.file(row) for row in range(len(batch))] == [run.file(row) for run, row in wanted]
    assert batch.names() == [run.names[row - run.start] for run, row in wanted]
    assert list(batch.directories()) == [run.directory.number for run, _ in wanted]
    assert list(batch.allocated) == [run.found.allocated[row] for run, row in wanted]
    files = batch.files
    assert strings(files.paths) == [run.file(row).path for run, row in wanted]
    for row in range(len(batch)):
        assert files.identity(row) == root.identity(batch.file(row).path)


# Signed


def test_each_row_is_signed_as_its_file_by_itself(batch: SmallBatch) -> None:
    result = sign_batch(batch, FINE_PARAMS, NoCatalog(), SharingDevices())
    assert (result.hollow, result.shared, result.outcome.failed) == ([], 0, [])
    assert len(result.outcome.read.rows) == len(FILES)
    signed_by_hand(batch, result)


def test_what_the_catalog_knows_is_read_again_only_where_it_is_looked_at(
    batch: SmallBatch, tmp_path: Path
) -> None:
    later = max(path.lstat().st_ctime_ns for path in tmp_path.rglob("*")) + 3_600 * 10**9
    with Catalog(tmp_path / "catalog", clock=lambda: later) as catalog:
        sign_batch(batch, FINE_PARAMS, catalog, SharingDevices())
        catalog.flush()
        os.utime(tmp_path / "t/d/c", ns=(5, 5))
        assert isinstance(batch.root, Root)
        again = batched(list(found_in(batch.root, b"", b"d", b"d/e").in_order()))
        result = sign_batch(again, FINE_PARAMS, catalog, SharingDevices())
    assert [path_of(again, row) for row in result.outcome.read.rows] == ["d/c"]
    assert len(result.outcome.known.rows) == len(FILES) - 1
    signed_by_hand(again, result)
    # The content of files that were not read is not kept: a file replaced since has none.
    known = result.outcome.known
    number = [path_of(again, row) for row in known.rows].index("d/e/g")
    read = reader(again, known)
    assert read(number, 1, 2) == b"iv"
    (tmp_path / "t/d/e/g").write_bytes(b"FIVE")
    assert read(number, 1, 2) is None


def test_what_is_not_as_it_was_listed_is_left_to_others(batch: SmallBatch, tmp_path: Path) -> None:
    """Files that differ from their listing do not shift the rows of the others."""
    top = tmp_path / "t"
    (top / "a").unlink()
    (top / "d/c").write_bytes(b"another size")
    (top / "d/e/g").rename(top / "d/e/was")
    (top / "d/e/g").write_bytes(b"FIVE")
    result = sign_batch(batch, FINE_PARAMS, NoCatalog(), SharingDevices())
    failed = {path_of(batch, row): outcome for row, outcome in result.outcome.failed}
    assert set(failed) == {"a", "d/c", "d/e/g"}
    assert failed["d/e/g"] == REPLACED
    signed_by_hand(batch, result)


# Holes and shared extents


def test_files_with_holes_are_told_apart(root: Root, tmp_path: Path) -> None:
    for number, data in enumerate(([], [0], [0, 1, 2], [1])):
        write_sparse(tmp_path / f"t/d/hollow{number}", data, 3)
    batch = batched(list(found_in(root, b"d", b"d/e").in_order()))
    result = sign_batch(batch, FINE_PARAMS, NoCatalog(), SharingDevices())
    assert [path_of(batch, row) for row in result.hollow] == ["d/hollow0", "d/hollow1", "d/hollow3"]
    signed = [path_of(batch, row) for row in result.outcome.read.rows]
    assert signed == ["d/c", "d/hollow2", "d/e/f.py", "d/e/g", "d/e/h"]
    assert result.outcome.failed == []


def test_a_hole_in_a_file_that_is_gone_is_nobodys(root: Root, tmp_path: Path) -> None:
    """The error is reported when the file is read."""
    write_sparse(tmp_path / "t/d/one", [1], 3)
    write_sparse(tmp_path / "t/d/two", [1], 3)
    batch = batched(list(found_in(root, b"d").in_order()))
    (tmp_path / "t/d/one").unlink()
    (tmp_path / "t/d/two").rename(tmp_path / "t/d/was")
    write_sparse(tmp_path / "t/d/two", [1], 3)
    result = sign_batch(batch, FINE_PARAMS, NoCatalog(), SharingDevices())
    assert result.hollow == []
    assert {path_of(batch, row) for row, _ in result.outcome.failed} == {"d/one", "d/two"}


def test_shared_bytes_of_all_that_were_signed(sharing: Path) -> None:
    drawn = random.Random(3)
    top = sharing / "t"
    top.mkdir()
    for name in ("one", "own"):
        (top / name).write_bytes(drawn.randbytes(8 * BLOCK))
    subprocess.run(["cp", "--reflink=always", top / "one", top / "two"], check=True)
    root = Root.open(os.fsencode(top))
    try:
        batch = batched(list(found_in(root, b"").in_order()))
        result = sign_batch(batch, FINE_PARAMS, NoCatalog(), SharingDevices())
        assert result.shared == 2 * 8 * BLOCK
        # Files that were not signed are not counted, whatever has their name now.
        (top / "two").rename(sharing / "two")
        subprocess.run(["cp", "--reflink=always", top / "one", top / "two"], check=True)
        result = sign_batch(batch, FINE_PARAMS, NoCatalog(), SharingDevices())
        assert [path_of(batch, row) for row, _ in result.outcome.failed] == ["two"]
        assert result.shared == 8 * BLOCK
    finally:
        root.release()


# Files with runs of equal chunks count the same, whether they are read with others or singly

KINDS = ("zeros", "noise", "zeros in noise", "a long period")
RUN_SIZES = (5_000, 130_000, 700_000, 1_500_000, 4_000_000)


def repetitive(kind: str, size: int, drawn: random.Random) -> bytes:
    if kind == "zeros":
        return bytes(size)
    if kind == "noise":
        return drawn.randbytes(size)
    if kind == "a long period":
        period = random.Random(9).randbytes(7_000)
        return (period * (size // len(period) + 1))[:size]
    return drawn.randbytes(size // 4) + bytes(size // 2) + drawn.randbytes(size // 4)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(RUN_SIZES)), max_size=5), st.booleans())
@example([("zeros", 1_500_000), ("zeros", 4_000_000), ("zeros in noise", 4_000_000)], True)
def test_the_report_is_that_of_files_read_singly(
    tmp_path: Path, files: list[tuple[str, int]], compress: bool
) -> None:
    drawn, top = random.Random(1), Path(tempfile.mkdtemp(dir=tmp_path))
    for number, (kind, size) in enumerate(files):
        place = top / f"{number % 3}"
        place.mkdir(exist_ok=True)
        with (place / f"{number}").open("wb") as file:
            file.write(repetitive(kind, size, drawn))
            os.posix_fallocate(file.fileno(), 0, size)
    options = ScanOptions(compress=compress)
    together = scan([top], options, catalog=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scanner, "_largest_in_batches", lambda *_: 0)
        assert scan([top], options, catalog=None) == together
    shutil.rmtree(top)


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(0, 3),
                st.sampled_from((1, 2, LEAD_IN, LEAD_IN + PERIOD - 1, LEAD_IN + PERIOD, 300)),
            ),
            max_size=5,
        ),
        max_size=6,
    )
)
def test_no_long_run_is_missed(files: list[list[tuple[int, int]]]) -> None:
    chunks = [[number for number, count in file for _ in range(count)] for file in files]
    digests = b"".join([number.to_bytes(8, "big") + bytes(24) for file in chunks for number in file])
    found = rows_with_long_runs(array("I", map(len, chunks)), digests)
    longest = [max((len(list(run)) for _, run in groupby(file)), default=0) for file in chunks]
    assert {row for row, run in enumerate(longest) if run >= LEAD_IN + PERIOD} <= set(found)
    assert found == sorted(set(found))
    assert all(len(chunks[row]) >= LEAD_IN + PERIOD for row in found)
