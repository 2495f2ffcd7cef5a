"""Options, events and the result of `rdc unite`."""

from __future__ import annotations

from os import fsdecode

from rdc.errors import ExitCode, WithPath
from rdc.lean.checks import check_fields
from rdc.lean.enums import Enum
from rdc.lean.records import Record, Report, replace
from rdc.lean.typed import Protocol
from rdc.limits import RESCAN_SECONDS
from rdc.model.options import KeepUndo
from rdc.model.selection import FilterRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from rdc.progress import Event
    from rdc.watching.records import WatchEvent


GUARD_PERCENT = 50
"""The most of one side, in percent, that a run deletes or replaces unless it is told otherwise."""

WATCH_SECONDS = 600
"""Seconds after which a watch runs again though no event came, unless it is told otherwise."""

BASE_BYTES = 64 << 20
"""Bytes of texts that are kept for merges, unless it is told otherwise."""

COPIES = 10
"""The default limit of copies of conflicts in one run."""


class Prefer(Enum):
    """The version of a conflict that wins.

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
    """The solution of one conflict.

    >>> import rdc
    >>> rdc.Resolution("both")
    <Resolution.BOTH: 'both'>
    """

    LEFT = "left"
    RIGHT = "right"
    BOTH = "both"
    """One version keeps the name, and the other one gets a name of its own."""


class Resolve(Record):
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


class UniteOptions(Record):
    """The options of `rdc.unite`. Raises TypeError for a wrong type, ValueError for a wrong value.

    >>> import rdc
    >>> rdc.UniteOptions(prefer=rdc.Prefer.NEWER).guard
    50
    """

    dry_run: bool = False
    """True to report the changes without making them. Nothing is written, not even the state."""
    prefer: Prefer | None = None
    """The version of every conflict that wins; None: none does."""
    resolve: tuple[Resolve, ...] = ()
    """The solutions of single conflicts. They take precedence over `prefer`."""
    keep_both: bool = False
    """True if each conflict of files leaves both versions, the older one under a name of its own."""
    max_copies: int = COPIES
    """The number of versions that get such a name in one run."""
    units: tuple[bytes, ...] | None = None
    """Names of directories that are one unit, besides .git, .hg, .svn, .jj and .bzr; None: those of the last
    run that named some."""
    rules: tuple[FilterRule, ...] | None = None
    """The rules that choose entries. Excluded ones are neither copied nor deleted. None: those of the last
    run that had some, which are kept at both sides."""
    checksum: bool = False
    """True if files of both sides without a common past are compared by content even if size and
    modification time are equal."""
    guard: int = GUARD_PERCENT
    """The run stops before it deletes or replaces more than this percentage of one side."""
    force_empty: bool = False
    """True if a side may be empty that had entries: all of the other side's are deleted then."""
    ring: bool = False
    """True if the two may be united although other pairs connect them already."""
    keep_undo: KeepUndo | None = KeepUndo(days=7)
    """The amount of replaced and deleted data that each side keeps for `rdc.undo`; None: nothing."""
    fsync: bool = True
    merge: bool = False
    """True if texts that both sides edited are merged, where their changes are apart."""
    keep_base: int = BASE_BYTES
    """The bytes of common texts that `merge` keeps."""
    watch: bool = False
    """True if runs follow, each when a side has changed, until `stop` of `rdc.unite` is set."""
    rescan: int = WATCH_SECONDS
    """The seconds after which `watch` compares the sides though no event came; 0 for never."""
    xattrs: bool = False
    """True if extended attributes (user.*) take part."""
    acls: bool = False
    """True if POSIX ACLs take part."""
    hard_links: bool = False
    """True if hard links take part: names that are one file at one side become one at the other side."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.rescan <= RESCAN_SECONDS:
            raise ValueError(f"UniteOptions.rescan: {self.rescan} is not in 0..{RESCAN_SECONDS}")
        if not 0 <= self.guard <= 100:
            raise ValueError(f"UniteOptions.guard: {self.guard} is not in 0..100")
        if self.keep_base < 0:
            raise ValueError(f"UniteOptions.keep_base: {self.keep_base} is negative")
        if self.max_copies < 0:
            raise ValueError(f"UniteOptions.max_copies: {self.max_copies} is negative")


class UniteItem(WithPath, Record):
    """One entry that a side got, lost or had changed; in a dry run, it would be."""

    side: str
    """The side that changes: "left" or "right"."""
    action: str
    """"new", "edited", "merged", "returned", "deleted", "renamed", "metadata", "linked" or "unlinked"."""
    path_bytes: bytes
    target_bytes: bytes | None = None
    """The new path of a renamed entry; another name of the file that a linked one is now."""
    copied: int = 0
    """Bytes of the file that was copied."""

    @property
    def target(self) -> str | None:
        """`target_bytes` as text."""
        return None if self.target_bytes is None else fsdecode(self.target_bytes)


class UniteConflict(WithPath, Record):
    """Two changes that exclude each other. Both versions stay as they are."""

    path_bytes: bytes
    about: str
    """"content", "kind", "unit", "mode", "attributes" or "links"."""
    left_size: int
    right_size: int
    left_mtime_ns: int
    """Nanoseconds since 1970."""
    right_mtime_ns: int


class United(Record):
    """With `UniteOptions.watch`: a run ended. Both sides have what was changed, but for conflicts."""

    left: int
    """The figures of this run, as in UniteReport."""
    right: int
    left_bytes: int
    right_bytes: int
    entries: int
    conflicts: int
    held: int
    seconds: float
    """The duration of the run."""


UniteEvent: TypeAlias = UniteItem | UniteConflict | United


class UniteReporter(Protocol):
    """Receives what a run does at both sides, its conflicts and its problems; of a watch also what happens to
    it."""

    def __call__(self, event: UniteEvent | Event | WatchEvent, /) -> None: ...


class UniteReport(Report, Record):
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
    """True if the two sides had nothing in common that is remembered: nothing was deleted."""
    exit: ExitCode


class UnitePair(Record):
    """The state of a pair that one directory remembers, as `rdc.unite_status` returns it."""

    place: bytes
    """The place of the other directory in the last run."""
    seconds: int
    """The end of that run, in seconds since 1970."""
    entries: int
    """Entries that both sides had in common then."""
    interrupted: bool
    """True if a run was interrupted since."""
    rules: tuple[bytes, ...]
    """The rules that are kept of the pair, each as a text: `exclude *.o`, `include a`, `unit name`."""
    conflicts: tuple[UniteConflict, ...]

    def seen_from_the_right(self) -> UnitePair:
        """Return the same for a user who names the directory that remembers it on the right."""
        swapped = tuple(
            replace(
                each,
                left_size=each.right_size,
                right_size=each.left_size,
                left_mtime_ns=each.right_mtime_ns,
                right_mtime_ns=each.left_mtime_ns,
            )
            for each in self.conflicts
        )
        return replace(self, conflicts=swapped)
