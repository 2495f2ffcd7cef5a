"""Fixtures of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.uniting.pairs import Pair


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)
