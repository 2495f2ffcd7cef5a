"""No moment of exposure: at no moment of a run may anybody do more than before it or after it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.running.exposed_sync import ExposedSync
from tests.support.running.recorded_access import build_recorder, exposures, look, states
from tests.support.running.watching import HereLine, Watching
from tests.support.trees.trees import Directory, File, Link, tree, write_tree
from tests.support.trees.unprivileged import NOBODY, place_of_nobody

RUNS = 14


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_recorder(tmp_path_factory.mktemp("native"))


@contextmanager
def scene(recorder: Path, seed: int, *, bound: bool) -> Iterator[ExposedSync]:
    with place_of_nobody() as place:
        place.chmod(0o755)
        uid = NOBODY if bound and os.geteuid() == 0 else os.geteuid()
        yield ExposedSync(place, recorder, seed, uid=uid)


@pytest.mark.parametrize("seed", range(RUNS))
def test_every_moment_of_a_run(seed: int, recorder: Path) -> None:
    with scene(recorder, seed, bound=seed % 4 == 3) as sync:
        moments, wrong = sync.run()
        assert moments > 0
        assert not wrong, "\n".join(wrong[:5])


@pytest.mark.parametrize("seed", range(100, 104))
def test_a_run_after_a_kill(seed: int, recorder: Path) -> None:
    """What a kill leaves is a moment like any other; the next run has to go on from there."""
    with scene(recorder, seed, bound=False) as sync:
        _, wrong = sync.run(kill=random.Random(seed).randrange(40))
        wrong += sync.run()[1]
        assert not wrong, "\n".join(wrong[:5])


def test_every_moment_of_a_turn(recorder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only its directory protected is closed before it leaves that, and stays so in its new place."""
    source, destination, log = (tmp_path / name for name in ("source", "destination", "log"))
    entries: dict[str, File | Directory | Link | bytes] = {
        "private": Directory(0o700),
        "private/key": File(b"key", 0o644),
        "private/box": Directory(0o755),
        "private/box/inner": File(b"inner", 0o644),
        "public": Directory(0o755),
        "closing": Directory(0o755),
    }
    write_tree(source, tree(entries)).chmod(0o755)
    for name, value in (
        ("LD_PRELOAD", recorder),
        ("RECORDED_TREE", destination),
        ("RECORDED_TO", log),
    ):
        monkeypatch.setenv(name, str(value))
    watching = Watching(source, destination, "--delete", place=tmp_path, line=HereLine())
    with watching.running():
        watching.wait_equal()
        held, before = look(destination), len(list(states(log)))
        (source / "private/key").chmod(0o600)
        (source / "private/key").rename(source / "public/key")
        (source / "private/box/inner").chmod(0o600)
        (source / "private/box").rename(source / "public/box")
        (source / "closing").chmod(0o700)
        (source / "closing/new").write_bytes(b"new")
        watching.wait_equal()
        watching.stop()
    wanted, turns = look(source), list(states(log))[before:]
    passed: set[object] = set()
    wrong = [
        line
        for state in turns
        for line in exposures(state, held, wanted, passed, runner=os.geteuid(), reach=True)
    ]
    assert turns
    assert not wrong, "\n".join(wrong[:5])
