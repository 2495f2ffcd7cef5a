"""Helpers that read extended attributes, and what a plain reader finds."""

from __future__ import annotations

import pytest

from rdc.files.facts import xattrs
from tests.support.trees.xattr_ways import WAYS


def take(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extension, by_name = WAYS[way]
    monkeypatch.setattr(xattrs, "_extension", extension)
    monkeypatch.setattr(xattrs, "_by_name", by_name)
