"""The comparison of one directory against the rules, entry by entry; rsync's codes for what it finds."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.model.entries import Kind, Listing
from rdc.model.preserved import EVERYTHING, Preserved
from rdc.plan.compare import Change, Comparison, Decision, Difference, compare, difference, itemize
from rdc.plan.skip_options import expected_directory
from rdc.tree.manifest import Entry
from tests.plan.directories import directories
from tests.support.trees.manifests import entry, listing

SLOW = settings(deadline=None)


def by_rule(wanted: list[Entry], existing: list[Entry], owner: bool, checksum: bool) -> Comparison:
    """Entry by entry."""
    decisions, touched_, checked, places = [], [], [], {e.path: (row, e) for row, e in enumerate(existing)}
    for row, new in enumerate(wanted):
        existing_row, old = places.pop(new.path, (-1, None))
        if new.kind == Kind.SPECIAL:
            continue
        if old is None:
            decisions.append(Decision(Change.CREATE, row, -1, Difference.NONE))
        elif old.kind != new.kind:
            decisions.append(Decision(Change.REPLACE, row, existing_row, Difference.NONE))
        else:
            found = difference(new.kind, new.metadata, old.metadata, preserved=Preserved(owner))
            if new.size != old.size:
                found |= Difference.SIZE
            change = Change.METADATA
            if new.kind == Kind.SYMLINK and new.target != old.target:
                change = Change.CONTENT
            if new.kind == Kind.FILE and checksum:
                change = Change.CONTENT if found & Difference.SIZE else Change.CHECK
                found |= Difference.CHECKSUM if found & Difference.SIZE else Difference.NONE
            elif new.kind == Kind.FILE and found & (Difference.SIZE | Difference.TIME):
                change = Change.CONTENT
            alone = new.kind == Kind.FILE and change in (Change.CHECK, Change.CONTENT)
            if alone and found is Difference.TIME:
                touched_.append(row)
            elif change is Change.CHECK and not found:
                checked.append(row)
            elif found or change is not Change.METADATA:
                decisions.append(Decision(change, row, existing_row, found))
    extra = tuple(sorted(row for row, _ in places.values()))
    return Comparison(tuple(decisions), extra, tuple(touched_), tuple(checked))


@SLOW
@given(directories(), st.booleans(), st.booleans())
def test_a_directory_is_compared_entry_by_entry(
    pair: tuple[list[Entry], list[Entry]], owner: bool, checksum: bool
) -> None:
    wanted, existing = pair
    found = compare(listing(wanted), listing(existing), preserved=Preserved(owner), checksum=checksum)
    assert found == by_rule(wanted, existing, owner, checksum)


@SLOW
@given(directories())
def test_equal_directories_need_nothing(pair: tuple[list[Entry], list[Entry]]) -> None:
    columns = listing(pair[0])
    assert compare(columns, columns, preserved=Preserved(True), checksum=False) == Comparison((), ())


@SLOW
@given(directories())
def test_a_run_leaves_what_is_wanted_and_what_is_extra(pair: tuple[list[Entry], list[Entry]]) -> None:
    wanted, existing = map(listing, pair)
    left = expected_directory(wanted.packed(), existing.packed()).unpacked()
    assert list(left.names) == sorted(set(left.names))
    before, after = (compare(wanted, ours, preserved=EVERYTHING, checksum=False) for ours in (existing, left))
    assert not after
    assert [left.names[row] for row in after.extra] == [existing.names[row] for row in before.extra]
    stay = {entry.path: entry for entry in pair[1]}
    announced = {entry.path: entry for entry in pair[0] if entry.kind != Kind.SPECIAL}
    assert left == listing([{**stay, **announced}[name] for name in left.names])
    assert set(left.names) == stay.keys() | announced.keys()


@SLOW
@given(directories())
def test_a_directory_that_is_not_there_is_made_of_new_entries(pair: tuple[list[Entry], list[Entry]]) -> None:
    found = compare(listing(pair[0]), None, preserved=Preserved(True), checksum=False)
    assert [(d.change, d.row, d.existing_row) for d in found.decisions] == [
        (Change.CREATE, row, -1) for row, e in enumerate(pair[0]) if e.kind != Kind.SPECIAL
    ]


def test_many_links_in_one_directory_are_no_square() -> None:
    """Each target is found once, not by counting the links before it."""
    rng = random.Random(1)
    wanted = [entry(b"%06d" % i, Kind.SYMLINK, target=b"%d" % rng.randrange(9)) for i in range(3_000)]
    existing = [replace(e, target=b"5") for e in wanted]
    a, b = listing(wanted), listing(existing)
    calls = 0
    target = Listing.target

    def counted(self: Listing, row: int) -> bytes:
        nonlocal calls
        calls += 1
        return target(self, row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Listing, "target", counted)
        found = compare(a, b, preserved=Preserved(True), checksum=False)
    assert calls == 0
    assert len(found.decisions) == sum(e.target != b"5" for e in wanted)
    assert a.links() == {row: e.target for row, e in enumerate(wanted)}


@pytest.mark.parametrize(
    ("kind", "difference_", "transferred", "new", "code"),
    [
        (Kind.FILE, Difference.NONE, True, True, ">f+++++++++"),
        (Kind.DIRECTORY, Difference.NONE, True, True, "cd+++++++++"),
        (Kind.SYMLINK, Difference.NONE, True, True, "cL+++++++++"),
        (Kind.FILE, Difference.SIZE | Difference.TIME, True, False, ">f.st......"),
        (Kind.FILE, Difference.CHECKSUM | Difference.SIZE, True, False, ">fcs......."),
        (Kind.FILE, Difference.PERMISSIONS | Difference.OWNER, False, False, ".f...po...."),
        (Kind.DIRECTORY, Difference.TIME, False, False, ".d..t......"),
        (Kind.SYMLINK, Difference.CHECKSUM | Difference.TIME, True, False, "cLc.t......"),
        (Kind.FILE, Difference.GROUP, False, False, ".f.....g..."),
    ],
)
def test_codes_are_rsync_s(
    kind: Kind, difference_: Difference, transferred: bool, new: bool, code: str
) -> None:
    decision = Decision(Change.CONTENT, 0, 0, difference_)
    for _ in range(2):
        assert itemize(kind, decision, transferred=transferred, new=new) == code
