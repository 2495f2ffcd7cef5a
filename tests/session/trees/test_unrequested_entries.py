"""A source that tells of something else than it was asked for: nothing of that is written or deleted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ProtocolError
from rdc.lean.records import replace
from rdc.model.entries import EMPTY_LISTING, Kind
from rdc.model.location import Location
from rdc.model.selection import FilterRule, RuleAction
from rdc.protocol.connection import Received
from rdc.protocol.messages import Changed, Message, Renamed, Role, Start
from rdc.session.source import conversation as source_module
from rdc.session.source.tree_description import Description
from rdc.session.trees.sites import ANYWHERE, Site, announced, entry_of
from rdc.session.trees.source_tree import SourceTree
from rdc.tree.filters import FilterList
from tests.support.running.paired_sync import sync_in_turns
from tests.support.trees.manifests import entry, listing
from tests.support.trees.trees import Directory, Tree, read_tree, tree, write_tree
from tests.support.wire.turn_messages import DELETE, HERE, turn

MANY = {f"wanted/{number}": b"x" for number in range(300)}
"""So many that manifests are compared; fewer are listed."""

SIZES = pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])


def places(tmp_path: Path, more: dict[str, bytes]) -> tuple[Path, Path, Tree]:
    """Source and destination, which has other versions of its files; the latter as a tree."""
    held = tree({"wanted/file": b"old", "other/file": b"old", "key": b"mine", **more})
    source = tree({"wanted/file": b"newer", "other/file": b"evil", "key": b"evil key", **more})
    here = write_tree(tmp_path / "here", held)
    return write_tree(tmp_path / "there", source), here, read_tree(here)


def tells_of(monkeypatch: pytest.MonkeyPatch, only: bytes | None) -> None:
    """Whatever of a directory a source is asked for, it opens this entry, or the directory's content."""

    def open_(path: bytes, site: Site = ANYWHERE, *_: object, **__: object) -> SourceTree:
        return SourceTree(site.open(path if path.endswith(b"/") else os.path.dirname(path)), only)

    monkeypatch.setattr(SourceTree, "open", open_)


def says_of(monkeypatch: pytest.MonkeyPatch, only: bytes) -> None:
    """A source's Start speaks of this entry, and what follows of what it opened."""
    start = SourceTree.start

    def lie(self: SourceTree, *more: object, **others: object) -> Start:
        metadata = self.root.metadata(only)
        return replace(start(self), only=only, entry=Kind.DIRECTORY, metadata=metadata)

    monkeypatch.setattr(SourceTree, "start", lie)


@SIZES
@pytest.mark.parametrize(
    ("asked", "told"),
    [("wanted", None), ("wanted", b"other"), ("wanted", b"key"), ("key", b"wanted"), ("", b"wanted")],
)
def test_another_entry_than_was_asked_for_is_refused(
    asked: str, told: bytes | None, more: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is all of a directory taken for one entry of it: with --delete that would empty the place."""
    source, here, before = places(tmp_path, more)
    tells_of(monkeypatch, told)
    with pytest.raises(ProtocolError, match="was asked for, and the remote side tells of"):
        sync_in_turns(os.fsencode(f"{source}/{asked}"), here, DELETE)
    assert read_tree(here) == before


@SIZES
@pytest.mark.parametrize("checksum", [False, True], ids=["quick", "checksum"])
@pytest.mark.parametrize("told", [None, b"other"])
def test_entries_beside_the_one_that_was_announced_are_refused(
    told: bytes | None,
    checksum: bool,
    more: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, here, before = places(tmp_path, {f"other/{name}": data for name, data in more.items()})
    tells_of(monkeypatch, told)
    says_of(monkeypatch, b"wanted")
    with pytest.raises(ProtocolError, match=r"the remote side tells of '(other|key)'"):
        sync_in_turns(os.fsencode(source / "wanted"), here, replace(DELETE, checksum=checksum))
    assert read_tree(here) == before


EXCLUDED = [("key", ["key"]), ("other/file", ["*.tmp", "file"]), ("other/", ["/other/"])]


@SIZES
@pytest.mark.parametrize("checksum", [False, True], ids=["quick", "checksum"])
@pytest.mark.parametrize("has", [True, False], ids=["that are here", "that are not"])
@pytest.mark.parametrize(("told", "patterns"), EXCLUDED)
def test_entries_that_the_rules_leave_out_are_refused(
    told: str,
    patterns: list[str],
    has: bool,
    checksum: bool,
    more: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The source walks its tree as if there were none; the destination keeps to them."""
    source, here, _ = places(tmp_path, more)
    if not has:
        shutil.rmtree(here)
        here.mkdir()
    before = read_tree(here)
    rules = tuple(FilterRule(RuleAction.EXCLUDE, pattern.encode()) for pattern in patterns)

    def without_rules(tree: SourceTree, filters: FilterList, *parts: Any, **options: Any) -> Description:
        return Description(tree, FilterList(()), *parts, **options)

    monkeypatch.setattr(source_module, "Description", without_rules)
    with pytest.raises(ProtocolError, match="which a filter rule leaves out"):
        sync_in_turns(os.fsencode(f"{source}/"), here, replace(DELETE, rules=rules, checksum=checksum))
    found = read_tree(here)
    for path in (b"key", b"other", b"other/file"):
        if FilterList(rules).excluded(path, path == b"other"):
            assert found.get(path) == before.get(path)


def test_a_file_that_gets_another_name_is_asked_about_under_its_own(tmp_path: Path) -> None:
    source, here, _ = places(tmp_path, {})
    rules = (FilterRule(RuleAction.EXCLUDE, b"new"), FilterRule(RuleAction.EXCLUDE, b"*.tmp"))
    options = replace(DELETE, delete=False, rules=rules)
    sync_in_turns(os.fsencode(source / "key"), os.fsencode(here / "new"), options)
    assert read_tree(here)[b"new"] == read_tree(source)[b"key"]


def test_who_dials_as_the_source_says_what_it_sends(tmp_path: Path) -> None:
    source, here, before = places(tmp_path, {})
    sync_in_turns(os.fsencode(source / "key"), here, DELETE, dialler=Role.SOURCE)
    assert read_tree(here)[b"key"] == read_tree(source)[b"key"]
    assert set(read_tree(here)) == set(before)


@pytest.mark.parametrize(
    ("path", "only"),
    [(b"a/b", b"b"), (b"b", b"b"), (b"a/b/", b""), (b".", b""), (b"a/..", b""), (b"a/.", b""), (b"/", b"")],
)
def test_one_rule_says_what_a_path_means(path: bytes, only: bytes, tmp_path: Path) -> None:
    """For who asks and who answers, of whatever kind the answering side is."""
    assert entry_of(Location("host", path).inner) == only
    assert entry_of(Location("host", b"module/" + path, 8730).inner) == only
    assert entry_of(Location("host", b"module", 8730).inner) == b""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    if not path.startswith(b"/"):
        source = SourceTree.open(os.fsencode(tmp_path) + b"/" + path)
        assert (source.only or b"") == only
        start = source.start()
        assert announced(Received(start, 4), only) == (start, 5)


# Turns that tell what changed

FILE = listing([entry(b"other")])


LIES: list[Message] = [
    Changed(b"", HERE, 0, b"", FILE, ()),
    Changed(b"", HERE, 0, b"other\0", EMPTY_LISTING, ()),
    Changed(b"", HERE, 0, b"key\0wanted\0", EMPTY_LISTING, ()),
    Changed(b"other", HERE, 0, b"file\0", EMPTY_LISTING, ()),
    Changed(b"wanted-too", HERE, 0, b"", FILE, ()),
    Renamed(b"wanted/file", b"other/new", Kind.FILE, 3, HERE),
    Renamed(b"key", b"wanted/new", Kind.FILE, 4, HERE),
    Renamed(b"wanted", b"new", Kind.DIRECTORY, 0, HERE),
    Renamed(b"other/file", b"other/new", Kind.FILE, 3, HERE),
]


@pytest.mark.parametrize("lie", LIES, ids=[str(number) for number in range(len(LIES))])
def test_a_turn_tells_of_the_entry_that_was_announced(lie: Message, tmp_path: Path) -> None:
    _, here, before = places(tmp_path, {})
    with pytest.raises(ProtocolError, match="'wanted' was announced"):
        turn(here, lie)
    assert read_tree(here) == before
    turn(here, Changed(b"wanted", HERE, 0, b"file\0", listing([entry(b"d", Kind.DIRECTORY)]), ()))
    # Of a directory's content, anything may change.
    turn(here, lie, only=b"")


LEFT_OUT: list[tuple[bytes, Message]] = [
    (b"other", Changed(b"", HERE, 0, b"", FILE, ())),
    (b"/other/", Changed(b"other", HERE, 0, b"file\0", EMPTY_LISTING, ())),
    (b"other", Changed(b"other/deep/er", HERE, 0, b"", listing([entry(b"new")]), ())),
    (b"n*", Renamed(b"other/file", b"other/new", Kind.FILE, 3, HERE)),
    (b"/other/", Renamed(b"wanted/file", b"other/new", Kind.FILE, 3, HERE)),
    (b"wanted/", Renamed(b"wanted", b"new", Kind.DIRECTORY, 0, HERE)),
]


@pytest.mark.parametrize(("rule", "lie"), LEFT_OUT, ids=[str(number) for number in range(len(LEFT_OUT))])
def test_a_turn_tells_of_nothing_that_the_rules_leave_out(rule: bytes, lie: Message, tmp_path: Path) -> None:
    _, here, before = places(tmp_path, {})
    with pytest.raises(ProtocolError, match="which a filter rule leaves out"):
        turn(here, lie, only=b"", excluded=(b"unrelated", rule))
    assert read_tree(here) == before
    turn(here, lie, only=b"", excluded=(b"unrelated",))


def test_there_are_no_turns_about_a_single_file(tmp_path: Path) -> None:
    """It may have another name here: what is told of the directory around it is not for the place."""
    write_tree(tmp_path / "top", tree(top=Directory()))
    with pytest.raises(ProtocolError, match="no directory"):
        turn(tmp_path / "top" / "copy", Changed(b"wanted", HERE, 0, b"", FILE, ()), kind=Kind.FILE)
    assert os.listdir(tmp_path / "top") == []
