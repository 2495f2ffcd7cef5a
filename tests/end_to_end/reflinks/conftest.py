"""Directories on file systems that can share blocks, and one that cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.trees.loop_images import fresh_directory


@pytest.fixture(params=["btrfs", "xfs"])
def sharing(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory on each file system that can share blocks."""
    yield from fresh_directory(request.getfixturevalue(f"{request.param}_image"))


@pytest.fixture
def ext4(ext4_image: Path) -> Iterator[Path]:
    """A directory on a file system that cannot."""
    yield from fresh_directory(ext4_image)
