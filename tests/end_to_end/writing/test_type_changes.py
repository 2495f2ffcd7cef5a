"""One entry in place of another, of any kinds: what comes of it, with and without --delete."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import rdc.files.base.taking_names
from rdc.errors import ExitCode
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.trees import Directory, File, Link, Tree, describe, read_tree, tree, write_tree

SOURCES: dict[str, Tree] = {
    "file": tree({"x": b"a file", "y": b"beside"}),
    "link": tree({"x": Link(b"y"), "y": b"beside"}),
    "directory": tree({"x/in/side": b"deep", "y": b"beside"}),
    "empty directory": tree({"x": Directory(0o700), "y": b"beside"}),
}
HELD: dict[str, Tree] = {
    "nothing": tree(),
    "file": tree({"x": File(b"older", 0o600, 1)}),
    "link": tree({"x": Link(b"nowhere", 1)}),
    "link to a directory": tree({"x": Link(b"t", 1), "t/keep": b"t"}),
    "empty directory": tree({"x": Directory(0o700, 1)}),
    "directory": tree({"x/own/deep": b"only here"}),
    "fifo": tree(),
}
NO_EXCHANGE = [None, errno.EINVAL, errno.ENOSYS]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("refusal", NO_EXCHANGE, ids=["with exchange", "without", "unknown"])
@pytest.mark.parametrize("delete", [False, True], ids=["keep", "delete"])
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("source", SOURCES)
def test_in_place_of(
    source: str, held: str, delete: bool, refusal: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = SOURCES[source]
    place, destination = write_tree(tmp_path / "s", wanted), write_tree(tmp_path / "d", HELD[held])
    if held == "fifo":
        os.mkfifo(destination / "x")
    if refusal is not None:

        def refuse(*names: object) -> None:
            raise OSError(refusal, os.strerror(refusal))

        monkeypatch.setattr(rdc.files.base.taking_names, "rename_exchange", refuse)
    run = run_sync(place, destination, SyncOptions(delete=delete, fsync=False))

    blocked = held == "directory" and source in {"file", "link"} and not delete
    kept = {} if delete else {p: n for p, n in HELD[held].items() if not p.startswith(b"x") or blocked}
    if held == "directory" and "directory" in source and not delete:
        kept = HELD[held]
    expected = kept | {path: node for path, node in wanted.items() if path != b"x" or not blocked}
    if "directory" in source and held == "directory" and not delete:
        expected[b"x/own"] = HELD[held][b"x/own"]
    assert describe(expected, read_tree(destination)) == []
    assert run.done.exit == (ExitCode.PARTIAL if blocked else ExitCode.OK)
    assert [problem.message for problem in run.problems] == (
        ["x: a directory is in the way, and it is not empty; --delete or --force removes it"]
        if blocked
        else []
    )
    assert run_sync(place, destination, SyncOptions(delete=delete, fsync=False)).items == []


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
@pytest.mark.parametrize("source", SOURCES)
def test_in_place_of_over_there(source: str, way: Way, tmp_path: Path) -> None:
    place = write_tree(tmp_path / "s", SOURCES[source])
    held = tree({"x/own/deep": b"only here"}) if "directory" not in source else tree({"x": b"a file"})
    destination = write_tree(tmp_path / "d", held)
    assert run_sync(place, destination, SyncOptions(delete=True), way=way).done.exit == ExitCode.OK
    assert describe(SOURCES[source], read_tree(destination)) == []


def test_a_directory_with_something_excluded_stays_as_it_is(tmp_path: Path) -> None:
    """Nothing can take its place, so nothing of it goes, nor anything else."""
    source = write_tree(tmp_path / "s", SOURCES["file"])
    held = tree({"x/a.o": b"mine", "x/b": b"theirs", "z": b"extra"})
    destination = write_tree(tmp_path / "d", held)
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"),)
    run = run_sync(source, destination, SyncOptions(delete=True, rules=rules))
    assert run.done.exit == ExitCode.PARTIAL
    assert [problem.path_bytes for problem in run.problems] == [b"x", b""]
    assert "a filter rule" in run.problems[0].message
    assert "1 deletion was withheld: a new entry did not arrive, " in run.problems[1].message
    assert set(read_tree(destination)) == {b"", b"x", b"x/a.o", b"x/b", b"y", b"z"}
    run = run_sync(source, destination, SyncOptions(delete=True, rules=rules, ignore_errors=True))
    assert [problem.path_bytes for problem in run.problems] == [b"x"]
    assert set(read_tree(destination)) == {b"", b"x", b"x/a.o", b"x/b", b"y"}


def test_something_put_into_the_directory_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exchange finds the directory not empty any more, and takes it back."""
    source = write_tree(tmp_path / "s", SOURCES["file"])
    destination = write_tree(tmp_path / "d", HELD["empty directory"])
    exchange = rdc.files.base.syscalls.rename_exchange
    late = destination / "x" / "late"

    def exchange_late(one: bytes, other: bytes, directory: int) -> None:
        if late.parent.is_dir():
            late.write_bytes(b"mine")
        exchange(one, other, directory)

    monkeypatch.setattr(rdc.files.base.taking_names, "rename_exchange", exchange_late)
    run = run_sync(source, destination)
    assert run.done.exit == ExitCode.PARTIAL
    assert "x: cannot put its new content in place" in run.problems[0].message
    assert late.read_bytes() == b"mine"
    assert set(read_tree(destination)) == {b"", b"x", b"x/late", b"y"}
