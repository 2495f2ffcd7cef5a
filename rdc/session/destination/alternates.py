"""Alternate directories (--link-dest and its like): what they have, and files that are made of it."""

from __future__ import annotations

import os

from rdc.errors import FileError, RdcError
from rdc.files.base.paths import join
from rdc.files.names.entry_names import Linked, link_file, make_durable
from rdc.files.replace.cloning import copy_whole, may_clone
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.replace.staged_clones import CLONED_FILE_BYTES
from rdc.lean.records import Record
from rdc.model.entries import Identity, Kind, Listing, Metadata
from rdc.model.options import AlternateUse
from rdc.model.preserved import UNREADABLE, AttributeKinds, pack_attributes, real_time, unpack_attributes
from rdc.plan.compare import Change, Comparison, Decision, Difference, copying_code, with_equal_times
from rdc.plan.skip_options import AlternateMatch, Likeness, best_match
from rdc.progress import ItemChanged, Problem
from rdc.session.destination.deletion import writing_code
from rdc.session.destination.entry_changes import (
    ApplyingContext,
    ComparedDirectory,
    DirectoryPermissions,
    EntryChanges,
    without_rows,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from rdc.files.root.root import Root
    from rdc.session.trees.destination_options import AlternateDirectories


class AlternateEntry(Record):
    """A file, symlink or special file of the source, and what an alternate directory has at its path."""

    file: int
    """Its row in the source's manifest."""
    path: bytes
    kind: int
    size: int
    """A device's is its number."""
    metadata: Metadata
    """The entry as the source announced it."""
    target: bytes
    """The target of a symlink."""
    match: AlternateMatch
    listed: Metadata
    """The metadata of the entry in the alternate directory when that was listed."""
    listed_size: int


class AlternateMatches(Record):
    """The entries of one directory in alternate directories, by the row of the source's entry."""

    entries: Mapping[int, AlternateEntry]
    """All but directories. They are made from what was found."""
    directories: Mapping[int, AlternateMatch]
    """New directories, which are made as usual."""

    def difference(self, row: int) -> Difference | None:
        """Return how a new directory differs from the one that was found; None if none was found."""
        match = self.directories.get(row)
        return None if match is None else match.difference


def find_alternates(
    context: ApplyingContext,
    alternates: AlternateDirectories,
    directory: ComparedDirectory,
    comparison: Comparison,
) -> AlternateMatches:
    """Return what the alternate directories have of the new entries, and of those that they replace."""
    listings = alternates.listings(context.at.root, directory.path)
    if not any(listings):
        return AlternateMatches({}, {})
    look = _Look(context, alternates, directory, listings)
    found: dict[int, AlternateMatch] = {}
    directories: dict[int, AlternateMatch] = {}
    fresh = {one.row for one in comparison.decisions if one.change in (Change.CREATE, Change.REPLACE)}
    for row in fresh - _replacing_others(directory, comparison):
        match = look.match(row)
        if match is not None and directory.listing.kinds[row] == Kind.DIRECTORY:
            directories[row] = match
        elif match is not None and not look.is_blocked(row):
            found[row] = match
    if context.at.options.alternates is not None and context.at.options.alternates.changes_existing:
        found.update(look.existing(fresh))
    return AlternateMatches({row: look.entry(row, match) for row, match in found.items()}, directories)


def _replacing_others(directory: ComparedDirectory, comparison: Comparison) -> Set[int]:
    """Symlinks and special files that replace another entry. As in rsync, only new ones are looked for
    elsewhere."""
    kinds = directory.listing.kinds
    return {
        one.row
        for one in comparison.decisions
        if one.change is Change.REPLACE and kinds[one.row] >= Kind.SYMLINK
    }


class _Look:
    """The look at one directory."""

    def __init__(
        self,
        context: ApplyingContext,
        alternates: AlternateDirectories,
        directory: ComparedDirectory,
        listings: Sequence[Listing],
    ) -> None:
        self._context = context
        self._alternates = alternates
        self._directory = directory
        self._listings = listings
        self._wanted = directory.listing
        self._compared = [with_equal_times(one, directory.listing, context.at.options) for one in listings]
        """The listings, with the times that --modify-window takes for those of the source."""
        xattrs = context.xattrs
        self._sets = {} if xattrs is None else xattrs.of(directory.first, len(directory.listing))

    def match(self, row: int) -> AlternateMatch | None:
        return best_match(
            self._wanted,
            row,
            self._compared,
            preserved=self._context.at.preserved,
            options=self._context.at.options,
            same_attributes=self._same_attributes(row),
        )

    def _same_attributes(self, row: int) -> Callable[[int], bool] | None:
        """Tell whether the entry in an alternate directory has the extended attributes of this row."""
        xattrs = self._context.xattrs
        if xattrs is None or self._wanted.kinds[row] == Kind.DIRECTORY:
            return None
        from rdc.files.facts.xattrs import read_entry_attributes

        # A file in an alternate directory is read now and then, and a link to it is worth more than its time.
        kinds = xattrs.kinds & ~AttributeKinds.ACCESS_TIME
        path, wanted = self._path(row), self._sets.get(row, b"")
        if kinds != xattrs.kinds and wanted != UNREADABLE:
            wanted = pack_attributes(kinds.chosen(unpack_attributes(wanted)))

        def same(number: int) -> bool:
            try:
                there, name = self._alternates.roots[number].locate(path)
                found = read_entry_attributes(there.fd, name, kinds)
            except (FileError, OSError):
                return False
            return (pack_attributes(found) if found else b"") == wanted

        return same

    def is_blocked(self, row: int) -> bool:
        """Return whether a directory has to make way first: then the file comes as if it had no alternate."""
        try:
            return self._context.at.root.kind(self._path(row)) is Kind.DIRECTORY
        except FileError:
            return False  # in a dry run, a file may be where a directory above would be made

    def existing(self, fresh: Set[int]) -> Iterator[tuple[int, AlternateMatch]]:
        """Yield the files that the destination has and that an alternate directory has as the source has
        them. A name that becomes a link to another file is left out."""
        context, here = self._context, self._directory.existing
        if context.at.options.ignore_existing or context.at.options.rereads or context.at.root.append_only:
            return
        rows_here = {name: at for at, name in enumerate(here.names)}
        linked = self._linked()
        for row in self._wanted.rows_of(Kind.FILE):
            at = rows_here.get(self._wanted.names[row])
            if row in fresh or row in linked or at is None or self._is_left(row, at):
                continue
            match = self.match(row)
            if match is not None and match.stands_for_all and not self._is_same_file(row, match):
                yield row, match

    def _is_left(self, row: int, at: int) -> bool:
        """Return whether an option leaves the destination's file in row `at` alone, or it is no file."""
        options, here = self._context.at.options, self._directory.existing
        return (
            here.kinds[at] != Kind.FILE
            or options.is_left_for_size(self._wanted.sizes[row])
            or (options.update and real_time(here.mtimes[at]) > real_time(self._wanted.mtimes[row]))
        )

    def _linked(self) -> Set[int]:
        links, first = self._context.links, self._directory.first
        if links is None:
            return frozenset()
        return {links.files[at] - first for at in links.between(first, first + len(self._wanted))}

    def _is_same_file(self, row: int, match: AlternateMatch) -> bool:
        path = self._path(row)
        try:
            here = self._context.at.root.identity(path)
            there = self._alternates.roots[match.number].identity(path)
        except FileError:
            return True  # one of them vanished: nothing is to be done here
        linked = (here.device, here.inode) == (there.device, there.inode)
        return linked and self._alternates.use is AlternateUse.LINK

    def entry(self, row: int, match: AlternateMatch) -> AlternateEntry:
        wanted, there = self._wanted, self._listings[match.number]
        kind = wanted.kinds[row]
        return AlternateEntry(
            self._directory.first + row,
            self._path(row),
            kind,
            wanted.sizes[row],
            wanted.metadata(row),
            wanted.target(row) if kind == Kind.SYMLINK else b"",
            match,
            there.metadata(match.row),
            there.sizes[match.row],
        )

    def _path(self, row: int) -> bytes:
        return join(self._directory.path, self._wanted.names[row])


# Makes files of the destination from files in alternate directories (--link-dest and its like).
#
# A file with the source's size, mtime and metadata becomes a hard link, or a copy, or is left out, as the
# option says. With other metadata it is copied, as a clone where the file systems can share blocks. A file
# with other content is the base of the new version.
#
# A link is put in place by one rename, and a copy is committed like any new version: at any moment a path is
# old or new. Nothing is ever written to a file in an alternate directory.

GROUP_FILES = 64
"""Copies that become durable together. The group of fetched files has its own descriptors."""


class AlternateFiles:
    """Makes entries from files in alternate directories, in the order in which they were found."""

    def __init__(
        self,
        context: ApplyingContext,
        alternates: AlternateDirectories,
        permissions: DirectoryPermissions,
        entries: EntryChanges,
    ) -> None:
        self._context = context
        options = context.at.options
        self._root = context.at.root
        self._landing = context.at.landing
        self._router = context.transfers
        self._events = context.at.events
        self._skipped = context.skipped
        self._xattrs = context.xattrs
        self._owner = context.at.preserved.owner
        self._dry = options.dry_run
        self._fsync = options.is_durable
        self._checksum = options.checksum
        self._alternates = alternates
        self._permissions = permissions
        self._entries = entries
        self._copies = CommitGroup(
            context.at.root,
            fsync=options.is_durable,
            on_commit=self._committed,
            on_error=self._failed,
            files=GROUP_FILES,
        )
        self._codes: dict[bytes, tuple[str | None, bool]] = {}
        """For each path in the group, its code in the report."""
        self._linked_in: dict[int, bytes] = {}
        """For each device, a directory in which a link was made."""
        self._compared: dict[int, AlternateEntry] = {}
        """The files, with --checksum, whose content has to be compared first, by row."""
        if self._checksum:
            alternates.make_equal = self._make_equal

    def look(
        self, directory: ComparedDirectory, comparison: Comparison
    ) -> tuple[Comparison, AlternateMatches]:
        """Return what is left of a comparison, and what alternate directories have."""
        found = find_alternates(self._context, self._alternates, directory, comparison)
        return without_rows(comparison, found.entries.keys()) if found.entries else comparison, found

    def make(self, entry: AlternateEntry) -> bool:
        """Make an entry, or start to fetch its content. Returns True if that touches its directory."""
        try:
            if entry.kind != Kind.FILE:
                return self._make_link_or_node(entry)
            if entry.match.likeness is Likeness.KIND:
                self._fetch(entry, based=True)
                return True
            return self._make_file(entry, whole=entry.match.likeness is Likeness.ALL)
        except FileError as error:
            self._events.report(Problem(writing_code(error), entry.path, str(error)))
            return True

    def finish(self) -> None:
        """Make everything durable that was copied or linked. Raises RdcError."""
        self._copies.flush()
        linked, self._linked_in = self._linked_in, {}
        if self._fsync and linked:
            try:
                make_durable(self._root, linked.values())
            except FileError as error:
                self._events.report(Problem(writing_code(error), error.path_bytes, str(error)))

    # Symlinks and special files

    def _make_link_or_node(self, entry: AlternateEntry) -> bool:
        """Create a symlink or a special file, which hold no content to share. As in rsync, the report names
        it only if it differs from what was found."""
        match = entry.match
        path, metadata, kind = entry.path, entry.metadata, Kind(entry.kind)
        listed, owner = self._landing.listed.of(entry.file), self._owner
        if match.likeness is not Likeness.ALL:
            if kind == Kind.SYMLINK:
                changed = Decision(Change.CONTENT, -1, -1, match.difference)
                return self._entries.change_symlink(path, entry.target, metadata, changed, listed)
            differing = match.difference & ~Difference.SIZE | Difference.CHECKSUM
            changed = Decision(Change.CONTENT, -1, -1, differing)
            return self._entries.change_node(path, kind, entry.size, metadata, changed, listed)
        if self._alternates.use is AlternateUse.COMPARE:
            return self._leave_out(entry)
        if not self._dry:
            if kind == Kind.SYMLINK:
                self._root.replace_symlink(path, entry.target, metadata, owner=owner, expected=listed)
            else:
                self._root.replace_node(path, kind, entry.size, metadata, owner=owner, expected=listed)
        self._landing.count(new=listed is None)
        return True

    # Files

    def _make_file(self, entry: AlternateEntry, *, whole: bool) -> bool:
        """Make a file whose content an alternate directory has. `whole`: its metadata, too."""
        use = self._alternates.use
        if whole and use is AlternateUse.COMPARE:
            return self._leave_out(entry)
        code = copying_code(Kind.FILE, entry.match.difference)
        if self._dry:
            self._report(entry.path, code, new=self._landing.listed.of(entry.file) is None)
        elif not (whole and use is AlternateUse.LINK and self._link(entry)) and not self._copy(entry, code):
            self._fetch(entry)
        return True

    def _leave_out(self, entry: AlternateEntry) -> bool:
        """Leave an entry to the alternate directory, and remove what the destination has of it."""
        if self._skipped is not None:
            self._skipped.add((entry.file,))
        try:
            if self._root.kind(entry.path) is None:
                return False
        except FileError:
            if not self._dry:
                raise
            return False  # a symlink may be where a directory above would be made
        if not self._dry:
            self._root.remove(entry.path, self._landing.listed.of(entry.file))
        self._landing.count(new=False)
        return True

    def _link(self, entry: AlternateEntry) -> bool:
        """Make the path a name of the file that was found. False: it cannot be, or that file has changed."""
        origin = self._alternates.roots[entry.match.number]
        found = self._unchanged(origin, entry)
        if found is None:
            return False
        listed = self._landing.listed.of(entry.file)
        linked = link_file(self._root, entry.path, entry.path, found, replaces=listed, origin=origin)
        if linked is not Linked.DONE:
            return False
        self._linked_in.setdefault(found.device, os.path.dirname(entry.path))
        self._alternates.linked += 1
        if self._xattrs is not None:
            self._alternates.note_linked(entry.file)
        self._landing.count(new=listed is None)
        return True

    @staticmethod
    def _unchanged(origin: Root, entry: AlternateEntry) -> Identity | None:
        """Return the file in the alternate directory; None if it is no longer as it was listed."""
        try:
            found = origin.identity(entry.path)
            if (found.size, origin.metadata(entry.path)) != (entry.listed_size, entry.listed):
                return None
            return found
        except FileError:
            return None

    def _copy(self, entry: AlternateEntry, code: str | None) -> bool:
        """Stage a copy. False: the file has changed since it was listed, or cannot be read."""
        origin, path = self._alternates.roots[entry.match.number], entry.path
        try:
            source = origin.open_read(path)
        except FileError:
            return False
        existing = self._landing.listed.of(entry.file)
        cloned = entry.size >= CLONED_FILE_BYTES and may_clone(
            self._root, source.identity.device, self._root.identity(b"").device
        )
        with source:
            if (source.size, source.metadata) != (entry.listed_size, entry.listed):
                return False
            source.rest()
            with Replacement(
                self._root, path, expected_size=entry.size, allocated=source.taken, reserved=not cloned
            ) as copy:
                shares = copy_whole(copy, source, entry.size, cloned=cloned)
                try:
                    source.check_unchanged()
                except FileError:
                    return False
                if copy.size != entry.size:
                    return False
                copy.hand_over()
        self._alternates.cloned += shares
        self._codes[path] = code, existing is None
        if self._xattrs is not None:
            self._xattrs.note_reported((entry.file,), new=True)
        metadata = self._permissions.guarded(entry.file, entry.metadata)
        self._copies.add(copy, path, metadata, self._owner, existing)
        return True

    def _fetch(self, entry: AlternateEntry, *, based: bool = False) -> None:
        """Fetch the file. `based`: the one in the alternate directory is its base."""
        difference = entry.match.difference
        if based:
            self._alternates.note_base(entry.file, entry.match.number)
            if self._checksum:
                self._compared[entry.file] = entry
                difference |= Difference.CHECKSUM
        # Not CREATE, as in rsync: the report says how it differs from what was found.
        self._landing.decide(entry.file, Decision(Change.CONTENT, -1, -1, difference))
        self._router.create(entry.file, entry.path, entry.size)

    def _make_equal(self, file: int) -> bool:
        """Make a file whose content turned out to be what an alternate directory has; see
        AlternateDirectories.make_equal."""
        entry = self._compared.pop(file, None)
        if entry is None:
            return False
        try:
            self._make_file(entry, whole=not entry.match.difference)
        except FileError as error:
            self._events.report(Problem(writing_code(error), entry.path, str(error)))
        return True

    # Reports

    def _report(self, path: bytes, code: str | None, *, new: bool) -> None:
        """Count a changed entry, and report it unless rsync is silent about it. rsync's code of an entry
        that is made of another one does not say whether it is `new`."""
        self._landing.count(new=new)
        if code is not None:
            self._events.report(ItemChanged(code, path))

    def _committed(self, path: bytes) -> None:
        code, new = self._codes.pop(path, (None, False))
        self._report(path, code, new=new)

    def _failed(self, error: RdcError) -> None:
        path = error.path_bytes if isinstance(error, FileError) else b""
        self._codes.pop(path, None)
        self._events.report(Problem(error.code, path, str(error)))
