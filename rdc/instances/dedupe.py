"""One run: groups of identical files and runs of equal chunks go in, single instances come out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rdc.errors import FileError
from rdc.instances.group import inodes_of
from rdc.instances.journal import Journal
from rdc.instances.leftovers import clear_leftovers
from rdc.instances.link import Linker
from rdc.instances.share import Sharer
from rdc.instances.tally import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.instances.events import DedupeReporter
    from rdc.instances.tree import Tree
    from rdc.model.instances import DedupeOptions, DedupeReport, EqualRuns, IdenticalFiles

__all__ = ["Deduper"]


class Deduper:
    """Calls in this order: `clear`, `groups`, `runs`, `finish`; `close` in any case.

    All problems of single files go to the reporter; what is raised (RdcError) ends the run: a full disk, or a
    journal that cannot be written. Between any two steps every file is whole.
    """

    def __init__(self, trees: Sequence[Tree], options: DedupeOptions, reporter: DedupeReporter) -> None:
        self._trees = trees
        self._options = options
        self._tally = Tally(options, reporter)
        self._sharer = Sharer(trees, self._tally)
        self._journal = Journal(options.journal) if options.journal is not None else None

    @property
    def journal(self) -> bytes | None:
        """Where hard links were written down, if any were."""
        return self._journal.path if self._journal is not None and self._journal.is_made else None

    def clear(self) -> None:
        """Clear what interrupted runs left, before anybody takes it for duplicates."""
        for tree in self._trees:
            clear_leftovers(tree, self._tally)

    def failed(self, error: FileError) -> None:
        """Count and tell a problem that whoever found the groups had with a file."""
        self._tally.problem(error)

    def groups(self, groups: Sequence[IdenticalFiles]) -> None:
        self._tally.total = sum(group.size * (len(group) - 1) for group in groups)
        linker = Linker(self._trees, self._tally, self._journal)
        hardlink = self._options.hardlink
        for group in groups:
            if self._tally.capped:
                break
            if not group.size:
                continue  # nothing on disk to win
            inodes = inodes_of(
                group, self._trees, self._options.keep, self._tally.problem, attributes=hardlink
            )
            if hardlink:
                linker.group(inodes)
            else:
                self._sharer.group(inodes)
        linker.flush()

    def runs(self, runs: Iterable[Sequence[EqualRuns]]) -> None:
        """Each item is all that was found for one destination. Never together with hard links: one file's
        part cannot be another's."""
        for one in runs:
            if self._tally.capped:
                break
            self._sharer.runs(one)

    def finish(self) -> DedupeReport:
        return self._tally.report()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
