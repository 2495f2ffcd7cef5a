"""-H, -A and -X where -u, --existing, --ignore-existing or --size-only leave some entries as they are.

What rsync does is the reference, but where it links a name over a newer file with -u: that one stays.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode, UsageError
from rdc.library.trees import watch
from rdc.limits import SMALL_MANIFEST
from rdc.model.location import Location
from rdc.model.sync import SyncOptions
from rdc.watching.records import WatchOptions
from tests.support.running.syncing import Run, Way, command, run_sync
from tests.support.share import share
from tests.support.trees.hard_links import group, groups, link
from tests.support.trees.trees import (
    LONG_AGO,
    Directory,
    File,
    Link,
    Tree,
    describe,
    read_tree,
    tree,
    write_tree,
)

NAMES = ("a", "d/b", "e/c")
DAY = 86_400 * 10**9
STATES = {
    "missing": None,
    "as at the source": File(b"content", 0o644, LONG_AGO),
    "older": File(b"older version", 0o644, LONG_AGO - DAY),
    "newer": File(b"newer version", 0o644, LONG_AGO + DAY),
    "other mode": File(b"content", 0o600, LONG_AGO),
    "of equal size": File(b"CONTENT", 0o644, LONG_AGO - DAY),
}
OPTIONS = {
    "-u": SyncOptions(update=True, hard_links=True, fsync=False),
    "--existing": SyncOptions(existing=True, hard_links=True, fsync=False),
    "--ignore-existing": SyncOptions(ignore_existing=True, hard_links=True, fsync=False),
    "--size-only": SyncOptions(size_only=True, hard_links=True, fsync=False),
}
MANY = {f"many/{number:03}": b"%d" % number for number in range(SMALL_MANIFEST)}
EVERY_STATE = share(list(itertools.product(STATES, repeat=len(NAMES))), 5)
"""Five is prime to the number of states, so a share has every state of every name."""


def is_left(option: str, state: str) -> bool:
    """Return whether a name of that state stays as it is."""
    match option:
        case "-u":
            return state == "newer"
        case "--existing":
            return state == "missing"
        case "--ignore-existing":
            return state != "missing"
        case _:
            return False


@pytest.fixture
def place(ext4: Path) -> Path:
    return ext4


def scene(place: Path, states: tuple[str, ...], more: dict[str, bytes]) -> tuple[Path, Path, Tree]:
    """SRC with one file of all names, DST with each in its state, and what is at DST."""
    place.mkdir(exist_ok=True)
    empty = {"d": Directory(), "e": Directory()}
    source = write_tree(place / "s", tree(dict.fromkeys(NAMES, File(b"content"))) | tree(more))
    link(source, *NAMES)
    found = {name: file for name, state in zip(NAMES, states, strict=True) if (file := STATES[state])}
    held = tree(empty) | tree(found) | tree(more)
    return source, write_tree(place / "d", held), held


def expect(option: str, states: tuple[str, ...], held: Tree, destination: Path) -> None:
    left = {name for name, state in zip(NAMES, states, strict=True) if is_left(option, state)}
    after = read_tree(destination)
    for name in left:
        assert after.get(os.fsencode(name)) == held.get(os.fsencode(name)), name
    rest = [name for name in NAMES if name not in left]
    contents = {(destination / name).read_bytes() for name in rest}
    assert contents <= ({b"content", b"CONTENT"} if option == "--size-only" else {b"content"})
    assert groups(destination) == ({group(*rest)} if len(rest) > 1 else set())
    assert all((destination / name).stat().st_mtime_ns == LONG_AGO for name in rest)
    assert all((destination / name).stat().st_mode & 0o777 == 0o644 for name in rest)


@pytest.mark.parametrize("option", OPTIONS)
def test_every_state_of_three_names(option: str, place: Path) -> None:
    """Those that are left alone are as they were; the others are one file."""
    for number, states in enumerate(EVERY_STATE):
        source, destination, held = scene(place / str(number), states, {})
        rehearsed = run_sync(source, destination, replace(OPTIONS[option], dry_run=True))
        assert describe(held, read_tree(destination)) == []
        run = run_sync(source, destination, OPTIONS[option])
        assert (run.done.exit, run.problems) == (ExitCode.OK, []), states
        expect(option, states, held, destination)
        assert told(rehearsed) == told(run), states
        assert run_sync(source, destination, OPTIONS[option]).items == [], states


def told(run: Run) -> list[str]:
    """Return the entries alone: a rehearsal cannot know whether a content was sent or found equal."""
    return sorted(item[1:] for item in run.items)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", Way)
def test_some_of_them_at_two_ends(way: Way, more: dict[str, bytes], option: str, place: Path) -> None:
    for number, states in enumerate(EVERY_STATE[list(Way).index(way) :: 14]):
        source, destination, held = scene(place / str(number), states, more)
        run = run_sync(source, destination, OPTIONS[option], way=way)
        assert (run.done.exit, run.problems) == (ExitCode.OK, []), states
        expect(option, states, held, destination)


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("option", OPTIONS)
def test_as_rsync_has_it(option: str, place: Path) -> None:
    """But for further names that are newer, which rsync -u links all the same."""
    for number, states in enumerate(EVERY_STATE[::2]):
        if option == "-u" and "newer" in states:
            continue
        top = place / str(number)
        source, destination, _ = scene(top, states, {})
        subprocess.run(["cp", "-a", destination, top / "theirs"], check=True)
        argv = ["rsync", "-aH", "--modify-window=-1", option, f"{source}/", f"{top}/theirs/"]
        subprocess.run(argv, check=True)
        ended = command("sync", "-aH", option, "--no-fsync", f"{source}/", f"{destination}/")
        assert ended.code == 0
        if option != "--size-only":  # which of several contents of equal size all get is each one's choice
            assert describe(read_tree(top / "theirs"), read_tree(destination)) == [], states
        assert groups(destination) == groups(top / "theirs"), states


def test_names_that_are_one_file_and_newer_stay_one(place: Path) -> None:
    source, destination, _ = scene(place, ("newer", "newer", "older"), {})
    link(destination, "a", "d/b")
    run = run_sync(source, destination, OPTIONS["-u"])
    assert run.problems == []
    assert groups(destination) == {group("a", "d/b")}
    assert (destination / "a").read_bytes() == b"newer version"
    assert (destination / "e/c").read_bytes() == b"content"
    assert run_sync(source, destination, OPTIONS["-u"]).items == []


def test_names_of_one_file_that_has_its_size(place: Path) -> None:
    """Setting one right sets them all right: one line, also in a rehearsal."""
    source, destination, _ = scene(place, ("of equal size",) * 3, {})
    link(destination, *NAMES)
    inode = (destination / "a").stat().st_ino
    rehearsed = run_sync(source, destination, replace(OPTIONS["--size-only"], dry_run=True))
    run = run_sync(source, destination, OPTIONS["--size-only"])
    assert rehearsed.items == run.items == [".f..t...... a"]
    assert groups(destination) == {group(*NAMES)}
    assert (destination / "e/c").stat().st_ino == inode
    assert (destination / "e/c").stat().st_mtime_ns == LONG_AGO
    assert run_sync(source, destination, OPTIONS["--size-only"]).items == []


def test_names_below_what_is_not_made(place: Path) -> None:
    """The first name's directory is not there, and is not to be: the others are linked among themselves."""
    source = write_tree(place / "s", tree(dict.fromkeys(("0/deep/a", "b", "c/x", "z/y"), b"content")))
    link(source, "0/deep/a", "b", "c/x", "z/y")
    destination = write_tree(place / "d", tree({"b": b"old", "z/y": b"older"}))
    run = run_sync(source, destination, OPTIONS["--existing"])
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert set(read_tree(destination)) == {b"", b"b", b"z", b"z/y"}
    assert groups(destination) == {group("b", "z/y")}


# Attributes


def give(path: Path, value: bytes) -> None:
    os.setxattr(path, "user.of", value)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("way", Way)
def test_who_is_left_alone_keeps_his_attributes(way: Way, option: str, place: Path) -> None:
    files = {"new": b"1", "newer": b"2", "older": b"3", "same": b"4", "in/same": b"5", "fresh/file": b"6"}
    source = write_tree(place / "s", tree(files))
    held = {
        "newer": File(b"kept", 0o644, LONG_AGO + DAY),
        "older": File(b"a change", 0o644, LONG_AGO - DAY),
        "same": File(b"4"),
        "in/same": File(b"5"),
    }
    destination = write_tree(place / "d", tree(held))
    for name in (*files, "in", "fresh"):
        give(source / name, b"source")
    for name in (*held, "in"):
        give(destination / name, b"here")
    options = replace(OPTIONS[option], hard_links=False, xattrs=True, acls=True)
    rehearsed = run_sync(source, destination, replace(options, dry_run=True), way=way)
    run = run_sync(source, destination, options, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert told(rehearsed) == told(run)
    kept = {
        "-u": {"newer"},
        "--existing": set(),
        "--ignore-existing": set(held),
        "--size-only": set(),
    }[option]
    missing = {"new", "fresh", "fresh/file"} if option == "--existing" else set()
    for name in {*files, "in", "fresh"} - missing:
        assert os.getxattr(destination / name, "user.of") == (b"here" if name in kept else b"source"), name
    assert all(not (destination / name).exists() for name in missing)
    assert run_sync(source, destination, options, way=way).items == []


# Sizes


@pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", Way)
def test_files_of_other_sizes(way: Way, more: dict[str, bytes], place: Path) -> None:
    """They are not made, not changed and not deleted; nor is what has the place of one."""
    files = {"at least": b"2b", "in/at most": b"four", "in/large": b"large", "small": b"1", "empty": b"",
             "was link": b"large", "was dir": b"large", "same/large": b"large"}  # fmt: skip
    source = write_tree(place / "s", tree(files) | tree(more))
    link(source, "in/large", "was link", "was dir")
    link(source, "at least", "linked")
    held = tree({"was dir/own": b"1", "small": b"older", "same/large": b"large", "gone": b"123456"} | more)
    held |= {b"in": Directory(), b"in/large": File(b"old", 0o600), b"was link": Link(b"x")}
    destination = write_tree(place / "d", held)
    for name in ("same/large", "in/at most", "in"):
        give(source / name, b"source")
    options = SyncOptions(min_size=2, max_size=4, delete=True, hard_links=True, xattrs=True, fsync=False)
    rehearsed = run_sync(source, destination, replace(options, dry_run=True), way=way)
    assert describe(held, read_tree(destination)) == []
    run = run_sync(source, destination, options, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert told(rehearsed) == told(run)
    expected = dict(held)
    del expected[b"gone"]
    found = read_tree(source)
    expected |= {path: found[path] for path in (b"at least", b"linked", b"in/at most", b"in", b"same", b"")}
    expected |= {
        os.fsencode(name): found[os.fsencode(name)] for name in more if not 2 <= len(more[name]) <= 4
    }
    assert describe(expected, read_tree(destination)) == []
    assert groups(destination) == {group("at least", "linked")}
    assert os.listxattr(destination / "same/large") == []
    assert os.getxattr(destination / "in/at most", "user.of") == b"source"
    again = run_sync(source, destination, options, way=way)
    assert (again.items, again.problems) == ([], [])
    # Without the bounds they come.
    run = run_sync(source, destination, SyncOptions(delete=True, hard_links=True, fsync=False), way=way)
    assert describe(read_tree(source), read_tree(destination)) == []


def test_a_settled_pair_is_so_for_the_same_sizes_only(place: Path) -> None:
    source = write_tree(place / "s", tree({"large": b"x" * 100} | MANY))
    destination = place / "d"
    words = ("sync", "--json", "--no-fsync", f"--catalog={place}/catalog", f"{source}/", f"{destination}/")
    for size in ("10", "10", "200", "10"):
        ended = command(*words[:2], f"--max-size={size}", *words[2:])
        assert ended.code == 0
        assert (destination / "large").exists() == (size == "200")
        (destination / "large").unlink(missing_ok=True)
        os.utime(destination, ns=(LONG_AGO, LONG_AGO))


@pytest.mark.parametrize(
    "word", ["--max-size=-1", "--max-size=0-1", "--min-size=1x", "--max-size=", "--min-size=+1"]
)
def test_sizes_that_are_none(word: str, place: Path) -> None:
    ended = command("sync", word, f"{place}/", place / "d")
    assert ended.code == ExitCode.USAGE
    assert word in ended.err


def test_not_in_a_watch(place: Path) -> None:
    ended = command("watch", "--max-size=0", place, place / "d")
    assert ended.code == ExitCode.USAGE
    here, there = (Location(None, os.fsencode(path)) for path in (place, place / "d"))
    for sync in (SyncOptions(max_size=0), SyncOptions(min_size=1)):
        with pytest.raises(UsageError, match="rdc watch does not take --m"):
            watch(here, there, WatchOptions(sync), catalog=None)


def test_the_command(place: Path) -> None:
    source = write_tree(place / "s", tree({"a": b"1", "l": Link(b"a"), "n": b"2"}))
    link(source, "a", "b")
    give(source / "a", b"source")
    destination = write_tree(place / "d", tree({"a": File(b"mine", 0o644, LONG_AGO + DAY)}))
    ended = command("sync", "-aHAXui", f"{source}/", f"{destination}/")
    assert ended.code == 0
    assert sorted(ended.out.splitlines()) == [">f+++++++++ b", ">f+++++++++ n", "cL+++++++++ l -> a"]
    assert (destination / "a").read_bytes() == b"mine"
    assert os.getxattr(destination / "b", "user.of") == b"source"
