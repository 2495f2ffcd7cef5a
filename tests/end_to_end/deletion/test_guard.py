"""--guard: a mass change changes nothing, a mass deletion deletes nothing. A terminal is asked."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.cli.options.sync_options import parse_sync, read_request
from rdc.errors import ExitCode
from rdc.limits import SMALL_MANIFEST
from rdc.model.sync import SyncOptions
from tests.support.running.on_terminal import on_terminal
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import File, Tree, read_tree, tree, write_tree


def pair(top: Path, *, same: int, other: int, more: int = 0) -> tuple[Path, Path]:
    """A source and a destination: so many files of one content, of another one, and at the source alone."""
    kept: Tree = {b"same/%d" % n: File(b"s", 0o644, 10**18) for n in range(same)}
    wanted = {b"other/%d" % n: File(b"new %d" % n, 0o600, 10**18 + n) for n in range(other)}
    held = {path: File(b"old", 0o644, 10**18) for path in wanted}
    new = {b"new/%d" % n: File(b"n", 0o644, 10**18) for n in range(more)}
    return write_tree(top / "s", tree_of(kept | wanted | new)), write_tree(top / "d", tree_of(kept | held))


def tree_of(nodes: Tree) -> Tree:
    return tree({os.fsdecode(path): node for path, node in nodes.items()})


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("same", [60, 60 + SMALL_MANIFEST], ids=["listed", "by manifest"])
def test_a_mass_change_changes_nothing(same: int, way: Way, tmp_path: Path) -> None:
    source, destination = pair(tmp_path, same=same, other=same, more=3)
    before = read_tree(destination)
    options = SyncOptions(guard=40, delete=True, fsync=False, hard_links=True)
    for dry in (True, False):
        run = run_sync(source, destination, replace(options, dry_run=dry), way=way)
        assert (run.done.exit, run.done.changed, run.items) == (ExitCode.MAX_DELETE, 0, [])
        assert f"{same:,} of {2 * same + 2:,} entries would change" in run.problems[0].message
        assert read_tree(destination) == before
    run = run_sync(source, destination, replace(options, guard=50), way=way)
    assert (run.done.exit, read_tree(destination)) == (ExitCode.OK, read_tree(source))
    assert run_sync(source, destination, replace(options, guard=0), way=way).items == []


def test_what_options_leave_alone_is_no_change(tmp_path: Path) -> None:
    source, destination = pair(tmp_path, same=10, other=100)
    run = run_sync(source, destination, SyncOptions(guard=10, ignore_existing=True, fsync=False))
    assert run.done.exit is ExitCode.OK
    run = run_sync(source, destination, SyncOptions(guard=10, fsync=False))
    assert run.done.exit is ExitCode.MAX_DELETE


def test_new_and_few_entries_are_not_guarded(tmp_path: Path) -> None:
    source, destination = pair(tmp_path, same=1, other=90, more=200)
    assert run_sync(source, destination, SyncOptions(guard=0, fsync=False)).done.exit is ExitCode.OK
    assert run_sync(source, tmp_path / "empty", SyncOptions(guard=0, fsync=False)).done.exit is ExitCode.OK


@pytest.mark.parametrize(
    ("words", "share"),
    [
        ([], None),
        (["--guard=7%"], 7),
        (["--guard=7%", "--no-guard"], None),
        (["--no-guard", "--guard=0%"], 0),
    ],
)
def test_the_last_word_counts(words: list[str], share: int | None) -> None:
    assert read_request(parse_sync([*words, "a", "b"]), lambda name: b"").options.guard == share


def test_a_script_is_guarded_only_where_that_is_set(tmp_path: Path) -> None:
    source, destination = pair(tmp_path, same=10, other=150)
    words = ("sync", "--delete", "--no-fsync", "--no-catalog", f"{source}/", f"{destination}/")
    guarded = command(*words, "--guard=50%")
    assert guarded.code == ExitCode.MAX_DELETE and "150 of 162 entries would change" in guarded.err
    assert command(*words).code == ExitCode.OK
    assert read_tree(destination) == read_tree(source)


def test_a_terminal_is_asked(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"keep": b"k"}))
    destination = write_tree(tmp_path / "d", tree({f"x/{number}": b"x" for number in range(120)}))
    words = ("--delete", f"{source}/", f"{destination}/")
    code, said = on_terminal(b"n\n", *words)
    assert code == ExitCode.MAX_DELETE and "121 of 122 entries would go" in said, said
    assert len(read_tree(destination)) == 123
    code, said = on_terminal(b"yes\n", *words)
    assert code == ExitCode.OK and "121 deleted" in said, said
    assert set(read_tree(destination)) == {b"", b"keep"}


@pytest.mark.parametrize("word", ["--quiet", "--json"])
def test_a_quiet_run_on_a_terminal_asks_as_well(word: str, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"keep": b"k"}))
    destination = write_tree(tmp_path / "d", tree({f"x/{number}": b"x" for number in range(120)}))
    words = (word, "--delete", f"{source}/", f"{destination}/")
    code, said = on_terminal(b"n\n", *words)
    assert code == ExitCode.MAX_DELETE and "121 of 122 entries would go" in said and "[y/N]" in said, said
    assert len(read_tree(destination)) == 123
    code, said = on_terminal(b"y\n", *words)
    assert code == ExitCode.OK, said
    assert set(read_tree(destination)) == {b"", b"keep"}


def test_a_terminal_is_not_asked_without_need(tmp_path: Path) -> None:
    source, destination = pair(tmp_path, same=10, other=150)
    code, said = on_terminal(b"n\n", "--delete", "--no-guard", f"{source}/", f"{destination}/")
    assert code == ExitCode.OK and "[y/N]" not in said, said
