"""--update, --existing, --ignore-existing and --size-only, whatever way a content would have come.

What they leave alone is compared with rsync's choice in test_same_results.py.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.limits import SMALL_MANIFEST
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from tests.support.running.paired_sync import Remembering, sync_in_turns
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import (
    LONG_AGO,
    Directory,
    File,
    Link,
    Node,
    Tree,
    describe,
    read_tree,
    tree,
    write_tree,
)

BEFORE, AFTER = LONG_AGO - 1, LONG_AGO + 1
"""Nanoseconds: what is a moment older, and what is a moment newer."""

UPDATE = SyncOptions(update=True, fsync=False)
MANY = {f"many/{number:03}": b"%d" % number for number in range(SMALL_MANIFEST)}

_rng = random.Random(7)
LARGE = _rng.randbytes(300_000)
EDITED = LARGE[:150_000] + b"an edit" + LARGE[150_000:]
SAME_SIZE = LARGE[:150_000] + b"an edit" + LARGE[150_007:]

CONTENTS: dict[str, tuple[bytes, bytes]] = {
    "small": (b"theirs", b"mine, and longer"),
    "small, same size": (b"theirs", b"ours.."),
    "equal": (b"the same", b"the same"),
    "empty": (b"", b"mine"),
    "large, by descent": (EDITED, LARGE),
    "large, same size": (SAME_SIZE, LARGE),
    "large, another one": (_rng.randbytes(200_000), LARGE),
}
"""Of a file, at the source and at the destination."""


@pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])
@pytest.mark.parametrize("checksum", [False, True], ids=["", "checksum"])
@pytest.mark.parametrize("way", Way)
def test_what_is_newer_stays_and_all_else_comes(
    way: Way, checksum: bool, more: dict[str, bytes], tmp_path: Path
) -> None:
    wanted: dict[str, Node | bytes] = {**more}
    held: dict[str, Node | bytes] = {**more}
    for number, (theirs, mine) in enumerate(CONTENTS.values()):
        for name, mtime in (("newer", AFTER), ("equal", LONG_AGO), ("older", BEFORE)):
            wanted[f"{name}/{number}"] = File(theirs, 0o600)
            held[f"{name}/{number}"] = File(mine, 0o644, mtime)
    wanted["new"] = LARGE
    source, destination = write_tree(tmp_path / "s", tree(wanted)), write_tree(tmp_path / "d", tree(held))
    options = replace(UPDATE, checksum=checksum)
    rehearsed = run_sync(source, destination, replace(options, dry_run=True), way=way)
    assert describe(tree(held), read_tree(destination)) == []
    run = run_sync(source, destination, options, way=way)
    assert run.done.exit == ExitCode.OK
    expected = tree(wanted)
    for number, (theirs, mine) in enumerate(CONTENTS.values()):
        newer, equal = (os.fsencode(f"{name}/{number}") for name in ("newer", "equal"))
        expected[newer] = File(mine, 0o644, AFTER)
        if len(theirs) == len(mine) and not checksum:
            expected[equal] = File(mine, 0o600)  # by size and time nothing but its mode differs
    assert describe(expected, read_tree(destination)) == []
    assert not any("newer/" in item for item in run.items)
    assert {item[12:] for item in rehearsed.items} == {item[12:] for item in run.items}


@pytest.mark.parametrize("way", Way)
def test_another_kind_is_never_newer(way: Way, tmp_path: Path) -> None:
    wanted = tree({"a": b"a file", "b": Link(b"a"), "c": b"a file", "d/in": b"deep"})
    held = tree({"a": Link(b"x", AFTER), "b": File(b"x", 0o644, AFTER), "d": File(b"x", 0o644, AFTER)})
    source, destination = write_tree(tmp_path / "s", wanted), write_tree(tmp_path / "d", held)
    (destination / "c").mkdir()
    os.utime(destination / "c", ns=(AFTER, AFTER))
    run_sync(source, destination, UPDATE, way=way)
    assert describe(wanted, read_tree(destination)) == []


def test_links_and_directories_are_brought_up_all_the_same(tmp_path: Path) -> None:
    wanted = tree({"l": Link(b"there"), "d": Directory(0o700)})
    source = write_tree(tmp_path / "s", wanted)
    destination = write_tree(tmp_path / "d", tree({"l": Link(b"here", AFTER), "d": Directory(0o755, AFTER)}))
    run_sync(source, destination, UPDATE)
    assert describe(wanted, read_tree(destination)) == []


@pytest.mark.parametrize("way", Way)
def test_what_moved_does_not_take_the_place_of_a_newer_file(way: Way, tmp_path: Path) -> None:
    """The content of a vanished file is the one wanted under the name of a file that is newer."""
    source = write_tree(tmp_path / "s", tree({"name": LARGE, "log.1": EDITED, "fresh": SAME_SIZE}))
    mine = File(b"mine", 0o644, AFTER)
    held: dict[str, Node | bytes] = {
        "name": mine,
        "old": LARGE,
        "log": EDITED,
        "log.1": mine,
        "gone": SAME_SIZE,
    }
    destination = write_tree(tmp_path / "d", tree(held))
    run = run_sync(source, destination, replace(UPDATE, delete=True), way=way)
    expected = tree({"name": mine, "log.1": mine, "fresh": SAME_SIZE})
    assert describe(expected, read_tree(destination)) == []
    assert "*renaming   gone" in run.items
    assert run.done.literal_bytes == 0


@pytest.mark.parametrize("way", Way)
def test_a_content_for_several_paths_is_not_put_where_a_newer_file_is(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"a": LARGE, "b": LARGE, "c": LARGE, "d": EDITED}))
    mine = File(EDITED, 0o644, AFTER)
    destination = write_tree(tmp_path / "d", tree({"b": mine, "d": File(LARGE, 0o644, BEFORE)}))
    run_sync(source, destination, UPDATE, way=way)
    expected = tree({"a": LARGE, "b": mine, "c": LARGE, "d": EDITED})
    assert describe(expected, read_tree(destination)) == []


WANTED: Tree = tree(
    {"a": b"theirs", "l": Link(b"x"), "new": b"1", "dir/new": b"2", "dir/has": b"3", "nd/x/y": b"4"}
)
HELD: Tree = tree(
    {
        "a": File(b"my own", 0o600, AFTER),
        "l": Link(b"y"),
        "dir": Directory(0o700),
        "dir/has": File(b"old", 0o644, BEFORE),
        "extra": b"mine",
    }
)


@pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])
@pytest.mark.parametrize("delete", [False, True], ids=["", "delete"])
@pytest.mark.parametrize("way", Way)
def test_existing(way: Way, delete: bool, more: dict[str, bytes], tmp_path: Path) -> None:
    """Nothing is made; what is below a directory that is missing is nobody's concern, and no error."""
    source = write_tree(tmp_path / "s", WANTED | tree({f"nd/{name}": data for name, data in more.items()}))
    destination = write_tree(tmp_path / "d", HELD)
    options = SyncOptions(existing=True, delete=delete, fsync=False)
    run = run_sync(source, destination, options, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    expected = {path: node for path, node in WANTED.items() if path in HELD}
    expected |= {} if delete else {b"extra": HELD[b"extra"]}
    assert describe(expected, read_tree(destination)) == []
    assert run_sync(source, destination, options, way=way).items == []


@pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", Way)
def test_ignore_existing(way: Way, more: dict[str, bytes], tmp_path: Path) -> None:
    """What is there stays as it is, whatever its kind; directories come up to the source's."""
    source = write_tree(tmp_path / "s", WANTED | tree({f"nd/{name}": data for name, data in more.items()}))
    held = HELD | tree({"nd": File(b"no directory", 0o600)})
    destination = write_tree(tmp_path / "d", held)
    run = run_sync(source, destination, SyncOptions(ignore_existing=True, fsync=False), way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    expected = held | {path: WANTED[path] for path in (b"", b"new", b"dir", b"dir/new")}
    assert describe(expected, read_tree(destination)) == []


@pytest.mark.parametrize("way", Way)
def test_size_only(way: Way, tmp_path: Path) -> None:
    source = write_tree(
        tmp_path / "s", tree({"a": b"theirs", "b": LARGE, "c": b"longer now", "l": Link(b"x")})
    )
    held: dict[str, Node | bytes] = {
        "a": File(b"my own", 0o600, AFTER),
        "b": File(SAME_SIZE, 0o644, 0),
        "c": b"c",
        "l": Link(b"y"),
    }
    destination = write_tree(tmp_path / "d", tree(held))
    run = run_sync(source, destination, SyncOptions(size_only=True, fsync=False), way=way)
    expected = tree({"a": File(b"my own"), "b": SAME_SIZE, "c": b"longer now", "l": Link(b"x")})
    assert describe(expected, read_tree(destination)) == []
    assert run.done.literal_bytes == len(b"longer now")
    # Contents that are compared are compared.
    run_sync(source, destination, SyncOptions(size_only=True, checksum=True, fsync=False), way=way)
    assert describe(read_tree(source), read_tree(destination)) == []


@pytest.mark.parametrize("dialler", list(Role))
def test_what_was_left_alone_costs_nothing_the_next_time(dialler: Role, tmp_path: Path) -> None:
    """And is looked at again where the options are others, or it is no longer newer."""
    source = write_tree(tmp_path / "s", tree({"f": b"theirs", "sub/g": b"1", **MANY}))
    destination = write_tree(tmp_path / "d", tree({"f": File(b"mine", 0o644, AFTER), **MANY}))
    catalog = Remembering()
    sync_in_turns(source, destination, UPDATE, dialler=dialler, catalog=catalog)
    again = sync_in_turns(source, destination, UPDATE, dialler=dialler, catalog=catalog)
    assert (again.items, again.done.round_trips) == ([], 1)
    # Where the source dials, it sends the destination's path.
    assert again.done.bytes_sent + again.done.bytes_received < 405 + len(os.fsencode(tmp_path))
    os.utime(source / "f", ns=(AFTER + 1, AFTER + 1))
    sync_in_turns(source, destination, UPDATE, dialler=dialler, catalog=catalog)
    assert (destination / "f").read_bytes() == b"theirs"
    (destination / "f").write_bytes(b"mine")
    sync_in_turns(source, destination, UPDATE, dialler=dialler, catalog=catalog)
    sync_in_turns(source, destination, UPDATE, dialler=dialler, catalog=catalog)
    assert (destination / "f").read_bytes() == b"mine"
    sync_in_turns(source, destination, dialler=dialler, catalog=catalog)
    assert (destination / "f").read_bytes() == b"theirs"


@pytest.mark.parametrize("word", ["-u", "--existing", "--ignore-existing", "--size-only"])
def test_watch_does_not_take_them(word: str, tmp_path: Path) -> None:
    ended = command("watch", word, tmp_path, tmp_path / "d")
    assert ended.code == ExitCode.USAGE
    assert word in ended.err
