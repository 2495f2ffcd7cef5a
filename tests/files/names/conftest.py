"""Fixtures of the tests in this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.files.names.leased_files import LeasedFile, difference, same_bytes
from rdc.files.names.name_change import Link
from rdc.files.root.root import Root
from tests.files.names.link_pairs import Pair
from tests.support.trees.saved_files import CONTENT, TIME


@pytest.fixture
def pair(linking: Path) -> Iterator[Pair]:
    for name in ("kept", "old"):
        (linking / name).write_bytes(CONTENT)
        os.utime(linking / name, ns=(TIME, TIME))
    root = Root.open(os.fsencode(linking))
    with LeasedFile(root, b"kept") as kept, LeasedFile(root, b"old") as old:
        assert difference(kept, old) is None
        assert same_bytes(kept, old)
        yield Pair(linking, kept, old, Link(root, b"old", old, kept))
    root.close()
