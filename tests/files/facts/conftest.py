"""Fixtures of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.files.facts.xattr_reads import take
from tests.support.trees.xattr_ways import WAYS
from tests.support.trees.xattrs_and_acls import give


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "d").mkdir()
    for name in "abc":
        (tmp_path / "d" / name).write_bytes(b"")
    give(tmp_path / "d/a", x="1")
    give(tmp_path / "d/c", x="3", y="4")
    return tmp_path
