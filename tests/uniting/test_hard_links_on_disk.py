"""Hard links of two sides, on one machine or two: a link that one side makes or parts goes over, no content
comes twice, and what changes meanwhile or is killed loses nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rdc
from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.files.names import entry_names
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.protocol.messages.uniting import Subject
from rdc.uniting import hard_links
from rdc.uniting.ancestor_file import DamagedError, StoredAncestor
from rdc.uniting.exchanged import LINK, PART, TIE, Action, Order, pack_order, packed_columns
from rdc.uniting.exchanged_sets import pack_ties, unpack_ties
from rdc.uniting.rows import LEFT, RIGHT
from rdc.uniting.state import PairDirectory
from rdc.uniting.steps import Steps
from tests.uniting.pairs import Machines, Pair, during
from tests.uniting.real_world import every_stat, ties_in
from tests.uniting.remote_runs import lying, unite_in_turns


@pytest.fixture(params=[None, LEFT, RIGHT], ids=["here", "left dials", "right dials"])
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Pair:
    if request.param is None:
        return Pair(tmp_path)
    found = Machines(tmp_path)
    found.near = request.param
    return found


def ties(pair: Pair) -> dict[bytes, int]:
    left, right = ties_in(pair.left), ties_in(pair.right)
    assert left == right
    return left


def settled(pair: Pair, **options: Any) -> None:
    """Check that a run ended well, and that the next one finds nothing to do, and writes nothing."""
    assert not pair.problems()
    before = [every_stat(top) for top in (pair.left, pair.right)]
    report = pair.unite(hard_links=True, **options)
    assert (report.left, report.right, pair.items(), pair.problems()) == (0, 0, [], [])
    assert [every_stat(top) for top in (pair.left, pair.right)] == before


def linked(pair: Pair, *names: str, **options: Any) -> None:
    """Have both sides agree on one file with these names, and another file."""
    pair.both(names[0], "text")
    pair.both("other", "other")
    for name in names[1:]:
        (pair.left / name).parent.mkdir(exist_ok=True)
        os.link(pair.left / names[0], pair.left / name)
    pair.unite(hard_links=True, **options)


def test_a_link_goes_over_and_brings_no_content(pair: Pair) -> None:
    text = "".join(map(chr, range(200, 900))) * 40
    pair.both("d/a", text)
    pair.both("b", "old")
    pair.unite(hard_links=True)
    os.link(pair.left / "d/a", pair.left / "new")
    (pair.left / "b").unlink()
    os.link(pair.left / "d/a", pair.left / "b")
    assert pair.unite(hard_links=True, dry_run=True).right == 2
    planned = pair.items()
    report = pair.unite(hard_links=True)
    assert (report.exit, report.right, report.right_bytes) == (ExitCode.OK, 2, 0)
    assert planned == pair.items()
    assert pair.items() == [("right", "linked", b"b"), ("right", "linked", b"new")]
    assert pair.texts("b") == pair.texts("new") == [text, text]
    assert ties(pair) == {b"b": 0, b"d/a": 0, b"new": 0}
    settled(pair)


def test_a_new_file_with_several_names_comes_once(pair: Pair) -> None:
    pair.both("other", "other")
    pair.unite(hard_links=True)
    (pair.right / "e").mkdir()
    (pair.right / "e/one").write_text("x" * 1_000)
    for name in ("two", "e/three"):
        os.link(pair.right / "e/one", pair.right / name)
    assert pair.unite(hard_links=True).left_bytes == 1_000
    assert ties(pair) == {b"e/one": 0, b"e/three": 0, b"two": 0}
    settled(pair)


def test_an_edit_of_a_file_with_several_names_goes_over_once(pair: Pair) -> None:
    linked(pair, "a", "b", "d/c")
    (pair.right / "b").write_text("edited in place")
    assert pair.unite(hard_links=True).left_bytes == len("edited in place")
    assert pair.texts("a") == pair.texts("d/c") == ["edited in place"] * 2
    assert len(ties(pair)) == 3
    settled(pair)


def test_a_parted_name_is_parted_at_the_other_side(pair: Pair) -> None:
    linked(pair, "a", "b", "c")
    (pair.right / "b").unlink()
    (pair.right / "b").write_text("text")
    os.utime(pair.right / "b", ns=(5_000_000_123, 5_000_000_123))
    report = pair.unite(hard_links=True)
    assert (report.exit, report.left_bytes, report.right_bytes) == (ExitCode.OK, 0, 0)
    assert pair.items() == [("left", "unlinked", b"b")]
    assert ties(pair) == {b"a": 0, b"c": 0}
    assert (pair.left / "b").stat().st_mtime_ns == 5_000_000_123
    settled(pair)


def test_a_name_that_is_replaced_leaves_the_others_alone(pair: Pair) -> None:
    linked(pair, "a", "b", "c")
    (pair.left / "new").write_text("of its own")
    (pair.left / "new").rename(pair.left / "c")
    pair.unite(hard_links=True)
    assert pair.texts("c") == ["of its own"] * 2
    assert pair.texts("a") == pair.texts("b") == ["text"] * 2
    assert ties(pair) == {b"a": 0, b"b": 0}
    settled(pair)


def test_permissions_times_and_deletions_of_linked_names(pair: Pair) -> None:
    linked(pair, "a", "b", "c")
    (pair.left / "b").chmod(0o600)
    (pair.right / "c").unlink()
    assert pair.unite(hard_links=True).exit is ExitCode.OK
    for top in (pair.left, pair.right):
        found = (top / "a").stat()
        assert (found.st_mode & 0o777, found.st_mtime_ns) == (0o600, 5_000_000_123)
    assert ties(pair) == {b"a": 0, b"b": 0}
    settled(pair)
    os.utime(pair.right / "a", ns=(7_000_000_321, 7_000_000_321))
    pair.unite(hard_links=True)
    assert (pair.left / "b").stat().st_mtime_ns == 7_000_000_321
    settled(pair)


def test_attributes_of_linked_names_and_of_a_parted_one(pair: Pair) -> None:
    linked(pair, "a", "b", "c", xattrs=True)
    os.setxattr(pair.left / "b", b"user.rdc.test", b"1")
    pair.unite(hard_links=True, xattrs=True)
    assert os.getxattr(pair.right / "c", b"user.rdc.test") == b"1"
    settled(pair, xattrs=True)
    (pair.right / "c").rename(pair.right / "aside")
    (pair.right / "c").write_text("text")
    os.setxattr(pair.right / "c", b"user.rdc.test", b"2")
    (pair.right / "aside").unlink()
    pair.unite(hard_links=True, xattrs=True)
    assert [os.getxattr(top / "c", b"user.rdc.test") for top in (pair.left, pair.right)] == [b"2", b"2"]
    assert os.getxattr(pair.left / "a", b"user.rdc.test") == b"1"
    assert ties(pair) == {b"a": 0, b"b": 0}
    settled(pair, xattrs=True)


def test_names_outside_and_excluded_ones_do_not_count(pair: Pair) -> None:
    exclude = rdc.FilterRule(rdc.RuleAction.EXCLUDE, b"*.tmp")
    linked(pair, "a", rules=(exclude,))
    os.link(pair.left / "a", pair.left.parent / "outside")
    os.link(pair.left / "a", pair.left / "x.tmp")
    pair.unite(hard_links=True)
    assert not (pair.right / "x.tmp").exists()
    assert (ties_in(pair.right), pair.items()) == ({}, [])


@pytest.mark.parametrize("hard_links", [True, False])
def test_a_linked_name_goes_along_with_its_directory(pair: Pair, hard_links: bool) -> None:
    pair.both("b", "text")
    pair.both("d/e/gone", "gone")
    for top in (pair.left, pair.right):
        os.link(top / "b", top / "d/e/a")
        os.link(top / "d/e/gone", top / "c")
    for _ in range(2):
        pair.unite(hard_links=hard_links)
    (pair.left / "d/e/gone").unlink()
    (pair.right / "d").rename(pair.right / "moved")
    report = pair.unite(hard_links=hard_links)
    assert (report.exit, report.left_bytes, report.right_bytes) == (ExitCode.OK, 0, 0)
    assert ("left", "renamed", b"d") in pair.items() and ("right", "deleted", b"moved/e/gone") in pair.items()
    assert pair.texts("moved/e/a") == ["text"] * 2
    assert not any(os.path.lexists(top / "moved/e/gone") for top in (pair.left, pair.right))
    assert not pair.problems()
    assert ties(pair) == {b"b": 0, b"moved/e/a": 0}


def test_an_edit_of_one_name_at_the_side_that_has_them_apart_wins_over_a_link(pair: Pair) -> None:
    for name in ("a", "b"):
        pair.both(name, "text")
    pair.unite(hard_links=True, checksum=True)
    (pair.left / "b").unlink()
    os.link(pair.left / "a", pair.left / "b")
    (pair.right / "b").write_text("edited at the right")
    assert pair.unite(hard_links=True).exit is ExitCode.OK
    assert pair.texts("a") == ["text"] * 2
    assert pair.texts("b") == ["edited at the right"] * 2
    assert ties(pair) == {}
    settled(pair)


@pytest.mark.parametrize("how", ["prefer", "resolve"])
def test_links_that_make_no_file_together_are_a_conflict(pair: Pair, how: str) -> None:
    for name in ("a", "b", "c"):
        pair.both(name, "text")
    pair.unite(hard_links=True)
    for top, name in ((pair.left, "a"), (pair.right, "c")):
        (top / name).unlink()
        os.link(top / "b", top / name)
    for _ in range(3):
        assert pair.unite(hard_links=True).exit is ExitCode.CONFLICTS
        found = [event for event in pair.events if isinstance(event, rdc.UniteConflict)]
        assert [(event.path_bytes, event.about) for event in found] == [(b"a", "links")]
        assert ties_in(pair.left) == {b"a": 0, b"b": 0}
        assert ties_in(pair.right) == {b"b": 0, b"c": 0}
    if how == "prefer":
        pair.unite(hard_links=True, prefer=rdc.Prefer.RIGHT)
    else:
        pair.unite(hard_links=True, resolve=(rdc.Resolve(b"c", rdc.Resolution.RIGHT),))
    assert ties(pair) == {b"b": 0, b"c": 0}
    settled(pair)


def test_nothing_is_done_to_a_file_that_has_a_name_in_conflict(pair: Pair) -> None:
    linked(pair, "a", "b")
    (pair.right / "b").unlink()
    (pair.right / "b").write_text("another at the right")
    (pair.right / "a").chmod(0o600)
    (pair.left / "b").write_text("edited at the left")
    assert pair.unite(hard_links=True).exit is ExitCode.CONFLICTS
    assert pair.conflicts() == [b"b"]
    assert (pair.left / "b").stat().st_mode & 0o777 == 0o644
    pair.unite(hard_links=True, prefer=rdc.Prefer.LEFT)
    assert pair.texts("a") == pair.texts("b") == ["edited at the left"] * 2
    pair.unite(hard_links=True)
    settled(pair)


def test_a_pair_that_was_united_without_links_gets_those_of_either_side(pair: Pair) -> None:
    for name in ("a", "b", "c", "d", "e"):
        pair.both(name, "text")
    os.link(pair.right / "e", pair.right / "new")
    pair.unite()
    states = [path.read_bytes() for path in pair.left.glob(".rdc-unite/*/ancestor")]
    assert ties_in(pair.left) == {}
    for top, one, other in ((pair.left, "a", "b"), (pair.right, "c", "d")):
        (top / other).unlink()
        os.link(top / one, top / other)
    pair.unite(hard_links=True)
    assert ties(pair) == {b"a": 0, b"b": 0, b"c": 1, b"d": 1, b"e": 2, b"new": 2}
    settled(pair)
    assert not any(StoredAncestor(state).head.links for state in states)


def test_a_run_without_the_option_forgets_links_and_leaves_them(pair: Pair) -> None:
    linked(pair, "a", "b")
    (pair.left / "other").write_text("edited")
    pair.unite()
    assert len(ties(pair)) == 2
    (pair.left / "b").unlink()
    (pair.left / "b").write_text("text")
    os.utime(pair.left / "b", ns=(5_000_000_123, 5_000_000_123))
    pair.unite(hard_links=True)
    assert len(ties(pair)) == 2


def test_a_name_that_changes_meanwhile_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(tmp_path)
    for name in ("a", "b", "c"):
        pair.both(name, "text")
    pair.unite(hard_links=True, checksum=True)
    for name in ("b", "c"):
        (pair.left / name).unlink()
        os.link(pair.left / "a", pair.left / name)
    during(monkeypatch, lambda: (pair.right / "b").write_text("edited meanwhile"))
    assert pair.unite(hard_links=True).exit is ExitCode.PARTIAL
    assert (pair.right / "b").read_text() == "edited meanwhile"
    assert ties_in(pair.right) == {b"a": 0, b"c": 0}
    monkeypatch.undo()
    assert pair.unite(hard_links=True).exit is ExitCode.OK
    assert pair.texts("b") == ["edited meanwhile"] * 2
    settled(pair)


def test_a_source_that_changes_meanwhile_makes_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(tmp_path)
    for name in ("a", "b"):
        pair.both(name, "text")
    pair.unite(hard_links=True)
    (pair.left / "b").unlink()
    os.link(pair.left / "a", pair.left / "b")
    during(monkeypatch, lambda: (pair.right / "a").write_text("edited meanwhile"))
    assert pair.unite(hard_links=True).exit is ExitCode.PARTIAL
    assert (ties_in(pair.right), pair.texts("b")) == ({}, ["text", "text"])


def test_an_undo_gives_back_what_links_replaced(pair: Pair) -> None:
    pair.both("a", "text")
    pair.both("b", "old text")
    pair.unite(hard_links=True)
    (pair.left / "b").unlink()
    os.link(pair.left / "a", pair.left / "b")
    pair.unite(hard_links=True)
    assert pair.texts("b") == ["text"] * 2
    rdc.undo(pair.right)
    assert pair.texts("b") == ["text", "old text"]
    assert (pair.right / "a").read_text() == "text"
    pair.unite(hard_links=True)
    assert pair.conflicts() == [b"b"]


def test_keep_both_and_a_deleted_directory_with_linked_names(pair: Pair) -> None:
    linked(pair, "a", "b", "d/c")
    (pair.left / "a").write_text("edited at the left")
    (pair.right / "b").write_text("edited at the right, later")
    pair.unite(hard_links=True, keep_both=True)
    assert not pair.conflicts()
    pair.unite(hard_links=True)
    left, right = ties_in(pair.left), ties_in(pair.right)
    assert left == right
    texts = {path.read_text() for path in pair.left.rglob("*") if path.is_file() and ".rdc" not in str(path)}
    assert {"edited at the left", "edited at the right, later"} <= texts


def test_a_text_with_several_names_is_not_merged(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    linked(pair, "a", "b", merge=True)
    lines = "".join(f"line {number}\n" for number in range(20))
    for top in (pair.left, pair.right):
        (top / "a").write_text(lines)
        os.utime(top / "a", ns=(6_000_000_123, 6_000_000_123))
    pair.unite(hard_links=True, merge=True)
    (pair.left / "a").write_text("first\n" + lines)
    (pair.right / "a").write_text(lines + "last\n")
    assert pair.unite(hard_links=True, merge=True).exit is ExitCode.CONFLICTS
    assert len(ties(pair)) == 2


# Kills


class KilledError(BaseException):
    """Nobody catches it."""


def cut(pair: Pair, owner: type, name: str, calls: int) -> None:
    """Run until a method is called for the last of `calls` times."""
    whole: Callable[..., object] = getattr(owner, name)
    left = [calls]

    def killed(*given: object, **named: object) -> object:
        left[0] -= 1
        if not left[0]:
            raise KilledError
        return whole(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(KilledError):
            pair.unite(hard_links=True)


@pytest.mark.parametrize(
    ("owner", "name", "calls"),
    [(Steps, "_link", 1), (Steps, "_link", 2), (Steps, "_look_again", 1), (PairDirectory, "prepare", 1)],
)
def test_the_next_run_finishes_links_that_were_cut_off(
    pair: Pair, owner: type, name: str, calls: int
) -> None:
    for path in ("a", "b", "c"):
        pair.both(path, "text")
    pair.unite(hard_links=True)
    for path in ("b", "c"):
        (pair.left / path).unlink()
        os.link(pair.left / "a", pair.left / path)
    cut(pair, owner, name, calls)
    assert pair.unite(hard_links=True).exit is ExitCode.OK
    assert len(ties(pair)) == 3
    settled(pair)


@pytest.mark.parametrize("calls", [1, 2])
def test_the_next_run_finishes_parting_names(pair: Pair, calls: int) -> None:
    linked(pair, "a", "b", "c")
    for path in ("b", "c"):
        (pair.left / path).unlink()
        (pair.left / path).write_text("text")
        os.utime(pair.left / path, ns=(5_000_000_123, 5_000_000_123))
    cut(pair, Steps, "landed", calls)
    assert pair.unite(hard_links=True).exit is ExitCode.OK
    assert ties(pair) == {}
    settled(pair)


# File systems without hard links


def test_a_side_without_hard_links_says_so_and_gets_files(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = os.stat(pair.left).st_ino

    def has_links(root: Root) -> bool:
        return os.fstat(root.fileno()).st_ino == left

    monkeypatch.setattr(hard_links, "can_have_links", has_links)
    pair.both("a", "text")
    os.link(pair.left / "a", pair.left / "b")
    for _ in range(2):
        assert pair.unite(hard_links=True).exit is ExitCode.OK
        assert "hard links take no part: the file system of one side has none" in pair.notices()
    assert (ties_in(pair.left), ties_in(pair.right)) == ({b"a": 0, b"b": 0}, {})
    assert pair.texts("b") == ["text", "text"]


def test_a_link_that_cannot_be_made_is_a_copy(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.both("a", "text")
    pair.unite(hard_links=True)
    os.link(pair.left / "a", pair.left / "b")
    monkeypatch.setattr(entry_names, "link_file", lambda *_, **__: entry_names.Linked.IMPOSSIBLE)
    for _ in range(2):
        assert pair.unite(hard_links=True).exit is ExitCode.PARTIAL
        assert pair.texts("b") == ["text", "text"]
        assert "it is a file of its own there" in pair.problems()[0]
    monkeypatch.undo()
    pair.unite(hard_links=True)
    assert len(ties(pair)) == 2


# The other side lies, or is an older one


def test_an_older_answerer_is_refused_before_anything_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Machines(tmp_path)
    pair.both("a", "text")
    (pair.left / "new").write_text("new")
    monkeypatch.setattr("rdc.protocol.connection.UNITED_LINKS", "another_name")
    with pytest.raises(RdcError, match="lacks what the session needs: united_links; update rdc"):
        pair.unite(hard_links=True)
    assert not (pair.right / "new").exists()


@pytest.mark.parametrize(
    "page",
    [
        packed_columns(b"\2", b"", b""),
        packed_columns(b"\1", b"a\0b\0", b"\0\0\0\0"),
        packed_columns(b"\1", b"a\0b\0", b"\0\0\0\0\1\0\0\0"),
        packed_columns(b"\1", b"a\0a\0", b"\0" * 8),
        packed_columns(b"\1", b"a\0../b\0", b"\0" * 8),
        packed_columns(b"\1", b"a\0.rdc-unite\0", b"\0" * 8),
        packed_columns(b"\1", b"a\0b\0c\0d\0", b"\1\0\0\0" * 2 + b"\0" * 8),
        packed_columns(b"\0", b"a\0b\0", b"\0" * 8),
        packed_columns(b"\1", b"a\0b\0"),
    ],
)
def test_a_page_of_hard_links_is_checked(tmp_path: Path, page: bytes) -> None:
    pair = Machines(tmp_path)
    pair.both("a", "text")
    with pytest.raises((ValueError, ProtocolError)):
        unpack_ties(page)
    with pytest.raises(ProtocolError):
        unite_in_turns(
            pair.left,
            pair.right,
            replace(rdc.UniteOptions(), hard_links=True),
            lambda _: None,
            wrap=lying(1, Subject.LINKS, page),
        )


@pytest.mark.parametrize("agreed", [{b"a": 0, b"gone": 0}, {b"a": 0, b"d": 0}], ids=["missing", "directory"])
def test_what_is_agreed_has_links_of_files_alone(tmp_path: Path, agreed: dict[bytes, int]) -> None:
    pair = Machines(tmp_path)
    linked(pair, "a", "d/b")
    (pair.left / "other").write_text("edited")
    with pytest.raises(ProtocolError):
        unite_in_turns(
            pair.left,
            pair.right,
            replace(rdc.UniteOptions(), hard_links=True),
            lambda _: None,
            wrap=lying(0, Subject.TIED, pack_ties(agreed)),
        )
    assert pair.unite(hard_links=True).exit is ExitCode.OK
    settled(pair)


@pytest.mark.parametrize(
    "action",
    [
        Action(LINK, b"x", b"d", 0, b"", 0o644, 0, 0, 0),
        Action(LINK, b"x", b"gone", 0, b"", 0o644, 0, 0, 0),
        Action(TIE, b"d", b"a", 0, b"", 0o644, 0, 0, 0),
        Action(PART, b"d", b"", 0, b"", 0o644, 0, 0, 0),
        Action(PART, b"a", b"", 1, b"", 0o644, 0, 0, 0),
    ],
    ids=["of a directory", "of nothing", "over a directory", "parts a directory", "makes a directory"],
)
@pytest.mark.parametrize("asked", [True, False])
def test_steps_about_links_fit_the_tree(tmp_path: Path, action: Action, asked: bool) -> None:
    pair = Machines(tmp_path)
    pair.both("a", "text")
    pair.both("d/b", "text")
    pair.unite(hard_links=asked)
    (pair.left / "a").write_text("edited")
    [state] = pair.left.glob(".rdc-unite/*/ancestor")
    order = Order(StoredAncestor(state.read_bytes()).head.generation, {}, frozenset(), (action,), ())
    before = ties_in(pair.right)
    with pytest.raises(ProtocolError):
        unite_in_turns(
            pair.left,
            pair.right,
            replace(rdc.UniteOptions(), hard_links=asked),
            lambda _: None,
            wrap=lying(0, Subject.STEPS, pack_order(order)),
        )
    assert ties_in(pair.right) == before
    assert (pair.right / "d").is_dir()


# The state


def test_an_ancestor_with_impossible_links_is_damaged(tmp_path: Path) -> None:
    from rdc.uniting.ancestor_file import _ties_of
    from rdc.uniting.path_texts import Paths

    pair = Pair(tmp_path)
    linked(pair, "a", "b", "c")
    [state] = pair.left.glob(".rdc-unite/*/ancestor")
    read = StoredAncestor(state.read_bytes())
    assert (read.head.links, read.ties) == (3, {b"a": 0, b"b": 0, b"c": 0})
    assert read.ties == StoredAncestor(state.read_bytes()).ties
    assert read.table.size == 4
    paths, kinds = Paths.of([b"a", b"b", b"c", b"d"]), bytes([0, 0, 0, 1])
    assert _ties_of(paths, kinds, [0, 2], [0, 0]) == {b"a": 0, b"c": 0}
    for rows, numbers in (
        ([0, 0], [0, 0]),
        ([2, 0], [0, 0]),
        ([0, 4], [0, 0]),
        ([0, 3], [0, 0]),
        ([0, 1], [0, 1]),
        ([0, 1], [1, 1]),
    ):
        with pytest.raises(DamagedError):
            _ties_of(paths, kinds, rows, numbers)
