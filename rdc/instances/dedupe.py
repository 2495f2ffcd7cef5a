"""Deduper: one run. It takes groups of identical files and runs of equal chunks, and makes single
instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rdc.errors import FileError
from rdc.instances.group import inodes_of
from rdc.instances.journal import JournalWriter
from rdc.instances.leftovers import clear_leftovers
from rdc.instances.link import Linker
from rdc.instances.run_totals import RunTotals
from rdc.instances.share import Sharer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.instances.events import DedupeReporter
    from rdc.instances.tree import Tree
    from rdc.model.instances import DedupeReport, DeduperOptions, EqualRuns, IdenticalFiles

__all__ = ["Deduper"]


class Deduper:
    """Call in this order: `clear`, `groups`, `runs`, `finish`; `close` in any case.

    Problems of single files are reported. A raised RdcError ends the run: the disk is full, or the journal
    cannot be written. Between any two steps every file is complete.
    """

    def __init__(self, trees: Sequence[Tree], options: DeduperOptions, reporter: DedupeReporter) -> None:
        self._trees = trees
        self._options = options
        self._totals = RunTotals(options, reporter)
        self._sharer = Sharer(trees, self._totals)
        self._journal = (
            JournalWriter(options.journal, options.pointer) if options.journal is not None else None
        )

    @property
    def journal(self) -> bytes | None:
        """Path of the journal, if hard links were recorded in it."""
        return self._journal.path if self._journal is not None and self._journal.is_made else None

    def clear(self) -> None:
        """Clears what interrupted runs left. Must come before the search for duplicates, which would find the
        leftovers."""
        clear_leftovers(self._trees, self._totals)

    def failed(self, error: FileError) -> None:
        """Counts and reports a file's problem from the search for duplicates."""
        self._totals.problem(error)

    def groups(self, groups: Sequence[IdenticalFiles]) -> None:
        self._totals.total = sum(group.size * (len(group) - 1) for group in groups)
        linker = Linker(self._trees, self._totals, self._journal)
        hardlink = self._options.hardlink
        for group in groups:
            if self._totals.capped:
                break
            if not group.size:
                continue  # occupies no blocks
            inodes = inodes_of(
                group,
                self._trees,
                self._options.keep,
                self._totals.problem,
                attributes=hardlink,
                use=not hardlink,
            )
            if hardlink:
                linker.group(inodes)
            else:
                self._sharer.group(inodes)
        linker.flush()

    def runs(self, runs: Iterable[Sequence[EqualRuns]]) -> None:
        """Shares equal ranges. Each item has all runs of one destination. Not to be combined with hard links:
        a link cannot stand for a part of a file."""
        for one in runs:
            if self._totals.capped:
                break
            self._sharer.runs(one)

    def finish(self) -> DedupeReport:
        return self._totals.report()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
