"""Undoes what a journal records: hard links become separate files again, removed duplicates come back."""

from __future__ import annotations

from rdc.errors import FileError, printable
from rdc.files.facts.file_facts import facts_of
from rdc.files.names.unlink_copy import unlink_copy
from rdc.files.root.root import Root
from rdc.instances.journal import LinkRecord, read_journal
from rdc.instances.removal_journal import is_removal_journal
from rdc.instances.run_totals import RunTotals
from rdc.model.instances import Action, Instance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.instances.events import DedupeReporter
    from rdc.model.instances import DedupeReport, DeduperOptions

__all__ = ["undo"]


def undo(journal: bytes, options: DeduperOptions, reporter: DedupeReporter) -> DedupeReport:
    """Separates the links that a journal records, the last first. Raises FileError for a file that is no
    journal.

    A name that no longer leads to the recorded file is skipped: it was separated, replaced or removed since,
    or the run was killed before linking it. The copy gets the owner, mode, mtime and attributes that the file
    has now. Only the journal's paths are trusted.
    """
    if is_removal_journal(journal):
        from rdc.instances.removal_undo import undo_removals

        return undo_removals(journal, options, reporter)
    records = read_journal(journal)
    totals = RunTotals(options, reporter, total=sum(record.size for record in records))
    roots: dict[bytes, Root] = {}
    try:
        for record in reversed(records):
            if totals.capped:
                break
            try:
                root = roots.get(record.top)
                if root is None:
                    root = roots[record.top] = Root.open(record.top)
                _separate(root, record, totals)
            except FileError as error:
                totals.problem(error)
            totals.advance(record.size)
    finally:
        for root in roots.values():
            root.close()
    return totals.report()


def _separate(root: Root, record: LinkRecord, totals: RunTotals) -> None:
    with root.open_read(record.path) as source:
        facts = facts_of(source, attributes=False)
    shown = root.shown(record.path)
    if facts.identity.inode != record.inode or facts.links < 2:
        totals.skip(shown, f"{printable(shown)}: passed over: it is no link of that run, or not any more")
        return
    size = facts.identity.size
    if not totals.take(size):
        return
    if (size, facts.identity.mtime_ns) != (record.size, record.mtime_ns):
        totals.notice(
            shown,
            f"{printable(shown)}: written to since it was linked: both files keep what they hold now",
        )
    if totals.options.apply:
        unlink_copy(root, record.path, record.inode)
    totals.done(Instance(Action.SEPARATE, shown, record.original, size, 0, 0))
