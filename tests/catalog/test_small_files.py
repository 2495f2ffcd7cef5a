"""Bulk look-ups and writes of small files obey the same rules as single ones."""

from __future__ import annotations

import os
import random
import time
from array import array
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.file_state import LOCAL_MARGIN_NS
from rdc.catalog.signer import FileSigner
from rdc.catalog.small_files import SMALL_BYTES, SmallOutcome, sign_small
from rdc.catalog.store import NoCatalog, SignatureStore, SmallFiles
from rdc.chunking import ChunkParams
from rdc.files.bulk import open_many as contents
from rdc.files.bulk.open_many import RESIZED, TOUCHED
from rdc.files.root.root import Root
from rdc.model.entries import Kind, PackedListing
from rdc.signature.codec import encode_signature
from rdc.signature.tree import sign
from rdc.survey.scan.scanner import CappedStore

PARAMS = ChunkParams.for_mean(4096)
HOUR = 3_600_000_000_000


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    drawn = random.Random(4)
    top = tmp_path / "t"
    (top / "deep" / "er").mkdir(parents=True)
    for number, size in enumerate([0, 1, 100, 6_228, 6_229, 20_000, SMALL_BYTES]):
        (top / "deep" / "er" / f"{number}").write_bytes(drawn.randbytes(size))
    (top / "deep" / "er" / "run").write_bytes(bytes(SMALL_BYTES - 5))
    return top


def listed(top: Path) -> SmallFiles:
    root = Root.open(os.fsencode(top))
    found = root.listed(b"deep/er")
    listing, inodes = found.listing, found.inodes
    assert isinstance(listing, PackedListing)
    assert set(listing.kinds) == {Kind.FILE}
    paths = b"".join(b"deep/er/" + name + b"\0" for name in listing.names.split(b"\0")[:-1])
    return SmallFiles(
        root,
        paths,
        array("Q", inodes.devices),
        array("Q", inodes.inodes),
        array("Q", listing.sizes),
        array("q", listing.mtimes),
        array("q", inodes.ctimes),
    )


def after(top: Path, more: int = HOUR) -> int:
    return max(path.lstat().st_ctime_ns for path in top.rglob("*")) + more


@pytest.fixture
def catalog(tree: Path, tmp_path: Path) -> Iterator[Catalog]:
    now = after(tree)
    with Catalog(tmp_path / "catalog", clock=lambda: now) as made:
        yield made


def signed(top: Path, store: SignatureStore) -> SmallOutcome:
    return sign_small(listed(top), PARAMS, store)


def test_what_is_read_is_what_signing_each_gives(tree: Path) -> None:
    files = listed(tree)
    found = sign_small(files, PARAMS, NoCatalog(), unwanted=[2])
    assert not found.failed
    assert not len(found.known.rows)
    assert list(found.read.rows) == [0, 1, 3, 4, 5, 6, 7]
    assert found.read.data is not None
    starts = list(accumulate(found.read.signatures.sizes, initial=0))
    for number, row in enumerate(found.read.rows):
        name = os.fsdecode(files.paths.split(b"\0")[row])
        content = (tree / name).read_bytes()
        assert found.read.data[starts[number] : starts[number + 1]] == content
        assert found.read.signatures.root_of(number) == sign(content, PARAMS).root
        assert found.read.ctimes[number] == (tree / name).lstat().st_ctime_ns


@pytest.mark.parametrize("flushed", [False, True])
def test_known_files_are_not_read(tree: Path, catalog: Catalog, flushed: bool) -> None:
    first = signed(tree, catalog)
    assert not len(first.known.rows)
    if flushed:
        catalog.flush()
    (tree / "deep" / "er" / "3").write_bytes(b"x" * 6_228)  # the same size, another ctime
    again = signed(tree, catalog)
    assert list(again.read.rows) == [3]
    assert list(again.known.rows) == [0, 1, 2, 4, 5, 6, 7]
    assert again.known.signatures == first.read.signatures.chosen([0, 1, 2, 4, 5, 6, 7])
    assert again.known.data is None


@pytest.mark.parametrize("flushed", [False, True])
def test_one_by_one_and_together_know_the_same(tree: Path, catalog: Catalog, flushed: bool) -> None:
    signer = FileSigner(PARAMS, catalog, workers=1)
    root = Root.open(os.fsencode(tree))
    with root.open_read(b"deep/er/5") as source:
        alone = signer.sign(source)
    if flushed:
        catalog.flush()
    outcome = signed(tree, catalog)
    assert list(outcome.known.rows) == [5]
    assert outcome.known.signatures.root_of(0) == alone.root
    if flushed:
        catalog.flush()
    for number in range(7):
        with root.open_read(b"deep/er/%d" % number) as source:
            known = catalog.get(source, PARAMS)
            assert known is not None
            assert encode_signature(known) == encode_signature(sign(source.whole(), PARAMS))


@pytest.mark.parametrize(("more", "kept"), [(LOCAL_MARGIN_NS, 7), (LOCAL_MARGIN_NS + 1, 8)])
def test_what_may_still_change_unseen_is_not_kept(tree: Path, tmp_path: Path, more: int, kept: int) -> None:
    time.sleep(0.02)  # longer than a tick of the clock that stamps files
    os.utime(tree / "deep" / "er" / "run")
    now = after(tree, more)
    with Catalog(tmp_path / "catalog", clock=lambda: now) as catalog:
        signed(tree, catalog)
        assert list(signed(tree, catalog).known.rows) == list(range(kept))


def test_what_changed_since_it_was_listed_is_read_and_not_kept(tree: Path, catalog: Catalog) -> None:
    files = listed(tree)
    (tree / "deep" / "er" / "2").write_bytes(b"y" * 100)
    (tree / "deep" / "er" / "4").write_bytes(b"longer" * 2_000)
    (tree / "deep" / "er" / "5").unlink()
    found = sign_small(files, PARAMS, catalog)
    assert [row for row, _ in found.failed] == [4, 5]
    assert found.failed[0] == (4, RESIZED)
    assert found.read.signatures.root_of(2) == sign(b"y" * 100, PARAMS).root
    assert [row for row, _ in catalog.find_small(files, PARAMS)] == [0, 1, 3, 6, 7]
    assert not {2, 4} & {row for row, _ in catalog.find_small(listed(tree), PARAMS)}


def test_a_change_while_it_is_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.pread

    def pread(fd: int, length: int, offset: int) -> bytes:
        if os.readlink(f"/proc/self/fd/{fd}").endswith("er/3"):
            os.utime(tree / "deep" / "er" / "3", (1, 1))
        return original(fd, length, offset)

    monkeypatch.setattr(contents, "_reader", None)
    monkeypatch.setattr(os, "pread", pread)
    assert signed(tree, NoCatalog()).failed == [(3, TOUCHED)]


def test_a_scan_keeps_only_so_much(tree: Path, catalog: Catalog) -> None:
    signed(tree, CappedStore(catalog, 1_000))
    found = [row for row, _ in catalog.find_small(listed(tree), PARAMS)]
    assert found == [0, 1, 2, 3]
    assert not CappedStore(catalog, 0, finds=False).find_small(listed(tree), PARAMS)


def test_damage_in_the_catalog_costs_reading(tree: Path, catalog: Catalog) -> None:
    signed(tree, catalog)
    catalog.flush()
    catalog.database.write(
        lambda c: c.execute("UPDATE signature SET value = zeroblob(length(value)) WHERE size = 20000")
    )
    catalog.database.write(lambda c: c.execute("UPDATE signature SET stamp = x'00' WHERE size = 100"))
    catalog.database.write(lambda c: c.execute("UPDATE signature SET value = 7 WHERE size = 1"))
    again = signed(tree, catalog)
    assert list(again.read.rows) == [1, 2, 5]
    assert not again.failed
