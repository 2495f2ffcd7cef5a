"""Options and results of `rdc undo`."""

from __future__ import annotations

from rdc.errors import ExitCode, WithPath
from rdc.lean.checks import Checked
from rdc.lean.records import Record, Report


class UndoOptions(Checked, Record):
    """The options of `rdc.undo`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.UndoOptions(dry_run=True).dry_run
    True
    """

    dry_run: bool = False
    """True to report the changes without making them."""
    fsync: bool = True


class UndoableSync(Record):
    """One sync of which a destination keeps what undoing it needs.

    >>> import rdc
    >>> rdc.undoable_syncs(".")
    ()
    """

    number: int
    """Later syncs have higher numbers."""
    seconds: int
    """The start: seconds since 1970."""
    entries: int
    """Entries that were made, replaced, moved, removed or changed."""
    bytes: int
    """Space that its old versions take."""
    complete: bool
    """True if the sync came to its end."""
    left_alone: int | None
    """Entries that an undo left alone because of newer work; None: no undo came to its end."""


class UndoItem(WithPath, Record):
    """One entry that was taken back, or would be in a dry run."""

    action: str
    """"restored", "removed", "moved" or "changed"."""
    path_bytes: bytes
    """Relative to the destination."""


class UndoReport(Report, Record):
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
