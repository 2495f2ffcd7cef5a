"""A power cut at any moment of any command that writes: each path old or new, and the next run finishes.

tests/support/power/power_cut.py says what may be lost. `scripts/soak power` goes through all states.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from rdc.model.sync import SyncOptions
from tests.support.power.power_checks import Scene, run_states, sample
from tests.support.power.power_cut import Cut, Fate, History
from tests.support.power.power_log import Ordering, Snapshot, snapshot
from tests.support.power.power_scenes import SCENES
from tests.support.power.power_syncs import unsynced
from tests.support.power.recorded_writes import Call, built_recorder
from tests.support.running.syncing import run_sync
from tests.support.trees.trees import Tree, describe, read_tree, tree

STATES = 30
"""Of each command and ordering, drawn by a seed."""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_recorder(tmp_path_factory.mktemp("native"))


@pytest.fixture(scope="module")
def recorded(recorder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scene]:
    """A scene by its name, recorded once."""

    @cache
    def scene(name: str) -> Scene:
        return SCENES[name](tmp_path_factory.mktemp("scene"), recorder)

    return scene


@pytest.mark.parametrize("name", SCENES)
def test_each_path_is_old_or_new(recorded: Callable[[str], Scene], tmp_path: Path, name: str) -> None:
    scene = recorded(name)
    history = History(scene.before, scene.calls)
    assert history.log.syncs()
    for seed, ordering in enumerate(Ordering):
        cuts = sample(history, ordering, seed, STATES)
        found = run_states(scene, history, ordering, cuts, tmp_path / "again", converge_every=6)
        assert found.faults == []
        assert found.states == STATES
        assert found.converged == STATES // 6


@pytest.mark.parametrize("name", SCENES)
def test_the_recorder_sees_every_call(recorded: Callable[[str], Scene], name: str) -> None:
    """What it has seen, done once more in the model, gives what is there."""
    scene = recorded(name)
    history = History(scene.before, scene.calls)
    assert history.differences(scene.after, passed_over=scene.untold) == []
    assert scene.untold or not [call for call in scene.calls if call.kind == "G"]


@pytest.mark.parametrize(
    "name",
    [
        "sync --hard-links",
        "dedupe --undo",
        "dedupe of files not synced",
        "dedupe --journal",
        "scan -o",
        "keys",
    ],
)
def test_a_sync_that_is_left_out_is_found(
    recorded: Callable[[str], Scene], tmp_path: Path, name: str
) -> None:
    scene = recorded(name)
    syncs = History(scene.before, scene.calls).log.content_syncs()
    assert syncs
    for number in syncs:
        assert _without(scene, number, tmp_path) > 0, (name, number)


@pytest.mark.parametrize("name", ["sync --hard-links", "scan -o", "keys"])
def test_what_was_told_lasts(recorded: Callable[[str], Scene], tmp_path: Path, name: str) -> None:
    """The last sync is of names: without it the command would end before its work is on disk."""
    scene = recorded(name)
    assert _without(scene, History(scene.before, scene.calls).log.syncs()[-1], tmp_path) > 0


def _without(scene: Scene, number: int, place: Path) -> int:
    """How many faults are found where this call was not made."""
    history = History(scene.before, scene.calls[:number] + scene.calls[number + 1 :])
    rng = random.Random(1)
    cuts = [
        cut
        for prefix in {*range(0, len(history), 7), len(history)}
        for cut in history.cuts_at(prefix, Ordering.JOURNAL, rng, subsets=2)
    ]
    return len(run_states(scene, history, Ordering.JOURNAL, cuts, place / "again").faults)


def test_no_file_without_its_content_costs_the_source_its_own(
    recorded: Callable[[str], Scene], tmp_path: Path
) -> None:
    """After any cut the next run, which compares sizes and times alone, removes nothing that DST has not."""
    scene = recorded("sync --remove-source-files")
    history = History(scene.before, scene.calls)
    cuts = [
        cut
        for prefix in range(0, len(history) + 1, 2)
        for cut in history.cuts_at(prefix, Ordering.JOURNAL, random.Random(prefix), subsets=0)
        if cut.data and not cut.names and {fate for _, fate in cut.data} == {Fate.ZEROS}
    ]
    found = run_states(scene, history, Ordering.JOURNAL, cuts, tmp_path / "again", converge_every=1)
    assert found.faults == []
    assert found.converged == len(cuts) > 50


def test_syncs_are_few(recorded: Callable[[str], Scene]) -> None:
    """A batch of links syncs each file that stays once, and each directory once; many small files cost one
    sync, and one for each directory."""
    wanted = {"dedupe": (3 + 1, 0), "sync of many small files": (3, 1)}
    for name, (files, file_systems) in wanted.items():
        kinds = [call.kind for call in recorded(name).calls]
        assert (kinds.count("F"), kinds.count("S")) == (files, file_systems), name


def test_without_fsync_only_a_kill_leaves_old_or_new(recorder: Path, tmp_path: Path) -> None:
    """And who has lost power then finds with --checksum what sizes and times do not show."""
    scene = unsynced(tmp_path, recorder)
    history = History(scene.before, scene.calls)
    # Nothing that was written; of directories only those that a file takes the place of.
    assert history.log.content_syncs() == []
    kills = [Cut(prefix, frozenset()) for prefix in range(len(history) + 1)]
    found = run_states(scene, history, Ordering.JOURNAL, kills, tmp_path / "again", converge_every=20)
    assert found.faults == []
    cuts = sample(history, Ordering.JOURNAL, 1, 60)
    assert run_states(scene, history, Ordering.JOURNAL, cuts, tmp_path / "again").faults
    for number, cut in enumerate(cuts[-6:]):
        place = history.state(cut).write(tmp_path / f"lost{number}")
        run = run_sync(tmp_path / "source", place, SyncOptions(delete=True, fsync=False, checksum=True))
        assert run.problems == []
        assert describe(scene.after, read_tree(place)) == []


# The model


def _history(*calls: tuple[str, int, int, int, bytes, bytes, bytes]) -> History:
    """Of an empty directory, inode 1."""
    return History(Snapshot(tree(), {b"": 1}), [Call(*call) for call in calls])


def _trees(history: History, ordering: Ordering) -> list[Tree]:
    return [history.state(cut).tree for cut in history.cuts(ordering, 1)]


def _contents(trees: list[Tree], path: bytes) -> set[bytes | None]:
    return {getattr(found.get(path), "content", None) for found in trees}


CREATED = ("C", 1, 2, 0o644, b"a", b"", b"")
WRITTEN = ("W", 0, 2, 0, b"", b"", b"new")
SYNCED = ("F", 0, 2, 0, b"", b"", b"")
RENAMED = ("R", 1, 1, 0, b"a", b"b", b"")
DIRECTORY_SYNCED = ("F", 0, 1, 0, b"", b"", b"")


@pytest.mark.parametrize("ordering", Ordering)
def test_a_write_that_was_not_synced_may_be_lost(ordering: Ordering) -> None:
    lost = _contents(_trees(_history(CREATED, WRITTEN, RENAMED), ordering), b"b")
    assert lost == {None, b"", bytes(3), b"new"}
    kept = _contents(_trees(_history(CREATED, WRITTEN, SYNCED, RENAMED), ordering), b"b")
    assert kept == {None, b"new"}


@pytest.mark.parametrize("ordering", Ordering)
def test_a_rename_lasts_with_its_directory(ordering: Ordering) -> None:
    calls = (CREATED, WRITTEN, SYNCED, RENAMED)
    history = _history(*calls, DIRECTORY_SYNCED)
    rng = random.Random(1)
    ends = [history.state(cut).tree for cut in history.cuts_at(5, ordering, rng, subsets=9)]
    assert _contents(ends, b"b") == {b"new"}
    before = [history.state(cut).tree for cut in history.cuts_at(4, ordering, rng, subsets=9)]
    assert _contents(before, b"b") == {None, b"new"}


def test_only_a_journal_keeps_the_order_of_names() -> None:
    other = ("M", 1, 3, 0o755, b"d", b"", b"")
    history = _history(other, CREATED, WRITTEN, SYNCED)
    rng = random.Random(1)
    for ordering, last in ((Ordering.JOURNAL, {True}), (Ordering.CAUSAL, {True, False})):
        found = [history.state(cut).tree for cut in history.cuts_at(4, ordering, rng, subsets=9)]
        assert {b"d" in one for one in found} == last
        assert _contents(found, b"a") == {b"new"}


def test_a_state_is_written_with_its_hard_links(tmp_path: Path) -> None:
    linked = ("H", 1, 2, 0o644, b"c", b"", b"")
    history = _history(CREATED, WRITTEN, linked)
    made = history.state(Cut(3, frozenset())).write(tmp_path / "made")
    assert os.path.samefile(made / "a", made / "c")
    assert history.differences(snapshot(made).tree) == []
