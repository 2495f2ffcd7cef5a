"""Rows that a thread adds are in their tables once the adder was waited for. What fails is raised."""

from __future__ import annotations

import random
import threading
from array import array

import pytest

from rdc.kernel import ChunkTable
from rdc.survey.parts import merge
from rdc.survey.parts.merge import RowAdder


def rows(seed: int, count: int) -> tuple[array[int], array[int], array[int]]:
    rng = random.Random(seed)
    keys = array("Q", sorted({rng.getrandbits(40) for _ in range(count)}))
    sizes = array("Q", [key % 5_000 for key in keys])
    return keys, sizes, array("Q", [1 + key % 3 for key in keys])


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "THREAD_ROWS", 100)
    monkeypatch.setattr(merge, "usable_workers", lambda: 2)


def test_all_rows_are_in_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """In turns many and few rows, in two tables, with keys that come again."""
    adder = RowAdder()
    threaded, plain = [[ChunkTable(1 << 24) for _ in range(2)] for _ in range(2)]
    for seed in range(40):
        columns = rows(seed % 7, 6_000 if seed % 3 else 20)
        adder.add(threaded[seed % 2], *columns)
        plain[seed % 2].add(*columns)
    adder.finish()
    for one, other in zip(threaded, plain, strict=True):
        assert one.entries(0, 1 << 20) == other.entries(0, 1 << 20)
        assert (one.chunks, one.bytes) == (other.chunks, other.bytes)
    assert [thread.name for thread in threading.enumerate() if "rdc merge" in thread.name] == ["rdc merge 0"]
    adder.close()
    assert not [thread.name for thread in threading.enumerate() if "rdc merge" in thread.name]


def test_one_table_is_waited_for() -> None:
    adder, tables = RowAdder(), [ChunkTable(1 << 24) for _ in range(2)]
    for seed in range(6):
        adder.add(tables[seed % 2], *rows(seed, 20_000))
        adder.wait_for(tables[seed % 2])
        assert tables[seed % 2].chunks > 0
    adder.finish()
    adder.close()


def test_few_rows_and_one_processor_take_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    adder, table = RowAdder(), ChunkTable(1 << 20)
    adder.add(table, *rows(1, 50))
    monkeypatch.setattr(merge, "usable_workers", lambda: 1)
    adder.add(table, *rows(2, 500))
    assert not [thread.name for thread in threading.enumerate() if "rdc merge" in thread.name]
    assert table.chunks == sum(sum(rows(seed, count)[2]) for seed, count in ((1, 50), (2, 500)))
    adder.close()


def test_what_fails_in_the_thread_is_raised() -> None:
    adder, table = RowAdder(), ChunkTable(1 << 20)
    keys, sizes, counts = rows(1, 500)
    adder.add(table, keys, sizes, counts[:-1])
    with pytest.raises(ValueError, match="columns of 500 and 499 rows"):
        adder.finish()
    adder.close()


def test_a_table_to_which_a_thread_adds_is_not_touched() -> None:
    """Many rows are added without the interpreter's lock. Whoever comes meanwhile is refused."""
    columns = rows(1, 400_000)
    for _ in range(100):
        table = ChunkTable(1 << 26)
        thread = threading.Thread(target=table.add, args=columns)
        thread.start()
        refused = 0
        while thread.is_alive() and not refused:
            try:
                assert table.find(1) == (0, 0)
            except RuntimeError as error:
                assert str(error) == "another thread adds rows to this table"
                refused += 1
        thread.join()
        assert len(table) == len(columns[0])
        if refused:
            return
    pytest.fail("no thread was met while it added rows")
