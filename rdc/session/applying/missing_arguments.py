"""Selected paths that the source does not have: --delete-missing-args deletes them at the destination."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, printable
from rdc.model.entries import Kind
from rdc.progress import Problem
from rdc.session.landing.listed_entries import Extraneous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.session.applying.deletion import Deletion
    from rdc.session.applying.late_directories import LateDirectories

__all__ = ["delete_missing", "find_missing"]


def find_missing(context: ApplyingContext, deletion: Deletion) -> list[Extraneous]:
    """Returns what the destination has at each selected path that the source does not have."""
    found: list[Extraneous] = []
    if context.at.selection is None:
        return found
    for path in sorted(context.at.selection.ends):
        if path and context.at.manifest.row(path) is None and not _is_extraneous(context, path):
            here = _found_here(context, path)
            if here is not None:
                found.append(here)
                if (
                    here.kind == Kind.DIRECTORY
                    and context.at.options.removes
                    and not context.at.options.dry_run
                ):
                    deletion.below.note(path)
    return found


def delete_missing(
    context: ApplyingContext,
    found: list[Extraneous],
    deletion: Deletion,
    late: LateDirectories,
    withheld: str | None,
) -> None:
    """Deletes what `find_missing` found.

    A directory goes with its content only with --delete or --force. `withheld`: as in
    ExtraneousEntries.delete.
    """
    if found and withheld is not None:
        context.extraneous.withhold([one for one in found if not _keeps_content(context, one)], withheld)
        return
    for one in deletion.announced(found, context.at.filters.protected, all_go=False):
        path = one.path
        if _keeps_content(context, one):
            text = f"{printable(path)}: not deleted, it is not empty; --delete or --force removes it"
            context.at.events.report(Problem(ExitCode.OK, path, text))
            continue
        above = path.rpartition(b"/")[0]
        if not context.at.options.dry_run and (not above or context.at.manifest.row(above) is not None):
            late.touch(above)
        deletion.remove(one)


def _is_extraneous(context: ApplyingContext, path: bytes) -> bool:
    """Whether --delete decides about the path, because all entries of the directory above it take part."""
    selection, above = context.at.selection, path.rpartition(b"/")[0]
    return context.at.options.delete and selection is not None and selection.names(above) is None


def _found_here(context: ApplyingContext, path: bytes) -> Extraneous | None:
    try:
        kind = None if context.at.new else context.at.root.kind(path)
        return None if kind is None else Extraneous(path, kind, context.at.root.identity(path))
    except FileError as error:
        if error.code is not ExitCode.VANISHED:
            context.at.events.report(Problem(ExitCode.PARTIAL, path, str(error)))
        return None


def _keeps_content(context: ApplyingContext, entry: Extraneous) -> bool:
    """Whether a directory stays because it holds something that nothing allows to remove."""
    path = entry.path
    if entry.kind != Kind.DIRECTORY or context.at.options.removes:
        return False
    try:
        return not context.at.root.listed(path).is_empty
    except FileError as error:
        context.at.events.report(Problem(error.code, path, str(error)))
        return True
