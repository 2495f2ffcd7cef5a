"""Options and results of `rdc undo`, and how much a sync keeps for it."""

from __future__ import annotations

from rdc.checks import check_fields
from rdc.errors import ExitCode
from rdc.limits.wire import UNDO_DAYS
from rdc.model.sync import KeepUndo
from rdc.records import dataclass

__all__ = [
    "UndoItem",
    "UndoOptions",
    "UndoReport",
    "UndoableSync",
    "parse_keep_undo",
]


def parse_keep_undo(text: str) -> KeepUndo:
    """Reads "10G" or "30d". Raises ValueError."""
    number = text[:-1]
    if text.endswith("d") and number.isascii() and number.isdigit() and len(number) <= 5:
        if not 1 <= int(number) <= UNDO_DAYS:
            raise ValueError(f"1d to {UNDO_DAYS}d is expected")
        return KeepUndo(days=int(number))
    from rdc.model.sizes import parse_size

    size = parse_size(text)
    if not size:
        raise ValueError("a size or a number of days is expected, such as 10G or 30d")
    return KeepUndo(size=size)


@dataclass(frozen=True, slots=True)
class UndoOptions:
    """The options of `rdc.undo`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.UndoOptions(dry_run=True).dry_run
    True
    """

    dry_run: bool = False
    """Only report what would be done."""
    fsync: bool = True

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class UndoableSync:
    """One sync of which a destination keeps what undoing it needs.

    >>> import rdc
    >>> rdc.undoable_syncs(".")
    ()
    """

    number: int
    """Later syncs have higher numbers."""
    seconds: int
    """When it began: seconds since 1970."""
    entries: int
    """Entries that were made, replaced, moved, removed or changed."""
    bytes: int
    """Space that its old versions take."""
    complete: bool
    """Whether the sync came to its end."""
    left_alone: int | None
    """Entries that an undo left alone because of newer work; None: no undo came to its end."""


@dataclass(frozen=True, slots=True)
class UndoItem:
    """One entry that was taken back, or would be in a dry run."""

    action: str
    """"restored", "removed", "moved" or "changed"."""
    path: bytes
    """Relative to the destination."""


@dataclass(frozen=True, slots=True)
class UndoReport:
    """The result of `rdc.undo`.

    >>> import rdc
    >>> rdc.undo(".").number is None
    True
    """

    number: int | None
    """The sync that was undone; None: there is none to undo."""
    restored: int
    removed: int
    moved: int
    changed: int
    """Entries whose metadata were set back."""
    left_alone: int
    """Entries that stay as they are, because they are newer work or cannot be changed."""
    older: int
    """Syncs that can still be undone."""
    exit: ExitCode
