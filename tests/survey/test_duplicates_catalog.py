"""Identical files of which the catalog knows some: known files are not read, and outdated entries are
noticed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.signer import FileSigner
from rdc.errors import ExitCode
from rdc.files.root.root import Root
from rdc.model.duplicates import DuplicateOptions
from rdc.survey import read as content
from rdc.survey.duplicates import find_duplicates
from rdc.survey.read import END_BYTES
from tests.support.trees.duplicate_files import Collector, make, names_in


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    # The clock is ahead, so files written just now pass the racy rule.
    now = Catalog(tmp_path / "unused").now
    return Catalog(tmp_path / "catalog", clock=lambda: now() + 10_000_000_000)


def sign(catalog: Catalog, top: Path, *names: str) -> None:
    root = Root.open(os.fsencode(top))
    for name in names:
        with root.open_read(os.fsencode(name)) as source:
            FileSigner(catalog=catalog).sign(source)
    catalog.flush()


def test_what_the_catalog_knows_is_not_read(tmp_path: Path, catalog: Catalog) -> None:
    size = 400_000
    data = {name: bytes(size - 1) + b"1" for name in "abcd"}
    # Equal at both ends, different in the middle.
    data["d"] = bytes(size // 2) + b"x" + bytes(size // 2 - 2) + b"1"
    top = tmp_path / "top"
    paths = make(top, **data)
    ends = 4 * 2 * END_BYTES
    assert find_duplicates(paths, catalog=catalog).summary.bytes_read == ends + 4 * size
    sign(catalog, top, *data)
    found = find_duplicates(paths, catalog=catalog)
    assert names_in(found) == [[b"a", b"b", b"c"]]
    assert found.summary.bytes_read == ends
    # One file has changed since it was signed: only this file is read, and it is known afterwards.
    os.utime(top / "b", ns=(5, 5))
    for read in (size, 0):
        found = find_duplicates(paths, catalog=catalog)
        assert names_in(found) == [[b"a", b"b", b"c"]]
        assert found.summary.bytes_read == ends + read
        catalog.flush()


def test_groups_of_which_the_catalog_knows_nothing_are_hashed(tmp_path: Path, catalog: Catalog) -> None:
    top = tmp_path / "top"
    paths = make(top, **dict.fromkeys("ab", bytes(400_000)), **dict.fromkeys("cd", bytes(300_000)))
    sign(catalog, top, "c")
    (top / "e").write_bytes(bytes(300_000))
    found = find_duplicates(paths, catalog=catalog)
    assert sorted(names_in(found)) == [[b"a", b"b"], [b"c", b"d", b"e"]]
    assert found.summary.bytes_read == 5 * 2 * END_BYTES + 2 * 400_000 + 2 * 300_000
    collector = Collector()
    real = content.ContentReader.known

    def gone(self: content.ContentReader, *arguments: Any) -> object:
        (top / "d").unlink()
        return real(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content.ContentReader, "known", gone)
        found = find_duplicates(paths, DuplicateOptions(), collector, catalog)
    assert sorted(names_in(found)) == [[b"a", b"b"], [b"c", b"e"]]
    assert collector.problems == [(ExitCode.VANISHED, b"d")]
