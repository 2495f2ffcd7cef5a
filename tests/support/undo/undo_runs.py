"""Undos for tests: run one, and see what it did."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from rdc.files.base.paths import UNDO_NAME
from rdc.progress import Problem, Progressed
from rdc.undoing.records import UndoItem, UndoOptions, UndoReport
from rdc.undoing.undo import undo_latest
from tests.support.trees.trees import Tree, read_tree

__all__ = ["Undone", "read_beside", "undone"]


@dataclass(slots=True)
class Undone:
    """An undo that came to its end."""

    report: UndoReport
    events: list[UndoItem | Problem | Progressed] = field(default_factory=list)

    @property
    def items(self) -> list[UndoItem]:
        return [event for event in self.events if isinstance(event, UndoItem)]

    @property
    def left_alone(self) -> list[bytes]:
        """Paths that were left alone."""
        return [event.path_bytes for event in self.events if isinstance(event, Problem)]


def undone(top: Path, *, dry_run: bool = False) -> Undone:
    events: list[UndoItem | Problem | Progressed] = []
    report = undo_latest(os.fsencode(top), UndoOptions(dry_run=dry_run, fsync=False), events.append)
    return Undone(report, events)


def read_beside(top: Path) -> Tree:
    """The tree without what rdc keeps in it."""
    return {path: node for path, node in read_tree(top).items() if path.split(b"/")[0] != UNDO_NAME}
