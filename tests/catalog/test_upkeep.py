"""Pruning: the least recently used entries go first; damaged rows and unmounted disks do no harm."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from rdc.catalog.catalog import Catalog
from rdc.catalog.database import FILE_NAME
from rdc.catalog.signer import FileSigner
from rdc.catalog.upkeep import prune, summary
from rdc.chunking import SYNC_PARAMS
from rdc.files.root.root import Root
from tests.catalog.catalog_checks import COUNT, check, filled, is_sound
from tests.support.children.catalog_child import later


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, contents: tuple[Path, list[bytes]]) -> None:
    cap = 60 << 10
    day = 86_400_000_000_000
    root = Root.open(os.fsencode(contents[0]))

    def known(names: range, days: int, *, sign_too: bool = True) -> int:
        found = 0
        with Catalog(tmp_path / "c", clock=lambda: later() + days * day, max_bytes=cap) as catalog:
            for i in names:
                with root.open_read(b"%d" % i) as source:
                    found += catalog.root(source, SYNC_PARAMS) is not None
                    if sign_too:
                        FileSigner(catalog=catalog, workers=1).sign(source)
        return found

    assert known(range(20), 0) == 0
    assert known(range(20, 40), 1) == 0
    assert known(range(20), 2) == 20  # the older ones are used again
    lost: list[tuple[int, int]] = []
    for days in range(3, 200):
        known(range(40 + days, 41 + days), days)
        assert (tmp_path / "c" / FILE_NAME).stat().st_size <= cap + (32 << 10)
        # Looked up with a clock that does not count as use.
        lost.append((20 - known(range(20), 2, sign_too=False), 20 - known(range(20, 40), 1, sign_too=False)))
        if lost[-1][0]:
            break
    assert 0 < lost[-1][0] < 20
    assert lost[-1][1] == 20
    root.close()


def test_pruning_survives_damaged_rows(tmp_path: Path, contents: tuple[Path, list[bytes]]) -> None:
    path = filled(tmp_path / "c", contents)
    connection = sqlite3.connect(path)
    for column, value in (
        ("path", 7),
        ("path", b"a\0b"),
        ("used", "x"),
        ("size", b"y"),
        ("root", 1),
        ("value", 2),
    ):
        any_row = "(SELECT id FROM signature ORDER BY random() LIMIT 1)"
        connection.execute(f"UPDATE signature SET {column} = ? WHERE id = {any_row}", (value,))  # noqa: S608 - of constants
    connection.commit()
    connection.close()
    check(tmp_path / "c", *contents)
    with Catalog(tmp_path / "c", clock=later) as catalog:
        assert summary(catalog) is not None
        pruned = prune(catalog, unused_days=100, max_bytes=50_000)
        assert pruned.gone <= 2
        assert pruned.evicted > 100
    assert path.stat().st_size <= 60_000
    assert check(tmp_path / "c", *contents)[0] < COUNT
    assert is_sound(path)


def test_what_lies_on_a_disk_that_is_not_there_is_not_gone(
    tmp_path: Path, contents: tuple[Path, list[bytes]]
) -> None:
    path = filled(tmp_path / "c", contents)
    connection = sqlite3.connect(path)
    # As if the files had been signed on another volume, mounted where nothing is now.
    connection.execute("UPDATE signature SET path = CAST('/no/such/place/' || id AS BLOB)")
    connection.execute("UPDATE signature SET file_system = 1 WHERE id % 2")
    connection.commit()
    connection.close()
    with Catalog(tmp_path / "c", clock=later) as catalog:
        gone = prune(catalog, unused_days=100).gone
    above = os.statvfs("/").f_fsid == os.statvfs(contents[0]).f_fsid
    assert gone == (COUNT // 2 if above else 0)
