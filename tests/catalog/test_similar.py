"""Similar files from the catalog, whatever state it is in."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.database import FILE_NAME
from rdc.catalog.file_state import LOCAL_MARGIN_NS
from rdc.catalog.signer import FileSigner
from rdc.catalog.similar import SimilarFiles, SimilarityQuery
from rdc.catalog.store import NoCatalog
from rdc.chunking import SYNC_PARAMS, ChunkParams
from rdc.files.base.metadata import file_clock
from rdc.files.root.root import Root
from rdc.limits import SIMILAR_BATCH
from rdc.signature.tree import sign

RNG = random.Random(5)
BASE = RNG.randbytes(12_000)


def edited(data: bytes, edits: int) -> bytes:
    """`data` with some bytes replaced, 200 at a time."""
    rng, out = random.Random(edits), bytearray(data)
    for _ in range(edits):
        at = rng.randrange(len(out))
        out[at : at + 200] = rng.randbytes(200)
    return bytes(out)


def query_of(data: bytes, path: bytes = b"") -> SimilarityQuery:
    return SimilarityQuery(sign(data, SYNC_PARAMS).traits, len(data), path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "treetop").mkdir()
    for name, data in {
        "tree/near": edited(BASE, 2),
        "tree/sub/far": edited(BASE, 12),
        "tree/other": RNG.randbytes(12_000),
        "tree/tiny": b"no features",
        "treetop/same": BASE,
    }.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(tmp_path / "cache", clock=lambda: file_clock() + 10 * LOCAL_MARGIN_NS) as opened:
        yield opened


def remember(catalog: Catalog, top: Path, params: ChunkParams = SYNC_PARAMS) -> None:
    signer = FileSigner(params, catalog, workers=1)
    root = Root.open(os.fsencode(top))
    try:
        for path in sorted(p for p in top.rglob("*") if p.is_file() and "cache" not in p.parts):
            with root.open_read(os.fsencode(path.relative_to(top))) as source:
                signer.sign(source)
    finally:
        root.close()


def names(files: SimilarFiles, one: SimilarityQuery, limit: int = 8) -> list[str]:
    return [Path(os.fsdecode(found.path)).name for found in files.query(one, limit)]


def test_the_most_similar_come_first(tree: Path, catalog: Catalog) -> None:
    remember(catalog, tree)
    files = catalog.similar(os.fsencode(tree), SYNC_PARAMS)
    assert names(files, query_of(BASE)) == ["same", "near", "far"]
    assert names(files, query_of(BASE), 1) == ["same"]
    assert len(files) == 4  # all but the one without features
    best = files.query(query_of(BASE))[0]
    assert best.path == b"treetop/same"
    assert (best.root, best.size, best.matches) == (sign(BASE, SYNC_PARAMS).root, len(BASE), 12)
    assert best.jaccard == 1
    assert names(files, SimilarityQuery(b"", 5)) == []
    assert names(files, query_of(RNG.randbytes(9000))) == []


def test_only_what_lies_below_counts(tree: Path, catalog: Catalog) -> None:
    remember(catalog, tree)
    for below, expected in (
        (b"tree", ["near", "far"]),
        (b"tree/", ["near", "far"]),
        (b"tree/sub/../sub", ["far"]),
        (b"treetop", ["same"]),
        (b"tre", []),
        (b"nowhere", []),
    ):
        files = catalog.similar(os.fsencode(tree) + b"/" + below, SYNC_PARAMS)
        assert names(files, query_of(BASE)) == expected, below
    assert names(catalog.similar(b"/", SYNC_PARAMS), query_of(BASE)) == ["same", "near", "far"]


def test_signatures_with_other_parameters_do_not_count(tree: Path, catalog: Catalog) -> None:
    other = ChunkParams(64, 256)
    remember(catalog, tree, other)
    assert names(catalog.similar(os.fsencode(tree), SYNC_PARAMS), query_of(BASE)) == []
    assert names(catalog.similar(os.fsencode(tree), other), query_of(BASE)) == ["same", "near", "far"]


def test_equals_are_told_apart_by_size_name_and_place(tree: Path, catalog: Catalog) -> None:
    """Copies, some with extra bytes that add no feature. Order: traits, then size, then name, then
    directory."""
    copies = tree / "copies"
    for name in ("a/x/one", "a/y/two", "b/one", "b/three"):
        (copies / name).parent.mkdir(parents=True, exist_ok=True)
        (copies / name).write_bytes(BASE)
    remember(catalog, copies)
    files = catalog.similar(os.fsencode(copies), SYNC_PARAMS)

    def order(path: str) -> list[str]:
        return [os.fsdecode(one.path) for one in files.query(query_of(BASE, os.fsencode(path)))]

    assert order("b/new")[:2] == ["b/one", "b/three"]
    assert order("a/y/three") == ["b/three", "a/y/two", "a/x/one", "b/one"]
    assert order("a/x/new")[:2] == ["a/x/one", "a/y/two"]
    (copies / "longer").write_bytes(BASE + b"\0" * 500)
    remember(catalog, copies)
    files = catalog.similar(os.fsencode(copies), SYNC_PARAMS)
    assert files.query(SimilarityQuery(query_of(BASE).traits, len(BASE) + 400))[0].size == len(BASE) + 500
    assert files.query(SimilarityQuery(query_of(BASE).traits, len(BASE) + 100))[0].size == len(BASE)


def test_a_replaced_file_is_named_once_as_it_is_now(tree: Path, catalog: Catalog) -> None:
    """A file replaced by a rename has another inode. Its old row stays until it is pruned."""
    remember(catalog, tree / "tree")
    new = edited(BASE, 1)
    (tree / "new").write_bytes(new)
    (tree / "new").rename(tree / "tree" / "near")
    remember(catalog, tree / "tree")
    files = catalog.similar(os.fsencode(tree / "tree"), SYNC_PARAMS)
    found = files.query(query_of(BASE))
    assert [Path(os.fsdecode(one.path)).name for one in found] == ["near", "far"]
    assert found[0].root == sign(new, SYNC_PARAMS).root


@pytest.mark.parametrize("lower", [False, True], ids=["higher inode", "lower inode"])
def test_a_file_that_is_replaced_before_anything_is_written(
    lower: bool, tmp_path: Path, catalog: Catalog
) -> None:
    """Both states wait to be written together. The order of inodes says nothing about age."""
    top = tmp_path / "tree"
    top.mkdir()
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(edited(BASE, 1))
    second.write_bytes(edited(BASE, 2))
    old, new = sorted((first, second), key=lambda path: path.stat().st_ino, reverse=lower)
    wanted = new.read_bytes()
    for version in (old, new):
        version.rename(top / "near")
        remember(catalog, top)
    (found,) = catalog.similar(os.fsencode(top), SYNC_PARAMS).query(query_of(BASE))
    assert found.root == sign(wanted, SYNC_PARAMS).root


def test_many_are_answered_as_each_alone(tree: Path, catalog: Catalog) -> None:
    remember(catalog, tree)
    files = catalog.similar(os.fsencode(tree), SYNC_PARAMS)
    asked = [query_of(edited(BASE, i % 9)) for i in range(SIMILAR_BATCH + 9)]
    asked[3] = SimilarityQuery(b"")
    assert list(files.query_many(asked, 2)) == [files.query(one, 2) for one in asked]


def test_rows_that_went_meanwhile_are_left_out(tree: Path, catalog: Catalog, tmp_path: Path) -> None:
    remember(catalog, tree)
    files = catalog.similar(os.fsencode(tree), SYNC_PARAMS)
    assert len(files) == 4
    other = sqlite3.connect(tmp_path / "cache" / FILE_NAME)
    other.execute("DELETE FROM signature WHERE path = ?", (os.fsencode(tree / "tree" / "near"),))
    other.commit()
    other.close()
    assert names(files, query_of(BASE)) == ["same", "far"]


@pytest.mark.parametrize(
    "damage",
    [
        "value = 7",
        "value = x'00'",
        "value = substr(value, 1, 25)",
        "value = 'text that is longer than the head and the traits of a signature'",
        "size = 'large'",
        "size = -1",
        "size = 1e300",
        "path = 5",
        "path = 'text'",
        "id = -id",
        "root = 5",
    ],
)
def test_damaged_rows_are_no_hints(tree: Path, catalog: Catalog, tmp_path: Path, damage: str) -> None:
    remember(catalog, tree)
    catalog.close()
    other = sqlite3.connect(tmp_path / "cache" / FILE_NAME)
    near = os.fsencode(tree / "tree" / "near")
    other.execute(f"UPDATE signature SET {damage} WHERE path = ?", (near,))  # noqa: S608 - of constants
    other.commit()
    other.close()
    assert names(catalog.similar(os.fsencode(tree), SYNC_PARAMS), query_of(BASE)) == ["same", "far"]


def test_without_a_catalog_nothing_is_similar(tmp_path: Path) -> None:
    nothing = NoCatalog().similar(b"/", SYNC_PARAMS)
    assert len(nothing) == 0
    assert nothing.query(query_of(BASE)) == []
    with Catalog(tmp_path / "cache") as empty:
        files = empty.similar(os.fsencode(tmp_path), SYNC_PARAMS)
        assert files.query(query_of(BASE)) == []
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("limit", [0, -1, 1017])
def test_limits_are_checked(limit: int) -> None:
    with pytest.raises(ValueError, match="need 1 to 1016"):
        NoCatalog().similar(b"/", SYNC_PARAMS).query(SimilarityQuery(bytes(9)), limit)


def test_nothing_is_read_before_the_first_question(tree: Path, catalog: Catalog) -> None:
    files = catalog.similar(os.fsencode(tree), SYNC_PARAMS)
    remember(catalog, tree)
    assert names(files, query_of(BASE)) == ["same", "near", "far"]
