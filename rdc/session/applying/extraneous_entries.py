"""Entries that only the destination has: --delete removes them, and new files may reuse their content."""

from __future__ import annotations

from array import array

from rdc.errors import ExitCode, FileError
from rdc.files.base.relative_path import join
from rdc.limits.sessions import GUARDED_ENTRIES, REMOVED_FILES
from rdc.model.entries import Identity, IdentityColumns, Kind, Listing
from rdc.progress import Problem
from rdc.session.applying.unarrived import incomplete
from rdc.session.landing.listed_entries import Extraneous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.model.sync import SyncOptions
    from rdc.session.applying.deletion import Deletion
    from rdc.session.runtime.event_relay import EventRelay
    from rdc.session.trees.mount_boundary import MountBoundary
    from rdc.tree.filters import FilterList
    from rdc.tree.manifest import Manifest
    from rdc.tree.tree_identities import TreeIdentities

__all__ = ["ExtraneousEntries"]


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
        """Adds these rows of the listing of the directory at `path`."""
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
    ) -> None:
        """`given`: returns how many entries the user named; the contents of a directory are none.
        `unarrived`: as Unarrived.reason. `boundary`: entries beyond this mount boundary are not extraneous.
        `live`: the session stays open, and compares the whole trees again."""
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
        """Adds these rows of the directory at `path`. Without --delete at most REMOVED_FILES are
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
        """Notes that the directory at `path` is in the way of another entry and may be emptied later."""
        if self._options.removes and not self._options.dry_run:
            self._deletion.below.note(path)

    def take_walk(self, manifest: Manifest, identities: TreeIdentities, unread: Collection[bytes]) -> None:
        """Takes the walk of the whole destination that is compared; see ListedBelow."""
        self._deletion.below.take_walk(manifest, identities, unread)

    def identity(self, path: bytes) -> Identity | None:
        """What was listed at the path of an entry that may go, or below one; None: nothing that may go."""
        return self.found.identity(path) or self._deletion.below.identity(path)

    @property
    def differ(self) -> bool:
        """Whether the trees still differ after a clean run: entries stay undeleted or are skipped."""
        return self._differ

    def note_difference(self) -> None:
        """Notes that the two trees differ in something that this run leaves as it is."""
        self._differ = True

    @staticmethod
    def _holds(boundary: MountBoundary, path: bytes) -> bool:
        try:
            return boundary.holds(path)
        except FileError:
            return False  # the directory vanished, so nothing in it has to be deleted

    def may_go(self, entries: int, read_errors: int) -> bool:
        """Whether the run deletes them (or a dry run would), so that they may be renamed instead.

        `entries`, `read_errors`: of the source.
        """
        # A renamed file would have no backup.
        # Nor would it stay if a rule that has just arrived protects it.
        kept = self._options.backup is not None or self._options.rules_after
        stopped = kept or self.withheld(read_errors) is not None or self._seems_lost(entries)
        return self._options.delete and not stopped

    def withheld(self, read_errors: int) -> str | None:
        """Why nothing may be deleted by now; None: all may. `read_errors`: of the source.

        What was not read looks deleted. What did not arrive may be what is to be deleted, under a new name.
        """
        return None if self._options.ignore_errors else incomplete(read_errors) or self._unarrived()

    def delete(self, entries: int, withheld: str | None) -> None:
        """Deletes them, unless the source seems to have lost its entries by accident.

        `entries`: of the source. `withheld`: why nothing may be deleted, as `withheld` returns it.
        """
        if withheld is not None:
            self.withhold(self.found, withheld)
        elif self._seems_lost(entries):
            self._refuse("the source is empty; --force-empty deletes all the same")
        else:
            if self._options.rules_after:
                self._read_rules_again()
            if self._stopped_by_guard():
                return
            for one in self._deletion.announced(self.found, self._filters):
                if not self._deletion.remove(one):
                    self._differ = True

    def _read_rules_again(self) -> None:
        """Has the rule files count as they are now. All are read before the first deletion, which may be of
        one of them."""
        self._filters.renew()
        for one in self.found:
            self._filters.prepare(one.path.rpartition(b"/")[0])

    def _stopped_by_guard(self) -> bool:
        """Whether too large a share of the destination would go (--guard). Reports it."""
        share = self._options.guard
        if share is None or not len(self.found):
            return False
        going = self._deletion.count(self.found)
        # Below that it is no share too large of any guarded tree, so the tree need not be counted.
        total = 0 if going * 100 <= share * GUARDED_ENTRIES else self._deletion.entries()
        if total < GUARDED_ENTRIES or going * 100 <= share * total:
            return False
        from rdc.model.runs import stopped_text

        text = stopped_text("deleted", going, total, share)
        self._events.report(Problem(ExitCode.MAX_DELETE, b"", text))
        self._differ = True
        return True

    def _seems_lost(self, entries: int) -> bool:
        """Whether the source is empty. Its file system may not be mounted."""
        return entries <= self._given() and not self._options.force_empty

    def withhold(self, found: Iterable[Extraneous], why: str) -> None:
        """Reports how many deletions are withheld, if these entries were to be deleted."""
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
        """Empties the directory at `path` so that another entry can replace it in one step.

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
