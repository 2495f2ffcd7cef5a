"""What the source does not have: all of it goes, or none, and why it stays is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.errors import FileError
from rdc.files.root.root import Root
from rdc.model.entries import Kind, Listing
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.progress import Event, Problem
from rdc.session.destination import deletion as extras_module
from rdc.session.destination.deletion import Deletion, ExtraneousEntries
from rdc.session.runtime.commands import EventRelay
from rdc.session.trees.source_tree import MountBoundary
from rdc.tree.filters import FilterList

DELETE = SyncOptions(delete=True)
WITHHELD, ANYWAY = "5 deletions were withheld: ", "; --ignore-errors deletes anyway"
EMPTY = "the source is empty; --force-empty deletes everything even so"


class Case:
    """`extraneous` of a tree of three files and two directories, one of which is not empty."""

    def __init__(
        self, place: Path, options: SyncOptions = DELETE, *, excluded: bytes = b"", single: bool = False
    ) -> None:
        (place / "d" / "full").mkdir(parents=True)
        (place / "d" / "empty").mkdir()
        for name in ("a", "b", "full/inner"):
            (place / "d" / name).write_bytes(b"x")
        self.top = place / "d"
        self.events: list[Event] = []
        self.root = Root.open(os.fsencode(place))
        rules = [FilterRule(RuleAction.EXCLUDE, excluded)] if excluded else []
        self.filters = FilterList(rules)
        events = EventRelay(self.events.append)
        self.deletion = Deletion(self.root, self.filters, events, limit=options.max_delete, dry=False)
        self.unarrived: str | None = None
        self.extraneous = ExtraneousEntries(
            self.root,
            options,
            self.filters,
            self.deletion,
            events,
            given=lambda: int(single),
            unarrived=lambda: self.unarrived,
        )

    @property
    def held(self) -> Listing:
        return self.root.list(b"d")

    def add_all(self) -> ExtraneousEntries:
        self.extraneous.add(b"d", self.held, range(len(self.held.names)))
        return self.extraneous

    @property
    def problems(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Problem)]


def test_all_of_them_go(tmp_path: Path) -> None:
    case = Case(tmp_path)
    extraneous = case.add_all()
    kinds = {b"d/a": Kind.FILE, b"d/b": Kind.FILE, b"d/empty": Kind.DIRECTORY, b"d/full": Kind.DIRECTORY}
    assert {one.path: one.kind for one in extraneous.found} == kinds
    assert extraneous.may_go(1, 0)
    extraneous.delete(1, extraneous.withheld(0))
    assert list(case.top.iterdir()) == []
    assert not extraneous.differ
    assert case.problems == []


@pytest.mark.parametrize(
    ("entries", "errors", "single", "reason"),
    [
        (5, 1, False, f"{WITHHELD}the source could not be read completely (1 error){ANYWAY}"),
        (5, 1_200, False, f"{WITHHELD}the source could not be read completely (1,200 errors){ANYWAY}"),
        (0, 0, False, f"nothing was deleted: {EMPTY}"),
        (1, 0, True, f"nothing was deleted: {EMPTY}"),
        (0, 2, False, f"{WITHHELD}the source could not be read completely (2 errors){ANYWAY}"),
    ],
)
def test_none_goes_where_the_source_seems_to_have_lost_them(
    tmp_path: Path, entries: int, errors: int, single: bool, reason: str
) -> None:
    case = Case(tmp_path, single=single)
    extraneous = case.add_all()
    assert not extraneous.may_go(entries, errors)
    extraneous.delete(entries, extraneous.withheld(errors))
    assert case.problems == [reason]
    assert len(case.held.names) == 4


def test_none_goes_while_something_did_not_arrive(tmp_path: Path) -> None:
    case = Case(tmp_path)
    extraneous = case.add_all()
    assert extraneous.may_go(5, 0)
    case.unarrived = "something new did not arrive"
    assert not extraneous.may_go(5, 0)
    extraneous.delete(5, extraneous.withheld(0))
    assert case.problems == [f"{WITHHELD}something new did not arrive{ANYWAY}"]
    assert len(case.held.names) == 4
    assert extraneous.differ
    case = Case(tmp_path / "anyway", SyncOptions(delete=True, ignore_errors=True))
    case.unarrived = "something new did not arrive"
    case.add_all().delete(5, case.extraneous.withheld(3))
    assert (case.problems, case.held.names) == ([], ())


def test_what_would_stay_is_not_counted_as_withheld(tmp_path: Path) -> None:
    case = Case(tmp_path, excluded=b"*")
    case.add_all().delete(5, "something")
    assert case.problems == []
    case = Case(tmp_path / "other", excluded=b"full")
    case.extraneous.add(b"d", case.held, [1])
    case.extraneous.delete(5, "something")
    assert case.problems == [f"1 deletion was withheld: something{ANYWAY}"]


def test_an_empty_source_may_be_meant(tmp_path: Path) -> None:
    case = Case(tmp_path, SyncOptions(delete=True, force_empty=True))
    extraneous = case.add_all()
    assert extraneous.may_go(0, 0)
    assert not extraneous.may_go(0, 1)
    extraneous.delete(0, None)
    assert case.held.names == ()


def test_what_is_excluded_is_no_reason_to_complain(tmp_path: Path) -> None:
    case = Case(tmp_path, excluded=b"*")
    case.add_all().delete(0, None)
    assert case.problems == []
    assert len(case.held.names) == 4


def test_what_could_not_be_deleted_stays(tmp_path: Path) -> None:
    case = Case(tmp_path, excluded=b"inner")
    extraneous = case.add_all()
    extraneous.delete(9, None)
    assert case.held.names == (b"full",)
    assert extraneous.differ


def test_without_delete_they_are_for_new_files_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras_module, "REMOVED_FILES", 3)
    case = Case(tmp_path, SyncOptions())
    held = case.held
    case.extraneous.add(b"d", held, [0, 1])
    case.extraneous.add(b"d", held, [2])
    case.extraneous.add(b"d", held, [3])
    assert [one.path for one in case.extraneous.found] == [b"d/a", b"d/b", b"d/empty"]
    assert case.extraneous.differ
    assert not case.extraneous.may_go(9, 0)


class Devices:
    """A tree whose directories lie on these devices; those that are not named are gone."""

    def __init__(self, devices: dict[bytes, int]) -> None:
        self.devices = devices
        self.looks: list[bytes] = []

    def identity(self, path: bytes) -> object:
        self.looks.append(path)
        if path not in self.devices:
            raise FileError(path, "gone")
        return type("Found", (), {"device": self.devices[path]})()


def boundary(devices: dict[bytes, int], top: bytes = b"") -> tuple[MountBoundary, Devices]:
    tree = Devices(devices)
    return MountBoundary(tree, top), tree  # type: ignore[arg-type] # it has all that is asked of a Root


def test_a_boundary_is_where_the_device_changes() -> None:
    found, tree = boundary({b"": 1, b"a": 1, b"a/mount": 2, b"a/mount/back": 1})
    assert [found.enters(path) for path in (b"", b"a", b"a/mount", b"a/mount/back")] == [
        True,
        True,
        False,
        True,
    ]
    assert found.beyond == [b"a/mount"]
    # The top is looked at once.
    assert tree.looks.count(b"") == 1


def test_a_boundary_begins_at_its_top() -> None:
    found, _ = boundary({b"": 1, b"top": 2, b"top/d": 2, b"beside": 1}, b"top")
    # A walk from the root down passes through what is above.
    assert found.enters(b"")
    assert found.enters(b"top/d")
    assert not found.enters(b"beside")


def test_a_top_that_is_not_made_yet_would_be_where_the_root_is() -> None:
    found, _ = boundary({b"": 7, b"d": 7, b"other": 8}, b"new")
    assert found.holds(b"d")
    assert not found.holds(b"other")
    with pytest.raises(FileError):
        found.holds(b"gone")


def test_what_is_beyond_a_boundary_or_gone_is_not_extra(tmp_path: Path) -> None:
    case = Case(tmp_path)
    beyond, _ = boundary({b"": 1, b"d": 2})
    for path in (b"d", b"vanished"):
        extraneous = ExtraneousEntries(
            case.root,
            DELETE,
            case.filters,
            case.deletion,
            EventRelay(case.events.append),
            given=lambda: 0,
            unarrived=lambda: None,
            boundary=beyond,
        )
        extraneous.add(path, case.held, [0, 1])
        assert list(extraneous.found) == []
        assert extraneous.differ


def test_a_directory_in_the_way_is_emptied_or_says_why_not(tmp_path: Path) -> None:
    case = Case(tmp_path, excluded=b"inner")
    assert case.extraneous.make_way(b"d/empty", "it failed") is None
    assert case.extraneous.make_way(b"d/full", "it failed") == "and stays: it failed"
    for foresee in (True, False):
        obstacle = case.extraneous.make_way(b"d/full", None, foresee=foresee)
        assert "left in it was not to be deleted (a filter" in (obstacle or "")
    assert (case.top / "full" / "inner").exists()
    other = Case(tmp_path / "other")
    assert other.extraneous.make_way(b"d/full", None, foresee=True) is None
    assert (other.top / "full" / "inner").exists()
    assert other.extraneous.make_way(b"d/full", None) is None
    assert not (other.top / "full" / "inner").exists()


def test_nothing_is_emptied_without_delete(tmp_path: Path) -> None:
    case = Case(tmp_path, SyncOptions())
    assert case.extraneous.make_way(b"d/empty", None) is None
    assert case.extraneous.make_way(b"d/full", None) == "and it is not empty; --delete or --force removes it"
    assert (case.extraneous.make_way(b"d/none", None) or "").startswith("which cannot be read: ")
