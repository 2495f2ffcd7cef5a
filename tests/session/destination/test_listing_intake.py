"""A listing that comes in parts: every directory is compared once, as the source has it, or nothing is."""

from __future__ import annotations

import random
from itertools import accumulate, groupby, pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings

from rdc.errors import ProtocolError
from rdc.model.entries import EMPTY_LISTING, Kind, Listing
from rdc.model.preserved import EVERYTHING
from rdc.protocol.messages import ListingPart
from rdc.session.destination.comparison import ListingIntake
from rdc.tree.manifest import Manifest
from tests.support.share import examples
from tests.support.trees.manifests import (
    Rows,
    build,
    columns,
    entry,
    in_order,
    listing,
    parent_of,
    randoms,
    trees,
)

HELD = listing([entry(b"held")])


class Compared:
    """Stands for Directories and OwnTree: announces what is in each directory, and notes what it is told."""

    def __init__(self, announced: str) -> None:
        self._announced = SimpleNamespace(new=announced == "new", lost=announced == "lost")
        self.expected: dict[bytes, object] = {b"": self._announced}
        self.restore_permissions_later: set[bytes] = set()
        self.told: list[tuple[bytes, int, Listing]] = []
        self.held: list[Listing | None] = []

    def compare(self, path: bytes, first: int, found: Listing, held: Listing | None) -> None:
        del self.expected[path]
        self.told.append((path, first, found))
        self.held.append(held)
        for row in found.rows_of(Kind.DIRECTORY):
            self.expected[(path + b"/" if path else b"") + found.names[row]] = self._announced

    def announced(self, path: bytes) -> object:
        return self.expected.get(path)

    def listing(self, path: bytes, lent: set[bytes]) -> Listing:
        assert lent is self.restore_permissions_later
        return HELD


class Intake:
    def __init__(self, only: bytes = b"", name: bytes | None = None, announced: str = "") -> None:
        self.compared = Compared(announced)
        self.wanted = Manifest()
        both: Any = self.compared
        self.intake = ListingIntake(self.wanted, both, both, preserved=EVERYTHING, only=only, name=name)

    def take(self, directory: int, path: bytes, found: Listing, *, last: bool = True) -> None:
        self.intake.take(ListingPart(directory, path, 0, last, found))


def directories_of(rows: Rows) -> list[tuple[bytes, Listing]]:
    """All of them, empty ones too, as a walk comes to them."""
    inside = {path: listing(found) for path, found in groupby(in_order(rows), lambda e: parent_of(e.path))}
    paths = [b"", *(path for path, one in rows.items() if one.kind == Kind.DIRECTORY)]
    return [
        (path, inside.get(path, EMPTY_LISTING))
        for path in sorted(paths, key=lambda path: path.split(b"/") if path else [])
    ]


def parts_of(rng: random.Random, found: Listing) -> list[Listing]:
    cuts = sorted(rng.choices(range(len(found) + 1), k=rng.choice((0, 0, 1, 3))))
    return [found.rows(range(start, stop)) for start, stop in pairwise((0, *cuts, len(found)))]


@settings(deadline=None, max_examples=examples(40))
@given(trees(), randoms)
def test_what_came_in_parts_is_the_tree(rows: Rows, rng: random.Random) -> None:
    """Each directory is compared when its last part is there, with the row at which it begins."""
    directories, intake = directories_of(rows), Intake()
    for number, (path, found) in enumerate(directories):
        *parts, last = parts_of(rng, found)
        for part in parts:
            intake.take(number, path, part, last=False)
            assert len(intake.compared.told) == number
        intake.take(number, path, last)
    intake.intake.end()
    firsts = [0, *accumulate(len(found) for _, found in directories)]
    assert intake.compared.told == [
        (path, first, found) for (path, found), first in zip(directories, firsts, strict=False)
    ]
    assert columns(intake.wanted) == columns(build(rows))


@pytest.mark.parametrize(("announced", "held"), [("", HELD), ("new", EMPTY_LISTING), ("lost", None)])
def test_what_is_here_is_looked_at_where_there_can_be_any(announced: str, held: Listing | None) -> None:
    """A directory that could not be made or read has nothing in it that may be touched."""
    intake = Intake(announced=announced)
    intake.take(0, b"", listing([entry(b"d", Kind.DIRECTORY)]))
    intake.take(1, b"d", listing([entry(b"f")]))
    assert intake.compared.held == [held, held]


ONE = listing([entry(b"a", Kind.DIRECTORY)])
TWO = listing([entry(b"a"), entry(b"b")])


@pytest.mark.parametrize(
    ("directory", "path"),
    [
        (1, b"elsewhere"),
        (1, b"a/deeper"),
        (1, b""),  # a second time
        (0, b"a"),
        (2, b"a"),
        (1, b"f"),  # no directory
    ],
)
def test_what_was_not_announced_is_refused(directory: int, path: bytes) -> None:
    intake = Intake()
    intake.take(0, b"", listing([entry(b"a", Kind.DIRECTORY), entry(b"f")]))
    before = columns(intake.wanted)
    with pytest.raises(ProtocolError, match="which was not announced"):
        intake.take(directory, path, TWO)
    assert len(intake.compared.told) == 1
    assert columns(intake.wanted) == before


@pytest.mark.parametrize("names", [(b"b", b"a"), (b"a", b"a")])
def test_names_that_come_twice_or_back_are_refused(names: tuple[bytes, bytes]) -> None:
    """From part to part: a name that is there twice would be two entries in one place."""
    intake = Intake()
    first, second = (listing([entry(name)]) for name in names)
    intake.take(0, b"", first, last=False)
    with pytest.raises(ProtocolError, match="do not increase"):
        intake.take(0, b"", second)
    assert intake.compared.told == []
    assert len(intake.wanted) == 0


def test_a_listing_ends_between_directories() -> None:
    intake = Intake()
    intake.take(0, b"", ONE, last=False)
    with pytest.raises(ProtocolError, match="inside a directory"):
        intake.intake.end()


def test_the_one_entry_is_called_what_it_is_to_be_here() -> None:
    """It alone: what is in it keeps its name, even where that is the same."""
    intake = Intake(b"a", b"z")
    intake.take(0, b"", ONE)
    intake.take(1, b"z", listing([entry(b"a")]))
    assert [found.names for _, _, found in intake.compared.told] == [(b"z",), (b"a",)]
    assert [one.path for one in map(intake.wanted.entry, range(2))] == [b"z", b"z/a"]


def test_the_one_entry_may_be_gone_and_is_never_two() -> None:
    for name in (None, b"z"):
        gone = Intake(b"a", name)
        gone.take(0, b"", EMPTY_LISTING)
        assert gone.compared.told == [(b"", 0, EMPTY_LISTING)]
        two = Intake(b"a", name)
        with pytest.raises(ProtocolError, match="tells of 'b', 'a' was announced"):
            two.take(0, b"", TWO)
        assert two.compared.told == []


def test_the_one_entry_is_the_one_that_was_announced() -> None:
    """Start said which, and the place was chosen by that."""
    for name in (None, b"z"):
        intake = Intake(b"a", name)
        with pytest.raises(ProtocolError, match="'other', 'a' was announced"):
            intake.take(0, b"", listing([entry(b"other")]))
        assert intake.compared.told == []
