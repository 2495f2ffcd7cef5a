"""A run that is told to stop, and runs that get in each other's way: clean ends, whole files, a next run that
finishes."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from tests.killed_sync import HELD, WANTED, Scene
from tests.old_or_new import check_old_or_new
from tests.syncing import FAR, RDC, Way, run_sync
from tests.trees import Directory, File, describe, litter, read_tree, tree, write_tree

ATTEMPTS = 30
"""The right moment is a short one, and other work on the machine makes it easy to miss."""


@pytest.mark.parametrize("way", list(Way))
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_cleanly(number: signal.Signals, way: Way, tmp_path: Path) -> None:
    """Exit code 20 and one line; the next run finishes."""
    scene = Scene(tmp_path)
    source, destination = f"{scene.source}/", str(scene.destination)
    ends = {
        Way.HERE: (source, destination),
        Way.PUSH: (source, f"far:{destination}"),
        Way.PULL: (f"far:{source}", destination),
    }[way]
    argv = [*RDC, "sync", "--delete", "-e", shlex.join(scene.remote_shell), "--remote-path", FAR, *ends]
    for _ in range(ATTEMPTS):
        scene.renew()
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not any(
            name.startswith(".rdc-") for name in os.listdir(scene.destination)
        ):
            time.sleep(0.0005)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        if process.returncode != 0:
            break
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert err == "rdc: interrupted\n"
    scene.await_far()
    # The signal may come between the making of a temporary and the note of it.
    check_old_or_new(read_tree(scene.destination), HELD, WANTED, killed=True)
    scene.finish()


def test_runs_into_the_same_destination(tmp_path: Path) -> None:
    """Several at once, from different sources: each path is wholly somebody's, nothing is swept away under
    its writer, and one more run by itself ends in equality."""
    rng = random.Random(3)
    names = [f"d{i}/f{j}" for i in range(3) for j in range(6)]
    sources = []
    for version in range(3):
        files = {
            name: File(rng.randbytes(rng.choice((10, 5_000, 300_000))), mtime_ns=version) for name in names
        }
        sources.append(write_tree(tmp_path / f"source{version}", tree(files)))
    destination = tmp_path / "destination"
    destination.mkdir()
    for _ in range(4):
        children = []
        for source in sources:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    run = run_sync(source, destination, SyncOptions(fsync=False))
                    code = 0 if all("internal" not in problem.message for problem in run.problems) else 2
                finally:
                    os._exit(code)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)
        versions = [read_tree(source) for source in sources]
        found = read_tree(destination)
        for path in found.keys() - set(litter(found)):
            assert isinstance(found[path], Directory) or found[path] in [v[path] for v in versions], path
    last = run_sync(sources[0], destination, SyncOptions(delete=True))
    assert last.done.exit == ExitCode.OK
    assert describe(versions[0], read_tree(destination)) == []
