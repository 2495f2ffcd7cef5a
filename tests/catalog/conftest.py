"""The files that tests of the catalog sign."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rdc.chunking import SYNC_PARAMS
from rdc.signature.tree import sign
from tests.catalog.catalog_checks import COUNT


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """COUNT files, named by number, and their roots."""
    directory = tmp_path_factory.mktemp("files")
    rng = random.Random(1)
    roots = []
    for i in range(COUNT):
        data = rng.randbytes(rng.choice((0, 100, 3000, 60_000)))
        (directory / str(i)).write_bytes(data)
        roots.append(sign(data, SYNC_PARAMS).root)
    return directory, roots
