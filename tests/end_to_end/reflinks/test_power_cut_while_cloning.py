"""A power cut or a kill on a file system that shares blocks: each path old or new, as anywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.power.power_checks import run_states, sample
from tests.support.power.power_cut import History
from tests.support.power.power_log import Ordering
from tests.support.power.power_scenes import SCENES
from tests.support.power.recorded_writes import built_recorder
from tests.support.running.killed_sync import Killer, Scene


@pytest.mark.parametrize("name", ["sync", "sync of clones"])
def test_a_power_cut(sharing: Path, tmp_path: Path, name: str) -> None:
    scene = SCENES[name](sharing, built_recorder(tmp_path))
    nameless = sum(call.kind == "O" for call in scene.calls)
    assert nameless >= 1, "new files were cloned"
    history = History(scene.before, scene.calls)
    assert history.differences(scene.after, passed_over=scene.untold) == []
    for seed, ordering in enumerate(Ordering):
        cuts = sample(history, ordering, seed, 15)
        found = run_states(scene, history, ordering, cuts, tmp_path / "again", converge_every=5)
        assert found.faults == []


def test_kills(sharing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDC_CATALOG", os.fspath(sharing / "catalog"))
    killer = Killer(Scene(sharing), 1)
    for _ in range(4):
        killer.kill_once()
    assert killer.tally.kills + killer.tally.too_late == 4
