"""Deletion is the one thing that cannot be undone: when it happens, when it must not, and in what order."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode, RdcError
from rdc.library.trees import sync
from rdc.limits import SMALL_MANIFEST
from rdc.model.entries import Listed
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.progress import Event, ItemChanged
from rdc.tree.walk import ListAhead, Walk
from tests.support.running.syncing import Way, command, contents_of, run_sync
from tests.support.trees.trees import Directory, Tree, describe, read_tree, tree, write_tree
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

EXTRA = tree({"keep": b"k", "x": b"1", "y": b"2", "d/z": b"3", "d/e/z": b"4"})


def paths(top: Path) -> set[bytes]:
    return set(read_tree(top)) - {b""}


@pytest.mark.parametrize("way", list(Way))
def test_an_empty_source_deletes_nothing_unless_forced(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree(top=Directory(0o750)))
    destination = write_tree(tmp_path / "destination", EXTRA)
    run = run_sync(source, destination, SyncOptions(delete=True), way=way)
    assert run.done.exit == ExitCode.PARTIAL
    assert [problem.message for problem in run.problems] == [
        "nothing was deleted: the source is empty; --force-empty deletes everything even so"
    ]
    assert describe(EXTRA | {b"": Directory(0o750)}, read_tree(destination)) == []

    run = run_sync(source, destination, SyncOptions(delete=True, force_empty=True), way=way)
    assert (run.done.exit, run.done.deleted, paths(destination)) == (ExitCode.OK, len(EXTRA) - 1, set())


def test_an_empty_directory_named_without_a_slash_is_as_empty(tmp_path: Path) -> None:
    write_tree(tmp_path / "source", tree())
    write_tree(tmp_path / "destination", tree({"source/mine": b"only copy"}))
    words = ("sync", "--delete", tmp_path / "source", tmp_path / "destination")
    ended = command(*words)
    assert ended.code == ExitCode.PARTIAL and "the source is empty" in ended.complaints[0]
    assert paths(tmp_path / "destination") == {b"source", b"source/mine"}
    assert command(*words, "--force-empty").code == ExitCode.OK
    assert paths(tmp_path / "destination") == {b"source"}


def test_a_source_whose_every_entry_is_excluded_is_empty(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"a.o": b""}))
    destination = write_tree(tmp_path / "destination", tree({"mine": b""}))
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"),)
    run = run_sync(source, destination, SyncOptions(delete=True, rules=rules))
    assert run.done.exit == ExitCode.PARTIAL
    assert paths(destination) == {b"mine"}


@pytest.mark.parametrize("more", [0, SMALL_MANIFEST], ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", list(Way))
def test_what_rules_exclude_goes_where_that_is_asked_for(way: Way, more: int, tmp_path: Path) -> None:
    many = {f"many/{number}": b"%d" % number for number in range(more)}
    source = write_tree(
        tmp_path / "source", tree({"a": b"1", "a.o": b"2", "d/b": b"3", "out/c": b"4"} | many)
    )
    held = tree(
        {"a": b"1", "a.o": b"2", "b.o": b"5", "d/b": b"3", "d/e/f.o": b"6", "out/deep/g": b"7"} | many
    )
    destination = write_tree(tmp_path / "destination", held)
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"), FilterRule(RuleAction.EXCLUDE, b"/out"))
    run = run_sync(source, destination, SyncOptions(delete=True, rules=rules), way=way)
    assert (run.problems, paths(destination)) == ([], set(held) - {b""})

    options = SyncOptions(delete=True, delete_excluded=True, rules=rules)
    rehearsed = run_sync(source, destination, replace(options, dry_run=True), way=way)
    assert paths(destination) == set(held) - {b""}
    run = run_sync(source, destination, options, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    left = {b"a", b"d", b"d/b"} | set(tree(many)) - {b""}
    assert paths(destination) == left
    gone = {"a.o", "b.o", "d/e/f.o", "d/e/", "out/deep/g", "out/deep/", "out/"}
    deleted = [item.partition(" ")[2].strip() for item in run.items if item.startswith("*")]
    assert set(deleted) == gone
    assert sorted(rehearsed.items) == sorted(run.items)
    assert set(read_tree(source)) == set(tree({"a.o": b"", "out/c": b"", "d/b": b"", "a": b""} | many))
    assert run_sync(source, destination, options, way=way).items == []


def test_what_is_not_deleted_needs_no_rule(tmp_path: Path) -> None:
    """A peer may ask for --delete-excluded alone."""
    source = write_tree(tmp_path / "source", tree({"a": b"1"}))
    destination = write_tree(tmp_path / "destination", tree({"x.o": b"5"}))
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"),)
    run_sync(source, destination, SyncOptions(delete_excluded=True, rules=rules))
    assert paths(destination) == {b"a", b"x.o"}


def test_a_source_whose_every_entry_is_excluded_empties_nothing(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"a.o": b""}))
    destination = write_tree(tmp_path / "destination", tree({"mine.o": b""}))
    words = ("sync", "--delete-excluded", "--exclude=*.o", f"{source}/", destination)
    assert command(*words).code == ExitCode.PARTIAL
    assert paths(destination) == {b"mine.o"}
    assert command(*words, "--force-empty").code == ExitCode.OK
    assert paths(destination) == set()


def test_an_empty_source_with_nothing_to_delete_is_no_problem(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree())
    destination = write_tree(tmp_path / "destination", tree({"a.o": b""}))
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"),)
    assert run_sync(source, destination, SyncOptions(delete=True, rules=rules)).done.exit == ExitCode.OK
    assert paths(destination) == {b"a.o"}


@pytest.mark.parametrize("way", list(Way))
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_missing_source_deletes_nothing(slash: str, way: Way, tmp_path: Path) -> None:
    destination = write_tree(tmp_path / "destination", EXTRA)
    with pytest.raises(RdcError, match="source") as caught:
        run_sync(os.fsencode(f"{tmp_path}/source{slash}"), destination, SyncOptions(delete=True), way=way)
    assert caught.value.code == ExitCode.PARTIAL
    assert describe(EXTRA, read_tree(destination)) == []


@pytest.mark.parametrize("slash", [b"", b"/"])
def test_an_unreadable_directory_stops_deletion(slash: bytes) -> None:
    with place_of_nobody() as place:

        def work() -> tuple[ExitCode, list[str], set[bytes], set[bytes]]:
            source = write_tree(place / "s", tree({"closed/a": b"a", "open/b": b"b", "f": b"new"}))
            (source / "closed").chmod(0o000)
            held = tree({"closed/a": b"old", "closed/more": b"m", "extra": b"e", "open/extra": b"e"})
            destination = write_tree(place / "d", held if slash else tree({"s": Directory()}))
            if not slash:
                shutil.rmtree(destination / "s")
                write_tree(destination / "s", held)
            run = run_sync(os.fsencode(source) + slash, destination, SyncOptions(delete=True))
            messages = [problem.message for problem in run.problems]
            top = destination if slash else destination / "s"
            (top / "closed").chmod(0o700)
            return run.done.exit, messages, set(held), paths(top)

        code, messages, held, found = as_nobody(work)
        assert code == ExitCode.PARTIAL
        assert held - {b""} <= found and {b"f", b"open/b"} <= found
        assert len(messages) == 2
        assert "closed: cannot list the directory" in messages[0]
        assert messages[1] == (
            "2 deletions were withheld: the source could not be read completely (1 error);"
            " --ignore-errors deletes anyway"
        )


def test_a_directory_that_vanishes_while_it_is_listed_stops_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_tree(tmp_path / "source", tree({"d/a": b"a", "f": b"f"}))
    destination = write_tree(tmp_path / "destination", tree({"d/a": b"a", "extra": b"e"}))
    look = Walk._list

    def vanish(self: Walk, path: bytes, lister: ListAhead, following: Sequence[bytes]) -> Listed:
        found = look(self, path, lister, following)
        if b"d" in found.listing.names.split(b"\0") and self._root.label.startswith(bytes(source)):
            shutil.rmtree(source / "d", ignore_errors=True)
        return found

    monkeypatch.setattr(Walk, "_list", vanish)
    run = run_sync(source, destination, SyncOptions(delete=True))
    assert {problem.code for problem in run.problems} == {ExitCode.VANISHED, ExitCode.PARTIAL}
    assert paths(destination) == {b"d", b"d/a", b"extra", b"f"}


@pytest.mark.parametrize("limit", [0, 1, 3, 5, 6, 9])
@pytest.mark.parametrize("dry", [False, True])
def test_max_delete_stops_there(limit: int, dry: bool, tmp_path: Path) -> None:
    left = max(0, 6 - limit)
    source = write_tree(tmp_path / "source", tree({"keep": b"k"}))
    destination = write_tree(tmp_path / "destination", EXTRA)
    ended = command(
        "sync", "--delete", f"--max-delete={limit}", f"{source}/", destination, *(["-n"] if dry else [])
    )
    assert ended.code == (ExitCode.MAX_DELETE if left else ExitCode.OK)
    assert len(ended.complaints) == bool(left)
    assert not left or f"the limit is {limit} (--max-delete)" in ended.complaints[0]
    assert len(paths(destination) - {b"keep"}) == (6 if dry else left)


@pytest.mark.parametrize(("share", "left"), [(0, 6), (14, 6), (15, 5), (50, 3), (85, 1), (86, 0), (100, 0)])
@pytest.mark.parametrize("way", Way)
def test_max_delete_takes_a_share_of_what_is_there(way: Way, share: int, left: int, tmp_path: Path) -> None:
    """Of seven entries: the file that this run made, and six that have to go."""
    source = write_tree(tmp_path / "source", tree({"keep": b"k"}))
    destination = write_tree(tmp_path / "destination", EXTRA)
    run = run_sync(source, destination, SyncOptions(delete=True, max_delete_share=share), way=way)
    assert run.done.exit == (ExitCode.MAX_DELETE if left else ExitCode.OK)
    assert len(paths(destination) - {b"keep"}) == left


@pytest.mark.parametrize("value", ["101%", "%", "-1%", "5.5%", "0x1%", "1000%"])
def test_a_wrong_share_is_refused(value: str, tmp_path: Path) -> None:
    ended = command("sync", "--delete", f"--max-delete={value}", f"{tmp_path}/", tmp_path / "d")
    assert ended.code == ExitCode.USAGE
    assert "a share from 0% to 100% is expected" in ended.err


@pytest.mark.parametrize(("share", "goes"), [(0, False), (59, False), (60, True), (100, True)])
@pytest.mark.parametrize("way", Way)
def test_a_guard_keeps_all_or_nothing(way: Way, share: int, goes: bool, tmp_path: Path) -> None:
    """Of 100 entries, new ones included, sixty would go: one directory and what is in it."""
    source = write_tree(tmp_path / "source", tree({f"k{number}": b"k" for number in range(40)}))
    gone = tree({f"gone/{number}": b"g" for number in range(59)})
    destination = write_tree(tmp_path / "destination", gone)
    run = run_sync(source, destination, SyncOptions(delete=True, guard=share), way=way)
    assert run.done.exit == (ExitCode.OK if goes else ExitCode.MAX_DELETE)
    assert len(paths(destination)) == (40 if goes else 100)
    assert goes or "60 of 100 entries would go" in run.problems[0].message
    rehearsed = run_sync(source, destination, SyncOptions(delete=True, guard=share, dry_run=True), way=way)
    assert rehearsed.done.exit == run.done.exit


def test_a_guard_does_not_look_at_few_entries(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"keep": b"k"}))
    destination = write_tree(tmp_path / "destination", EXTRA)
    assert run_sync(source, destination, SyncOptions(delete=True, guard=0)).done.exit == ExitCode.OK
    assert paths(destination) == {b"keep"}


def test_deletions_come_last(tmp_path: Path) -> None:
    """When the first entry goes, everything new is in place, durable, with its content, but for what has a
    directory in its way. That comes before all other deletions. With a depth of 1 no entry goes before the
    one that is told of."""
    wanted = tree({"a": b"new", "big": bytes(3 << 20), "d/f": b"f", "z": b"z", "kind": b"a file now"})
    source = write_tree(tmp_path / "source", wanted)
    held = tree({"a": b"older", "0": b"extra", "d/extra": b"extra", "z-extra": b"extra", "kind/x": b""})
    destination = write_tree(tmp_path / "destination", held)
    seen: list[tuple[str, set[bytes]]] = []

    def look(event: Event) -> None:
        if isinstance(event, ItemChanged):
            seen.append((event.change, paths(destination)))

    sync(f"{source}/", str(destination), SyncOptions(delete=True, depth=1), reporter=look)
    changes = [change for change, _ in seen]
    first = changes.index("*deleting  ")
    assert changes[first : first + 2] == ["*deleting  ", ">f+++++++++"]
    assert all(change.startswith("*deleting") for change in changes[first + 2 :])
    assert {b"a", b"big", b"d/f", b"z"} <= seen[first][1]
    assert held.keys() - {b"", b"kind/x"} <= seen[first][1]
    assert held.keys() - {b"", b"kind/x"} <= seen[first + 1][1]
    assert describe(wanted, read_tree(destination)) == []


def test_the_owner_deletes_in_read_only_directories() -> None:
    """Who may change the mode may also delete, as with rsync, and the mode is as before afterwards."""
    wanted = tree({"d/a": b"a"}) | {b"d": Directory(0o555), b"": Directory(0o555)}
    with place_of_nobody() as place:

        def work() -> tuple[ExitCode, list[str], Tree]:
            source = write_tree(place / "source", wanted)
            held = tree({"d/a": b"a", "d/extra": b"e", "more/x/y": b""})
            held |= {path: Directory(0o555) for path in (b"", b"d", b"more", b"more/x")}
            destination = write_tree(place / "destination", held)
            run = run_sync(contents_of(source), destination, SyncOptions(delete=True))
            return run.done.exit, [problem.message for problem in run.problems], read_tree(destination)

        code, messages, found = as_nobody(work)
        assert (code, messages) == (ExitCode.OK, [])
        assert describe(wanted, found) == []
