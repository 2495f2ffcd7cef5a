"""Files of which a source announces another size than it sends."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rdc.limits import DATA_BYTES
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from tests.support.trees.trees import File, tree, write_tree

ROLES = pytest.mark.parametrize("dialler", list(Role), ids=["push", "pull"])
OPTIONS = SyncOptions(fsync=False)
PART = bytes(DATA_BYTES)


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def places(tmp_path: Path, new: dict[str, bytes], old: dict[str, bytes]) -> tuple[Path, Path]:
    held = tree({name: File(content, 0o644, 5) for name, content in old.items()})
    return write_tree(tmp_path / "source", tree(dict(new))), write_tree(tmp_path / "destination", held)
