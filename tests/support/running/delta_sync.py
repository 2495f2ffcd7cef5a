"""One file synced over its old version, and what that cost."""

from __future__ import annotations

import random
from pathlib import Path

from rdc.model.sync import SyncOptions
from rdc.session.source import range_answers as cell_checks_module
from tests.support.running.syncing import Run, Way, run_sync
from tests.support.trees.trees import File, Tree, describe, litter, read_tree, tree, write_tree

WORDS = [b"%x" % (i * 2654435761 % 99991) for i in range(5000)]


def text(seed: int, size: int) -> bytes:
    rng = random.Random(seed)
    return b" ".join(rng.choice(WORDS) for _ in range(size // 5))[:size]


def edited(content: bytes, seed: int) -> bytes:
    """Return the content with a few words inserted and a few removed."""
    rng = random.Random(seed)
    for _ in range(3):
        at = rng.randrange(len(content))
        content = content[:at] + b"edit%d" % rng.randrange(1000) + content[at + rng.choice((0, 4, 40)) :]
    return content


SIZES = {"tiny": 300, "small": 3_000, "one chunk": 14_000, "some chunks": 150_000, "large": 2_000_000}
OLD = {name: text(i, size) for i, (name, size) in enumerate(SIZES.items())}
NEW = {name: edited(content, i) for i, (name, content) in enumerate(OLD.items())}


def places(tmp_path: Path, old: dict[str, bytes], new: dict[str, bytes]) -> tuple[Path, Path]:
    before: Tree = tree({name: File(content, 0o644, 1) for name, content in old.items()})
    return write_tree(tmp_path / "source", tree(dict(new))), write_tree(tmp_path / "destination", before)


def synced(source: Path, destination: Path, way: Way = Way.HERE) -> Run:
    """Equal trees, no problem, nothing left over."""
    run = run_sync(source, destination, SyncOptions(fsync=False, fewest_bytes=True), way=way)
    assert run.problems == []
    assert litter(read_tree(destination)) == []
    assert describe(read_tree(source), read_tree(destination)) == []
    return run


def counts(run: Run) -> dict[str, int]:
    return {cost.name: cost.count for cost in run.done.by_kind}


CORRECTIONS = cell_checks_module.corrections


def library(seed: int, size: int, shift: int) -> bytes:
    """Code in which, here and there, four bytes are an address."""
    rng = random.Random(seed)
    made, at = bytearray(rng.randbytes(size)), 0
    while at < size - 4:
        made[at : at + 4] = (rng.randrange(1 << 24) + shift).to_bytes(4, "little")
        at += rng.choice((40, 90, 200, 900, 1900))
    return bytes(made)


def rebuilt_library(tmp_path: Path) -> tuple[Path, Path]:
    """Make two versions of a library of 300,000 bytes, which are one region."""
    return places(tmp_path, {"f": library(1, 300_000, 0)}, {"f": library(1, 300_000, 4096)})
