"""Options, events and the result of `rdc unite`."""

from __future__ import annotations

from enum import Enum

from rdc.errors import ExitCode
from rdc.lean.checks import check_fields
from rdc.lean.records import dataclass
from rdc.lean.typed import Protocol
from rdc.model.options import KeepUndo
from rdc.model.selection import FilterRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Event


GUARD_PERCENT = 50
"""The most of one side, in percent, that a run deletes or replaces unless it is told otherwise."""

COPIES = 10
"""How many copies of conflicts a run makes at most, unless it is told otherwise."""


class Prefer(Enum):
    """Which version of a conflict wins.

    >>> import rdc
    >>> rdc.Prefer("newer")
    <Prefer.NEWER: 'newer'>
    """

    LEFT = "left"
    RIGHT = "right"
    NEWER = "newer"
    OLDER = "older"
    LARGER = "larger"
    SMALLER = "smaller"


class Resolution(Enum):
    """How one conflict is solved.

    >>> import rdc
    >>> rdc.Resolution("both")
    <Resolution.BOTH: 'both'>
    """

    LEFT = "left"
    RIGHT = "right"
    BOTH = "both"
    """One version keeps the name, and the other one gets a name of its own."""


@dataclass(frozen=True, slots=True)
class Resolve:
    """Conflicts at and below one path, and how they are solved.

    >>> import rdc
    >>> rdc.Resolve(b"notes.txt", rdc.Resolution.LEFT).path
    b'notes.txt'
    """

    path: bytes
    """Relative to both directories."""
    how: Resolution

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class UniteOptions:
    """The options of `rdc.unite`. Raises TypeError for a wrong type, ValueError for a wrong value.

    >>> import rdc
    >>> rdc.UniteOptions(prefer=rdc.Prefer.NEWER).guard
    50
    """

    dry_run: bool = False
    """Only report what would be done. Nothing is written, not even the state."""
    prefer: Prefer | None = None
    """Which version of every conflict wins; None: none does."""
    resolve: tuple[Resolve, ...] = ()
    """How single conflicts are solved. They come before `prefer`."""
    keep_both: bool = False
    """Whether each conflict of files leaves both versions, the older one under a name of its own."""
    max_copies: int = COPIES
    """How many versions get such a name in one run."""
    units: tuple[bytes, ...] = ()
    """Names of directories that are one unit, besides .git, .hg, .svn, .jj and .bzr."""
    rules: tuple[FilterRule, ...] = ()
    """Which entries take part. What they exclude is neither copied nor deleted."""
    checksum: bool = False
    """Whether files of both sides without a common past are compared by content even if size and
    modification time are equal."""
    guard: int = GUARD_PERCENT
    """The run stops before it deletes or replaces more than this percentage of one side."""
    force_empty: bool = False
    """Whether a side may be empty that had entries: all of the other side's are deleted then."""
    keep_undo: KeepUndo | None = KeepUndo(days=7)
    """How much of what a run replaces and deletes is kept at each side for `rdc.undo`; None: nothing."""
    fsync: bool = True

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.guard <= 100:
            raise ValueError(f"UniteOptions.guard: {self.guard} is not in 0..100")
        if self.max_copies < 0:
            raise ValueError(f"UniteOptions.max_copies: {self.max_copies} is negative")


@dataclass(frozen=True, slots=True)
class UniteItem:
    """One entry that a side got, lost or had changed; in a dry run, it would be."""

    side: str
    """The side that changes: "left" or "right"."""
    action: str
    """"new", "edited", "returned", "deleted", "renamed" or "metadata"."""
    path: bytes
    target: bytes | None = None
    """The new path of a renamed entry."""
    copied: int = 0
    """Bytes of the file that was copied."""


@dataclass(frozen=True, slots=True)
class UniteConflict:
    """Two changes that exclude each other. Both versions stay as they are."""

    path: bytes
    about: str
    """"content", "kind", "unit" or "mode"."""
    left_size: int
    right_size: int
    left_mtime_ns: int
    """Nanoseconds since 1970."""
    right_mtime_ns: int


class UniteReporter(Protocol):
    """Receives what a run does at both sides, its conflicts and its problems."""

    def __call__(self, event: UniteItem | UniteConflict | Event, /) -> None: ...


@dataclass(frozen=True, slots=True)
class UniteReport:
    """The result of `rdc.unite`.

    >>> import os, rdc
    >>> for name in ("one", "two"):
    ...     os.mkdir(name)
    >>> rdc.unite("one", "two").conflicts
    0
    """

    left: int
    """Entries that were changed at the left side; in a dry run, that would be."""
    right: int
    left_bytes: int
    """Bytes of the files that were copied to the left side."""
    right_bytes: int
    entries: int
    """Entries that both sides have in common now."""
    conflicts: int
    held: int
    """Paths at which nothing was done, because an entry takes no part, has changed meanwhile, or failed."""
    first: bool
    """Whether the two sides had nothing in common that is remembered: nothing was deleted."""
    exit: ExitCode


@dataclass(frozen=True, slots=True)
class UnitePair:
    """What one directory remembers of its pair with another one, as `rdc.unite_status` returns it."""

    place: bytes
    """Where the other directory was in the last run."""
    seconds: int
    """When that run ended, since 1970."""
    entries: int
    """Entries that both sides had in common then."""
    interrupted: bool
    """Whether a run was interrupted since."""
    conflicts: tuple[UniteConflict, ...]
