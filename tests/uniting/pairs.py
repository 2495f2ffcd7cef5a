"""Two directories that tests unite through the library."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rdc
from rdc import (
    UniteConflict,
    UniteItem,
    UniteOptions,
)
from rdc.lean.records import replace
from rdc.progress import Problem
from rdc.uniting.rows import LEFT
from rdc.uniting.steps import Steps
from tests.uniting.remote_runs import unite_in_turns

QUICK = UniteOptions(fsync=False)


class Pair:
    """Two directories, and what the last run reported."""

    def __init__(self, top: Path) -> None:
        self.left, self.right = top / "left", top / "right"
        self.left.mkdir()
        self.right.mkdir()
        self.events: list[object] = []

    def unite(self, **options: Any) -> rdc.UniteReport:
        self.events = []
        return rdc.unite(self.left, self.right, replace(QUICK, **options), reporter=self.events.append)

    def both(self, name: str, text: str) -> None:
        for side in (self.left, self.right):
            (side / name).parent.mkdir(parents=True, exist_ok=True)
            (side / name).write_text(text)
            os.utime(side / name, ns=(5_000_000_123, 5_000_000_123))

    def texts(self, name: str) -> list[str | None]:
        paths = (self.left / name, self.right / name)
        return [path.read_text() if path.exists() else None for path in paths]

    def conflicts(self) -> list[bytes]:
        return [event.path_bytes for event in self.events if isinstance(event, UniteConflict)]

    def problems(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Problem) and event.code]

    def notices(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Problem) and not event.code]

    def items(self) -> list[tuple[str, str, bytes]]:
        return [
            (event.side, event.action, event.path_bytes)
            for event in self.events
            if isinstance(event, UniteItem)
        ]


class Machines(Pair):
    """A pair between two machines. The answerer is the right side, or the left one."""

    near = LEFT
    trips = bytes = 0

    def unite(self, **options: Any) -> rdc.UniteReport:
        self.events = []
        chosen = replace(QUICK, **options)
        found = unite_in_turns(self.left, self.right, chosen, self.events.append, near=self.near)
        self.trips, self.bytes = found.trips, found.bytes
        return found.report


def during(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Act between the plan and its first step."""
    whole = Steps.run

    def run(self: Steps, plan: Any, files: Any = ()) -> None:
        act()
        whole(self, plan, files)

    monkeypatch.setattr(Steps, "run", run)
