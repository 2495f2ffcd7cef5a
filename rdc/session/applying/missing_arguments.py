"""Selected paths that the source does not have: --delete-missing-args deletes them at the destination."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, printable
from rdc.model.entries import Kind
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.session.applying.deletion import Deletion
    from rdc.session.applying.late_directories import LateDirectories

__all__ = ["delete_missing"]


def delete_missing(
    context: ApplyingContext, deletion: Deletion, late: LateDirectories, withheld: str | None
) -> None:
    """Deletes what the destination has at each selected path that the source does not have.

    A directory goes with its content only with --delete or --force. `withheld`: as in
    ExtraneousEntries.delete.
    """
    if context.selection is None:
        return
    found: list[tuple[bytes, int]] = []
    for path in sorted(context.selection.ends):
        if path and context.manifest.row(path) is None and not _is_extraneous(context, path):
            here = _kind_here(context, path)
            if here is not None:
                found.append((path, here))
    if found and withheld is not None:
        going = [(path, kind) for path, kind in found if not _keeps_content(context, path, kind)]
        context.extraneous.withhold(going, withheld)
        return
    protected = context.filters.protected
    for path, kind in deletion.announced(found, protected, all_go=False):
        if _keeps_content(context, path, kind):
            text = f"{printable(path)}: not deleted, it is not empty; --delete or --force removes it"
            context.events.report(Problem(ExitCode.OK, path, text))
            continue
        above = path.rpartition(b"/")[0]
        if not context.options.dry_run and (not above or context.manifest.row(above) is not None):
            late.touch(above)
        deletion.remove(path, kind)


def _is_extraneous(context: ApplyingContext, path: bytes) -> bool:
    """Whether --delete decides about the path, because all entries of the directory above it take part."""
    selection, above = context.selection, path.rpartition(b"/")[0]
    return context.options.delete and selection is not None and selection.names(above) is None


def _kind_here(context: ApplyingContext, path: bytes) -> int | None:
    try:
        return None if context.new else context.root.kind(path)
    except FileError as error:
        if error.code is not ExitCode.VANISHED:
            context.events.report(Problem(ExitCode.PARTIAL, path, str(error)))
        return None


def _keeps_content(context: ApplyingContext, path: bytes, kind: int) -> bool:
    """Whether a directory stays because it holds something that nothing allows to remove."""
    if kind != Kind.DIRECTORY or context.options.removes:
        return False
    try:
        return not context.root.listed(path).is_empty
    except FileError as error:
        context.events.report(Problem(error.code, path, str(error)))
        return True
