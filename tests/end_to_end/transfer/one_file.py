"""One file synced over its old version."""

from __future__ import annotations

import random
from pathlib import Path

from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.syncing import Run
from tests.support.trees.trees import File, describe, litter, read_tree, tree, write_tree


def program(seed: int, functions: int) -> bytes:
    """Functions of noise, again and again, that call some places: a third is what differs in each call."""
    rng = random.Random(seed)
    bodies = [rng.randbytes(rng.randrange(20, 60)) for _ in range(300)]
    code = bytearray()
    called = [rng.randrange(functions * 60) for _ in range(200)]
    for _ in range(functions):
        code += rng.choice(bodies)
        for _ in range(3):
            code += b"\x48\x8b\x7d" + bytes([rng.randrange(256)]) + b"\xe8"
            code += (rng.choice(called) - len(code) - 4).to_bytes(4, "little", signed=True)
    return bytes(code)


OLD = random.Random(1).randbytes(300_000)
NEW = OLD[:100_000] + program(2, 22_000) + OLD[100_000:]


def places(top: Path, new: bytes = NEW) -> tuple[Path, Path]:
    top.mkdir(exist_ok=True)
    source = write_tree(top / "source", tree({"f": new}))
    return source, write_tree(top / "destination", tree({"f": File(OLD, 0o644, 1)}))


def synced(source: Path, destination: Path, compress: bool | None = None) -> Run:
    options = SyncOptions(compress=compress, fsync=False)
    run = sync_in_turns(source, destination, options, dialler=Role.SOURCE)
    assert run.problems == []
    assert litter(read_tree(destination)) == []
    assert describe(read_tree(source), read_tree(destination)) == []
    return run
