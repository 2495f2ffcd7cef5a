"""The entries that only the destination has: collected while directories are compared, deleted at the end."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from contextlib import suppress
from itertools import islice

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.metadata import ANYTHING
from rdc.files.base.paths import PARTS_NAME, join, refused_component
from rdc.files.depth import calls_at_once
from rdc.files.replace.commit_group import foreign_names, sweep_temporaries
from rdc.lean.records import Record, replace
from rdc.limits import GUARDED_ENTRIES, REMOVED_FILES
from rdc.model.entries import EMPTY_LISTING, NODES, Identity, IdentityColumns, Kind, Listing
from rdc.model.runs import stopped_text
from rdc.plan.compare import DELETING
from rdc.progress import Event, ItemChanged, Problem, silent
from rdc.session.transfer.commits import Extraneous, FileCommits
from rdc.tree.filters import FilterList
from rdc.tree.hard_links import TreeIdentities
from rdc.tree.manifest import Manifest
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rdc.files.root.root import Root, UndoKeeper
    from rdc.model.sync import SyncOptions
    from rdc.session.destination.store_landing import StoreLanding
    from rdc.session.runtime.commands import EventRelay
    from rdc.session.transfer.destination import PartialFiles
    from rdc.session.trees.source_tree import MountBoundary


def writing_code(error: FileError) -> ExitCode:
    """Map exit code 24, which is about source files, to 23. Any other code stays."""
    return ExitCode.PARTIAL if error.code is ExitCode.VANISHED else error.code


def borrow_permissions(root: Root, path: bytes) -> bool:
    """Let the owner read, write and search the directory at `path`.

    Returns True if that changed its mode; the caller restores the mode at the end. Does nothing for root, who
    needs no permissions, or for users who do not own the directory.
    """
    if os.geteuid() == 0:
        return False
    try:
        now = root.metadata(path)
        if now.mode & 0o700 == 0o700:
            return False
        root.set_metadata(path, Kind.DIRECTORY, replace(now, mode=now.mode | 0o700), owner=False)
        root.storage.borrowed.setdefault(path, now.mode)
    except FileError:
        return False  # the step that needs the permissions reports the error
    return True


# ListedBelow: what extraneous directories had in them when the destination was listed.
#
# A comparison by listing knows that a directory is extraneous, not what is below it. Whatever is deleted
# there later is compared with what was listed here. So such a directory is listed when it is found, with
# everything below it, unless a walk of the whole tree has it already.


class ListedBelow:
    """Listings of directories by path. No filter rule counts in them: deletion asks the rules itself."""

    def __init__(self, root: Root, boundary: MountBoundary | None = None) -> None:
        """`boundary`: nothing beyond it is listed."""
        self._root = root
        self._boundary = boundary
        self._manifest = Manifest()
        self._identities = TreeIdentities(self._manifest)
        self._walked: Manifest | None = None
        self._listed: set[bytes] = set()
        """Directories that were listed and have no entries."""
        self._unread: set[bytes] = set()
        """Directories that could not be listed."""

    def take_walk(self, manifest: Manifest, identities: TreeIdentities, unread: Collection[bytes]) -> None:
        """Take a walk of the whole tree: from now on nothing is listed again. `unread`: directories that it
        could not read."""
        self._manifest = self._walked = manifest
        self._identities = identities
        self._unread = set(unread)

    def note(self, path: bytes) -> None:
        """List the directory at `path` and everything below it, unless that was done."""
        if self._walked is not None or path in self._unread or self.listing(path) is not None:
            return
        enter = None if self._boundary is None else self._boundary.holds
        walk = Walk(
            self._root,
            FilterList(()),
            self._note_unread,
            start=path,
            enter=enter,
            on_temporaries=lambda *_: None,
            on_special=lambda _: None,
        )
        try:
            for directory, listing, inodes in walk:
                if listing.count:
                    self._manifest.add(directory, listing)
                    self._identities.add(inodes)
                else:
                    self._listed.add(directory)
        except FileError:
            self._unread.add(path)

    def _note_unread(self, event: Event, /) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._unread.add(event.path_bytes)

    def listing(self, path: bytes) -> Listing | None:
        """Return the listing of a directory, with the identities of its entries. None: it was not listed."""
        number = self._manifest.number(path)
        if number is not None:
            return self._identities.listing(number)
        if path in self._unread or (self._walked is None and path not in self._listed):
            return None
        return EMPTY_LISTING

    def identity(self, path: bytes) -> Identity | None:
        """Return what was listed at a path; None: nothing, or its directory was not listed."""
        above, _, name = path.rpartition(b"/")
        listing = self.listing(above)
        if listing is None or listing.identities is None:
            return None
        row = bisect_left(listing.names, name)
        return listing.identities.of(row) if listing.names[row : row + 1] == (name,) else None


ANNOUNCED = 256
"""Entries that are noted at once: as many as files of a commit group."""


class _Frame:
    """Entries being deleted. `top`: the directory that they empty, None for entries that are deleted by
    themselves. `filters`: what protects them. `gone`: no entry had to stay so far."""

    __slots__ = ("children", "filters", "gone", "top")

    def __init__(
        self, top: Extraneous | None, children: Iterator[Extraneous], filters: FilterList, *, gone: bool
    ) -> None:
        self.top = top
        self.children = children
        self.filters = filters
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
        """The entries of directories that may be deleted, when they were listed."""
        self._spared: set[bytes] = set()
        self._outcomes: dict[bytes, bool | FileError] = {}
        """The outcomes of files that were removed together with others, until `remove` gets to them."""
        self._unread_rules: set[bytes] = set()
        """Rule files with a problem, which were reported."""
        self._leaves_backup = root.writes.backups is not None and root.writes.backups.beside
        """True if a deleted file leaves a backup in its directory, which then stays."""
        self.deleted = 0
        self.refused = 0

    def _limit_to_share(self, percent: int) -> None:
        """Limit deletions to this percentage of the entries that are here now and that no rule protects."""
        most = self.entries() * percent // 100
        self._limit = most if self._limit is None else min(self._limit, most)

    def entries(self) -> int:
        """Return how many entries are here that no filter rule protects."""
        return sum(found.listing.count for found in Walk(self._root, self._filters, silent))

    def count(self, found: Iterable[Extraneous]) -> int:
        """Return how many entries would go if these paths were removed, without a limit. Nothing changes."""
        rehearsal = self._rehearsal()
        rehearsal.remove(one for one in found if self._dry or self._root.kind(one.path) is not None)
        return rehearsal.deleted

    def foresees_empty(self, path: bytes) -> bool:
        """Return whether `empty` may leave nothing in the directory at `path`, as far as can be known before.
        Nothing changes."""
        return self._rehearsal(hopeful=True).empty(path)

    def _rehearsal(self, *, hopeful: bool = False) -> Deletion:
        from rdc.session.runtime.commands import EventRelay

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
        """Note, in a dry run, a file that a real run would already have renamed."""
        self._spared.add(path)

    def _prepared(self, entries: Iterable[Extraneous], filters: FilterList) -> Iterator[Extraneous]:
        """Return the entries, each to be removed once it is taken. If the run is kept to be undone, many are
        noted at once before, since each note waits for the disk. If storage makes one wait, the files of many
        are removed at the same time."""
        writes = self._root.writes
        if self._dry or self._limit is not None or self._share is not None:
            return iter(entries)
        if writes.undo is not None:
            return self._noted(writes.undo, entries, filters)
        if writes.backups is None and self._root.depths.found > 1:
            return self._removed_together(entries, filters)
        return iter(entries)

    def _noted(
        self, undo: UndoKeeper, entries: Iterable[Extraneous], filters: FilterList
    ) -> Iterator[Extraneous]:
        left = iter(entries)
        while some := list(islice(left, ANNOUNCED)):
            files = [one for one in some if one.kind != Kind.DIRECTORY and one.listed is not None]
            with suppress(FileError):  # the removal itself reports it
                undo.removing([one.path for one in files if not self._stays(one, filters)])
            yield from some

    def _removed_together(self, entries: Iterable[Extraneous], filters: FilterList) -> Iterator[Extraneous]:
        left = iter(entries)
        while some := list(islice(left, ANNOUNCED)):
            files = [one for one in some if one.kind != Kind.DIRECTORY and one.path not in self._spared]
            files = [one for one in files if not self._stays(one, filters)]
            outcomes = calls_at_once(self._try_to_remove, files, self._root.depths)
            self._outcomes.update(zip([one.path for one in files], outcomes, strict=True))
            yield from some

    def _try_to_remove(self, entry: Extraneous) -> bool | FileError:
        """Remove one file in any thread. Returns whether it was there, or the error."""
        try:
            return self._root.remove(entry.path, entry.listed)
        except FileError as error:
            return error

    def remove(self, entries: Iterable[Extraneous]) -> bool:
        """Delete these entries. Return whether nothing is left at their paths (in a dry run: would be)."""
        return self._remove_all(
            _Frame(None, self._prepared(entries, self._filters), self._filters, gone=True)
        )

    def empty(self, path: bytes) -> bool:
        """Delete everything in a directory. Return whether nothing is left in it."""
        return self._remove_all(self._enter(Extraneous(path, Kind.DIRECTORY, ANYTHING)))

    def _remove_all(self, first: _Frame) -> bool:
        """Delete all entries of a frame, each directory after what is in it. Return whether all are gone.

        A stack replaces recursion, because any user may have made a tree of any depth.
        """
        stack = [first]
        while True:
            frame = stack[-1]
            child = next(frame.children, None)
            if child is None:
                stack.pop()
                if not stack:
                    return frame.gone
                if not (frame.gone and frame.top is not None and self._remove_one(frame.top)):
                    stack[-1].gone = False
            elif self._stays(child, frame.filters):
                frame.gone = False
            elif child.kind == Kind.DIRECTORY:
                if self._may_enter(child):
                    stack.append(self._enter(child))
                else:
                    frame.gone = False
            elif not self._remove_one(child) or (self._leaves_backup and frame.top is not None):
                frame.gone = False

    def _may_enter(self, entry: Extraneous) -> bool:
        """Return whether a directory is the one that was listed. Reports it if not: it stays with what is in
        it."""
        if self._dry or entry.listed is ANYTHING:
            return True
        try:
            self._root.require_listed(entry.path, entry.listed, "remove it")
        except FileError as error:
            self._events.report(Problem(error.code, entry.path, str(error)))
            return False
        return True

    def _stays(self, entry: Extraneous, filters: FilterList) -> bool:
        """Return whether a filter rule or a backup's name protects the entry. If its rules cannot be read, it
        stays."""
        path, kind = entry.path, entry.kind
        try:
            if filters.excluded(path, kind == Kind.DIRECTORY):
                return True
        except FileError as error:
            if error.path_bytes not in self._unread_rules:
                self._unread_rules.add(error.path_bytes)
                self._events.report(Problem(ExitCode.PARTIAL, error.path_bytes, str(error)))
            return True
        backups = self._root.writes.backups
        return backups is not None and backups.protects(path, kind)

    def _enter(self, top: Extraneous) -> _Frame:
        """List a directory that is to be emptied, and remove temporaries of rdc from it."""
        path, filters = top.path, self._filters.emptied
        try:
            if self._boundary is not None and not self._boundary.holds(path):
                text = f"{printable(path)}: kept, it lies on another file system"
                self._events.report(Problem(ExitCode.OK, path, text))
                return _Frame(top, iter(()), filters, gone=False)
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
                        from rdc.files.replace.partial_directory import remove_recorded

                        with suppress(OSError):  # then the directory stays
                            remove_recorded(self._root.directory(path).fd)
        except FileError as error:
            if error.code is not ExitCode.VANISHED:
                self._events.report(Problem(error.code, path, str(error)))
                return _Frame(top, iter(()), filters, gone=self._hopeful)
            return _Frame(top, iter(()), filters, gone=True)
        children = self._children(path, listed.unpacked())
        gone = not (foreign or listed.bad)
        return _Frame(top, self._prepared(children, filters), filters, gone=gone)

    def _children(self, path: bytes, now: Listing) -> Iterator[Extraneous]:
        """Yield the entries of a directory as they are `now`, each with what was listed before."""
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
        """Delete one file, symlink or empty directory. True if nothing is left at its path."""
        path, is_directory = entry.path, entry.kind == Kind.DIRECTORY
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
            was_there = True if self._dry else self._outcomes.pop(path, None)
            if was_there is None:
                was_there = self._root.remove(path, entry.listed, directory=is_directory)
            elif isinstance(was_there, FileError):
                raise was_there
        except FileError as error:
            self._events.report(Problem(error.code, path, str(error)))
            return False
        if was_there:  # else it was renamed, or another program removed it
            self.deleted += 1
            self._events.report(ItemChanged(DELETING, path + b"/" if is_directory else path))
        return True

    def finish(self) -> None:
        """Report how many entries the limit left undeleted."""
        if self.refused:
            text = f"{self.refused} more entries were not deleted: the limit is {self._limit} (--max-delete)"
            self._events.report(Problem(ExitCode.MAX_DELETE, b"", text))


# Entries that only the destination has: --delete removes them, and new files may reuse their content.

_ANYWAY = "--ignore-errors deletes anyway"


class FoundEntries:
    """Paths and kinds of entries, and what was listed there if they may go. Each directory's path is stored
    once."""

    def __init__(self, *, may_go: bool) -> None:
        self._identities = IdentityColumns() if may_go else None
        self._rows: dict[bytes, int] | None = None
        """By path, once one is looked up."""
        self._names: list[bytes] = []
        self._kinds = bytearray()
        self._directories: list[bytes] = []
        self._ends = array("Q")
        """For each directory, the number of entries up to and including its own."""

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Extraneous]:
        at, identities = 0, self._identities
        for directory, end in zip(self._directories, self._ends, strict=True):
            for row in range(at, end):
                listed = None if identities is None else identities[row]
                yield Extraneous(join(directory, self._names[row]), self._kinds[row], listed)
            at = end

    def identity(self, path: bytes) -> Identity | None:
        """Return what was listed at a path; None if no entry that may go was found there."""
        if self._identities is None:
            return None
        if self._rows is None:
            self._rows = {one.path: row for row, one in enumerate(self)}
        row = self._rows.get(path)
        return None if row is None else self._identities[row]

    def add(self, path: bytes, listing: Listing, rows: Sequence[int]) -> None:
        """Add these rows of the listing of the directory at `path`."""
        self._names += [listing.names[row] for row in rows]
        self._kinds += bytes([listing.kinds[row] for row in rows])
        if self._identities is not None:
            if listing.identities is None:
                raise ValueError("a listing without identities is none of this machine")
            self._identities.extend(listing.identities, rows)
            self._rows = None
        self._directories.append(path)
        self._ends.append(len(self._names))


class ExtraneousEntries:
    """Collects extraneous entries while directories are compared.

    A run deletes all of them or none: if the source seems to have lost its entries by accident, all stay.
    """

    def __init__(
        self,
        root: Root,
        options: SyncOptions,
        filters: FilterList,
        deletion: Deletion,
        events: EventRelay,
        *,
        given: Callable[[], int],
        unarrived: Callable[[], str | None],
        boundary: MountBoundary | None = None,
        live: bool = False,
        copy: StoreLanding | None = None,
    ) -> None:
        """`given`: returns how many entries the user named; the contents of a directory are none.
        `unarrived`: as Unarrived.reason. `boundary`: entries beyond this mount boundary are not extraneous.
        `live`: the session stays open, and compares the whole trees again. `copy`: decides the order, if the
        destination becomes a copy of a store."""
        self._copy = copy
        self._root = root
        self._options = options
        self._filters = filters
        self._deletion = deletion
        self._events = events
        self._given = given
        self._unarrived = unarrived
        self._live = live
        self._boundary = boundary
        self.found = FoundEntries(may_go=options.delete)
        """Entries below an extraneous directory are not listed."""
        self._differ = False

    def add(self, path: bytes, listing: Listing, rows: Sequence[int]) -> None:
        """Add these rows of the directory at `path`. Without --delete at most REMOVED_FILES are
        kept: they can only serve as sources of content."""
        room = self._options.delete or len(self.found) < REMOVED_FILES
        if room and (self._boundary is None or self._holds(self._boundary, path)):
            self.found.add(path, listing, rows)
            if self._options.delete and not self._options.dry_run:
                for row in rows:
                    if listing.kinds[row] == Kind.DIRECTORY:
                        self._deletion.below.note(join(path, listing.names[row]))
            self._differ = self._differ or not self._options.delete
        else:
            self._differ = True

    def note_in_way(self, path: bytes) -> None:
        """Note that the directory at `path` is in the way of another entry and may be emptied later."""
        if self._options.removes and not self._options.dry_run:
            self._deletion.below.note(path)

    def take_walk(self, manifest: Manifest, identities: TreeIdentities, unread: Collection[bytes]) -> None:
        """Take the walk of the whole destination that is compared; see ListedBelow."""
        self._deletion.below.take_walk(manifest, identities, unread)

    def identity(self, path: bytes) -> Identity | None:
        """Return what was listed at the path of an entry that may go, or below one; None: nothing that may
        go."""
        return self.found.identity(path) or self._deletion.below.identity(path)

    @property
    def differ(self) -> bool:
        """Return whether the trees still differ after a clean run: entries stay undeleted or are skipped."""
        return self._differ

    def note_difference(self) -> None:
        """Note that the two trees differ in something that this run leaves as it is."""
        self._differ = True

    @staticmethod
    def _holds(boundary: MountBoundary, path: bytes) -> bool:
        try:
            return boundary.holds(path)
        except FileError:
            return False  # the directory vanished, so nothing in it has to be deleted

    def may_go(self, entries: int, read_errors: int) -> bool:
        """Return whether the run deletes them (or a dry run would), so that they may be renamed instead.

        `entries`, `read_errors`: of the source.
        """
        # A renamed file would have no backup.
        # Nor would it stay if a rule that has just arrived protects it.
        kept = self._options.backup is not None or self._options.rules_after
        stopped = kept or self.withheld(read_errors) is not None or self._seems_lost(entries)
        return self._options.delete and not stopped

    def withheld(self, read_errors: int) -> str | None:
        """Return why nothing may be deleted by now; None: all may. `read_errors`: of the source.

        What was not read looks deleted. What did not arrive may be what is to be deleted, under a new name.
        """
        if self._copy is not None and self._copy.missing is not None:
            return self._copy.missing
        return None if self._options.ignore_errors else incomplete(read_errors) or self._unarrived()

    def delete(self, entries: int, withheld: str | None) -> None:
        """Delete them, unless the source seems to have lost its entries by accident.

        `entries`: of the source. `withheld`: why nothing may be deleted, as `withheld` returns it.
        """
        if withheld is not None:
            self.withhold(self.found, withheld)
        elif self._seems_lost(entries):
            self._refuse("the source is empty; --force-empty deletes everything even so")
        else:
            if self._options.rules_after:
                self._read_rules_again()
            if self._stopped_by_guard():
                return
            gone = (
                self._deletion.remove(self.found)
                if self._copy is None
                else self._copy.remove(self._deletion.remove, self.found)
            )
            if not gone:
                self._differ = True

    def _read_rules_again(self) -> None:
        """Have the rule files count as they are now. All are read before the first deletion, which may be of
        one of them."""
        self._filters.renew()
        for one in self.found:
            self._filters.prepare(one.path.rpartition(b"/")[0])

    def _stopped_by_guard(self) -> bool:
        """Return whether too large a share of the destination would go (--guard). Reports it."""
        share = self._options.guard
        if share is None or not len(self.found):
            return False
        going = self._deletion.count(self.found)
        # Below that it is no share too large of any guarded tree, so the tree need not be counted.
        total = 0 if going * 100 <= share * GUARDED_ENTRIES else self._deletion.entries()
        if total < GUARDED_ENTRIES or going * 100 <= share * total:
            return False
        text = stopped_text("deleted", going, total, share)
        self._events.report(Problem(ExitCode.MAX_DELETE, b"", text))
        self._differ = True
        return True

    def _seems_lost(self, entries: int) -> bool:
        """Return whether the source is empty. Its file system may not be mounted."""
        return entries <= self._given() and not self._options.force_empty

    def withhold(self, found: Iterable[Extraneous], why: str) -> None:
        """Report how many deletions are withheld, if these entries were to be deleted."""
        count = self._deletion.count(found)
        if count:
            self._differ = True
            were = "deletions were" if count > 1 else "deletion was"
            after = "the next comparison of the whole trees may delete" if self._live else _ANYWAY
            text = f"{count:,} {were} withheld: {why}; {after}"
            self._events.report(Problem(ExitCode.PARTIAL, b"", text))

    def _refuse(self, why: str) -> None:
        if any(self._would_go(one.path, one.kind) for one in self.found):
            self._events.report(Problem(ExitCode.PARTIAL, b"", f"nothing was deleted: {why}"))

    def _would_go(self, path: bytes, kind: int) -> bool:
        try:
            return not self._filters.excluded(path, kind == Kind.DIRECTORY)
        except FileError:
            return False  # its rules cannot be read

    def make_way(self, path: bytes, withheld: str | None, *, foresee: bool = False) -> str | None:
        """Empty the directory at `path` so that another entry can replace it in one step.

        Returns None, or the reason why it is not empty. `withheld`: as in `delete`. `foresee`: only tells
        what is known to be in the way.
        """
        try:
            if self._root.listed(path).is_empty:
                return None
        except FileError as error:
            if not self._options.removes:
                return f"which cannot be read: {error}"
            # Perhaps only its mode keeps the owner out: emptying it changes the mode or reports why not.
        if not self._options.removes:
            return "and it is not empty; --delete or --force removes it"
        if withheld is not None:
            return f"and stays: {withheld}"
        if not (self._deletion.foresees_empty(path) if foresee else self._deletion.empty(path)):
            why = "a filter rule, another file system, --max-delete, or an error"
            return f"and what is left in it was not to be deleted ({why})"
        return None


# Entries that have a directory in their place, which has to be emptied before they can be put there.
#
# To empty it is a deletion, so all of them wait until everything else is in place. Content of files waits
# beside the directory by then, verified.


class _Blocked(Record):
    path: bytes
    is_ready: Callable[[], bool]
    put: Callable[[], object]


class BlockedEntries:
    """Collects such entries, and puts each in its place once the directory may go."""

    def __init__(self, extraneous: ExtraneousEntries, events: EventRelay) -> None:
        self._extraneous = extraneous
        self._events = events
        self._waiting: list[_Blocked] = []
        self._paths: set[bytes] = set()

    def add(
        self, path: bytes, put: Callable[[], object], is_ready: Callable[[], bool] = lambda: True
    ) -> None:
        """Note the entry at `path`. `put`: puts it there, where an empty directory is. `is_ready`: whether
        what is to be put is here; if not, that was reported."""
        self._waiting.append(_Blocked(path, is_ready, put))
        self._paths.add(path)

    def __contains__(self, path: bytes) -> bool:
        """Return whether the entry at `path` still waits."""
        return path in self._paths

    def put_all(self, withheld: Callable[[], str | None]) -> None:
        """Empty the directories, and put the entries there. `withheld`: why nothing may be deleted now, as
        ExtraneousEntries.withheld returns it.

        No directory is emptied if it is known of one that it cannot be, and that forbids deletions.
        """
        waiting, self._waiting = self._waiting, []
        self._paths.clear()
        why = withheld()
        ready = [one for one in waiting if one.is_ready() and self._may_go(one, why, foresee=True)]
        for one in ready:
            # An obstacle that was found, or that an earlier one met, may forbid the deletions from there on.
            if self._may_go(one, withheld(), foresee=False):
                try:
                    one.put()
                except FileError as error:
                    self._events.report(Problem(writing_code(error), one.path, str(error)))

    def _may_go(self, one: _Blocked, withheld: str | None, *, foresee: bool) -> bool:
        obstacle = self._extraneous.make_way(one.path, withheld, foresee=foresee)
        if obstacle is not None:
            text = f"{printable(one.path)}: a directory is in the way, {obstacle}"
            self._events.report(Problem(ExitCode.PARTIAL, one.path, text))
        return obstacle is None


# Names that the destination lacked and that did not arrive. While there are some, nothing is deleted.
#
# A new name may be that of a file that was moved at the source. If its content cannot be read, written or
# verified, the old name at the destination has the last copy.
#
# What counts is the destination itself, not the kind of problem: if a problem with an entry was reported, and
# the destination has nothing of its kind at its path when deletions are due, the entry did not arrive; nor
# did a new file if a file of another size is there, which somebody else put there. A changed file that failed
# keeps its old version, and a file whose metadata failed is there.

_NO_MATTER = {ExitCode.OK, ExitCode.VANISHED, ExitCode.MAX_DELETE}
"""Codes of notices, of source files that vanished or changed while they were read, and of deletions."""


def incomplete(read_errors: int) -> str | None:
    """Return why nothing may be deleted after this many read errors of the source; None: there were none."""
    if not read_errors:
        return None
    return f"the source could not be read completely ({read_errors:,} error{'s' * (read_errors != 1)})"


class Unarrived:
    """Collects the problems of one comparison at the destination."""

    def __init__(
        self, root: Root, wanted: Manifest, landing: FileCommits, *, earlier: str | None = None
    ) -> None:
        """`wanted`: the source's entries. `landing`: knows which files are new. `earlier`: why nothing might
        be deleted in an earlier turn of the session; None: nothing was withheld since the last comparison of
        whole trees."""
        self._root = root
        self._wanted = wanted
        self._landing = landing
        self._earlier = earlier
        self._rows: set[int] = set()
        """The rows of entries with problems."""
        self._unread: set[bytes] = set()
        """Directories of which it is not known what they lack."""

    def note(self, problem: Problem) -> None:
        """Take a problem of this side. Reserved names never arrive, as if a rule left them out."""
        if problem.code not in _NO_MATTER and refused_component(problem.path_bytes) is None:
            row = self._wanted.row(problem.path_bytes)
            if row is not None:
                self._rows.add(row)

    def note_unread(self, directory: bytes) -> None:
        """Note that the source has entries in a directory that cannot be listed here."""
        self._unread.add(directory)

    def reason(self) -> str | None:
        """Return why nothing may be deleted now; None: every new name arrived."""
        missing = [path for row in sorted(self._rows) if (path := self._missing(row)) is not None]
        count = len(missing) + len(self._unread)
        if not count:
            return None if self._earlier is None else f"an earlier turn was incomplete: {self._earlier}"
        if not missing:
            shown = printable(self._root.shown(min(self._unread)))
            return f"what is new in {shown} did not arrive"
        shown = printable(self._root.shown(missing[0]))
        return (
            f"{count:,} new entries did not arrive, such as {shown}"
            if count > 1
            else (f"a new entry did not arrive, {shown}")
        )

    def _missing(self, row: int) -> bytes | None:
        """Return the path of an entry if nothing of its kind is there, or if that cannot be told."""
        entry = self._wanted.entry(row)
        path, kind = entry.path, Kind.SPECIAL if entry.kind in NODES else entry.kind
        try:
            if kind == Kind.DIRECTORY:
                self._root.directory(path, fresh=True)  # it may be reached by a link that stands for it
                return None
            if self._root.kind(path) != kind:
                return path
            if kind == Kind.FILE and self._landing.is_new(row):
                size, _ = self._landing.landed(row) or (entry.size, 0)
                return None if self._root.identity(path).size == size else path
            return None
        except FileError:
            return path
