"""Options of the removal of duplicates: which file of a set stays, and what happens to the others."""

from __future__ import annotations

from enum import Enum

from rdc.lean.records import dataclass
from rdc.model.instances import Action

__all__ = ["REMOVALS", "KeepOrder", "KeepRule", "RemovalOptions"]

REMOVALS = (Action.DELETE, Action.MOVE, Action.SYMLINK)
"""The ways in which a duplicate leaves its name."""


class KeepOrder(Enum):
    """What decides which file of a set stays."""

    NEWEST = "newest"
    """The latest mtime."""
    OLDEST = "oldest"
    """The earliest mtime."""
    SHORTEST_PATH = "shortest-path"
    """The fewest bytes in the path as shown."""
    LONGEST_PATH = "longest-path"
    FIRST = "first"
    """The first found: by PATH as given, then by name."""
    IN = "in"
    """A file below a directory."""


@dataclass(frozen=True, slots=True)
class KeepRule:
    """One rule; where it finds files equal, the next one decides, and at last the order in which they were
    found."""

    order: KeepOrder
    directory: bytes = b""
    """The real path of the directory of `in`."""


@dataclass(frozen=True, slots=True)
class RemovalOptions:
    """Frozen, and complete before any file is opened."""

    action: Action
    """One of REMOVALS."""
    apply: bool = False
    """Whether to act; otherwise a dry run."""
    rules: tuple[KeepRule, ...] = ()
    keep_in: tuple[bytes, ...] = ()
    """Real paths of directories below which nothing is changed. Their files count as copies."""
    only_in: tuple[bytes, ...] = ()
    """Real paths of directories outside of which nothing is changed. Empty: no such bound."""
    destination: bytes = b""
    """The real path of the directory that `move` fills."""
    sources: frozenset[int] = frozenset()
    """Numbers of the trees that are PATHs. The others are searched for copies only."""
    journal: bytes | None = None
    """The journal that records each change before it is made; required with `apply`."""
    pointer: bytes | None = None
    """Place of a symbolic link to the journal, by which a later run finds it."""
    journals: bytes | None = None
    """Directory of earlier journals and of links to them."""
