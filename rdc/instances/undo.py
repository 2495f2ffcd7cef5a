"""Undoes the hard links of a journal: each name becomes a file of its own again."""

from __future__ import annotations

from rdc.errors import FileError, printable
from rdc.files.confined import Root
from rdc.files.facts import facts_of
from rdc.files.separate import separate
from rdc.instances.journal import LinkRecord, read_journal
from rdc.instances.tally import Tally
from rdc.model.instances import Action, Instance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.instances.events import DedupeReporter
    from rdc.model.instances import DedupeOptions, DedupeReport

__all__ = ["undo"]


def undo(journal: bytes, options: DedupeOptions, reporter: DedupeReporter) -> DedupeReport:
    """Separate what a journal says was linked, the last first. Raises FileError for a journal that is none.

    A name that is no longer a link to that file is passed over: it was separated, replaced or removed by
    somebody, or a kill came before it was linked. Owner, mode, time and attributes are those that file and
    name had in common, and may have got since. So nothing of a journal but its paths is believed.
    """
    records = read_journal(journal)
    tally = Tally(options, reporter, total=sum(record.size for record in records))
    roots: dict[bytes, Root] = {}
    try:
        for record in reversed(records):
            if tally.capped:
                break
            try:
                root = roots.get(record.top)
                if root is None:
                    root = roots[record.top] = Root.open(record.top)
                _separate(root, record, tally)
            except FileError as error:
                tally.problem(error)
            tally.advance(record.size)
    finally:
        for root in roots.values():
            root.close()
    return tally.report()


def _separate(root: Root, record: LinkRecord, tally: Tally) -> None:
    facts = facts_of(root, record.path, attributes=False)
    shown = root.shown(record.path)
    if facts.identity.inode != record.inode or facts.links < 2:
        tally.skip(shown, f"{printable(shown)}: passed over: it is no link of that run, or not any more")
        return
    size = facts.identity.size
    if not tally.take(size):
        return
    if (size, facts.identity.mtime_ns) != (record.size, record.mtime_ns):
        tally.notice(
            shown,
            f"{printable(shown)}: written to since it was linked: both files keep what they hold now",
        )
    if tally.options.apply:
        separate(root, record.path, record.inode)
    tally.done(Instance(Action.SEPARATE, shown, record.kept, size, 0, 0))
