"""A directory that can hold files of 8 EiB - 1."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["huge_directory"]


@contextmanager
def huge_directory() -> Iterator[Path]:
    """In memory: other file systems bound files, or their sum."""
    try:
        made = tempfile.TemporaryDirectory(prefix="rdc-test-", dir="/dev/shm")
    except OSError:
        pytest.skip("there is no file system in memory")
    with made as name:
        try:
            os.truncate(os.open(name, os.O_TMPFILE | os.O_RDWR), (1 << 63) - 1)
        except OSError:
            pytest.skip("the file system in memory bounds files")
        yield Path(name)
