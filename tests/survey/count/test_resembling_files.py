"""Files that resemble each other: the connected components among all pairs, with one file per content."""

from __future__ import annotations

import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.signature.tree import NO_TRAITS, TRAITS_BYTES, traits_at
from rdc.similarity.traits import Traits
from rdc.survey.count import chunk_locations as module
from rdc.survey.count.chunk_locations import (
    GROUPS,
    MATCHES,
    PATHS,
    Candidate,
    ResemblingFiles,
    likely_resemblance,
)
from tests.support.share import examples


def traits(values: list[int]) -> bytes:
    """Twelve values of 6 bits each."""
    return sum(value << 6 * place for place, value in enumerate(values)).to_bytes(TRAITS_BYTES, "little")


@st.composite
def relatives(draw: st.DrawFn) -> list[bytes]:
    """Files of two families, edited repeatedly."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    found = [[rng.randrange(1, 64) for _ in range(12)] for _ in range(2)]
    for _ in range(draw(st.integers(0, 12))):
        one = list(rng.choice(found))
        for place in rng.sample(range(12), rng.randrange(8)):
            one[place] = rng.randrange(1, 64)
        found.append(one)
    return [traits(one) for one in found]


DIRECTORIES = [b"z", b"y", b"b"]
"""Their numbers and their paths differ in order."""


def connected(packed: list[bytes]) -> list[tuple[list[int], int]]:
    """Groups of rows, each with the fewest matches of a pair that connects it. All pairs are joined, those
    with most matches first."""
    groups = [{row} for row in range(len(packed))]
    fewest: dict[int, int] = {}
    for matches in range(12, MATCHES - 1, -1):
        for one in range(len(packed)):
            for other in range(one):
                first, second = (next(g for g in groups if row in g) for row in (one, other))
                if first is not second and Traits(packed[one]).matches(Traits(packed[other])) == matches:
                    groups.remove(second)
                    first |= second
                    fewest[min(first)] = matches
    return [(sorted(group), fewest[min(group)]) for group in groups if len(group) > 1]


@settings(deadline=None, max_examples=examples(50))
@given(relatives())
def test_groups_are_what_all_pairs_connect(packed: list[bytes]) -> None:
    files = ResemblingFiles([b"d"])
    for row, one in enumerate(packed):
        files.add(row, Candidate(1 << row, one, 0, b"%02d" % row))
    expected = [
        (
            tuple(b"d/%02d" % row for row in rows[:PATHS]),
            sum(1 << row for row in rows),
            likely_resemblance(matches),
        )
        for rows, matches in connected(packed)
    ]
    found = [(one.paths_bytes, one.bytes, one.resemblance) for one in files.groups()]
    assert found == sorted(expected, key=lambda group: -group[1])


keys, sizes = st.integers(0, 5), st.integers(0, 30)
some_traits = st.sampled_from([NO_TRAITS, b"\1" * TRAITS_BYTES, b"\2" * TRAITS_BYTES])
some_rows = st.lists(
    st.tuples(keys, sizes, some_traits, st.integers(0, 2), st.sampled_from([b"a", b"b"])), max_size=12
)


@given(some_rows, st.integers(0, 20))
def test_a_column_is_taken_as_its_rows_are(
    drawn: list[tuple[int, int, bytes, int, bytes]], least: int
) -> None:
    """The least path represents all identical files, in whatever order they were read."""
    singly, many = ResemblingFiles(DIRECTORIES), ResemblingFiles(DIRECTORIES)
    singly.drop(least)
    many.drop(least)
    column = b"".join(one for _, _, one, _, _ in drawn)
    for row, (key, size, _, directory, name) in enumerate(drawn):
        singly.add(key, Candidate(size, traits_at(column, row), directory, name))
    many.add_column(
        array("Q", [row[0] for row in drawn]),
        array("Q", [row[1] for row in drawn]),
        column,
        [row[3] for row in drawn],
        [row[4] for row in drawn],
    )
    eligible: dict[int, list[tuple[bytes, bytes]]] = {}
    for key, size, one, directory, name in drawn:
        if size >= least and one != NO_TRAITS:
            eligible.setdefault(key, []).append((DIRECTORIES[directory], name))
    first = {key: min(locations) for key, locations in eligible.items()}
    for files in (singly, many):
        paths = {key: (DIRECTORIES[file.directory], file.name) for key, file in files.files.items()}
        assert paths == first


@pytest.mark.parametrize("by_column", [False, True])
def test_of_too_many_files_the_small_ones_are_left_out(
    by_column: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files below the limit stay out: the limit only rises."""
    monkeypatch.setattr(module, "FILES", 10)
    files, own = ResemblingFiles([b"d"]), b"\1" * TRAITS_BYTES
    for number in range(40):
        size = 500 * (number % 20 + 1)
        if by_column:
            files.add_column(array("Q", [number]), array("Q", [size]), own, [0], [b"%d" % number])
        else:
            files.add(number, Candidate(size, own, 0, b"%d" % number))
        assert len(files.files) <= 10
        assert all(file.size >= files.least for file in files.files.values())
    assert files.least == 8192
    assert sorted(file.size for file in files.files.values()) == sorted([8500, 9000, 9500, 10_000] * 2)
    files.drop(1)
    assert files.least == 8192


def test_a_report_has_so_many_groups_and_names() -> None:
    """The largest groups and the first names are shown; the bytes are those of all members."""
    rng, files = random.Random(2), ResemblingFiles([b"d"])
    for group in range(GROUPS + 3):
        own = traits([rng.randrange(1, 64) for _ in range(12)])
        for number in range(PATHS + 1 if group == 50 else 2):
            files.add(1000 * group + number, Candidate(group + 1, own, 0, b"%03d-%02d" % (group, number)))
    found = files.groups()
    assert len(found) == GROUPS
    assert found[0].paths_bytes == tuple(b"d/050-%02d" % number for number in range(PATHS))
    assert found[0].bytes == 51 * (PATHS + 1)
    assert [one.bytes for one in found[1:]] == [2 * size for size in range(GROUPS + 3, 3, -1) if size != 51]


@pytest.mark.parametrize(
    ("directory", "path"),
    [(b"/", b"/a"), (b".", b"./a"), (b"d", b"d/a"), (b"d/", b"d/a"), (b"d/e", b"d/e/a")],
)
def test_names_are_as_a_person_reaches_them(directory: bytes, path: bytes) -> None:
    files = ResemblingFiles([directory])
    for number, name in enumerate((b"a", b"b")):
        files.add(number, Candidate(1, b"\1" * TRAITS_BYTES, 0, name))
    (group,) = files.groups()
    assert group.paths_bytes[0] == path


@given(st.lists(some_traits, max_size=5))
def test_traits_lie_one_behind_another(rows: list[bytes]) -> None:
    for column in (b"".join(rows), bytearray(b"".join(rows))):
        assert [traits_at(column, row) for row in range(len(rows))] == [
            b"" if one == NO_TRAITS else one for one in rows
        ]
