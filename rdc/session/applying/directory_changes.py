"""Brings one directory after another up to date, then finishes what has to wait until all were compared.

Directories and symlinks change at once; file contents go to the Transfers. After the last comparison come
deletions, then entries with a directory in their place, and at last the metadata of every touched directory,
deepest first.
"""

from __future__ import annotations

from bisect import bisect_left

from rdc.errors import OutOfSpaceError
from rdc.files.base.relative_path import join
from rdc.lean.records import replace
from rdc.model.entries import Kind
from rdc.plan.compare import Change, Decision, Difference, compare
from rdc.plan.rotation import rotated
from rdc.session.applying.allowed_changes import AllowedChanges, ComparedDirectory, without_rows
from rdc.session.applying.announced_directory import AnnouncedDirectory
from rdc.session.applying.chosen_directories import ChosenDirectories
from rdc.session.applying.directory_entries import DirectoryEntries
from rdc.session.applying.directory_permissions import DirectoryPermissions
from rdc.session.applying.directory_table import DirectoryTable
from rdc.session.applying.entry_changes import EntryChanges
from rdc.session.applying.late_directories import LateDirectories
from rdc.session.applying.touched_directories import TouchedDirectories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence, Set

    from rdc.model.entries import Listing, Metadata
    from rdc.plan.compare import Comparison
    from rdc.session.applying.alternate_files import AlternateFiles
    from rdc.session.applying.alternate_matches import AlternateMatches
    from rdc.session.applying.applying_context import ApplyingContext

__all__ = ["DirectoryChanges"]


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
            from rdc.session.applying.alternate_files import AlternateFiles

            self._alternates = AlternateFiles(
                context, context.at.alternates, self._permissions, self._entries
            )
        self._expected: DirectoryTable[AnnouncedDirectory] = DirectoryTable()
        """Announced directories that have not been compared yet."""
        self._expected[b""] = AnnouncedDirectory(context.at.start.metadata, context.at.new, False, False)
        self.full: OutOfSpaceError | None = None
        """The first error of a full disk. The comparison goes on all the same: it tells what is to be
        deleted."""
        self._touched = TouchedDirectories()
        self.late = LateDirectories(context, self._chosen, self._directories, self._touched)

    # Announced directories

    def announced(self, path: bytes) -> AnnouncedDirectory | None:
        """The directory at `path`, if it was announced and has not been compared yet."""
        return self._expected.get(path)

    def expect(self, path: bytes, announced: AnnouncedDirectory) -> None:
        """Announces the directory at `path`: `compare` may follow."""
        self._expected[path] = announced

    def unlisted(self) -> list[bytes]:
        """Directories that exist on both sides, were announced, and have not been compared yet."""
        return [path for path, one in self._expected.items() if not (one.new or one.lost)]

    def expect_nothing(self) -> None:
        """Forgets all announced directories, the root among them."""
        self._expected.clear()

    def restore_permissions_later(self, path: bytes) -> None:
        """The owner borrowed permissions in an announced directory: sets its metadata at the end."""
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
        """Brings the directory at `path` from `existing` to `listing`, which starts at manifest row `first`.

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
        """`existing` with the source's names of entries that this file system keeps under another form."""
        if b"".join(existing.names).isascii():
            return existing
        from rdc.session.applying.normalised_names import as_named_by_source

        names = as_named_by_source(
            self._root, path, listing.names, existing.names, dry_run=self._options.dry_run
        )
        return existing.named(tuple(names))

    def _compare_listings(
        self, directory: ComparedDirectory, announced: AnnouncedDirectory, check: Collection[int]
    ) -> None:
        """Compares a directory that both sides have, and starts all changes in it."""
        # long because each step decides whether the directory itself is touched
        directory = directory.with_equal_times(self._options)
        directory, clamped = directory.with_clamped_times(self._root)
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
            from rdc.session.applying.unchanged_entries import report_unchanged

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
        """Whether the changes of a directory need a write, but for contents that are compared first, and for
        entries that are known not to exist here. These are not tried where nothing else is written."""
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
        """The extraneous rows without those whose kinds the source's file system does not have: nobody
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
        """What is left of the changes in `comparison`, now that it is known what the file system keeps."""
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
        """Notes which entries were here when they were listed, of those that the run may change."""
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
        """Leaves alone a directory that is lost or cannot be read, and everything below it."""
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
        """Starts all changes of a directory's entries. Returns True if they touch the directory itself.

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
                    bases = tuple(join(path, name) for name in moved.get(row, ()))
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
        """The source's metadata of a subdirectory, with the mtime that it has here if the two are one time:
        that of an original is finer than that of its copy."""
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
        """By row: names of local files that may have the new content of that row's file."""
        if self._options.dry_run:
            return {}
        return rotated(directory.listing, directory.existing, comparison, self._storage.preserved)

    def narrow(self, path: bytes, metadata: Metadata) -> None:
        """Removes every permission of an existing directory that `metadata` does not grant."""
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
        """Ends the comparison: an announced directory without a listing is empty or unreadable at the source.

        The run sets the metadata of such a directory all the same.
        """
        for path, directory in self._expected.items():
            if directory.touched and not directory.lost:
                self._touched.note_changed(path)
                self._touched.add(path, directory.metadata, made=directory.new)
        self._expected.clear()

    def finish_alternates(self) -> None:
        """Commits what was copied or linked from alternate directories."""
        if self._alternates is not None:
            self._alternates.finish()

    def finish(self) -> None:
        """Sets the metadata of all touched directories: the last step, as work in them changes mtimes."""
        if not self._options.dry_run:
            self._touched.set_metadata(
                self._root, self._events, owner=self._storage.preserved.owner, with_root=self._has_top
            )


def _kind_made(kind: int) -> Kind:
    """The kind of an entry as Preserved.unmade has it."""
    return Kind(kind) if kind in (Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK) else Kind.SPECIAL
