"""Fixtures of the tests in this folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.files.root.root import Root


@pytest.fixture
def top(tmp_path: Path) -> bytes:
    """Holds `inside`, the root, and `outside`, which nothing may touch."""
    path = os.fsencode(tmp_path)
    for side in (b"/inside", b"/outside"):
        os.makedirs(path + side + b"/a/b")
        for name in (b"/f", b"/a/f", b"/a/b/f"):
            Path(os.fsdecode(path + side + name)).write_bytes(side + name)
        os.symlink(b"f", path + side + b"/a/l")
    return path


@pytest.fixture
def root(top: bytes) -> Root:
    return Root.open(top + b"/inside")
