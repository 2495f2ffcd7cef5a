"""Brings directories up to date: what is known of each, directories as entries, one by one."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial

from rdc.errors import FileError, OutOfSpaceError
from rdc.files.base.paths import join
from rdc.lean.records import Record, replace
from rdc.lean.typed import Generic, TypeVar
from rdc.limits import CHANGED_PATHS_BYTES, SHORT_PATH
from rdc.model.entries import Kind, Listing, Metadata
from rdc.plan.compare import (
    Change,
    Comparison,
    Decision,
    Difference,
    compare,
    copying_code,
    difference,
    is_new,
    itemize,
    rotated,
    time_limits,
    unchanged_code,
    with_clamped_time,
    with_equal_time,
)
from rdc.progress import ItemChanged, Problem
from rdc.session.destination.deletion import borrow_permissions, writing_code
from rdc.session.destination.entry_changes import (
    AllowedChanges,
    ApplyingContext,
    ComparedDirectory,
    DirectoryPermissions,
    EntryChanges,
    report_unchanged,
    without_rows,
)
from rdc.session.destination.selected import ChosenDirectories, as_named_by_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence, Set

    from rdc.files.root.root import Root
    from rdc.session.destination.alternates import AlternateFiles, AlternateMatches
    from rdc.session.runtime.commands import EventRelay


class AnnouncedDirectory(Record):
    """A directory that its parent's listing announced."""

    metadata: Metadata
    new: bool
    """This run made it, or a dry run would have. It is empty."""
    touched: bool
    """The run sets its metadata at the end, even if nothing in it changes."""
    lost: bool
    """It could not be made or read, or must not be made. Nothing below it is synced."""


V = TypeVar("V")


class DirectoryTable(Generic[V]):
    """Maps relative directory paths to values; b"" is the root. Parents of long paths are stored once.

    Invariant: memory grows with the sum of parent paths and names, not with names times path lengths. A peer
    that announces 20,000 directories below one long path sends that path once; this side stores it once.
    """

    def __init__(self) -> None:
        self._short: dict[bytes, V] = {}
        """Values by path, for paths of at most SHORT_PATH bytes."""
        self._below: dict[bytes, dict[bytes, V]] = {}
        """Values of longer paths by parent, then by name."""

    def __contains__(self, path: object) -> bool:
        return isinstance(path, bytes) and self.get(path) is not None

    def __getitem__(self, path: bytes) -> V:
        """Return the value of a path. Raises KeyError if the path is not in the table."""
        found = self.get(path)
        if found is None:
            raise KeyError(path)
        return found

    def get(self, path: bytes) -> V | None:
        if len(path) <= SHORT_PATH:
            return self._short.get(path)
        parent, _, name = path.rpartition(b"/")
        found = self._below.get(parent)
        return None if found is None else found.get(name)

    def __setitem__(self, path: bytes, value: V) -> None:
        if len(path) <= SHORT_PATH:
            self._short[path] = value
        else:
            parent, _, name = path.rpartition(b"/")
            self._below.setdefault(parent, {})[name] = value

    def pop(self, path: bytes) -> V:
        """Remove a path and return its value. Raises KeyError if the path is not in the table."""
        if len(path) <= SHORT_PATH:
            return self._short.pop(path)
        parent, _, name = path.rpartition(b"/")
        below = self._below[parent]
        value = below.pop(name)
        if not below:
            del self._below[parent]
        return value

    def clear(self) -> None:
        self._short, self._below = {}, {}

    def items(self) -> Iterator[tuple[bytes, V]]:
        """Yield short paths in order of insertion, then long paths grouped by parent."""
        yield from self._short.items()
        for parent, below in self._below.items():
            for name, value in below.items():
                yield join(parent, name), value


CHANGED_PATH_OVERHEAD = 100
"""Bytes that a set needs for each path besides the path itself."""


class _Touched(Record):
    """A directory whose own metadata the run sets at the end."""

    parent: bytes
    """The parent of a long path, which consecutive siblings share; b"" if the path is short."""
    name: bytes
    """The rest of the path; b"" for the root."""
    metadata: Metadata
    made: bool
    """The run made it, so that its mode so far is nobody's choice."""

    @property
    def path(self) -> bytes:
        return join(self.parent, self.name)


class TouchedDirectories:
    """Collects directories in the order in which they were compared: parents before children."""

    def __init__(self) -> None:
        self._touched: list[_Touched] = []
        self._changed: set[bytes] = set()
        self._changed_bytes = 0

    def add(self, path: bytes, metadata: Metadata, *, made: bool) -> None:
        """Set `metadata` of the directory at the end of the run. `made`: the run made the directory."""
        parent, name = b"", path
        if len(path) > SHORT_PATH:
            parent, _, name = path.rpartition(b"/")
            before = self._touched[-1].parent if self._touched else b""
            parent = before if before == parent else parent
        self._touched.append(_Touched(parent, name, metadata, made))

    def note_changed(self, path: bytes) -> None:
        """Note that the run changed something in the directory."""
        if self._changed_bytes > CHANGED_PATHS_BYTES:
            return
        self._changed.add(path)
        self._changed_bytes += len(path) + CHANGED_PATH_OVERHEAD
        if self._changed_bytes > CHANGED_PATHS_BYTES:
            self._changed.clear()

    @property
    def changed(self) -> Set[bytes] | None:
        """Directories in which something changed. None: too many to remember."""
        return None if self._changed_bytes > CHANGED_PATHS_BYTES else self._changed

    def set_metadata(self, root: Root, events: EventRelay, *, owner: bool, with_root: bool) -> None:
        """Set the metadata of all collected directories, children before parents.

        Work in a directory changes its mtime, so this is the last step. `with_root`: False if the root is
        only the directory that holds the one synced entry. What both ends cannot preserve stays as it is.
        """
        storage = root.storage
        for touched in reversed(self._touched):
            path = touched.path
            if path == b"" and not with_root:
                continue
            try:
                if root.may_change(path):
                    chosen = storage.of_made if touched.made else partial(storage.of_directory, path)
                    root.set_metadata(path, Kind.DIRECTORY, touched.metadata, owner=owner, chosen=chosen)
            except FileError as error:
                events.report(Problem(writing_code(error), path, str(error)))


class LateDirectories:
    """Lets this side work in directories once more, and has their metadata set again at the end."""

    def __init__(
        self,
        context: ApplyingContext,
        chosen: ChosenDirectories,
        entries: DirectoryEntries,
        touched: TouchedDirectories,
    ) -> None:
        self._root = context.at.root
        self._has_top = context.at.has_top
        self._manifest = context.at.manifest
        self._chosen = chosen
        self._entries = entries
        self._touched = touched
        self.paths: set[bytes] = set()
        """The paths of these directories."""

    def touch(self, path: bytes) -> None:
        """Prepare the directory at `path` for a change in it."""
        if path in self.paths or (not path and not self._has_top) or self._chosen.keeps_own(path):
            return
        self.paths.add(path)
        row = self._manifest.row(path) if path else None
        borrow_permissions(self._root, path)
        metadata = self._entries.root_metadata if row is None else self._manifest.entry(row).metadata
        self._touched.add(path, metadata, made=False)


# Changes directories as entries of their parents, and the root directory, which no listing names.
#
# Their own metadata waits for the end of the run. Here a directory is made, is narrowed before anything lands
# in it, and is reported.


class DirectoryEntries:
    """Makes or keeps directories. Row numbers are rows of the source's manifest."""

    def __init__(
        self,
        context: ApplyingContext,
        permissions: DirectoryPermissions,
        chosen: ChosenDirectories,
        allowed: AllowedChanges,
    ) -> None:
        self._root = context.at.root
        self._dry = context.at.options.dry_run
        self._options = context.at.options
        self._lists_unchanged = (
            context.at.options.list_unchanged and context.links is None and context.xattrs is None
        )
        self._storage = context.at.storage
        self._alternates = context.at.alternates
        self._landing = context.at.landing
        self._events = context.at.events
        self._xattrs = context.xattrs
        self._permissions = permissions
        self._chosen = chosen
        self._allowed = allowed
        self.root_metadata = context.at.start.metadata
        """The metadata that the tree's root directory gets before its ACL."""

    def change(
        self,
        row: int,
        path: bytes,
        metadata: Metadata,
        decision: Decision | None,
        from_elsewhere: Difference | None,
    ) -> AnnouncedDirectory:
        """Make or keep a subdirectory. A new one touches its parent.

        `decision`: what its parent's comparison found; None if it is equal. `from_elsewhere`: how it differs
        from what an alternate directory has at its path.
        """
        new = decision is not None and decision.change in (Change.CREATE, Change.REPLACE)
        if self._chosen.keeps_own(path):
            return self._keep(path, metadata, decision if new else None)
        # long because each step depends on whether the directory is new, lost or narrowed
        lost = False
        if new and not self._dry:
            replaced = decision is not None and decision.change is Change.REPLACE
            replaces = self._landing.listed.of(row) if replaced else None
            lost = not self._permissions.make_directory(path, metadata, replaces=replaces)
        narrowed = False
        if new:
            metadata = self._permissions.guarded(row, metadata)
            if not lost and not self._dry:
                self._permissions.set_at_once(path, metadata)
        elif decision is not None or self._xattrs is not None:
            differing = Difference.NONE if decision is None else decision.difference
            metadata, narrowed = self._permissions.narrow_if_needed(row, path, metadata, differing)
        if decision is not None and not lost:
            code = itemize(Kind.DIRECTORY, decision, transferred=new, new=new)
            self._report(code, path, from_elsewhere if new else None)
        return AnnouncedDirectory(metadata, new, decision is not None or narrowed, lost)

    def _keep(self, path: bytes, metadata: Metadata, missing: Decision | None) -> AnnouncedDirectory:
        """Like `change` for a directory that keeps its own metadata. `missing`: how it is missing."""
        lost = missing is not None and not self._chosen.make_plain(path, missing)
        return AnnouncedDirectory(metadata, missing is not None, False, lost)

    def change_root(self, announced: AnnouncedDirectory) -> AnnouncedDirectory:
        """Compare the synced directory itself; rsync reports it as './'."""
        if announced.new:
            metadata = self._permissions.guarded(-1, announced.metadata)
            announced = replace(announced, metadata=metadata)
            if not self._dry:
                self._permissions.set_at_once(b"", metadata)
            decision = Decision(Change.CREATE, -1, -1, Difference.NONE)
        else:
            differing = self._root_difference(announced.metadata)
            if differing and self._storage.before_writing(b""):
                differing = self._root_difference(announced.metadata)
            if self._root.append_only:
                if differing not in (Difference.NONE, Difference.TIME):
                    self._allowed.refuse(b"")
                return announced
            announced = replace(announced, metadata=self._with_own_time(announced.metadata))
            metadata, narrowed = self._permissions.narrow_if_needed(-1, b"", announced.metadata, differing)
            announced = replace(announced, metadata=metadata, touched=announced.touched or narrowed)
            self.root_metadata = metadata
            if not differing:
                if self._lists_unchanged:
                    self._events.report(ItemChanged(unchanged_code(Kind.DIRECTORY), b"./"))
                return announced
            decision = Decision(Change.METADATA, -1, -1, differing)
        self._report_root(announced, decision)
        self.root_metadata = announced.metadata
        return replace(announced, touched=True)

    def _root_difference(self, wanted: Metadata) -> Difference:
        """Return how the root directory differs from `wanted`."""
        existing = self._root.metadata(b"")
        existing = with_equal_time(existing, wanted, self._options)
        preserved = self._storage.preserved
        existing = with_clamped_time(
            existing, wanted, lambda: time_limits(self._root.file_system_type(b"")), preserved
        )
        return difference(Kind.DIRECTORY, wanted, existing, preserved=preserved)

    def _with_own_time(self, wanted: Metadata) -> Metadata:
        """Return `wanted` with the mtime that the root directory has, if both ends take the two for one
        time."""
        mtime, preserved = self._root.metadata(b"").mtime_ns, self._storage.preserved
        return replace(wanted, mtime_ns=mtime) if preserved.same_time(wanted.mtime_ns, mtime) else wanted

    def _report_root(self, announced: AnnouncedDirectory, decision: Decision) -> None:
        """Report that the root directory is made or changes."""
        code = itemize(Kind.DIRECTORY, decision, transferred=announced.new, new=announced.new)
        elsewhere = self._alternates if announced.new else None
        known = (
            None
            if elsewhere is None
            else elsewhere.top_difference(announced.metadata, self._storage.preserved)
        )
        self._report(code, b"", known)
        if self._xattrs is not None:
            self._xattrs.note_root_reported()

    def _report(self, code: str, path: bytes, from_elsewhere: Difference | None) -> None:
        """Report a directory by its code, or a new one by how it differs from one elsewhere: rsync is silent
        if it does not."""
        changed = code if from_elsewhere is None else copying_code(Kind.DIRECTORY, from_elsewhere)
        self._landing.count(new=is_new(code))
        if changed is not None:
            self._events.report(ItemChanged(changed, (path or b".") + b"/"))


# Brings one directory after another up to date, then finishes what has to wait until all were compared.
#
# Directories and symlinks change at once; file contents go to the Transfers. After the last comparison come
# deletions, then entries with a directory in their place, and at last the metadata of every touched
# directory, deepest first.


class DirectoryChanges:
    """Turns compared directories into actions and remembers what is left for the end of the run."""

    def __init__(self, context: ApplyingContext) -> None:
        self._root = root = context.at.root
        self._has_top = context.at.has_top
        self._chosen = ChosenDirectories(context)
        self._options = options = context.at.options
        self._protected = context.at.filters.protected if options.delete and not options.rules_after else None
        self._extraneous = context.extraneous
        self._unarrived = context.unarrived
        self._events = events = context.at.events
        self._storage = context.at.storage
        self._xattrs = xattrs = context.xattrs
        self._skipped = context.skipped
        self._landing = context.at.landing
        self._links = context.links
        self._lists_unchanged = options.list_unchanged and context.links is None and context.xattrs is None
        owner = context.at.preserved.owner
        self._permissions = DirectoryPermissions(root, events, xattrs, owner=owner, dry_run=options.dry_run)
        self._entries = EntryChanges(context, self._permissions)
        self._allowed = AllowedChanges(context)
        self._directories = DirectoryEntries(context, self._permissions, self._chosen, self._allowed)
        self._alternates: AlternateFiles | None = None
        if context.at.alternates is not None:
            from rdc.session.destination.alternates import AlternateFiles

            self._alternates = AlternateFiles(
                context, context.at.alternates, self._permissions, self._entries
            )
        self._expected: DirectoryTable[AnnouncedDirectory] = DirectoryTable()
        """Announced directories that have not been compared yet."""
        self._expected[b""] = AnnouncedDirectory(context.at.start.metadata, context.at.new, False, False)
        self.full: OutOfSpaceError | None = None
        """The first error of a full disk. The comparison goes on even so: it tells what is to be
        deleted."""
        self._touched = TouchedDirectories()
        self.late = LateDirectories(context, self._chosen, self._directories, self._touched)

    # Announced directories

    def announced(self, path: bytes) -> AnnouncedDirectory | None:
        """Return the directory at `path`, if it was announced and has not been compared yet."""
        return self._expected.get(path)

    def expect(self, path: bytes, announced: AnnouncedDirectory) -> None:
        """Announce the directory at `path`: `compare` may follow."""
        self._expected[path] = announced

    def unlisted(self) -> list[bytes]:
        """Return the directories that exist on both sides, were announced, and have not been compared yet."""
        return [path for path, one in self._expected.items() if not (one.new or one.lost)]

    def expect_nothing(self) -> None:
        """Forget all announced directories, the root among them."""
        self._expected.clear()

    def restore_permissions_later(self, path: bytes) -> None:
        """Set the metadata of an announced directory at the end, because the owner borrowed permissions in
        it."""
        self._expected[path] = replace(self._expected[path], touched=True)

    # One directory

    def mark_unchanged(self, path: bytes) -> bool:
        """Like `compare` for a directory with equal listings. Directories below it are not announced.

        Returns False, and does nothing, if the directory is new or lost: then `compare` has to follow.
        """
        directory = self._expected.get(path)
        if directory is None:
            return True
        if directory.new or directory.lost:
            return False
        self._expected.pop(path)
        if directory.touched:
            self._touched.note_changed(path)
            self._touched.add(path, directory.metadata, made=directory.new)
        return True

    def compare(
        self,
        path: bytes,
        first: int,
        listing: Listing,
        existing: Listing | None,
        check: Collection[int] = frozenset(),
    ) -> None:
        """Bring the directory at `path` from `existing` to `listing`, which starts at manifest row `first`.

        `existing` None: the directory could not be read; it and everything below it stay. `check`: rows whose
        content is compared in any case. Raises ProtocolError for an entry that the rules exclude.
        """
        announced = self._expected.pop(path)
        self._chosen.check(path, listing)
        if not path and self._has_top:
            announced = self._directories.change_root(announced)
        if self._protected is not None and not announced.new:
            self._protected.prepare(path)
        if existing is None and listing and not announced.lost:
            self._unarrived.note_unread(path)
        if announced.lost or existing is None:
            self._skip_directory(path, first, listing, announced)
            return
        if existing.names != listing.names:
            existing = self._as_named_by_source(path, listing, existing)
        if self._options.rewrites:
            check = range(len(listing))
        self._compare_listings(ComparedDirectory(path, first, listing, existing), announced, check)

    def _as_named_by_source(self, path: bytes, listing: Listing, existing: Listing) -> Listing:
        """Return `existing` with the source's names of entries that this file system keeps under another
        form."""
        if b"".join(existing.names).isascii():
            return existing
        names = as_named_by_source(
            self._root, path, listing.names, existing.names, dry_run=self._options.dry_run
        )
        return existing.named(tuple(names))

    def _compare_listings(
        self, directory: ComparedDirectory, announced: AnnouncedDirectory, check: Collection[int]
    ) -> None:
        """Compare a directory that both sides have, and start all changes in it."""
        # long because each step decides whether the directory itself is touched
        directory = directory.with_equal_times(self._options)
        directory, clamped = directory.with_clamped_times(self._root, self._storage.preserved)
        if clamped and not self._options.size_only:
            check = clamped.union(check)
        path, existing = directory.path, directory.existing
        if self._storage.doubts_times:
            check = range(len(directory.listing))
        comparison = compare(
            directory.listing,
            existing,
            preserved=self._storage.preserved,
            checksum=self._options.checksum,
            unverified=check,
        )
        if self._lists_unchanged:
            report_unchanged(directory, comparison, self._options, self._events)
        comparison, lost = self._allowed.narrow(directory, comparison)
        if self._writes(directory, comparison) and self._storage.before_writing(path):
            comparison = self._reconsidered(directory, comparison, check)
        acted, elsewhere = comparison, None
        if self._alternates is not None:
            comparison, elsewhere = self._alternates.look(directory, comparison)
        self._note_listed(directory, acted, elsewhere)
        worked = bool(comparison) or bool(elsewhere and elsewhere.entries)
        changes = worked or (self._options.delete and bool(comparison.extra))
        borrowed = changes and self._chosen.borrow(path)
        if self._xattrs is not None:
            self._xattrs.note_compared(directory.first, comparison)
        if self._storage.preserved.unmade and comparison.extra:
            comparison = replace(comparison, extra=self._extra(existing, comparison.extra))
        changed = self._change_entries(directory, comparison, lost, elsewhere)
        touched = announced.touched or borrowed or changed
        if comparison.extra and not self._chosen.has_others(path):
            self._extraneous.add(path, existing, comparison.extra)
            touched = touched or self._options.delete
        if touched or worked:
            self._touched.note_changed(path)
        if touched and not self._chosen.keeps_own(path):
            self._touched.add(path, announced.metadata, made=announced.new)

    def _writes(self, directory: ComparedDirectory, comparison: Comparison) -> bool:
        """Return whether the changes of a directory need a write, but for contents that are compared first,
        and for entries that are known not to exist here. These are not tried where nothing else is written.
        """
        unmade = self._root.storage.facts.keeps.unmade
        if not unmade:
            return bool(comparison.decisions or comparison.touched)
        kinds = directory.listing.kinds
        return bool(comparison.touched) or any(
            decision.change not in (Change.CREATE, Change.REPLACE)
            or _kind_made(kinds[decision.row]) not in unmade
            for decision in comparison.decisions
        )

    def _extra(self, existing: Listing, extra: Sequence[int]) -> tuple[int, ...]:
        """Return the extraneous rows without those whose kinds the source's file system does not have: nobody
        deleted them there."""
        unmade = self._storage.preserved.unmade
        left = tuple(row for row in extra if _kind_made(existing.kinds[row]) not in unmade)
        if len(left) < len(extra):
            self._extraneous.note_difference()
            if self._options.delete:
                self._storage.note_kept(len(extra) - len(left))
        return left

    def _reconsidered(
        self, directory: ComparedDirectory, comparison: Comparison, check: Collection[int]
    ) -> Comparison:
        """Return what is left of the changes in `comparison`, now that it is known what the file system
        keeps."""
        listing, existing = directory.listing, directory.existing
        preserved = self._storage.preserved
        if self._storage.doubts_times:
            check = range(len(listing))
        found = compare(
            listing, existing, preserved=preserved, checksum=self._options.checksum, unverified=check
        )
        if self._options.narrows:
            from rdc.plan.skip_options import narrow

            found = narrow(
                found,
                listing,
                existing,
                options=self._options,
                preserved=preserved,
                path=directory.path,
            ).comparison
        rows = {decision.row for decision in comparison.decisions}
        rows.update(comparison.touched, comparison.checked)
        left = without_rows(found, set(range(len(listing))) - rows)
        return replace(left, extra=comparison.extra)

    def _note_listed(
        self, directory: ComparedDirectory, comparison: Comparison, elsewhere: AlternateMatches | None
    ) -> None:
        """Note which entries were here when they were listed, of those that the run may change."""
        existing, listing, first = directory.existing, directory.listing, directory.first
        if existing.identities is None:
            return
        pairs = {one.row: one.existing_row for one in comparison.decisions if one.existing_row >= 0}
        others: set[int] = {*comparison.touched, *comparison.checked}
        if elsewhere is not None:
            others.update(elsewhere.entries)
        if self._links is not None:
            numbers = self._links.between(first, first + len(listing))
            others.update(self._links.files[number] - first for number in numbers)
        others.difference_update(pairs)
        if others and listing.names == existing.names:
            pairs.update(zip(others, others, strict=True))
        elif others:
            rows = {name: row for row, name in enumerate(existing.names)}
            here = ((row, rows.get(listing.names[row])) for row in others)
            pairs.update((row, there) for row, there in here if there is not None)
        if pairs:
            chosen = sorted(pairs)
            there = [pairs[row] for row in chosen]
            self._landing.listed.note([first + row for row in chosen], existing.identities, there)

    def _skip_directory(
        self, path: bytes, first: int, listing: Listing, announced: AnnouncedDirectory
    ) -> None:
        """Leave alone a directory that is lost or cannot be read, and everything below it."""
        if announced.touched and not announced.lost:
            self._touched.add(path, announced.metadata, made=announced.new)
        for row in listing.rows_of(Kind.DIRECTORY):
            below = join(path, listing.names[row])
            self._expected[below] = AnnouncedDirectory(listing.metadata(row), announced.new, False, True)
        if self._skipped is not None:
            # An entry that cannot be read may be newer than the source's.
            self._skipped.add(range(first, first + len(listing)))

    # What is done in a directory

    def _change_entries(
        self,
        directory: ComparedDirectory,
        comparison: Comparison,
        lost: Set[int],
        elsewhere: AlternateMatches | None,
    ) -> bool:
        """Start all changes of a directory's entries. Returns True if they touch the directory itself.

        `lost`: rows of directories that are not made. `elsewhere`: what alternate directories have.
        """
        # long because it runs once for each directory, where calls cost more than the work
        path, first = directory.path, directory.first
        listing, existing = directory.listing, directory.existing
        decisions = {decision.row: decision for decision in comparison.decisions}
        one_by_one = self._options.dry_run and not self._options.checksum
        if one_by_one:
            # A dry run reports these files at once, so they have to come in the order of their names.
            time = Difference.TIME
            decisions.update({row: Decision(Change.CONTENT, row, -1, time) for row in comparison.touched})
        targets = listing.links() if decisions else {}
        moved = self._moved(directory, comparison) if decisions else {}
        touched = False
        # Most entries of most directories need nothing and get no step.
        made = {} if elsewhere is None else elsewhere.entries
        for row in sorted({*decisions, *made, *listing.rows_of(Kind.DIRECTORY)}):
            entry, decision = join(path, listing.names[row]), decisions.get(row)
            try:
                if self._alternates is not None and row in made:
                    touched |= self._alternates.make(made[row])
                elif row in lost:
                    self._expected[entry] = AnnouncedDirectory(listing.metadata(row), True, False, True)
                elif listing.kinds[row] == Kind.DIRECTORY:
                    from_elsewhere = None if elsewhere is None else elsewhere.difference(row)
                    metadata = self._directory_metadata(directory, row)
                    announced = self._directories.change(
                        first + row, entry, metadata, decision, from_elsewhere
                    )
                    self._expected[entry] = announced
                    touched |= announced.new
                elif decision is not None:
                    bases = tuple([join(path, name) for name in moved[row]]) if row in moved else ()
                    touched |= self._entries.start(
                        first + row, entry, listing, existing, targets, decision, bases
                    )
            except OutOfSpaceError as error:
                self.full = self.full or error
                if listing.kinds[row] == Kind.DIRECTORY:
                    self._expected[entry] = AnnouncedDirectory(listing.metadata(row), True, False, True)
        self._entries.start_many(first, listing, () if one_by_one else comparison.touched, comparison.checked)
        return touched or bool(comparison.touched or comparison.checked)

    def _directory_metadata(self, directory: ComparedDirectory, row: int) -> Metadata:
        """Return the source's metadata of a subdirectory, with the mtime that it has here if the two are one
        time: that of an original is finer than that of its copy."""
        wanted, preserved = directory.listing.metadata(row), self._storage.preserved
        if preserved.keeps_all_times:
            return wanted
        names, name = directory.existing.names, directory.listing.names[row]
        here = bisect_left(names, name)
        if here == len(names) or names[here] != name:
            return wanted
        mtime = directory.existing.mtimes[here]
        return replace(wanted, mtime_ns=mtime) if preserved.same_time(wanted.mtime_ns, mtime) else wanted

    def _moved(self, directory: ComparedDirectory, comparison: Comparison) -> Mapping[int, Sequence[bytes]]:
        """Return, by row, names of local files that may have the new content of that row's file."""
        if self._options.dry_run:
            return {}
        return rotated(directory.listing, directory.existing, comparison, self._storage.preserved)

    def narrow(self, path: bytes, metadata: Metadata) -> None:
        """Remove every permission of an existing directory that `metadata` does not grant."""
        self._permissions.narrow(path, metadata)

    # After all directories were compared

    @property
    def changed(self) -> Set[bytes] | None:
        """Directories in which the comparison found something to do. None: too many to remember."""
        return self._touched.changed

    @property
    def worked_in(self) -> Set[bytes] | None:
        """Directories in which the run did anything. None: too many to remember."""
        changed = self.changed
        return None if changed is None else changed | self.late.paths

    def skip_unlisted(self) -> None:
        """End the comparison: an announced directory without a listing is empty or unreadable at the source.

        The run sets the metadata of such a directory even so.
        """
        for path, directory in self._expected.items():
            if directory.touched and not directory.lost:
                self._touched.note_changed(path)
                self._touched.add(path, directory.metadata, made=directory.new)
        self._expected.clear()

    def finish_alternates(self) -> None:
        """Commit what was copied or linked from alternate directories."""
        if self._alternates is not None:
            self._alternates.finish()

    def finish(self) -> None:
        """Set the metadata of all touched directories: the last step, as work in them changes mtimes."""
        if not self._options.dry_run:
            self._touched.set_metadata(
                self._root, self._events, owner=self._storage.preserved.owner, with_root=self._has_top
            )


def _kind_made(kind: int) -> Kind:
    """Return the kind of an entry as Preserved.unmade has it."""
    return Kind(kind) if kind in (Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK) else Kind.SPECIAL
