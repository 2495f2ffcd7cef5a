"""Syncs of several SRC, and the paths that arrived."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rdc.library.trees import sync
from rdc.model.location import Location
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Run, Way, shell
from tests.support.trees.trees import File, Tree, read_tree, tree, write_tree

SOURCE = tree(
    {
        "a/f": b"of a",
        "a/s/g": b"of a",
        "b/f": b"of b",
        "b/s/h": b"of b",
        "b/t": File(b"x" * 40_000),
        "b/u/a": b"deep",
        "c": b"c",
    }
)


def run(
    top: Path, paths: Sequence[str], options: SyncOptions | None = None, way: Way = Way.HERE, *, at: str = ""
) -> Run:
    """Sync paths below `top`/s to `top`/d. `at`: what is between the source and each path."""
    done = Run()
    far = "far" if way is Way.PULL else None
    done.report = sync(
        [Location(far, os.fsencode(f"{top}/s/{at}{path}")) for path in paths],
        Location("far" if way is Way.PUSH else None, os.fsencode(f"{top}/d/")),
        options or SyncOptions(fsync=False),
        shell=shell(),
        reporter=done.events.append,
        catalog=None,
    )
    return done


def written(top: Path, held: Tree | None = None) -> Path:
    top.mkdir(exist_ok=True)
    write_tree(top / "s", SOURCE)
    write_tree(top / "d", held or tree({}))
    return top


def paths_in(directory: Path) -> set[str]:
    return {os.fsdecode(path) for path in read_tree(directory) if path}
