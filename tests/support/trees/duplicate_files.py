"""Files to search for identical ones, and what was found of them."""

from __future__ import annotations

import os
from pathlib import Path

from rdc.errors import ExitCode
from rdc.progress import Event, Problem
from rdc.survey.duplicates import Duplicates

__all__ = ["Collector", "make", "names_in"]


def make(top: Path, **files: bytes) -> list[bytes]:
    """Write these below `top`, "__" in a name being a slash; return the paths to search."""
    for name, data in files.items():
        path = top / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [os.fsencode(top)]


def names_in(found: Duplicates) -> list[list[bytes]]:
    """Return the names of each group's files, without their directories."""
    return [[os.path.basename(file.path_bytes) for file in group.files] for group in found]


class Collector:
    """A Reporter that keeps problems."""

    def __init__(self) -> None:
        self.problems: list[tuple[ExitCode, bytes]] = []

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self.problems.append((event.code, os.path.basename(event.path_bytes)))
            assert os.fsdecode(event.path_bytes) in event.message
