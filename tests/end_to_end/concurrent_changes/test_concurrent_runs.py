"""Runs that get in each other's way: whole files, and a run by itself that finishes."""

from __future__ import annotations

import os
import random
from pathlib import Path

from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import run_sync
from tests.support.trees.trees import Directory, File, describe, litter, read_tree, tree, write_tree


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
