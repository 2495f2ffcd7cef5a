"""`rdc.undo` and `rdc.undoable_syncs`: take syncs back, as the verb does."""

from __future__ import annotations

import os

from rdc.checks import check_argument, check_callable
from rdc.model.undo import UndoableSync, UndoItem, UndoOptions, UndoReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Problem
    from rdc.undoing.undo import UndoReporter

__all__ = ["undo", "undoable_syncs"]


def _silent(event: UndoItem | Problem, /) -> None:
    """Ignores every event."""


def undo(
    destination: str | os.PathLike[str],
    options: UndoOptions | None = None,
    *,
    reporter: UndoReporter = _silent,
) -> UndoReport:
    """Takes the latest sync into a local directory back, as `rdc undo` does.

    That sync must have had `SyncOptions.keep_undo`. What was changed since is newer work: it stays,
    `reporter` gets a Problem that names it, and the report has exit code 23. Raises RdcError if the undo as a
    whole cannot go on; the next call continues it.

        >>> import os, rdc
        >>> os.mkdir("src")
        >>> with open("src/file", "w") as file:
        ...     _ = file.write("data")
        >>> keep = rdc.SyncOptions(keep_undo=rdc.KeepUndo(days=30))
        >>> _ = rdc.sync("src/", "copy/", keep, catalog=None)
        >>> rdc.undo("copy/").removed
        1
    """
    check_argument("undo", "destination", destination, str, os.PathLike)
    check_argument("undo", "options", options, UndoOptions, None)
    check_callable("undo", "reporter", reporter)
    from rdc.undoing.undo import undo_latest

    return undo_latest(os.fsencode(destination), options or UndoOptions(), reporter)


def undoable_syncs(destination: str | os.PathLike[str]) -> tuple[UndoableSync, ...]:
    """The syncs into a local directory that `rdc.undo` can take back, the latest last. Raises RdcError.

    >>> import rdc
    >>> rdc.undoable_syncs(".")
    ()
    """
    check_argument("undoable_syncs", "destination", destination, str, os.PathLike)
    from rdc.undoing.undo import list_syncs

    return list_syncs(os.fsencode(destination))
