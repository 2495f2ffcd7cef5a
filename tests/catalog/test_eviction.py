"""Which rows an eviction deletes from the catalog's table, and how many."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from rdc.catalog import database
from rdc.catalog import database as eviction
from rdc.catalog.database import ROW_BYTES, shrink, used_bytes

ROWS = 2_000
VALUE = 400
"""Bytes of a row's value."""


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """Rows in three parts, each used on another day, the first rows last."""
    opened = sqlite3.connect(":memory:", isolation_level=None)
    for statement in database._SCHEMA:
        opened.execute(statement)
    opened.executemany(
        "INSERT INTO signature (file_system, inode, params, used, size, path, root, stamp, value)"
        " VALUES (1, ?, 1, ?, 9, ?, ?, ?, ?)",
        [
            (i, 2 - i * 3 // ROWS, b"/directory/%06d" % i, bytes(32), bytes(16), bytes(VALUE))
            for i in range(ROWS)
        ],
    )
    yield opened
    opened.close()


def kept(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    return connection.execute("SELECT used, id FROM signature ORDER BY used, id").fetchall()


def test_nothing_goes_while_there_is_room(connection: sqlite3.Connection) -> None:
    used = used_bytes(connection)
    assert VALUE * ROWS < used < 2 * VALUE * ROWS
    assert shrink(connection, used) == 0
    assert len(kept(connection)) == ROWS


@pytest.mark.parametrize("keep", [eviction.KEEP, 1.0, 0.5])
def test_the_oldest_go_and_as_many_as_make_the_room(connection: sqlite3.Connection, keep: float) -> None:
    before, cap = kept(connection), used_bytes(connection) * 3 // 4
    gone = shrink(connection, cap, keep)
    # The rows used last remain; among those of one day, the newest.
    assert kept(connection) == before[gone:]
    # The size of a row is an estimate, and pages are freed whole. A twentieth of deviation is accepted.
    assert used_bytes(connection) == pytest.approx(cap * keep, rel=0.05)
    if keep < 1:
        assert shrink(connection, cap, keep) == 0


def test_no_row_more_goes_than_the_excess_asks_for(connection: sqlite3.Connection) -> None:
    row = VALUE + len(b"/directory/000000") + ROW_BYTES
    used = used_bytes(connection)
    for excess, rows in ((1, 1), (row, 1), (row + 1, 2), (10 * row, 10)):
        connection.execute("BEGIN")
        assert shrink(connection, used - excess, keep=1.0) == rows
        connection.execute("ROLLBACK")


def test_a_cap_of_nothing_empties_the_table(connection: sqlite3.Connection) -> None:
    assert shrink(connection, 0) == ROWS
    assert kept(connection) == []
