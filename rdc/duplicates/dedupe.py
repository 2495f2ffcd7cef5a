"""Deduper: one run. It takes groups of identical files and runs of equal chunks, and makes single instances.

Sharer (rdc.duplicates.share) shares blocks. Linker replaces the names of identical files by hard links to one
of them: it chooses, and rdc.duplicates.batch carries out. A file that cannot get its names from one file,
because that has as many links as it may have, or lies where no link leads to, is tried with the next one.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from functools import partial

from rdc.duplicates.batch import Batch, RemovalPaths, Task
from rdc.duplicates.group import Inode, Tree, by_volume, choose_original, choose_survivor, inodes_of, is_below
from rdc.duplicates.journal import JournalWriter, clear_leftovers
from rdc.duplicates.run_totals import DedupeReporter, RunTotals
from rdc.duplicates.share import Sharer
from rdc.errors import FileError, printable
from rdc.lean.records import Record, field, replace
from rdc.model.duplicates import (
    Action,
    DedupeOptions,
    DedupeReport,
    EqualRuns,
    IdenticalFiles,
    RemovalOptions,
    RootedPath,
)

TYPE_CHECKING = False


class Run:
    """The frame that a deduplication and a removal share. Call `clear`, what the run does, then `finish`;
    `close` in any case.

    Problems of single files are reported. A raised RdcError ends the run: the disk is full, or the journal
    cannot be written.
    """

    def __init__(
        self, trees: Sequence[Tree], totals: RunTotals, journal: bytes | None, pointer: bytes | None
    ) -> None:
        """`journal`: the journal to write. `pointer`: place of a symbolic link to it, by which a later run
        finds it."""
        self._trees = trees
        self._totals = totals
        self._journal = None if journal is None else JournalWriter(journal, pointer)

    @property
    def journal(self) -> bytes | None:
        """Path of the journal, if anything was recorded in it."""
        return self._journal.path if self._journal is not None and self._journal.is_made else None

    def clear(self) -> None:
        """Clear what interrupted runs left. Must come before the search for duplicates, which would find the
        leftovers."""
        clear_leftovers(self._trees, self._totals)

    def failed(self, error: FileError) -> None:
        """Count and report a file's problem from the search for duplicates."""
        self._totals.problem(error)

    def finish(self) -> DedupeReport:
        return replace(self._totals.report(), journal=self.journal)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _shown(self, location: RootedPath) -> bytes:
        return self._trees[location.root].root.shown(location.path)


class Deduper(Run):
    """Shares blocks or makes hard links: call `groups`, then `runs`. Between any two steps every file is
    complete."""

    def __init__(self, trees: Sequence[Tree], totals: RunTotals, pointer: bytes | None = None) -> None:
        options = totals.options
        super().__init__(trees, totals, options.journal, pointer)
        self._options = options
        self._sharer = Sharer(trees, self._totals)

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
        """Share equal ranges. Each item has all runs of one destination. Not to be combined with hard links:
        a link cannot stand for a part of a file."""
        for one in runs:
            if self._totals.capped:
                break
            self._sharer.runs(one)


# Hard links

LINKS_KNOWN = 1_000
"""The links per file from which the C library's bound counts. It says 127 where it does not know."""

_FULL = frozenset((errno.EMLINK, errno.EPERM))
"""Errors of link(2) that concern the file that is linked to: it has as many links as it may have, or is
immutable."""


class _Original(Record, frozen=False):
    """A file that other names become links to."""

    inode: Inode
    links: int
    """Links that it has, or will have."""
    full: bool = False
    """True if it takes no more."""
    refusing: set[tuple[int, bytes]] = field(default_factory=set)
    """Directories, by tree and path, that it cannot be linked into."""
    joining: int = 0
    """Files whose names become links to it."""
    refusal: tuple[int, FileError] | None = None
    """Why it could not join another one, and that error's number."""


class Linker:
    """Makes hard links. In a dry run it only computes what they would free."""

    def __init__(self, trees: Sequence[Tree], totals: RunTotals, journal: JournalWriter | None) -> None:
        """`journal`: required if the options of `totals` say `apply`."""
        self._trees = trees
        self._totals = totals
        self._batch = Batch(trees, totals, journal)
        self._most_links: dict[int, int | None] = {}
        """By device, how many links a file may have; None if that is not known."""
        self._writable: dict[tuple[int, bytes], bool] = {}
        self._several: dict[int, list[_Original]] = {}
        """The originals among files that are alike in all that a link has once: those that others become
        links to, where they are several. By id."""

    def group(self, inodes: Sequence[Inode]) -> None:
        """Link the names of one group's files to one of them, where owner, mode, mtime and attributes are
        equal."""
        for part in by_volume(inodes, lambda inode: b"%d" % inode.facts.identity.device):
            alike: dict[object, list[Inode]] = {}
            for inode in part:
                alike.setdefault((inode.facts.metadata, inode.facts.attributes), []).append(inode)
            for members in alike.values():
                self._alike(members)
            self._report_differences(list(alike.values()))

    def flush(self) -> None:
        """Execute what is left, and report files that found no partner."""
        self._batch.flush()
        for originals in self._several.values():
            for one in originals:
                if one.refusal is None or one.joining:
                    continue
                number, error = one.refusal
                if number == errno.EPERM:
                    self._totals.problem(error)
                else:
                    self._totals.skip(error.path_bytes, str(error))
        self._several.clear()

    # Choosing

    def _alike(self, members: Sequence[Inode]) -> None:
        if len(members) > 1:
            for inode in members:
                inode.stuck = not all(map(self._may_change, inode.names))
        first = choose_original(members)
        originals = [_Original(first, first.facts.links)]
        added = False
        for inode in members:
            if inode is first:
                continue
            if inode.protected:
                self._append(originals, _Original(inode, inode.facts.links))
            elif inode.has_other_names:
                self._skip(inode, "has names outside of what was given, so that a link would free nothing")
                self._append(originals, _Original(inode, inode.facts.links))
            elif len(inode.names) > inode.facts.links:
                self._skip(inode, "is reached by several paths, as through a bind mount")
            elif not self._totals.capped and self._totals.take(inode.facts.identity.size):
                added |= self._add(inode, originals)
        self._totals.groups += added

    def _append(self, originals: list[_Original], one: _Original) -> None:
        originals.append(one)
        self._several[id(originals)] = originals

    def _add(
        self, inode: Inode, originals: list[_Original], refusal: tuple[int, FileError] | None = None
    ) -> bool:
        """Plan to link a file's names to the first file that may take them. Without one it becomes such a
        file itself. `refusal`: what the last one said."""
        names = len(inode.names)
        directories = {(name.root, name.path.rpartition(b"/")[0]) for name in inode.names}
        for one in originals:
            most = self._most(one.inode)
            full = one.full or (most is not None and one.links + names > most)
            if full or directories & one.refusing:
                continue
            one.links += names
            one.joining += 1
            refused = partial(self._refused, inode, originals, one)
            self._batch.add(Task(Action.LINK, one.inode, inode, refused=refused))
            return True
        self._append(originals, _Original(inode, inode.facts.links, refusal=refusal))
        return False

    def _refused(
        self, inode: Inode, originals: list[_Original], one: _Original, number: int, error: FileError
    ) -> bool:
        """Try the next file that may take the names. Returns False if it is this file that cannot
        change."""
        if inode.stuck or number not in (*_FULL, errno.EXDEV):
            return False
        if number == errno.EXDEV:
            one.refusing |= {(name.root, name.path.rpartition(b"/")[0]) for name in inode.names}
        else:
            one.full = True
        one.links -= len(inode.names)
        one.joining -= 1
        self._add(inode, originals, (number, error))
        return True

    def _most(self, inode: Inode) -> int | None:
        device = inode.facts.identity.device
        if device not in self._most_links:
            try:
                most = os.fpathconf(self._trees[inode.names[0].root].root.fileno(), "PC_LINK_MAX")
            except (OSError, ValueError):
                most = 0
            self._most_links[device] = most if most >= LINKS_KNOWN else None
        return self._most_links[device]

    def _may_change(self, name: RootedPath) -> bool:
        """Return whether the names in a name's directory may be changed, as far as that is known before."""
        key = name.root, name.path.rpartition(b"/")[0]
        found = self._writable.get(key)
        if found is None:
            try:
                directory = self._trees[name.root].root.directory(key[1])
                found = os.access(b".", os.W_OK | os.X_OK, dir_fd=directory.fd, effective_ids=True)
            except (OSError, NotImplementedError, FileError):
                found = True
            self._writable[key] = found
        return found

    def _report_differences(self, classes: Sequence[Sequence[Inode]]) -> None:
        """Report files of identical content that cannot be linked, because a link has one owner, mode and
        mtime."""
        first = classes[0][0]
        for members in classes[1:]:
            what = _different(first, members[0])
            other = printable(self._shown(first.names[0]))
            # The other files of this class become links to this one.
            inode = choose_original(members)
            if not inode.protected:
                self._skip(inode, f"has another {what} than {other}, which a link would lose")

    def _skip(self, inode: Inode, why: str) -> None:
        shown = self._shown(inode.names[0])
        self._totals.skip(shown, f"{printable(shown)}: skipped: {why}")

    def _shown(self, location: RootedPath) -> bytes:
        return self._trees[location.root].root.shown(location.path)


def _different(one: Inode, other: Inode) -> str:
    for what, name in (("mode", "mode"), ("uid", "owner"), ("gid", "group"), ("mtime_ns", "mtime")):
        if getattr(one.facts.metadata, what) != getattr(other.facts.metadata, what):
            return name
    return "extended attribute"


# Remover: of each set of identical files one stays; the others are deleted, moved or made symbolic links.
#
# It chooses; rdc.duplicates.batch carries out.


class Remover(Run):
    """Removes duplicates: call `groups`. At every moment each content is under a name at least once."""

    def __init__(self, trees: Sequence[Tree], options: RemovalOptions, reporter: DedupeReporter) -> None:
        asked = DedupeOptions(apply=options.apply, keep=options.keep_in)
        totals = RunTotals(asked, reporter, journals=options.journals)
        super().__init__(trees, totals, options.journal, options.pointer)
        self._options = options
        self._paths = RemovalPaths(trees, options)
        self._batch = Batch(trees, totals, self._journal, self._paths)

    def groups(self, groups: Sequence[IdenticalFiles]) -> None:
        """Remove the duplicates of each group. The paths of a group are in the order found."""
        self._totals.total = sum(group.size * (len(group) - 1) for group in groups)
        for group in groups:
            inodes = inodes_of(group, self._trees, self._options.keep_in, self._totals.problem)
            if len(inodes) > 1:
                self._group(inodes)
        self._batch.flush()

    def close(self) -> None:
        self._paths.close()
        super().close()

    # Choosing

    def _group(self, inodes: Sequence[Inode]) -> None:
        only = self._options.only_in
        for inode in inodes:
            if only and not all(self._is_in(name, only) for name in inode.names):
                inode.protected = True
        original = choose_survivor(inodes, self._options.rules, self._trees)
        beside = {name.root for name in original.names} if self._options.across else set[int]()
        found = False
        for inode in inodes:
            if inode is original or inode.protected or beside & {name.root for name in inode.names}:
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

    def _real(self, name: RootedPath) -> bytes:
        return self._trees[name.root].real_path(name.path)


def _reason_to_leave(inode: Inode) -> str | None:
    """Return why a file is not removed although another one has its content."""
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
