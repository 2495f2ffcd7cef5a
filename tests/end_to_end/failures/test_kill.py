"""kill -9 of either end: every path stays wholly old or wholly new, and the next run finishes the work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.files.bulk import small_files as small
from tests.support.running.killed_sync import HELD, WANTED, Killer, Scene, steps_of
from tests.support.share import examples, share
from tests.support.trees.trees import describe, read_tree


@pytest.mark.parametrize(
    ("fsync", "fewest"), [(False, True), (True, True), (True, False)], ids=["delta", "delta, fsync", "fsync"]
)
def test_a_kill_before_every_step(
    fsync: bool, fewest: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are calls from Python; test_small_files.py kills between those of the C part, used here with
    fsync."""
    if not fsync:
        monkeypatch.setattr(small, "_extension", None)
    scene = Scene(tmp_path, fewest_bytes=fewest)
    steps = steps_of(scene, fsync=fsync)
    assert describe(WANTED, read_tree(scene.destination)) == []
    assert steps > (100 if fsync else 150)
    between = 0
    for at in share(range(0, steps, 3 if fsync else 2), 2):
        scene.renew()
        if steps_of(scene, fsync=fsync, stop_at=at) < at:
            break  # how content comes in pieces, and so the number of steps, varies a little
        between += describe(HELD, scene.look()) != []
        if at % 3 == 0:
            scene.finish()
    assert between > 10


def test_a_run_that_fails_by_itself_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one in hundreds does: who sees it once must not have to wait for the next."""
    scene = Scene(tmp_path)
    monkeypatch.setattr(scene, "sync", lambda *, fsync: os.rename(tmp_path / "none", tmp_path / "other"))
    with pytest.raises(AssertionError, match=r"(?s)after 1 steps.*Traceback.*No such file.*none"):
        steps_of(scene, fsync=False)


def test_kills_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ends, both ways, in one process and in two, a catalog beside. `scripts/soak kills` goes on for
    longer."""
    monkeypatch.setenv("RDC_CATALOG", str(tmp_path / "catalog"))
    killer = Killer(Scene(tmp_path), seed=1)
    while killer.tally.kills < examples(66) or len(killer.tally.ways) < 5:
        killer.kill_once()
        assert killer.tally.kills < 400, killer.tally
    # These say that the kills came when something was going on.
    assert killer.tally.between > 0, killer.tally
    assert killer.tally.temporaries > 0, killer.tally
