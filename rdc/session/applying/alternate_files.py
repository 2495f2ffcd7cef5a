"""Makes files of the destination from files in alternate directories (--link-dest and its like).

A file with the source's size, mtime and metadata becomes a hard link, or a copy, or is left out, as the
option says. With other metadata it is copied, as a clone where the file systems can share blocks. A file with
other content is the base of the new version.

A link is put in place by one rename, and a copy is committed like any new version: at any moment a path is
old or new. Nothing is ever written to a file in an alternate directory.
"""

from __future__ import annotations

import os

from rdc.errors import FileError, RdcError
from rdc.files.names.entry_names import Linked, link_file, make_durable
from rdc.files.replace.cloning import CLONED_FILE_BYTES, copy_whole, may_clone
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.model.entries import Identity, Kind
from rdc.model.options import AlternateUse
from rdc.plan.alternates import Likeness
from rdc.plan.compare import Change, Decision, Difference
from rdc.plan.itemize import copying_code
from rdc.progress import ItemChanged, Problem
from rdc.session.applying.allowed_changes import without_rows
from rdc.session.applying.alternate_matches import find_alternates
from rdc.session.applying.writing_code import writing_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.plan.compare import Comparison
    from rdc.session.applying.allowed_changes import ComparedDirectory
    from rdc.session.applying.alternate_matches import AlternateEntry, AlternateMatches
    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.session.applying.directory_permissions import DirectoryPermissions
    from rdc.session.applying.entry_changes import EntryChanges
    from rdc.session.trees.alternate_directories import AlternateDirectories

__all__ = ["AlternateFiles"]

GROUP_FILES = 64
"""Copies that become durable together. The group of fetched files has its own descriptors."""


class AlternateFiles:
    """Makes one entry after another, as they were found."""

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
        self._fsync = options.fsync
        self._checksum = options.checksum
        self._alternates = alternates
        self._permissions = permissions
        self._entries = entries
        self._copies = CommitGroup(
            context.at.root,
            fsync=options.fsync,
            on_commit=self._committed,
            on_error=self._failed,
            files=GROUP_FILES,
        )
        self._codes: dict[bytes, str | None] = {}
        """For each path in the group, its code in the report."""
        self._linked_in: dict[int, bytes] = {}
        """For each device, a directory in which a link was made."""
        self._compared: dict[int, AlternateEntry] = {}
        """With --checksum: files whose content has to be compared first, by row."""
        if self._checksum:
            alternates.make_equal = self._make_equal

    def look(
        self, directory: ComparedDirectory, comparison: Comparison
    ) -> tuple[Comparison, AlternateMatches]:
        """Returns what is left of a comparison, and what alternate directories have."""
        found = find_alternates(self._context, self._alternates, directory, comparison)
        return without_rows(comparison, found.entries.keys()) if found.entries else comparison, found

    def make(self, entry: AlternateEntry) -> bool:
        """Makes an entry, or starts to fetch its content. Returns True if that touches its directory."""
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
        """Makes everything durable that was copied or linked. Raises RdcError."""
        self._copies.flush()
        linked, self._linked_in = self._linked_in, {}
        if self._fsync and linked:
            try:
                make_durable(self._root, linked.values())
            except FileError as error:
                self._events.report(Problem(writing_code(error), error.path, str(error)))

    # Symlinks and special files

    def _make_link_or_node(self, entry: AlternateEntry) -> bool:
        """Makes what holds no content anew. As in rsync, the report names it only if it differs from what was
        found."""
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
        self._landing.changed += 1
        return True

    # Files

    def _make_file(self, entry: AlternateEntry, *, whole: bool) -> bool:
        """Makes a file whose content an alternate directory has. `whole`: its metadata, too."""
        use = self._alternates.use
        if whole and use is AlternateUse.COMPARE:
            return self._leave_out(entry)
        code = copying_code(Kind.FILE, entry.match.difference)
        if self._dry:
            self._report(entry.path, code)
        elif not (whole and use is AlternateUse.LINK and self._link(entry)) and not self._copy(entry, code):
            self._fetch(entry)
        return True

    def _leave_out(self, entry: AlternateEntry) -> bool:
        """Leaves an entry to the alternate directory, and removes what the destination has of it."""
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
            self._root.remove_file(entry.path, self._landing.listed.of(entry.file))
        self._landing.changed += 1
        return True

    def _link(self, entry: AlternateEntry) -> bool:
        """Makes the path a name of the file that was found. False: it cannot be, or that file has changed."""
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
        self._landing.changed += 1
        return True

    @staticmethod
    def _unchanged(origin: Root, entry: AlternateEntry) -> Identity | None:
        """The file in the alternate directory; None if it is no longer as it was listed."""
        try:
            found = origin.identity(entry.path)
            if (found.size, origin.metadata(entry.path)) != (entry.listed_size, entry.listed):
                return None
            return found
        except FileError:
            return None

    def _copy(self, entry: AlternateEntry, code: str | None) -> bool:
        """Stages a copy. False: the file has changed since it was listed, or cannot be read."""
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
        self._codes[path] = code
        if self._xattrs is not None:
            self._xattrs.note_reported((entry.file,), new=True)
        metadata = self._permissions.guarded(entry.file, entry.metadata)
        self._copies.add(copy, path, metadata, self._owner, existing)
        return True

    def _fetch(self, entry: AlternateEntry, *, based: bool = False) -> None:
        """Fetches the file. `based`: the one in the alternate directory is its base."""
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
        """Makes a file whose content turned out to be what an alternate directory has; see
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

    def _report(self, path: bytes, code: str | None) -> None:
        """Counts a changed entry, and reports it unless rsync is silent about it."""
        if code is None:
            self._landing.changed += 1
        else:
            self._landing.report(ItemChanged(code, path))

    def _committed(self, path: bytes) -> None:
        self._report(path, self._codes.pop(path, None))

    def _failed(self, error: RdcError) -> None:
        path = error.path if isinstance(error, FileError) else b""
        self._codes.pop(path, None)
        self._events.report(Problem(error.code, path, str(error)))
