"""Fixtures of the tests in this folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.files.root.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.open(os.fsencode(tmp_path))
