"""Deletes extraneous entries one by one, within the limits that the user set."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.entry_check import ANYTHING
from rdc.files.base.relative_path import join
from rdc.files.base.temporary_names import PARTS_NAME
from rdc.files.depth.calls_at_once import calls_at_once
from rdc.files.replace.sweep_temporaries import foreign_names, sweep_temporaries
from rdc.model.entries import Kind
from rdc.plan.itemize import DELETING
from rdc.progress import ItemChanged, Problem
from rdc.session.applying.borrowed_permissions import borrow_permissions
from rdc.session.applying.listed_below import ListedBelow
from rdc.session.landing.listed_entries import Extraneous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.files.root.root import Root
    from rdc.model.entries import Listing
    from rdc.session.landing.partial_files import PartialFiles
    from rdc.session.runtime.event_relay import EventRelay
    from rdc.session.trees.mount_boundary import MountBoundary
    from rdc.tree.filters import FilterList

__all__ = ["Deletion"]

ANNOUNCED = 256
"""Entries that are noted at once: as many as files of a commit group."""


class _Frame:
    """A directory being emptied. `gone`: no entry had to stay so far."""

    __slots__ = ("children", "gone", "top")

    def __init__(self, top: Extraneous, children: Iterator[Extraneous], *, gone: bool) -> None:
        self.top = top
        self.children = children
        self.gone = gone


class Deletion:
    """Deletes paths with everything below them.

    Excluded entries stay, and so do the directories that contain one. Deletion stops after `limit` entries;
    `finish` then reports exit code 25.
    """

    def __init__(
        self,
        root: Root,
        filters: FilterList,
        events: EventRelay,
        *,
        limit: int | None,
        share: int | None = None,
        dry: bool,
        boundary: MountBoundary | None = None,
        partial_files: PartialFiles | None = None,
        hopeful: bool = False,
    ) -> None:
        """`share`: a limit in per cent of the entries that are there when the first one goes. `boundary`:
        nothing beyond this mount point is deleted. `partial_files`: takes reserved names. `hopeful`: in a dry
        run, a directory that cannot be listed counts as one that can be emptied."""
        self._partial_files = partial_files
        self._root = root
        self._filters = filters
        self._events = events
        self._limit = limit
        self._share = share
        self._dry = dry
        self._boundary = boundary
        self._hopeful = hopeful
        self.below = ListedBelow(root, boundary)
        """What was in directories that may go, when they were listed."""
        self._spared: set[bytes] = set()
        self._outcomes: dict[bytes, bool | FileError] = {}
        """Of files that were removed together with others, until `remove` gets to them."""
        self._unread_rules: set[bytes] = set()
        """Rule files with a problem, which were reported."""
        self._leaves_backup = root.writes.backups is not None and root.writes.backups.beside
        """Whether a deleted file leaves a backup in its directory, which then stays."""
        self.deleted = 0
        self.refused = 0

    def _limit_to_share(self, percent: int) -> None:
        """Limits deletions to so many per cent of the entries that are here now and that no rule protects."""
        most = self.entries() * percent // 100
        self._limit = most if self._limit is None else min(self._limit, most)

    def entries(self) -> int:
        """How many entries are here that no filter rule protects."""
        from rdc.progress import silent
        from rdc.tree.walk import Walk

        return sum(found.listing.count for found in Walk(self._root, self._filters, silent))

    def count(self, found: Iterable[Extraneous]) -> int:
        """How many entries would go if these paths were removed, without a limit. Nothing changes."""
        rehearsal = self._rehearsal()
        for one in found:
            if self._dry or self._root.kind(one.path) is not None:
                rehearsal.remove(one)
        return rehearsal.deleted

    def foresees_empty(self, path: bytes) -> bool:
        """Whether `empty` may leave nothing in the directory at `path`, as far as can be known before.
        Nothing changes."""
        return self._rehearsal(hopeful=True).empty(path)

    def _rehearsal(self, *, hopeful: bool = False) -> Deletion:
        from rdc.progress import silent
        from rdc.session.runtime.event_relay import EventRelay

        rehearsal = Deletion(
            self._root,
            self._filters,
            EventRelay(silent),
            limit=None,
            dry=True,
            boundary=self._boundary,
            hopeful=hopeful,
        )
        rehearsal._spared = self._spared
        return rehearsal

    def spare(self, path: bytes) -> None:
        """Notes, in a dry run, a file that a real run would have renamed before."""
        self._spared.add(path)

    def announced(
        self, entries: Iterable[Extraneous], filters: FilterList, *, all_go: bool = True
    ) -> Iterator[Extraneous]:
        """Yields the entries. If the run is kept to be undone, many are noted at once before, since each note
        waits for the disk. If storage makes one wait, the files of many are removed at the same time.

        `all_go`: `remove` is called for each that is yielded.
        """
        if all_go and self._removes_together():
            yield from self._removed_together(entries, filters)
            return
        undo = self._root.writes.undo
        if undo is None or self._dry or not (self._limit is None and self._share is None):
            yield from entries
            return
        left = iter(entries)
        while some := list(islice(left, ANNOUNCED)):
            files = [one for one in some if one.kind != Kind.DIRECTORY and one.listed is not None]
            with suppress(FileError):  # the removal itself reports it
                undo.removing([one.path for one in files if not self._stays(one, filters)])
            yield from some

    def _removes_together(self) -> bool:
        """Whether the files of many entries are removed before `remove` gets to them."""
        unlimited = self._limit is None and self._share is None
        plain = self._root.writes.undo is None and self._root.writes.backups is None and not self._dry
        return unlimited and plain and self._root.depths.found > 1

    def _removed_together(self, entries: Iterable[Extraneous], filters: FilterList) -> Iterator[Extraneous]:
        left = iter(entries)
        while some := list(islice(left, ANNOUNCED)):
            files = [one for one in some if one.kind != Kind.DIRECTORY and one.path not in self._spared]
            files = [one for one in files if not self._stays(one, filters)]
            outcomes = calls_at_once(self._try_to_remove, files, self._root.depths)
            self._outcomes.update(zip([one.path for one in files], outcomes, strict=True))
            yield from some

    def _try_to_remove(self, entry: Extraneous) -> bool | FileError:
        """Removes one file in any thread. Returns whether it was there, or the error."""
        try:
            return self._root.remove_file(entry.path, entry.listed)
        except FileError as error:
            return error

    def remove(self, entry: Extraneous) -> bool:
        """Deletes an entry. True if nothing is left there (in a dry run: would be)."""
        if self._stays(entry, self._filters):
            return False
        if entry.kind == Kind.DIRECTORY and not (self._may_enter(entry) and self._empty(entry)):
            return False
        return self._remove_one(entry)

    def _may_enter(self, entry: Extraneous) -> bool:
        """Whether a directory is the one that was listed. Reports it if not: it stays with what is in it."""
        if self._dry or entry.listed is ANYTHING:
            return True
        try:
            self._root.require_listed(entry.path, entry.listed, "remove it")
        except FileError as error:
            self._events.report(Problem(error.code, entry.path, str(error)))
            return False
        return True

    def _stays(self, entry: Extraneous, filters: FilterList) -> bool:
        """Whether a filter rule or a backup's name protects the entry. If its rules cannot be read, it
        stays."""
        path, kind = entry.path, entry.kind
        try:
            if filters.excluded(path, kind == Kind.DIRECTORY):
                return True
        except FileError as error:
            if error.path not in self._unread_rules:
                self._unread_rules.add(error.path)
                self._events.report(Problem(ExitCode.PARTIAL, error.path, str(error)))
            return True
        backups = self._root.writes.backups
        return backups is not None and backups.protects(path, kind)

    def empty(self, path: bytes) -> bool:
        """Deletes everything in a directory. True if nothing is left in it."""
        return self._empty(Extraneous(path, Kind.DIRECTORY, ANYTHING))

    def _empty(self, top: Extraneous) -> bool:
        """Deletes everything in a directory. True if nothing is left in it.

        A stack replaces recursion, because any user may have made a tree of any depth.
        """
        filters = self._filters.emptied
        stack = [self._enter(top)]
        while True:
            frame = stack[-1]
            child = next(frame.children, None)
            if child is None:
                stack.pop()
                if not stack:
                    return frame.gone
                if not (frame.gone and self._remove_one(frame.top)):
                    stack[-1].gone = False
            elif self._stays(child, filters):
                frame.gone = False
            elif child.kind == Kind.DIRECTORY:
                if self._may_enter(child):
                    stack.append(self._enter(child))
                else:
                    frame.gone = False
            elif not self._remove_one(child) or self._leaves_backup:
                frame.gone = False

    def _enter(self, top: Extraneous) -> _Frame:
        """Lists a directory that is to be emptied, and removes temporaries of rdc from it."""
        path = top.path
        try:
            if self._boundary is not None and not self._boundary.holds(path):
                text = f"{printable(path)}: kept, it lies on another file system"
                self._events.report(Problem(ExitCode.OK, path, text))
                return _Frame(top, iter(()), gone=False)
            if not self._dry:
                borrow_permissions(self._root, path)
            listed = self._root.listed(path)
            stale = list(listed.reserved)
            for bad in listed.bad:
                entry = join(path, bad.name)
                self._events.report(Problem(ExitCode.PARTIAL, entry, str(self._root.unlisted(entry, bad))))
            foreign: list[bytes] = []
            if stale:
                foreign = foreign_names(self._root, path, stale)
                if self._partial_files is not None:
                    self._partial_files.note(path, stale)
                if not self._dry:
                    sweep_temporaries(self._root, path, stale)
                    if PARTS_NAME in stale:
                        from rdc.files.replace.parts_record import remove_recorded

                        with suppress(OSError):  # then the directory stays
                            remove_recorded(self._root.directory(path).fd)
        except FileError as error:
            if error.code is not ExitCode.VANISHED:
                self._events.report(Problem(error.code, path, str(error)))
                return _Frame(top, iter(()), gone=self._hopeful)
            return _Frame(top, iter(()), gone=True)
        children = self._children(path, listed.unpacked())
        gone = not (foreign or listed.bad)
        return _Frame(top, self.announced(children, self._filters.emptied), gone=gone)

    def _children(self, path: bytes, now: Listing) -> Iterator[Extraneous]:
        """Yields the entries of a directory as they are `now`, each with what was listed before."""
        before = self.below.listing(path)
        listed = now if before is None else before
        identities = listed.identities
        alike = listed.names == now.names
        rows = {} if alike else {name: row for row, name in enumerate(listed.names)}
        for number, (name, kind) in enumerate(zip(now.names, now.kinds, strict=True)):
            row = number if alike else rows.get(name)
            known = None if row is None or identities is None else identities.of(row)
            yield Extraneous(join(path, name), kind, known)

    def _remove_one(self, entry: Extraneous) -> bool:
        """Deletes one file, symlink or empty directory. True if nothing is left at its path."""
        path, kind = entry.path, entry.kind
        if path in self._spared:
            return True
        if self._share is not None:
            share, self._share = self._share, None
            self._limit_to_share(share)
        if self._limit is not None and self.deleted >= self._limit:
            if not self._dry and self._root.kind(path) is None:
                return True  # it was renamed, which is no deletion
            self.refused += 1
            return False
        try:
            if not self._dry and not self._remove_now(entry):
                return True  # it was renamed, or another program removed it
        except FileError as error:
            self._events.report(Problem(error.code, path, str(error)))
            return False
        self.deleted += 1
        self._events.report(ItemChanged(DELETING, path + b"/" if kind == Kind.DIRECTORY else path))
        return True

    def _remove_now(self, entry: Extraneous) -> bool:
        """Whether the entry was there. Raises FileError."""
        if entry.kind == Kind.DIRECTORY:
            return self._root.remove_directory(entry.path, entry.listed)
        outcome = self._outcomes.pop(entry.path, None)
        if isinstance(outcome, FileError):
            raise outcome
        return self._root.remove_file(entry.path, entry.listed) if outcome is None else outcome

    def finish(self) -> None:
        """Reports how many entries the limit left undeleted."""
        if self.refused:
            text = f"{self.refused} more entries were not deleted: the limit is {self._limit} (--max-delete)"
            self._events.report(Problem(ExitCode.MAX_DELETE, b"", text))
