"""One changed file's way through a session is the one that rdc/ARCHITECTURE.md lists, and is short.

tests/project/walk_trace.py defines what counts as a module on the way.
"""

from __future__ import annotations

import pytest

from tests.project.walk_trace import HEADINGS, Side, listed_modules, traced_sides

MOST_MODULES = 15
"""Modules of rdc.session on the way, both sides together."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    """The destination and the source."""
    return traced_sides(tmp_path_factory.mktemp("walk"))


@pytest.mark.parametrize(("side", "heading"), list(enumerate(HEADINGS)))
def test_a_side_enters_the_listed_modules_in_order(walk: tuple[Side, Side], side: int, heading: str) -> None:
    assert walk[side].modules == listed_modules(heading), "run .venv/bin/python -m tests.project.walk_trace"


def test_few_modules_are_on_the_way(walk: tuple[Side, Side]) -> None:
    modules = {module for side in walk for module in side.modules}
    assert len(modules) <= MOST_MODULES
