"""--xattrs and --acls: extended attributes and ACLs are what they are at the source, and nothing else is."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.model.preserved import ACCESS_ACL, DEFAULT_ACL, AttributeKinds
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from rdc.session.trees.wanted_xattrs import WantedXattrs
from tests.support.running.paired_sync import kinds, sync_in_turns
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.trees import Directory, Link, tree, write_tree
from tests.support.trees.xattrs_and_acls import BOTH, MANY, acl, allow, attributes_of, expect_equal, give


@pytest.fixture
def source(linking: Path) -> Path:
    files = {"plain": b"1", "marked": b"2", "d/shared": b"3", "d/e/both": b"4", "d/e/bare": b"5"}
    top = write_tree(linking / "s", tree(files) | tree({"l": Link(b"marked"), "q": Directory()}))
    give(top / "marked", a="one", b="")
    give(top / "d/e/both", a="one", long="x" * 300)
    give(top / "d", trusted_t="of root")
    give(top / "l", trusted_t="of a link")
    allow(top / "d/shared", acl(6))
    allow(top / "d/e/both", acl(4, group=4))
    allow(top / "d", acl(7, owner=7), acl(5, owner=7))
    allow(top, acl(1, owner=7, group=5, other=5))
    return top


@pytest.fixture
def destination(source: Path) -> Path:
    return source.parent / "d"


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("way", Way)
def test_a_first_copy(way: Way, source: Path, destination: Path) -> None:
    rehearsed = run_sync(source, destination, replace(BOTH, dry_run=True), way=way)
    assert (rehearsed.done.exit, rehearsed.problems) == (ExitCode.OK, [])
    run = run_sync(source, destination, BOTH, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    expect_equal(source, destination)
    # What an entry is made with has no line of its own.
    assert all(item[2] == "+" for item in run.items)
    assert sorted(rehearsed.items) == sorted(run.items)
    assert run_sync(source, destination, BOTH, way=way).items == []


def test_without_the_options_they_stay_behind(source: Path, destination: Path) -> None:
    run_sync(source, destination, SyncOptions(fsync=False))
    assert attributes_of(destination) == {}


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (SyncOptions(xattrs=True, fsync=False), AttributeKinds.USER | AttributeKinds.ROOT),
        (SyncOptions(acls=True, fsync=False), AttributeKinds.ACL),
    ],
    ids=["xattrs", "acls"],
)
def test_each_by_itself(options: SyncOptions, kept: AttributeKinds, source: Path, destination: Path) -> None:
    run_sync(source, destination, options)
    expected = {
        path: tuple(pair for pair in pairs if kept.has(pair[0]))
        for path, pairs in attributes_of(source).items()
    }
    assert attributes_of(destination) == {path: pairs for path, pairs in expected.items() if pairs}


@pytest.mark.needs("rsync")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])
@pytest.mark.parametrize("checksum", [False, True], ids=["", "checksum"])
@pytest.mark.parametrize("way", Way)
def test_whatever_is_there_already(
    way: Way, checksum: bool, more: dict[str, bytes], source: Path, destination: Path
) -> None:
    """Nothing else differs: other values, too many, too few, ACLs where there are none and the reverse."""
    write_tree(source, tree(more)) if more else None
    run_sync(source, destination, BOTH)
    os.removexattr(destination / "marked", "user.b")
    give(destination / "marked", a="two")
    give(destination / "plain", c="extra")
    os.removexattr(destination / "d/shared", ACCESS_ACL)
    (destination / "d/shared").chmod((source / "d/shared").stat().st_mode)
    mode = (destination / "plain").stat().st_mode
    allow(destination / "plain", acl(7, group=(mode >> 3) & 7, mask=(mode >> 3) & 7, other=mode & 7))
    os.removexattr(destination / "d", DEFAULT_ACL)
    give(destination / "q", trusted_x="extra")
    options = replace(BOTH, checksum=checksum)
    rehearsed = run_sync(source, destination, replace(options, dry_run=True), way=way)
    run = run_sync(source, destination, options, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    expect_equal(source, destination)
    assert sorted(run.items) == [
        ".d........x q/",
        ".d.......a. d/",
        ".f........x marked",
        ".f.......a. d/shared",
        ".f.......ax plain",
    ]
    assert run.items == rehearsed.items
    assert run.done.literal_bytes == 0
    assert run_sync(source, destination, options, way=way).items == []


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("way", Way)
def test_new_versions_and_new_modes_have_them(way: Way, source: Path, destination: Path) -> None:
    run_sync(source, destination, BOTH)
    (source / "d/e/both").write_bytes(b"another content")
    (source / "d/shared").chmod(0o640)
    (source / "d").chmod(0o750)
    (source / "marked").rename(source / "moved")
    os.utime(source / "plain")
    run = run_sync(source, destination, replace(BOTH, delete=True), way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    expect_equal(source, destination)
    assert run_sync(source, destination, BOTH, way=way).items == []


@pytest.mark.needs("rsync")
def test_a_rehearsal_of_a_directory_in_the_place_of_something_else(source: Path, destination: Path) -> None:
    for name in ("d", "q"):
        give(source / name, a="1")
    write_tree(destination, tree({"d": Link(b"nowhere"), "q": b"a file"}))
    rehearsed = run_sync(source, destination, replace(BOTH, dry_run=True))
    assert (rehearsed.done.exit, rehearsed.problems) == (ExitCode.OK, [])
    run = run_sync(source, destination, BOTH)
    assert sorted(rehearsed.items) == sorted(run.items)
    expect_equal(source, destination)


@pytest.mark.needs("rsync")
def test_a_directory_in_which_only_a_link_is_made_anew(source: Path, destination: Path) -> None:
    """Its mode has its ACL's mask, and is to keep it."""
    write_tree(source, tree(MANY | {"a": b"1", "x/y/g": b"2"}))
    os.link(source / "a", source / "x/y/a")
    allow(source / "x/y", acl(7, owner=7))
    options = replace(BOTH, hard_links=True)
    run_sync(source, destination, options)
    (source / "a").write_bytes(b"another content")
    run = sync_in_turns(source, destination, options)
    assert "ListingPart" not in kinds(run)
    assert (destination / "x/y/a").read_bytes() == b"another content"
    expect_equal(source, destination)


@pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])
def test_a_file_that_moves_leaves_behind_what_it_is_not_to_have(
    more: dict[str, bytes], source: Path, destination: Path
) -> None:
    options = SyncOptions(xattrs=True, delete=True, fsync=False)
    write_tree(source, tree(more | {"old": b"x" * 5000}))
    give(source / "old", a="1")
    run_sync(source, destination, options)
    inode = (destination / "old").stat().st_ino
    (source / "old").rename(source / "new")
    os.removexattr(source / "new", "user.a")
    rehearsed = run_sync(source, destination, replace(options, dry_run=True))
    run = run_sync(source, destination, options)
    assert (destination / "new").stat().st_ino == inode
    assert os.listxattr(destination / "new") == []
    assert run.items == rehearsed.items
    assert run_sync(source, destination, options).items == []


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("dialler", Role)
def test_equal_trees_cost_what_they_cost_without(dialler: Role, source: Path, destination: Path) -> None:
    write_tree(source, tree(MANY))
    sync_in_turns(source, destination, BOTH, dialler=dialler)
    run = sync_in_turns(source, destination, BOTH, dialler=dialler)
    assert "ListingPart" not in kinds(run)
    assert run.done.bytes_sent + run.done.bytes_received <= 600
    assert run.done.round_trips <= 2
    give(destination / "many/007", a="x")
    assert sync_in_turns(source, destination, BOTH, dialler=dialler).items == [".f........x many/007"]
    expect_equal(source, destination)


EDITS = st.dictionaries(
    st.sampled_from(("_first", "a", "d/b", "d/new", "d/z", "many/010", "many/0101", "zz")),
    st.sampled_from(("write", "remove", "touch", "mode")),
    max_size=5,
)


@pytest.mark.needs("rsync")
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(edits=EDITS, dialler=st.sampled_from(list(Role)), links=st.booleans())
def test_where_they_are_the_same_nothing_is_told_of_them(
    edits: dict[str, str], dialler: Role, links: bool, tmp_path: Path
) -> None:
    """Whatever else changes, and moves their rows: each entry keeps its own, also with a new content."""
    for side in ("s", "t"):
        shutil.rmtree(tmp_path / side, ignore_errors=True)
    files = {"a": b"1", "d/b": b"2", "d/c": b"3", "e/f": b"4"}
    source, destination = write_tree(tmp_path / "s", tree(files | MANY)), tmp_path / "t"
    for name in ("a", "d", "d/b", "e/f", "many/100"):
        give(source / name, a=name)
    allow(source / "a", acl(6, group=4))
    allow(source / "d", acl(5, owner=7), acl(7))
    if links:
        os.link(source / "a", source / "d/y")
        os.link(source / "d/b", source / "e/g")
    options = replace(BOTH, hard_links=True, delete=True)
    run_sync(source, destination, options)
    for name, edit in edits.items():
        path = source / name
        marked = path.exists() and (os.listxattr(path) or path.stat().st_nlink > 1)
        if edit == "write":
            new = not path.exists()
            path.write_bytes(b"new content of " + name.encode())
            if new and name.startswith("d/"):
                os.removexattr(path, ACCESS_ACL)  # from the directory's default
        elif path.exists() and edit == "remove" and not marked:
            path.unlink()
        elif path.exists() and edit == "touch":
            os.utime(path, ns=(5, 5))
        elif path.exists() and edit == "mode" and not marked:
            path.chmod(0o604)
    run = sync_in_turns(source, destination, options, dialler=dialler)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert "ListingPart" not in kinds(run)
    expect_equal(source, destination)
    assert {(source / n).stat().st_nlink for n in ("a", "d/b")} == {2 if links else 1}
    assert {(destination / n).stat().st_nlink for n in ("a", "d/b")} == {2 if links else 1}
    assert sync_in_turns(source, destination, options, dialler=dialler).items == []


@pytest.mark.needs("rsync")
def test_a_short_digest_that_collides_costs_the_listing(
    source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(source, tree(MANY))
    run_sync(source, destination, BOTH)
    give(destination / "many/007", a="x")
    (source / "plain").write_bytes(b"another content")
    for module in ("source.tree_description", "destination.conversation"):
        monkeypatch.setattr(f"rdc.session.{module}.FURTHER_BYTES", 0)
    run = sync_in_turns(source, destination, BOTH)
    assert "ListingPart" in kinds(run)
    assert run.done.exit is ExitCode.OK
    expect_equal(source, destination)


@pytest.mark.needs("rsync")
def test_more_than_is_held_of_our_own_costs_the_listing(
    source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(source, tree(MANY))
    run_sync(source, destination, BOTH)
    (source / "plain").write_bytes(b"another content")
    monkeypatch.setattr(WantedXattrs, "hold", lambda *_: False)
    run = sync_in_turns(source, destination, BOTH)
    assert "ListingPart" in kinds(run)
    expect_equal(source, destination)


def test_one_file_under_another_name(source: Path, destination: Path) -> None:
    destination.mkdir()
    run_sync(os.fsencode(source / "marked"), os.fsencode(destination / "other"), BOTH)
    assert attributes_of(destination) == {"other": ((b"user.a", b"one"), (b"user.b", b""))}


@pytest.mark.needs("rsync")
def test_names_of_one_file(source: Path, destination: Path) -> None:
    os.link(source / "marked", source / "d/again")
    run = run_sync(source, destination, replace(BOTH, hard_links=True))
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    expect_equal(source, destination)


def test_only_who_keeps_owners_keeps_what_root_gives(source: Path, destination: Path) -> None:
    run = run_sync(source, destination, replace(BOTH, owner=False))
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    found = attributes_of(destination)
    assert {name for pairs in found.values() for name, _ in pairs if name.startswith(b"trusted.")} == set()
    assert found["marked"] == attributes_of(source)["marked"]


def test_labels_belong_to_a_machine(source: Path, destination: Path) -> None:
    give(source / "plain", security_other="label of the source")
    run_sync(source, destination, BOTH)
    give(destination / "marked", security_other="label of the destination")
    assert run_sync(source, destination, BOTH).items == []
    assert "plain" not in attributes_of(destination)
    assert dict(attributes_of(destination)["marked"])[b"security.other"] == b"label of the destination"


# What goes wrong on the way


# The command line
