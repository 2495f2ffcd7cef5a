"""Remover: of each set of identical files one stays; the others are deleted, moved or made symbolic links.

It chooses; rdc.duplicates.batch carries out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from rdc.duplicates.batch import Batch, RemovalPaths, Task
from rdc.duplicates.group import choose_survivor, inodes_of, is_below
from rdc.duplicates.journal import JournalWriter
from rdc.duplicates.leftovers import clear_leftovers
from rdc.duplicates.run_totals import RunTotals
from rdc.errors import FileError, printable
from rdc.model.duplicates import DedupeReport, DeduperOptions, IdenticalFiles, RemovalOptions, RootedPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.duplicates.group import Inode, Tree
    from rdc.duplicates.run_totals import DedupeReporter


class Remover:
    """Call in this order: `clear`, `groups`, `finish`; `close` in any case.

    Problems of single files are reported. A raised RdcError ends the run. At every moment each content is
    under a name at least once.
    """

    def __init__(self, trees: Sequence[Tree], options: RemovalOptions, reporter: DedupeReporter) -> None:
        self._trees = trees
        self._options = options
        dedupe = DeduperOptions(apply=options.apply, keep=options.keep_in, journals=options.journals)
        self._totals = RunTotals(dedupe, reporter)
        self._journal = None if options.journal is None else JournalWriter(options.journal, options.pointer)
        self._paths = RemovalPaths(trees, options)
        self._batch = Batch(trees, self._totals, self._journal, self._paths)

    @property
    def journal(self) -> bytes | None:
        """Path of the journal, if anything was recorded in it."""
        return self._journal.path if self._journal is not None and self._journal.is_made else None

    def clear(self) -> None:
        """Give names back that an interrupted run took. Must come before the search."""
        clear_leftovers(self._trees, self._totals)

    def failed(self, error: FileError) -> None:
        """Count and report a file's problem from the search for duplicates."""
        self._totals.problem(error)

    def groups(self, groups: Sequence[IdenticalFiles]) -> None:
        """Remove the duplicates of each group. The paths of a group are in the order found."""
        self._totals.total = sum(group.size * (len(group) - 1) for group in groups)
        for group in groups:
            inodes = inodes_of(group, self._trees, self._options.keep_in, self._totals.problem)
            if len(inodes) > 1:
                self._group(inodes)
        self._batch.flush()

    def finish(self) -> DedupeReport:
        return self._totals.report()

    def close(self) -> None:
        self._paths.close()
        if self._journal is not None:
            self._journal.close()

    # Choosing

    def _group(self, inodes: Sequence[Inode]) -> None:
        only = self._options.only_in
        for inode in inodes:
            if only and not all(self._is_in(name, only) for name in inode.names):
                inode.protected = True
        original = choose_survivor(inodes, self._options.rules, self._trees)
        found = False
        for inode in inodes:
            if inode is original or inode.protected:
                continue
            why = _reason_to_leave(inode)
            if why is not None:
                shown = self._shown(inode.names[0])
                self._totals.skip(shown, f"{printable(shown)}: left alone: it {why}")
                continue
            try:
                destinations = tuple(self._paths.destination(name, original.names[0]) for name in inode.names)
            except FileError as error:
                self._totals.problem(error)
                continue
            found = True
            self._batch.add(Task(self._options.action, original, inode, destinations))
        self._totals.groups += found

    def _is_in(self, name: RootedPath, tops: Sequence[bytes]) -> bool:
        return any(is_below(self._real(name), top) for top in tops)

    def _shown(self, name: RootedPath) -> bytes:
        return self._trees[name.root].root.shown(name.path)

    def _real(self, name: RootedPath) -> bytes:
        return self._trees[name.root].real_path(name.path)


def _reason_to_leave(inode: Inode) -> str | None:
    """Why a file is not removed although another one has its content."""
    metadata = inode.facts.metadata
    if metadata.mode & (stat.S_ISUID | stat.S_ISGID):
        return "runs with the rights of its owner or group (setuid, setgid)"
    if os.geteuid() not in {0, metadata.uid}:
        return f"belongs to user {metadata.uid}"
    if inode.has_other_names:
        return "has names outside of what was given, so that removing it would free nothing"
    if len(inode.names) > inode.facts.links:
        return "is reached by several paths, as through a bind mount"
    return None
