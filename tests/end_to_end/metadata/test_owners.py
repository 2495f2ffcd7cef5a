"""Owners by name, between two machines whose users have other numbers."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.limits import OWNERS, SMALL_MANIFEST
from rdc.model.entries import little_endian
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from rdc.protocol.messages import Owners
from rdc.session.source.tree_description import OwnerNames
from rdc.session.trees import owner_mapping as mapping_module
from rdc.session.trees.owner_mapping import owner_mapping
from tests.support.running.syncing import Run, Way, run_sync
from tests.support.trees.trees import tree, write_tree

THERE = {b"daemon": 1001, b"bin": 1, b"nobody": 65_534}
"""Numbers at DST of names that SRC has as 1, 2 and 65534. Two of them changed places, so to speak."""

NAMES = SyncOptions(owner_names=True, fsync=False)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """DST has other users, all of this process: so both ends have to be in it."""
    monkeypatch.setattr(mapping_module, "_look_up_user", THERE.get)
    monkeypatch.setattr(mapping_module, "_look_up_group", THERE.get)


def owned(top: Path, *, many: bool) -> Path:
    owners = {"root": 0, "one": 1, "two": 2, "none": 4242, "d": 1, "d/in": 2, "l": 1}
    more = {f"many/{number:03d}": b"%d" % number for number in range(SMALL_MANIFEST if many else 2)}
    write_tree(top, tree({name: b"content" for name in owners if name not in {"d", "l"}} | more))
    (top / "l").symlink_to("one")
    for name, number in owners.items():
        os.lchown(top / name, number, number)
    os.chown(top, 2, 1)
    return top


def users(top: Path) -> dict[str, tuple[int, int]]:
    names = [".", "root", "one", "two", "none", "d", "d/in", "l", "many/001"]
    return {name: (os.lstat(top / name).st_uid, os.lstat(top / name).st_gid) for name in names}


EXPECTED = {
    ".": (1, 1001),
    "root": (0, 0), "one": (1001, 1001), "two": (1, 1), "none": (4242, 4242), "d": (1001, 1001),
    "d/in": (1, 1), "l": (1001, 1001), "many/001": (0, 0),
}  # fmt: skip


def named_bytes(run: Run) -> int:
    return sum(cost.bytes for cost in run.done.by_kind if cost.name == "Owners")


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("checksum", [False, True], ids=["", "checksum"])
@pytest.mark.parametrize("many", [False, True], ids=["listed", "by manifest"])
def test_users_get_the_number_that_their_name_has(many: bool, checksum: bool, tmp_path: Path) -> None:
    source, top = owned(tmp_path / "s", many=many), tmp_path / "d"
    options = SyncOptions(owner_names=True, checksum=checksum, fsync=False)
    assert run_sync(source, top, options).done.exit == ExitCode.OK
    assert users(top) == EXPECTED
    again = run_sync(source, top, options)
    assert (again.items, again.problems) == ([], [])
    # A number that is right without names is wrong with them, and the other way round.
    os.chown(top / "one", 1, 1)
    os.chown(top / "d/in", 1001, 2)
    repaired = run_sync(source, top, options)
    assert sorted(repaired.items) == [".f....og... one", ".f....og... d/in"][::-1]
    assert users(top) == EXPECTED


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("many", [False, True], ids=["listed", "by manifest"])
def test_several_users_may_become_one(many: bool, tmp_path: Path) -> None:
    source, top = owned(tmp_path / "s", many=many), tmp_path / "d"
    options = SyncOptions(usermap=b"bin:7,1-9999:7", groupmap=b"*:5", fsync=False)
    run_sync(source, top, options)
    assert {name: owners[0] for name, owners in users(top).items() if owners[0]} == dict.fromkeys(
        [".", "one", "two", "none", "d", "d/in", "l"], 7
    )
    assert {owners[1] for owners in users(top).values()} == {5}
    assert run_sync(source, top, options).items == []
    os.chown(top / "two", 7, 6)
    assert run_sync(source, top, options).items == [".f.....g... two"]


@pytest.mark.parametrize(("way", "many"), [(Way.PUSH, True), (Way.PULL, False)], ids=["push", "pull"])
def test_through_a_remote_shell(way: Way, many: bool, tmp_path: Path) -> None:
    source, top = owned(tmp_path / "s", many=many), tmp_path / "d"
    options = SyncOptions(usermap=b"daemon:1001,bin:1", owner_names=True, fsync=False)
    first, second = (run_sync(source, top, options, way=way) for _ in range(2))
    assert (first.problems, second.items, second.problems) == ([], [], [])
    assert {name: owners[0] for name, owners in users(top).items()} == {
        name: owners[0] for name, owners in EXPECTED.items()
    }
    plain = run_sync(source, top, SyncOptions(dry_run=True, fsync=False), way=way)
    assert second.done.round_trips == 1
    # Four users and three groups by name, each once, whatever has them.
    assert named_bytes(plain) == 0
    assert 30 < named_bytes(second) < 120


@pytest.mark.parametrize("way", [Way.HERE, Way.PUSH])
def test_without_root_a_line_says_that_nobody_is_mapped(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, top = owned(tmp_path / "s", many=False), tmp_path / "d"
    if way is Way.HERE:
        monkeypatch.setattr("os.geteuid", lambda: 1000)
        run = run_sync(source, top, SyncOptions(usermap=b"*:7", fsync=False))
        (notice,) = [event for event in run.events if isinstance(event, Problem)]
        assert notice.code is ExitCode.OK and "need" in notice.message
        assert users(top)["one"] == (0, 0)
    else:
        run = run_sync(source, top, SyncOptions(usermap=b"*:7", owner=True, fsync=False), way=way)
        assert users(top)["one"] == (7, 1)


def test_a_single_file(tmp_path: Path) -> None:
    source = owned(tmp_path / "s", many=False)
    options = SyncOptions(usermap=b"daemon:9", fsync=False)
    for _ in range(2):
        run = run_sync(os.fsencode(source / "one"), os.fsencode(tmp_path / "copy"), options)
        assert os.stat(tmp_path / "copy").st_uid == 9
    assert run.items == []


# --- hostile sources ----------------------------------------------------------------------------------------


def nobody(_: OwnerNames, uid: int, gid: int) -> Owners:
    return Owners((), (), (), ())


@pytest.mark.parametrize("many", [False, True], ids=["listed", "by manifest"])
def test_an_owner_without_a_name_message_is_refused(
    many: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a source could leave out a name that the map is about."""
    source, top = owned(tmp_path / "s", many=many), tmp_path / "d"
    run_sync(source, top, SyncOptions(usermap=b"*:7", groupmap=b"*:7", fsync=False))
    (source / "two").write_bytes(b"changed")
    monkeypatch.setattr(OwnerNames, "announce", lambda *_: iter(()))
    with pytest.raises(RdcError, match=r"owner [0-9]+, whose name it did not tell"):
        run_sync(source, top, SyncOptions(usermap=b"*:8", groupmap=b"*:7", fsync=False))
    monkeypatch.setattr(OwnerNames, "first", nobody)
    with pytest.raises(RdcError, match="owner 2, whose name it did not tell"):
        run_sync(source, top, SyncOptions(usermap=b"*:8", groupmap=b"*:7", fsync=False))
    assert {owner for pair in users(top).values() for owner in pair} == {7}


def test_the_first_name_of_an_owner_counts() -> None:
    mapping = owner_mapping(SyncOptions(usermap=b"ann:7,bob:8"))
    mapping.take(Owners((5,), (b"ann",), (), ()))
    mapping.take(Owners((5, 6), (b"bob", b""), (), ()))
    assert (mapping.users.mapped_id(5), mapping.users.mapped_id(6)) == (7, 6)
    with pytest.raises(ProtocolError):
        mapping.users.mapped_id(9)


def test_the_number_of_owners_is_bounded() -> None:
    column = little_endian(array("I", range(OWNERS + 1)))
    with pytest.raises(RdcError, match="--numeric-ids"):
        list(OwnerNames().announce(column, column))


def test_root_is_no_other_user_because_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Callable[[bytes], int] = {b"root": 1000, b"ann": 0}.__getitem__
    monkeypatch.setattr(mapping_module, "_look_up_user", found)
    mapping = owner_mapping(SyncOptions(owner_names=True))
    mapping.take(Owners((0, 5), (b"root", b"ann"), (), ()))
    assert (mapping.users.mapped_id(0), mapping.users.mapped_id(5)) == (0, 0)
