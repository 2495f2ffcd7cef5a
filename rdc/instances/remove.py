"""Remover: of each set of identical files one stays; the others are deleted, moved or made symbolic links.

A batch goes through five steps. Files are leased, compared byte by byte and written into the journal. The
journal and the files that stay are made durable. The duplicates leave their names. The directories are made
durable. What was displaced is removed. rdc.files.names.name_removal has the argument for each name.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from rdc.errors import FileError, printable
from rdc.files.base.descriptor_limit import share_of_descriptors
from rdc.files.base.os_errors import changed
from rdc.files.names.hard_link import sync_contents, sync_directories
from rdc.files.names.leased_file import LeasedFile, equal_digest
from rdc.files.names.name_removal import Deletion, MoveAway, NameRemoval, SymlinkSwap
from rdc.instances.group import inodes_of
from rdc.instances.keep_rules import choose_survivor
from rdc.instances.link import BATCH_BYTES, BATCH_NAMES, freed_bytes
from rdc.instances.removal_journal import RemovalJournal, RemovalRecord
from rdc.instances.removal_leftovers import clear_removals
from rdc.instances.removal_paths import RemovalPaths
from rdc.instances.run_totals import RunTotals
from rdc.instances.tree import is_below
from rdc.model.instances import Action, DeduperOptions, Instance
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.instances.events import DedupeReporter
    from rdc.instances.group import Inode
    from rdc.instances.tree import Tree
    from rdc.model.instances import DedupeReport, IdenticalFiles, RootedPath
    from rdc.model.removal import RemovalOptions

__all__ = ["Remover"]


@dataclass(frozen=True, slots=True)
class _Task:
    """One duplicate, all of whose names go."""

    original: Inode
    duplicate: Inode
    destinations: tuple[bytes, ...]
    """For each name: where it goes, or the text of its link."""


@dataclass(slots=True)
class _Ready:
    """A task whose files are leased and were found equal."""

    task: _Task
    original: LeasedFile
    duplicate: LeasedFile
    digest: bytes
    won: int
    removals: list[NameRemoval]


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
        self._journal = None if options.journal is None else RemovalJournal(options.journal, options.pointer)
        self._paths = RemovalPaths(trees, options)
        self._most_names = share_of_descriptors(BATCH_NAMES)
        self._batch: list[_Task] = []
        self._batch_names = 0
        self._batch_bytes = 0

    @property
    def journal(self) -> bytes | None:
        """Path of the journal, if anything was recorded in it."""
        return self._journal.path if self._journal is not None and self._journal.is_made else None

    def clear(self) -> None:
        """Gives names back that an interrupted run took. Must come before the search."""
        clear_removals(self._trees, self._totals)

    def failed(self, error: FileError) -> None:
        """Counts and reports a file's problem from the search for duplicates."""
        self._totals.problem(error)

    def groups(self, groups: Sequence[IdenticalFiles]) -> None:
        """Removes the duplicates of each group. The paths of a group are in the order found."""
        self._totals.total = sum(group.size * (len(group) - 1) for group in groups)
        for group in groups:
            inodes = inodes_of(
                group, self._trees, self._options.keep_in, self._totals.problem, attributes=False
            )
            if len(inodes) > 1:
                self._group(inodes)
        self._flush()

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
            self._add(_Task(original, inode, destinations))
        self._totals.groups += found

    def _is_in(self, name: RootedPath, tops: Sequence[bytes]) -> bool:
        return any(is_below(self._real(name), top) for top in tops)

    def _add(self, task: _Task) -> None:
        self._batch.append(task)
        self._batch_names += len(task.duplicate.names)
        self._batch_bytes += task.duplicate.facts.identity.size
        if self._batch_names >= self._most_names or self._batch_bytes >= BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Executes the batch."""
        tasks, self._batch, self._batch_names, self._batch_bytes = self._batch, [], 0, 0
        with ExitStack() as leases:
            ready = list(self._prepare(tasks, leases))
            if not self._options.apply:
                for one in ready:
                    names = len(one.task.duplicate.names)
                    for number in range(names):
                        self._done(one, number, last=number == names - 1)
            elif ready:
                self._record(ready)
                self._carry_out(ready)
        for task in tasks:
            self._totals.advance(task.duplicate.facts.identity.size)

    # Leases and comparison

    def _prepare(self, tasks: Sequence[_Task], leases: ExitStack) -> Iterator[_Ready]:
        original: LeasedFile | None = None
        leased: Inode | None = None
        failed: Inode | None = None
        for task in tasks:
            if task.original is failed:
                continue  # its failure was reported once
            try:
                if original is None or leased is not task.original:
                    failed = task.original
                    original = leases.enter_context(self._lease(task.original))
                    leased, failed = task.original, None
                duplicate = leases.enter_context(self._lease(task.duplicate))
                digest = self._compare(original, duplicate)
                removals = self._removals(task, original, duplicate) if self._options.apply else []
            except FileError as error:
                self._totals.problem(error)
                continue
            yield _Ready(task, original, duplicate, digest, freed_bytes(original, duplicate), removals)

    def _lease(self, inode: Inode) -> LeasedFile:
        name = inode.names[0]
        file = LeasedFile(self._trees[name.root].root, name.path)
        expected = inode.facts.identity
        if (file.identity.device, file.identity.inode) != (expected.device, expected.inode):
            file.close()
            raise changed(name.path, self._shown(name), "the file that was there", "another one")
        return file

    def _compare(self, original: LeasedFile, duplicate: LeasedFile) -> bytes:
        """The digest of both. A dry run trusts the digests of the search. Raises FileChangedError."""
        if not self._options.apply:
            return b""
        digest = equal_digest(original, duplicate)
        if digest is None:
            shown = duplicate.root.shown(duplicate.path)
            raise changed(duplicate.path, shown, "the content of its duplicate", "another")
        return digest

    def _removals(self, task: _Task, original: LeasedFile, duplicate: LeasedFile) -> list[NameRemoval]:
        removals: list[NameRemoval] = []
        for name, destination in zip(task.duplicate.names, task.destinations, strict=True):
            root = self._trees[name.root].root
            if self._options.action is Action.DELETE:
                removals.append(Deletion(root, name.path, duplicate, original))
            elif self._options.action is Action.SYMLINK:
                removals.append(SymlinkSwap(root, name.path, duplicate, original, destination))
            else:
                into = self._paths.into()
                removals.append(
                    MoveAway(root, name.path, duplicate, original, into=into, destination=destination)
                )
        return removals

    # The journal, and what will stand for two

    def _record(self, ready: Sequence[_Ready]) -> None:
        """Writes the journal and syncs the files that stay. Raises RdcError; nothing has changed then."""
        if self._journal is None:
            raise ValueError("duplicates are removed with a journal only")
        self._journal.write(
            self._record_of(one, name, destination)
            for one in ready
            for name, destination in zip(one.task.duplicate.names, one.task.destinations, strict=True)
        )
        originals = {id(one.original): one.original for one in ready}
        try:
            sync_contents(list(originals.values()))
            sync_directories(removal.original_directory for one in ready for removal in one.removals)
        except OSError as error:
            first = ready[0].original
            raise first.root.failure(error, first.path, "write it to disk before others go") from error

    def _record_of(self, one: _Ready, name: RootedPath, destination: bytes) -> RemovalRecord:
        original = one.task.original.names[0]
        return RemovalRecord(
            action=self._options.action,
            top=self._trees[name.root].real,
            path=name.path,
            original_top=self._trees[original.root].real,
            original=original.path,
            destination_top=self._options.destination,
            destination=destination,
            inode=one.duplicate.identity.inode,
            size=one.duplicate.identity.size,
            digest=one.digest,
            metadata=one.duplicate.metadata,
            atime_ns=one.duplicate.atime_ns,
            attributes=one.duplicate.attributes,
        )

    # Departing, making durable, finishing

    def _carry_out(self, ready: Sequence[_Ready]) -> None:
        departed: list[tuple[_Ready, int]] = []
        try:
            for one in ready:
                for number, removal in enumerate(one.removals):
                    if self._try(removal, first=not number):
                        departed.append((one, number))
            removals = [one.removals[number] for one, number in departed]
            try:
                sync_directories(directory for removal in removals for directory in removal.directories)
            except OSError as error:
                raise removals[0].root.failure(error, removals[0].path, "make its removal durable") from error
            finished: Counter[int] = Counter()
            departed.reverse()
            while departed:
                one, number = departed.pop()
                if self._try(one.removals[number], first=None):
                    finished[id(one)] += 1
                    # Only the last name frees the file.
                    self._done(one, number, last=finished[id(one)] == len(one.removals))
        finally:
            # Reached only after a disk failure or a signal.
            for one, number in departed:
                one.removals[number].undo()

    def _try(self, removal: NameRemoval, *, first: bool | None) -> bool:
        """Departs; finishes if `first` is None."""
        try:
            if first is None:
                removal.finish()
            else:
                removal.depart(first=first)
        except FileError as error:
            self._totals.problem(error)
            return False
        return True

    def _done(self, one: _Ready, number: int, *, last: bool) -> None:
        """Reports one name. `last`: of this file."""
        shown = self._shown(one.task.duplicate.names[number])
        source = self._shown(one.task.original.names[0])
        destination = self._paths.shown_destination(one.task.destinations[number])
        size, won = (one.duplicate.identity.size, one.won) if last else (0, 0)
        instance = Instance(self._options.action, shown, source, size, won, 0, destination)
        self._totals.done(instance, files=int(last))

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
