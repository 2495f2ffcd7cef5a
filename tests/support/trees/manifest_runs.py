"""Trees of many entries, and what syncs that compare their manifests said and cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdc.protocol.messages import Role
from tests.support.running.syncing import Run
from tests.support.trees.trees import Tree, describe, read_tree, tree

__all__ = ["DIALLERS", "LISTED", "LOOKED", "equal", "many", "received", "wire"]

DIALLERS = pytest.mark.parametrize("dialler", list(Role), ids=["source dials", "destination dials"])


def many(files: int, content: bytes = b"content") -> Tree:
    """Return a tree of `files` entries in total, fifty to a directory."""
    value = tree({f"directory-{i // 50:04}/file-{i:05}": content for i in range(files)})
    while len(value) - 1 > files:
        del value[max(value)]
    return value


def received(run: Run) -> list[str]:
    """Return the run's items as the destination sees them, whoever dialled."""
    return [item.replace("<", ">", 1) for item in run.items]


def wire(run: Run) -> int:
    return run.done.bytes_sent + run.done.bytes_received


def equal(source: Path, destination: Path) -> None:
    assert describe(read_tree(source), read_tree(destination)) == []


LISTED = {"ListingPart", "ListingEnd"}
LOOKED = {"TopTier"}
