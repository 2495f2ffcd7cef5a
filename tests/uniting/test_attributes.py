"""Extended attributes of two sides: each change goes over once, no set is lost, and what one side
cannot keep or read takes no part."""

from __future__ import annotations

import copy
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdc
from rdc.errors import ExitCode, FileChangedError, ProtocolError
from rdc.files.facts.xattrs import attribute_kinds_of, read_directory_attributes
from rdc.files.root.root import Root
from rdc.model.preserved import AttributeKinds, pack_attributes
from rdc.uniting import attributes
from rdc.uniting.ancestor_file import AgreedAttributes, DamagedError, Head, StoredAncestor, encode_table
from rdc.uniting.attributes import AttributeSets
from rdc.uniting.columns import SharedRow, Spliced, table_of
from rdc.uniting.exchanged import checked, packed_columns
from rdc.uniting.exchanged_sets import (
    Given,
    pack_agreed_sets,
    pack_given,
    pack_sets,
    pack_unset,
    unpack_agreed_sets,
    unpack_given,
    unpack_sets,
    unpack_unset,
)
from rdc.uniting.rows import DIGEST_BYTES, FILE, LEFT, NO_STAMP, RIGHT
from tests.uniting.histories import Step, populate, take_step, users_with_attributes
from tests.uniting.pairs import Machines, Pair, during
from tests.uniting.pure_world import World


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def give(path: Path, **values: str) -> None:
    """Give an entry exactly these attributes."""
    for name in os.listxattr(path):
        os.removexattr(path, name)
    for name, value in values.items():
        os.setxattr(path, f"user.{name}", value.encode())


def sets(pair: Pair, name: str) -> list[dict[str, str]]:
    """The attributes at both sides."""
    return [
        {key.removeprefix("user."): os.getxattr(path, key).decode() for key in os.listxattr(path)}
        for path in (pair.left / name, pair.right / name)
    ]


# The plan in memory


rounds = st.lists(users_with_attributes, min_size=1, max_size=4)


def state(world: World) -> list[dict[bytes, tuple[int, bytes, bytes, int]]]:
    return [
        {path: (thing.kind, thing.content, thing.attributes, thing.mode) for path, thing in disk.items()}
        for disk in world.disks
    ]


@given(rounds, st.booleans(), st.booleans())
def test_a_second_run_is_idle_and_the_order_of_the_sides_is_nothing(
    history: list[list[Step]], exchanged: bool, has_acls: bool
) -> None:
    world = World(has_attributes=True, has_acls=has_acls)
    populate(world)
    for steps in history:
        for step in steps:
            take_step(world, step)
        other = copy.deepcopy(world)
        plan = world.run(exchanged=exchanged)
        turned = other.run(exchanged=not exchanged)
        assert not world.lost
        assert state(world) == state(other)
        assert {each[:2] for each in plan.conflicts} == {each[:2] for each in turned.conflicts}
        again = world.plan()
        assert again.is_empty, (again.steps, again.attributes)
        tops = [each.path for each in plan.conflicts]
        left, right = (
            {
                path: row
                for path, row in side.items()
                if not any(path == top or path.startswith(top + b"/") for top in tops)
            }
            for side in state(world)
        )
        assert left == right


@given(users_with_attributes, users_with_attributes, st.integers(0, 12), st.booleans())
def test_no_set_is_lost_after_a_kill(
    before: list[Step], after: list[Step], stop: int, has_acls: bool
) -> None:
    world = World(has_attributes=True, has_acls=has_acls)
    populate(world)
    for step in before:
        take_step(world, step)
    had = {thing.attributes for disk in world.disks for thing in disk.values()}
    goes = world.plan()
    dismissed = {row.attributes for row in world.base.values()}
    world.run(stop=stop)
    has = {thing.attributes for disk in world.disks for thing in disk.values()}
    assert had - has <= dismissed, goes.attributes
    for step in after:
        take_step(world, step)
    had = {thing.attributes for disk in world.disks for thing in disk.values()}
    common = dismissed | ({each.attributes for each in world.disks[0].values()}
                          & {each.attributes for each in world.disks[1].values()})  # fmt: skip
    world.run()
    has = {thing.attributes for disk in world.disks for thing in disk.values()}
    assert had - has <= common
    assert world.plan().is_empty


# Real trees


def test_a_change_of_one_side_goes_to_the_other_one(pair: Pair) -> None:
    pair.both("d/f", "text")
    give(pair.left / "d/f", tag="1")
    give(pair.right / "d", about="2")
    pair.unite(xattrs=True)
    assert sets(pair, "d/f") == [{"tag": "1"}] * 2
    assert sets(pair, "d") == [{"about": "2"}] * 2
    give(pair.right / "d/f", tag="3", more="4")
    give(pair.left / "d")
    report = pair.unite(xattrs=True, dry_run=True)
    planned = pair.items()
    assert sets(pair, "d/f")[0] == {"tag": "1"}
    assert (report.left, report.right) == (1, 1)
    report = pair.unite(xattrs=True)
    assert sorted(pair.items()) == sorted(planned)
    assert sorted(planned) == [("left", "metadata", b"d/f"), ("right", "metadata", b"d")]
    assert (report.left, report.right, report.exit) == (1, 1, ExitCode.OK)
    assert sets(pair, "d/f") == [{"tag": "3", "more": "4"}] * 2
    assert sets(pair, "d") == [{}, {}]
    assert pair.unite(xattrs=True).left == 0
    assert pair.items() == []


def test_content_and_attributes_come_from_different_sides(pair: Pair) -> None:
    pair.both("f", "text")
    give(pair.left / "f", tag="1")
    pair.unite(xattrs=True)
    (pair.left / "f").write_text("edited here")
    give(pair.right / "f", tag="2")
    pair.unite(xattrs=True)
    assert pair.texts("f") == ["edited here"] * 2
    assert sets(pair, "f") == [{"tag": "2"}] * 2


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
def test_a_new_directory_into_which_an_entry_was_renamed_keeps_its_attributes(
    tmp_path: Path, near: int | None
) -> None:
    pair = Pair(tmp_path) if near is None else Machines(tmp_path)
    if isinstance(pair, Machines):
        pair.near = near or LEFT
    pair.both("f", "text")
    pair.unite(xattrs=True)
    (pair.left / "new").mkdir()
    give(pair.left / "new", tag="1")
    (pair.left / "f").rename(pair.left / "new/f")
    pair.unite(xattrs=True)
    assert ("right", "renamed", b"f") in pair.items()
    assert sets(pair, "new") == [{"tag": "1"}] * 2
    pair.unite(xattrs=True)
    assert (pair.items(), sets(pair, "new")) == ([], [{"tag": "1"}] * 2)


def test_different_changes_are_a_conflict_until_one_is_chosen(pair: Pair) -> None:
    pair.both("f", "text")
    pair.unite(xattrs=True)
    give(pair.left / "f", tag="left")
    give(pair.right / "f", tag="right")
    for _ in range(2):
        assert pair.unite(xattrs=True).exit is ExitCode.CONFLICTS
        assert [event.about for event in pair.events if isinstance(event, rdc.UniteConflict)] == [
            "attributes"
        ]
        assert sets(pair, "f") == [{"tag": "left"}, {"tag": "right"}]
    (pair.left / "f").write_text("edited here")
    assert pair.unite(xattrs=True).conflicts == 1
    assert pair.texts("f") == ["edited here"] * 2
    assert sets(pair, "f") == [{"tag": "left"}, {"tag": "right"}]
    pair.unite(xattrs=True, resolve=(rdc.Resolve(b"f", rdc.Resolution.RIGHT),))
    assert sets(pair, "f") == [{"tag": "right"}] * 2
    assert pair.unite(xattrs=True).exit is ExitCode.OK


def test_without_a_common_past_nothing_is_removed(pair: Pair) -> None:
    for name in ("equal", "one", "other"):
        pair.both(name, "text")
    for side, value in ((pair.left, "left"), (pair.right, "right")):
        give(side / "equal", tag="equal")
        give(side / "other", tag=value)
    give(pair.right / "one", tag="right")
    pair.unite()
    assert pair.unite(xattrs=True).conflicts == 1
    assert pair.conflicts() == [b"other"]
    assert sets(pair, "equal") == [{"tag": "equal"}] * 2
    assert sets(pair, "one") == [{"tag": "right"}] * 2
    give(pair.left / "one")
    pair.unite(xattrs=True)
    assert sets(pair, "one") == [{}, {}]


def test_a_run_without_attributes_is_forgotten_to_have_had_them(pair: Pair) -> None:
    pair.both("f", "text")
    give(pair.left / "f", tag="1")
    pair.unite(xattrs=True)
    (pair.left / "f").write_text("edited here")
    pair.unite()
    assert sets(pair, "f") == [{"tag": "1"}, {}]
    pair.unite(xattrs=True)
    assert sets(pair, "f") == [{"tag": "1"}] * 2


def test_a_file_system_without_attributes_removes_none(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.both("f", "text")
    give(pair.left / "f", tag="1")
    pair.unite(xattrs=True)
    with monkeypatch.context() as patch:
        kinds = attribute_kinds_of
        patch.setattr(
            attributes,
            "attribute_kinds_of",
            lambda root: AttributeKinds.NONE if root.label.endswith(b"right") else kinds(root),
        )
        give(pair.right / "f")
        pair.both("g", "text")
        give(pair.left / "g", tag="2")
        assert pair.unite(xattrs=True).exit is ExitCode.OK
        assert "extended attributes take no part: the file system of one side keeps none" in pair.notices()
        assert sets(pair, "f") == [{"tag": "1"}, {}]
    assert pair.unite(xattrs=True).conflicts == 0
    assert sets(pair, "f") == [{"tag": "1"}] * 2
    assert sets(pair, "g") == [{"tag": "2"}] * 2


def test_other_attributes_keep_an_entry_that_the_other_side_deleted(pair: Pair) -> None:
    for name in ("kept", "gone", "other"):
        pair.both(name, "text")
    pair.unite(xattrs=True)
    for name in ("kept", "gone"):
        (pair.left / name).unlink()
    give(pair.right / "kept", tag="1")
    pair.unite(xattrs=True)
    assert pair.texts("gone") == [None, None]
    assert sets(pair, "kept") == [{"tag": "1"}] * 2


def test_what_changed_since_the_listing_stays(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("d/set", "d/edited"):
        pair.both(name, "text")
    pair.unite(xattrs=True)
    give(pair.left / "d", tag="1")
    give(pair.left / "d/set", tag="1")
    give(pair.left / "d/edited", tag="1")

    def act() -> None:
        give(pair.right / "d", tag="new")
        give(pair.right / "d/set", tag="new")
        (pair.right / "d/edited").write_text("edited in that moment")

    with monkeypatch.context() as patch:
        during(patch, act)
        assert pair.unite(xattrs=True).exit is ExitCode.PARTIAL
    assert len(pair.problems()) == 3
    assert sets(pair, "d") == [{"tag": "1"}, {"tag": "new"}]
    assert sets(pair, "d/set") == [{"tag": "1"}, {"tag": "new"}]
    assert pair.unite(xattrs=True).conflicts == 2
    assert pair.texts("d/edited") == ["edited in that moment"] * 2
    assert sets(pair, "d/edited") == [{"tag": "1"}] * 2


def test_an_entry_whose_attributes_cannot_be_read_takes_no_part(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.both("f", "text")
    give(pair.left / "f", tag="1")
    pair.unite(xattrs=True)
    give(pair.right / "f", tag="2")
    (pair.left / "f").write_text("edited here")
    read = read_directory_attributes

    def refused(*words: Any) -> Iterator[tuple[int, bytes, object]]:
        for row, name, found in read(*words):
            yield row, name, OSError(5, "Input/output error") if found == ((b"user.tag", b"2"),) else found

    with monkeypatch.context() as patch:
        patch.setattr(attributes, "read_directory_attributes", refused)
        assert pair.unite(xattrs=True).exit is ExitCode.PARTIAL
    assert pair.texts("f") == ["edited here", "text"]
    assert sets(pair, "f") == [{"tag": "1"}, {"tag": "2"}]
    pair.unite(xattrs=True)
    assert (pair.texts("f"), sets(pair, "f")) == (["edited here"] * 2, [{"tag": "2"}] * 2)


@pytest.mark.parametrize("near", [LEFT, RIGHT])
def test_a_directory_that_has_just_changed_takes_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: int
) -> None:
    pair = Machines(tmp_path)
    pair.near = near
    for name in ("d/f", "f"):
        pair.both(name, "text")
    give(pair.left / "d/f", tag="1")
    pair.unite(xattrs=True)
    give(pair.left / "f", tag="1")
    read = read_directory_attributes

    def replaced(root: Root, path: bytes, *words: Any) -> Iterator[tuple[int, bytes, object]]:
        if path == b"d" and os.fstat(root.fileno()).st_ino == pair.left.stat().st_ino:
            raise FileChangedError(path, "another directory is there")
        yield from read(root, path, *words)

    with monkeypatch.context() as patch:
        patch.setattr(attributes, "read_directory_attributes", replaced)
        pair.unite(xattrs=True)
    assert sets(pair, "d/f") == sets(pair, "f") == [{"tag": "1"}] * 2
    give(pair.left / "d/f")
    pair.unite(xattrs=True)
    assert sets(pair, "d/f") == [{}, {}]


def test_an_undo_brings_attributes_back_and_is_not_repeated(pair: Pair) -> None:
    pair.both("d/f", "text")
    give(pair.right / "d/f", tag="1")
    give(pair.right / "d", tag="1")
    options = {"xattrs": True, "keep_undo": rdc.KeepUndo(days=7)}
    pair.unite(**options)
    give(pair.left / "d/f", tag="2")
    give(pair.left / "d", tag="2")
    pair.unite(**options)
    assert sets(pair, "d/f") == sets(pair, "d") == [{"tag": "2"}] * 2
    rdc.undo(pair.right)
    assert sets(pair, "d/f") == sets(pair, "d") == [{"tag": "2"}, {"tag": "1"}]
    assert pair.unite(**options).conflicts == 2
    assert sets(pair, "d/f") == sets(pair, "d") == [{"tag": "2"}, {"tag": "1"}]


def test_a_run_without_them_loads_nothing_of_them(pair: Pair) -> None:
    pair.both("f", "text")
    give(pair.left / "f", tag="1")
    script = (
        "import sys, rdc\n"
        "rdc.unite(*sys.argv[1:], keep_undo=None)\n"
        "sys.exit('rdc.uniting.attributes' in sys.modules)\n"
    )
    words = [sys.executable, "-c", script, str(pair.left), str(pair.right)]
    subprocess.run(words, check=True)


# Two machines


@pytest.mark.parametrize("near", [LEFT, RIGHT])
def test_attributes_go_between_two_machines(tmp_path: Path, near: int) -> None:
    pair = Machines(tmp_path)
    pair.near = near
    for name in ("d/f", "d/other", "equal"):
        pair.both(name, "text")
    for side in (pair.left, pair.right):
        give(side / "equal", tag="1")
    give(pair.left / "d/f", tag="1")
    give(pair.right / "d", tag="2")
    (pair.right / "new").write_text("new")
    give(pair.right / "new", tag="3")
    assert pair.unite(xattrs=True).exit is ExitCode.OK
    assert sets(pair, "d/f") == [{"tag": "1"}] * 2
    assert sets(pair, "d") == [{"tag": "2"}] * 2
    assert sets(pair, "new") == [{"tag": "3"}] * 2
    assert pair.unite(xattrs=True).left == 0
    assert (pair.items(), pair.trips) == ([], 1)
    pair.near = 1 - near
    give(pair.left / "d/f")
    give(pair.right / "d/other", tag="other")
    (pair.left / "d/other").write_text("edited here")
    planned = pair.unite(xattrs=True, dry_run=True), pair.items()
    report = pair.unite(xattrs=True)
    assert (report.left, report.right) == (planned[0].left, planned[0].right) == (1, 2)
    assert sorted(pair.items()) == sorted(planned[1])
    assert sets(pair, "d/f") == [{}, {}]
    assert (sets(pair, "d/other"), pair.texts("d/other")) == ([{"tag": "other"}] * 2, ["edited here"] * 2)
    give(pair.left / "equal", tag="left")
    give(pair.right / "equal", tag="right")
    for pair.near in (near, 1 - near, near):
        assert pair.unite(xattrs=True).conflicts == 1
    pair.unite(xattrs=True, prefer=rdc.Prefer.LEFT)
    assert sets(pair, "equal") == [{"tag": "left"}] * 2
    assert pair.unite(xattrs=True).exit is ExitCode.OK
    assert (pair.items(), pair.trips) == ([], 1)


def test_a_file_that_cannot_get_the_set_of_the_one_it_replaces_does_not_come(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.both("f", "text")
    pair.unite(xattrs=True)
    (pair.left / "f").write_text("edited here")
    give(pair.right / "f", tag="1")

    def full(*_words: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rdc.uniting.attributes.os.setxattr", full)
        assert pair.unite(xattrs=True, keep_undo=None).exit is ExitCode.PARTIAL
    assert (sets(pair, "f"), pair.texts("f")) == ([{}, {"tag": "1"}], ["edited here", "text"])
    pair.unite(xattrs=True)
    assert (sets(pair, "f"), pair.texts("f")) == ([{"tag": "1"}] * 2, ["edited here"] * 2)


names = st.binary(min_size=1, max_size=4).filter(
    lambda name: name not in (b".", b"..") and not {0, 47} & {*name}
)
values = st.binary(max_size=3)


@given(
    st.dictionaries(names, values),
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 0o777))),
    st.booleans(),
)
def test_pages_about_sets_are_read_as_they_were_written(
    found: dict[bytes, bytes], kinds: list[tuple[bool, bool, int]], has_acls: bool
) -> None:
    taking_part = AttributeKinds.USER | (AttributeKinds.ACL if has_acls else AttributeKinds.NONE)
    here, there = (AttributeSets(taking_part) for _ in range(2))
    digests = {path: here.add(((b"user.a", value),)) for path, value in sorted(found.items())}
    assert unpack_sets(pack_sets(digests, here), there) == digests
    assert all(here.of(digest) == there.of(digest) for digest in digests.values())
    given = tuple(
        Given(path, is_new, digest if has_set else b"", mode if has_acls else 0)
        for (path, digest), (is_new, has_set, mode) in zip(digests.items(), kinds, strict=False)
    )
    assert unpack_given(pack_given(given, here), there) == given
    unset = {each.path: each.is_new for each in given}
    assert unpack_unset(pack_unset(unset)) == unset
    states = [each.wanted or (b"" if each.is_new else None) for each in given]
    agreed = {each.path: state for each, state in zip(given, states, strict=True) if state is not None}
    assert unpack_agreed_sets(pack_agreed_sets(states), [each.path for each in given]) == agreed


@given(st.lists(st.binary(max_size=12), min_size=2, max_size=6), st.booleans())
def test_pages_that_rdc_does_not_write_are_refused(columns: list[bytes], has_acls: bool) -> None:
    page = packed_columns(*columns)
    sets_here = AttributeSets(AttributeKinds.ACL if has_acls else AttributeKinds.USER)
    for read in (
        lambda data: unpack_sets(data, sets_here),
        lambda data: unpack_given(data, sets_here),
        unpack_unset,
        lambda data: unpack_agreed_sets(data, [b"a", b"b"]),
    ):
        with suppress(ProtocolError):
            checked("a page", read, page)


def test_sets_of_other_kinds_and_odd_numbers_are_refused() -> None:
    sets_here = AttributeSets(AttributeKinds.USER)
    packed = pack_attributes(((b"trusted.a", b"1"),))
    one = struct.pack("<I", 1)
    for columns in (
        (b"a\0", one, struct.pack("<I", len(packed)), packed),
        (b"a\0", struct.pack("<I", 2), b"", b""),
        (b"a\0", struct.pack("<I", 0), b"", b""),
        (b"b\0a\0", one + one, struct.pack("<I", 9), pack_attributes(((b"user.a", b""),))),
        (b"../a\0", one, struct.pack("<I", 11), pack_attributes(((b"user.a", b""),))),
    ):
        with pytest.raises(ProtocolError):
            checked("a page", lambda data: unpack_sets(data, sets_here), packed_columns(*columns))


# The state


HEAD = Head(b"g" * 8, b"o" * 16, b"t" * 16, 1, 2, b"/there", 0)
PATHS = [b"a", b"b", b"c"]
AGREED = {b"a": b"", b"c": b"d" * DIGEST_BYTES}


def encoded(agreed: AgreedAttributes | None) -> bytes:
    rows = [SharedRow(FILE, None, b"", 0o644, 5)] * 3
    table = table_of(PATHS, rows, [NO_STAMP] * 3)
    return encode_table(HEAD, Spliced([(table, 0, 3)]), bytes(DIGEST_BYTES), agreed).joined()


def test_what_is_agreed_is_read_as_it_was_written_for_the_same_kinds_alone() -> None:
    found = StoredAncestor(encoded(AgreedAttributes(5, AGREED)))
    assert found.attributes(5) == AGREED
    assert found.attributes(1) is None
    assert found.attributes(0) is None
    plain = StoredAncestor(encoded(None))
    assert plain.attributes(5) is None
    others = StoredAncestor(encoded(AgreedAttributes(5, {**AGREED, b"b": b""})))
    assert len({each.shared for each in (found, plain, others)}) == 3


def test_every_cut_of_what_is_agreed_is_damage() -> None:
    whole = encoded(AgreedAttributes(5, AGREED))
    for size in range(len(encoded(None)) - 60, len(whole)):
        with pytest.raises(DamagedError):
            StoredAncestor(whole[:size]).read()
