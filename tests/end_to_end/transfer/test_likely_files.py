"""Files that the source takes for changed: their trees come unasked, and change nothing but the time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.lean.records import replace
from rdc.limits import LIKELY_FILES
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Message, Role, TreeAnswer
from rdc.session.destination.comparison import ManifestComparison
from rdc.session.source.tree_description import Description, LikelyFiles
from tests.support.running.delta_sync import counts, edited, text
from tests.support.running.paired_sync import sync_in_turns
from tests.support.trees.trees import LONG_AGO, File, Tree, describe, litter, read_tree, tree, write_tree
from tests.support.wire.lying_source import answering

LATER = LONG_AGO + 10**9
OLD = {f"d{i // 50}/f{i:03}": text(i, 3_000 + 40 * i) for i in range(300)}
CHANGED = [f"d{i // 50}/f{i:03}" for i in (3, 70, 71, 140, 220)]
NEW: dict[str, bytes | File] = {
    **OLD,
    **{name: File(edited(OLD[name], 1), mtime_ns=LATER) for name in CHANGED},
}

DIALLERS = pytest.mark.parametrize("dialler", list(Role), ids=lambda role: f"{role.name.lower()} dials")


def places(tmp_path: Path, after: Tree) -> tuple[Path, Path]:
    return write_tree(tmp_path / "source", after), write_tree(tmp_path / "destination", tree(OLD))


def check(source: Path, destination: Path) -> None:
    assert litter(read_tree(destination)) == []
    assert describe(read_tree(source), read_tree(destination)) == []


@DIALLERS
def test_changed_files_need_no_request_for_their_trees(dialler: Role, tmp_path: Path) -> None:
    source, destination = places(tmp_path, tree(NEW))
    run = sync_in_turns(source, destination, dialler=dialler)
    check(source, destination)
    found = counts(run)
    assert (found["LikelyAnswer"], found["TreeAnswer"]) == (1, len(CHANGED))
    assert not found.keys() & {"TreeRequest", "BundleRequest"}
    assert run.done.round_trips == 4


def test_new_files_come_whole_and_their_trees_are_dropped(tmp_path: Path) -> None:
    new = {"d0/new": File(text(9, 9_000), mtime_ns=LATER), "d9/new": File(text(8, 70_000), mtime_ns=LATER)}
    source, destination = places(tmp_path, tree({**NEW, **new}))
    run = sync_in_turns(source, destination)
    check(source, destination)
    assert counts(run)["TreeAnswer"] == len(CHANGED) + len(new)
    assert run.done.literal_bytes < 79_000 + 3_000


def test_what_the_destination_leaves_alone_stays(tmp_path: Path) -> None:
    new = {"d0/new": File(text(9, 9_000), mtime_ns=LATER)}
    source, destination = places(tmp_path, tree({**NEW, **new}))
    run = sync_in_turns(source, destination, SyncOptions(fsync=False, existing=True, max_size=8_000))
    assert run.problems == []
    kept = read_tree(destination)
    assert b"d0/new" not in kept
    assert kept[b"d4/f220"] == tree(OLD)[b"d4/f220"]  # of 11,800 bytes
    assert kept[b"d0/f003"] == tree(NEW)[b"d0/f003"]


@pytest.mark.parametrize("touched", [3, 40])
def test_files_that_were_only_touched(touched: int, tmp_path: Path) -> None:
    again = {name: File(OLD[name], mtime_ns=LATER) for name in list(OLD)[100 : 100 + touched]}
    source, destination = places(tmp_path, tree({**NEW, **again}))
    run = sync_in_turns(source, destination)
    check(source, destination)
    likely = len(CHANGED) + touched
    assert counts(run).get("TreeAnswer", 0) == (likely if likely <= LIKELY_FILES else 0)


def test_a_newer_file_of_the_destination_costs_time_alone(tmp_path: Path) -> None:
    source, destination = places(tmp_path, tree(NEW))
    os.utime(destination / CHANGED[0], ns=(LATER, LATER + 1))
    run = sync_in_turns(source, destination)
    check(source, destination)
    assert "TreeAnswer" not in counts(run) or counts(run)["TreeAnswer"] == len(CHANGED)


@DIALLERS
def test_a_file_that_cannot_be_read(dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = places(tmp_path, tree(NEW))
    likely = Description.likely

    def vanishing(self: Description, newest: int, *, blocks: bool) -> LikelyFiles | None:
        found = likely(self, newest, blocks=blocks)
        (source / CHANGED[0]).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Description, "likely", vanishing)
    run = sync_in_turns(source, destination, dialler=dialler)
    assert [os.fsencode(problem.path) for problem in run.problems] == [os.fsencode(CHANGED[0])]
    assert run.done.exit in {ExitCode.PARTIAL, ExitCode.VANISHED}
    assert (destination / CHANGED[1]).read_bytes() == edited(OLD[CHANGED[1]], 1)


def test_after_a_collision_the_trees_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ManifestComparison, "is_usable", lambda *_: False)
    source, destination = places(tmp_path, tree(NEW))
    run = sync_in_turns(source, destination)
    check(source, destination)
    assert counts(run)["LikelyAnswer"] == 2


def test_a_tree_of_another_content_costs_bytes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(message: Message) -> list[Message]:
        return [replace(message, root=bytes(32)) if isinstance(message, TreeAnswer) else message]

    answering(monkeypatch, lie)
    source, destination = places(tmp_path, tree(NEW))
    sync_in_turns(source, destination)
    check(source, destination)
