"""The tables of a scan: the C form against plain Python, and that against what anybody would write."""

from __future__ import annotations

import random
import subprocess
from array import array
from collections import Counter
from operator import mul
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import counts as pure_survey
from tests.support.project_paths import KERNEL, NATIVE
from tests.support.share import examples

KEY_MAX = (1 << 64) - 1
VARIANTS = [_kernel, pure_survey]

keys = st.one_of(
    st.integers(0, 40),  # runs of neighbours with the same home, at the start ...
    st.integers(KEY_MAX - 40, KEY_MAX),  # ... and behind the last home
    st.integers(0, KEY_MAX),
)
counts = st.one_of(st.integers(0, 5), st.integers((1 << 32) - 3, (1 << 32) + 3))


def size_of(key: int) -> int:
    """A chunk's size is a function of its key. Some do not fit 32 bits."""
    small = key * 2_654_435_761 >> 7
    return (small % 70_000) if key % 5 else ((1 << 32) - 3 + key % 7)


def times(row: tuple[int, int]) -> tuple[int, int]:
    """No more bytes altogether than 64 bits can count."""
    return (row[0], row[1] if row[0] % 5 else min(row[1], 5))


# Several additions of rows (key, count).
additions = st.lists(st.lists(st.tuples(keys, counts).map(times), max_size=60), max_size=8)


def column(numbers: list[int]) -> bytes:
    return array("Q", numbers).tobytes()


def plain(data: bytes) -> list[int]:
    return array("Q", data).tolist()


def everything(table: _kernel.ChunkTable, step: int = 7) -> list[tuple[int, int, int]]:
    rows: list[tuple[int, int, int]] = []
    position = 0
    while True:
        found, lengths, times, position = table.entries(position, step)
        if not found:
            return rows
        rows += zip(plain(found), plain(lengths), plain(times), strict=True)


sized = st.tuples(
    st.integers(0, 9), st.integers(0, 9_000) | st.integers((1 << 32) - 3, (1 << 32) + 3), counts
)


@settings(deadline=None)
@given(st.lists(st.lists(sized.filter(lambda row: row[2] > 0), max_size=40), max_size=6), st.booleans())
def test_the_largest_size_of_a_key_stays(batches: list[list[tuple[int, int, int]]], in_order: bool) -> None:
    """Rows in the order of keys are added by another function."""
    table, wanted = _kernel.ChunkTable(1 << 20), dict[int, int]()
    for batch in batches:
        rows = sorted({row[0]: row for row in batch}.values()) if in_order else batch
        rows = [(key, size, min(count, 9)) for key, size, count in rows]
        rows += [(key, 0, 1) for key in range(100, 100 + 16 * in_order)]
        table.add(*(column([row[number] for row in rows]) for number in range(3)))
        for key, size, _ in rows:
            wanted[key] = max(wanted.get(key, 0), size)
    assert {key: size for key, size, _ in everything(table)} == wanted


@settings(deadline=None)
@given(additions)
def test_a_table_counts_as_a_dictionary_does(batches: list[list[tuple[int, int]]]) -> None:
    table, model = _kernel.ChunkTable(1 << 20), Counter[int]()
    for batch in batches:
        rows = [key for key, _ in batch]
        table.add(column(rows), column([size_of(key) for key in rows]), column([count for _, count in batch]))
        model.update(dict.fromkeys(rows, 0))
        for key, count in batch:
            model[key] += count
    wanted = {key: count for key, count in model.items() if count}
    assert everything(table) == [(key, size_of(key), wanted[key]) for key in sorted(wanted)]
    assert len(table) == len(wanted)
    assert table.chunks == sum(wanted.values())
    assert table.bytes == sum(count * size_of(key) for key, count in wanted.items())
    assert all(table.find(key) == (count, size_of(key)) for key, count in wanted.items())
    assert table.find(12345678901234567) == (0, 0)


@settings(deadline=None)
@given(additions, st.integers(0, 12))
def test_the_variants_agree(batches: list[list[tuple[int, int]]], shift: int) -> None:
    tables = [variant.ChunkTable(1 << 20) for variant in VARIANTS]
    for number, batch in enumerate(batches):
        rows = [key for key, _ in batch]
        for table in tables:
            table.add(column(rows), column([size_of(key) for key in rows]), column([c for _, c in batch]))
            if number == 2:
                table.sample(shift)
    summaries = [list(table.summary()) for table in tables]
    squares = [summary.pop(2) for summary in summaries]
    assert summaries[0] == summaries[1]
    assert squares[0] == pytest.approx(squares[1])
    assert everything(tables[0]) == everything(tables[1])
    assert tables[0].shift == tables[1].shift


@pytest.mark.parametrize("count", [1_000, 30_000, 200_000])
def test_a_chunk_takes_at_most_24_bytes(count: int) -> None:
    drawn = random.Random(count)
    table = _kernel.ChunkTable(1 << 30)
    most = 0.0
    for _ in range(100):
        rows = [drawn.getrandbits(64) for _ in range(count // 100)]
        table.add(column(rows), column([1000] * len(rows)))
        if len(table) >= 1000:
            most = max(most, table.memory / len(table))
    assert len(table) == count
    assert most <= 24


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_limit_holds_and_the_sample_is_consistent(variant: Any) -> None:
    drawn = random.Random(5)
    table = variant.ChunkTable(50_000)
    model = Counter[int]()
    for _ in range(30):
        rows = [drawn.getrandbits(64) for _ in range(1000)]
        rows += drawn.choices(list(model), k=300) if model else []
        model.update(rows)
        table.add(column(rows), column([key % 5000 for key in rows]))
        assert table.memory <= 50_000 * 1.02
    assert table.shift == 4
    kept = {key: count for key, count in model.items() if key >> (64 - table.shift) == 0}
    assert everything(table) == [(key, key % 5000, kept[key]) for key in sorted(kept)]
    assert table.chunks == sum(model.values())
    assert table.bytes == sum(count * (key % 5000) for key, count in model.items())


@pytest.mark.parametrize("limit", [1 << 30, 40_000])
@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_in_the_order_of_keys_make_the_same_table(variant: Any, limit: int) -> None:
    """Parts have them so: some thousands at a time, from the first key to the last, part after part."""
    drawn = random.Random(limit)
    seen = [drawn.getrandbits(64) for _ in range(2_000)]
    parts = [drawn.sample(seen, 1_000) + [drawn.getrandbits(64) for _ in range(1_500)] for _ in range(3)]
    ordered, mixed = variant.ChunkTable(limit), variant.ChunkTable(limit)
    rows = [key for part in parts for key in part]
    drawn.shuffle(rows)
    for key in rows:
        mixed.add(column([key]), column([key % 5000]), column([1 + key % 3]))
    for part in parts:
        part.sort()
        for start in range(0, len(part), 400):
            chosen = part[start : start + 400]
            counts = [1 + key % 3 for key in chosen]
            ordered.add(column(chosen), column([key % 5000 for key in chosen]), column(counts))
    assert everything(ordered, 500) == everything(mixed, 500)
    assert (ordered.shift, ordered.chunks, ordered.bytes) == (mixed.shift, mixed.chunks, mixed.bytes)
    assert ordered.shift == (0 if limit > 1 << 20 else 2)
    assert ordered.memory <= max(24 * len(ordered), limit * 1.02)


def test_equal_beginnings_only_cost_time() -> None:
    table = _kernel.ChunkTable(1 << 22)
    rows = [(1 << 63) + 7 * i for i in range(20_000)]
    random.Random(1).shuffle(rows)
    table.add(column(rows), column([1] * len(rows)))
    assert [key for key, _, _ in everything(table, 100_000)] == sorted(rows)


def folded(items: list[tuple[int, int]], least: int, most: int) -> list[list[tuple[int, int]]]:
    """The rule of FORMAT.md, to the letter."""
    groups, c, n = [], 0, len(items)
    while n - c > most:
        end = min(range(c + least + 1, c + most + 1), key=lambda i: (items[i - 1][0], -i))
        groups.append(items[c:end])
        c = end
    return [*groups, items[c:]] if c < n else groups


streams = st.lists(st.lists(st.tuples(st.integers(0, 6) | keys, st.integers(0, 9)), max_size=50), max_size=5)


@settings(deadline=None)
@given(streams, st.integers(1, 5), st.integers(1, 10))
def test_folding(items: list[list[tuple[int, int]]], least: int, more: int) -> None:
    most = least + more
    flat = [item for stream in items for item in stream]
    ends, end = [], 0
    for stream in items:
        end += len(stream)
        ends.append(end)
    groups = [folded(stream, least, most) for stream in items]
    lengths = [sum(size for _, size in group) for stream in groups for group in stream]
    answers = []
    for variant in VARIANTS:
        folder = variant.Folder(least, most)
        out = folder.streams(column([k for k, _ in flat]), column([s for _, s in flat]), column(ends))
        assert plain(out[1]) == lengths
        assert plain(out[2]) == [sum(map(len, groups[: i + 1])) for i in range(len(groups))]
        answers.append(out)
        # The same in pieces of any size.
        pieces = b"", b""
        for stream in items:
            for at in range(0, len(stream), 3):
                part = stream[at : at + 3]
                new = folder.feed(column([k for k, _ in part]), column([s for _, s in part]))
                pieces = pieces[0] + new[0], pieces[1] + new[1]
            new = folder.finish()
            pieces = pieces[0] + new[0], pieces[1] + new[1]
        assert pieces == out[:2]
    assert answers[0] == answers[1]
    names: dict[tuple[int, ...], int] = {}
    for group, key in zip([g for stream in groups for g in stream], plain(answers[0][0]), strict=True):
        assert names.setdefault(tuple(k for k, _ in group), key) == key
    assert len(set(names.values())) == len(names)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(keys, max_size=300), st.integers(0, KEY_MAX), st.integers(0, 8))
def test_selecting(rows: list[int], salt: int, shift: int) -> None:
    chosen = _kernel.select_chunks(column(rows), salt, shift)
    assert chosen == pure_survey.select_chunks(column(rows), salt, shift)
    keys_chosen = {rows[i] for i in plain(chosen)}
    assert plain(chosen) == [i for i, key in enumerate(rows) if key in keys_chosen]
    if shift == 0:
        assert len(plain(chosen)) == len(rows)


def test_a_selection_is_about_as_large_as_asked() -> None:
    rows = column(list(range(1 << 16)))
    assert abs(len(_kernel.select_chunks(rows, 3, 4)) // 8 - 4096) < 300


LARGE = (1 << 63) - 1
"""Most chunks, and most bytes, that a table of a part states."""


@st.composite
def rows_of_a_part(draw: st.DrawFn) -> tuple[list[list[int]], int, int, int, int]:
    """Columns of rows, the least key, the shift, and what is left: as a scan writes them, then perhaps forged
    in one place."""
    shift = draw(st.sampled_from((0, 1, 7, 63)))
    room = 1 << (64 - shift)
    found = sorted(draw(st.sets(keys.map(lambda key: key % room), min_size=1, max_size=40)))
    least = draw(st.sampled_from((0, found[0])))
    large = st.one_of(st.integers(0, 9), st.sampled_from((1 << 32, LARGE, KEY_MAX)))
    lengths, times = ([draw(large) for _ in found] for _ in range(2))
    if draw(st.booleans()):  # none that a scan would not write
        lengths = [length % 70_000 for length in lengths]
        times = [1 + count % 1_000 for count in times]
    left = sum(times), sum(map(mul, lengths, times))
    chunks, total = (min(LARGE, max(0, each + draw(st.sampled_from((-1, 0, 0, 0, 5))))) for each in left)
    columns = [found, lengths, times]
    if draw(st.booleans()):
        at = draw(st.integers(0, len(found) - 1))
        columns[draw(st.integers(0, 2))][at] = draw(large | keys)
    return columns, draw(st.just(least) | st.just(found[0] + 1) | st.just(1 << 64)), shift, chunks, total


def judged(variant: Any, columns: list[list[int]], *more: int) -> tuple[int, int] | str:
    try:
        left: tuple[int, int] = variant.left_after_rows(*map(column, columns), *more)
    except ValueError as error:
        return str(error)
    return left


@settings(deadline=None)
@given(rows_of_a_part())
def test_rows_of_a_part_are_judged_as_by_hand(case: tuple[list[list[int]], int, int, int, int]) -> None:
    columns, least, shift, chunks, total = case
    found, lengths, times = columns
    left = chunks - sum(times), total - sum(map(mul, lengths, times))
    wanted: tuple[int, int] | str = left
    if min(left) < 0 or not all(times):
        wanted = "more chunks than the table has"
    if found != sorted(set(found)) or found[0] < least or found[-1] >> (64 - shift):
        wanted = "keys out of order"
    for variant in VARIANTS:
        assert judged(variant, columns, least, shift, chunks, total) == wanted


def test_sums_of_forged_rows_do_not_wrap() -> None:
    """Each of these sums is 0 or little in 64 bits."""
    half, root = 1 << 63, 1 << 32
    for lengths, times in (([1, 1], [half, half]), ([half, half], [1, 1]), ([root, 1], [root, 1])):
        for variant in VARIANTS:
            said = judged(variant, [[1, 2], lengths, times], 0, 0, LARGE, LARGE)
            assert said == "more chunks than the table has"


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_makes_no_sense_is_refused(variant: Any) -> None:
    make = variant.ChunkTable
    fold = variant.Folder
    for attempt in (
        lambda: make(-1),
        lambda: make(0).sample(64),
        lambda: make(0).sample(-1),
        lambda: make(0).add(column([1]), column([])),
        lambda: make(0).add(column([1]), column([1]), column([1, 2])),
        lambda: make(0).entries(-1, 1),
        lambda: fold(0, 2),
        lambda: fold(2, 2),
        lambda: fold(2, 65),
        lambda: fold(1, 2).streams(column([1]), column([1]), column([])),
        lambda: fold(1, 2).streams(column([1, 2]), column([1, 2]), column([2, 1])),
        lambda: variant.select_chunks(b"", 0, 64),
        lambda: variant.left_after_rows(column([1]), column([1]), column([]), 0, 0, 1, 1),
        lambda: variant.left_after_rows(column([1]), column([]), column([1]), 0, 0, 1, 1),
        lambda: variant.left_after_rows(column([1]), column([1]), column([1]), 0, 64, 1, 1),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            attempt()  # type: ignore[no-untyped-call] # they are lambdas of a value of any type


def test_numbers_that_lie_askew_are_refused() -> None:
    askew = memoryview(bytes(17))[1:]
    for attempt in (
        lambda: _kernel.select_chunks(askew, 0, 1),
        lambda: _kernel.ChunkTable(0).add(askew, column([1, 2])),
        lambda: _kernel.Folder(1, 2).feed(column([1, 2]), askew),
        lambda: _kernel.left_after_rows(askew, askew, askew, 0, 0, 1, 1),
    ):
        with pytest.raises(ValueError, match="aligned"):
            attempt()


def test_under_sanitizers(tmp_path: Path) -> None:
    """Nothing outside an allocation is read or written, whatever the keys."""
    program = tmp_path / "chunk_table"
    sources = [str(source) for source in (KERNEL / "count").glob("*.c") if "binding" not in source.name]
    sources.append(str(NATIVE / "chunk_table.c"))
    flags = ["-O1", "-g", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{KERNEL}"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["cc", *flags, *sources, "-o", str(program)], check=True)
    result = subprocess.run([str(program)], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "fine\n"), result.stderr
