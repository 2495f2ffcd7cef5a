"""Rows of one manifest in another, by path."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rdc.tree.hard_links import LinkTable
from rdc.tree.manifest import Manifest, RowMap
from tests.support.trees.manifests import build, entry

PATHS = st.sets(st.sampled_from([f"{a}/{b}" for a in ("a", "b", "b.c", "d") for b in "wxyz"] + ["e", "f"]))


def manifest_of(paths: set[str]) -> Manifest:
    return build({path.encode(): entry(path.encode()) for path in paths})


def paths_of(manifest: Manifest) -> list[bytes]:
    return manifest.paths(range(len(manifest)))


@given(PATHS, PATHS)
def test_each_row_is_where_its_path_is(old: set[str], new: set[str]) -> None:
    before, after = manifest_of(old), manifest_of(new)
    there = {path: row for row, path in enumerate(paths_of(after))}
    rows = RowMap(before, after)
    assert [rows.row(row) for row in range(len(before))] == [there.get(path) for path in paths_of(before)]


@given(PATHS, PATHS)
def test_links_go_by_path(old: set[str], new: set[str]) -> None:
    before, after = manifest_of(old), manifest_of(new | old)
    table = LinkTable()
    files = range(1, len(before), 2)
    table.extend(files, [row - 1 for row in files])
    found = table.transposed(RowMap(before, after))
    assert found is not None
    assert found.digest(after) == table.digest(before)
    pairs = zip(after.paths(found.files), [paths_of(after)[row] for row in found.firsts], strict=True)
    assert list(pairs) == [(paths_of(before)[row], paths_of(before)[row - 1]) for row in files]
    if table and not old <= new:
        fewer = manifest_of(new)
        held = {path for file, first in table for path in (paths_of(before)[file], paths_of(before)[first])}
        if not held <= set(paths_of(fewer)):
            assert table.transposed(RowMap(before, fewer)) is None
