"""rdc/ARCHITECTURE.md is short, shows the present layers, and names paths that exist."""

from __future__ import annotations

import re

from tests.project.layers_picture import ARCHITECTURE, with_picture
from tests.support.project_paths import TOP

MOST_LINES = 150
ROOT = TOP / "rdc"


def test_the_document_is_short() -> None:
    assert len(ARCHITECTURE.read_text().splitlines()) <= MOST_LINES


def test_the_picture_shows_the_present_layers() -> None:
    text = ARCHITECTURE.read_text()
    assert with_picture(text) == text, "run .venv/bin/python -m tests.project.layers_picture"


def test_paths_exist() -> None:
    """Paths are relative to rdc/, those in the tables of the walk to rdc/session/, others to the checkout."""
    paths = re.findall(r"`([\w.-]+/[\w./-]+)`", ARCHITECTURE.read_text())
    assert len(paths) > 60
    missing = [
        path
        for path in paths
        if not any((folder / path).exists() for folder in (ROOT, ROOT / "session", TOP))
    ]
    assert not missing
