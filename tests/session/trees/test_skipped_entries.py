"""Which rows are left alone, and what becomes of the names of a file some of which are."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from rdc.session.trees.destination_options import SkippedEntries
from rdc.tree.hard_links import LinkTable

ROWS = 12
Groups = list[int]
"""Which file each row names."""

groups_of_rows = st.lists(st.integers(0, 4), min_size=1, max_size=ROWS)
left_rows = st.sets(st.integers(0, ROWS - 1))


def table_of(groups: Groups) -> LinkTable:
    table = LinkTable()
    pairs = [(row, groups.index(group)) for row, group in enumerate(groups) if groups.index(group) < row]
    table.extend([row for row, _ in pairs], [first for _, first in pairs])
    return table


def wanted_links(groups: Groups, left: set[int]) -> list[tuple[int, int]]:
    """As CONSISTENCY.md defines: as if a filter had excluded every entry that is left alone."""
    names: dict[int, list[int]] = {}
    for row, group in enumerate(groups):
        if row not in left:
            names.setdefault(group, []).append(row)
    return sorted((row, rows[0]) for rows in names.values() for row in rows[1:])


@given(st.lists(st.lists(st.integers(0, 5_000), max_size=8), max_size=5))
def test_rows_are_in_it_once_they_were_added(directories: list[list[int]]) -> None:
    left, added = SkippedEntries(), set[int]()
    for rows in directories:
        assert all((row in left) == (row in added) for row in range(5_010))
        left.add(iter(rows))
        added.update(rows)
    assert [row for row in range(5_010) if row in left] == sorted(added)
    assert 1 << 40 not in left


@given(groups_of_rows, left_rows)
def test_the_names_that_are_not_left_alone_are_linked_among_themselves(
    groups: Groups, rows: set[int]
) -> None:
    left = SkippedEntries()
    left.add(rows)
    found = left.remaining(table_of(groups))
    assert list(found) == wanted_links(groups, rows)
    # What goes on with it looks rows up by their order.
    assert list(found.files) == sorted(found.files)


@given(groups_of_rows, left_rows, st.data())
def test_directory_by_directory(groups: Groups, rows: set[int], data: st.DataObject) -> None:
    """As a comparison goes: a directory's rows are added, then its names asked about, once or more often;
    rows to come are not known. In the end the links are those that were told of."""
    left, table = SkippedEntries(), table_of(groups)
    directory_of = data.draw(
        st.lists(st.integers(0, 3), min_size=len(groups), max_size=len(groups)).map(sorted),
        label="directories",
    )
    linked = []
    for _, members in groupby(range(len(groups)), key=directory_of.__getitem__):
        here = list(members)
        left.add(row for row in here if row in rows)
        pairs = [(table.files[at], table.firsts[at]) for at in table.between(here[0], here[-1] + 1)]
        for _ in range(data.draw(st.integers(1, 2), label="times")):
            told = [file for file, first in pairs if left.is_linked(file, first)]
        linked += told
    assert linked == [file for file, _ in wanted_links(groups, rows)]
    assert list(left.remaining(table)) == wanted_links(groups, rows)


@given(groups_of_rows)
def test_nothing_changes_where_nothing_is_left_alone(groups: Groups) -> None:
    table = table_of(groups)
    assert list(SkippedEntries().remaining(table)) == list(table)
    assert all(SkippedEntries().is_linked(file, first) for file, first in table)
