"""Changes a directory's symlinks and special files at once and hands its files to the Transfers."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.files.base.shortfalls import Shortfall
from rdc.lean.records import replace
from rdc.model.entries import NODES, Kind
from rdc.plan.compare import Change, Decision, Difference
from rdc.plan.itemize import itemize
from rdc.progress import ItemChanged, Problem
from rdc.session.applying.writing_code import writing_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rdc.model.entries import Identity, Listing, Metadata
    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.session.applying.directory_permissions import DirectoryPermissions

__all__ = ["EntryChanges"]


class EntryChanges:
    """Changes to entries that are not directories. Files are named by their rows in the source's manifest."""

    def __init__(self, context: ApplyingContext, permissions: DirectoryPermissions) -> None:
        self._root = context.at.root
        self._options = context.at.options
        self._manifest = context.at.manifest
        self._landing = context.at.landing
        self._router = context.transfers
        self._events = context.at.events
        self._permissions = permissions
        self._owner = context.at.preserved.owner
        self._blocked = context.blocked
        self._extraneous = context.extraneous

    def start(
        self,
        file: int,
        path: bytes,
        listing: Listing,
        existing: Listing,
        link_targets: Mapping[int, bytes],
        decision: Decision,
        bases: tuple[bytes, ...],
    ) -> bool:
        """Starts what one file or symlink needs. Returns True if that touches its directory.

        `bases`: other local files that may have the new content.
        """
        kind, there = listing.kinds[decision.row], decision.existing_row
        if decision.change is Change.REPLACE and existing.kinds[there] == Kind.DIRECTORY:
            self._wait_for_way(file, path, decision)
            return True
        if kind == Kind.SYMLINK:
            target, metadata = link_targets[decision.row], listing.metadata(decision.row)
            return self.change_symlink(path, target, metadata, decision, self._landing.listed.of(file))
        if kind in NODES:
            number, metadata = listing.sizes[decision.row], listing.metadata(decision.row)
            listed = self._landing.listed.of(file)
            return self.change_node(path, Kind(kind), number, metadata, decision, listed)
        if decision.change is Change.METADATA:
            metadata = self._permissions.guarded(file, listing.metadata(decision.row))
            listed = self._landing.listed.of(file)
            if listed is not None:
                self._landing.set_metadata(path, metadata, decision, listed)
            return False
        if decision.change is Change.CHECK and self._options.rewrites:
            decision = replace(decision, change=Change.CONTENT)
        self._landing.decide(file, decision)
        self._route(file, path, listing.sizes[decision.row], decision, bases)
        return True

    def _route(self, file: int, path: bytes, size: int, decision: Decision, bases: tuple[bytes, ...]) -> None:
        """Hands a file whose content may have to change to the router."""
        if decision.change is Change.CHECK:
            self._router.check((file,))
        elif decision.change is not Change.CONTENT:
            self._router.create(file, path, size, bases)
        elif self._options.dry_run:
            self._landing.rehearse(file)
        elif Difference.SIZE in decision.difference:
            self._router.update(file, size, bases)
        else:
            self._router.touch((file,), size)

    def start_many(
        self, first: int, listing: Listing, touched_rows: Sequence[int], checked_rows: Sequence[int]
    ) -> None:
        """Starts what many files of one directory need that need the same.

        `first`: row of the directory's first entry in the manifest. `touched_rows`: files that differ only in
        their mtimes. `checked_rows`: files whose contents are compared although nothing differs.
        """
        if touched_rows:
            touched = [first + row for row in touched_rows]
            if self._options.checksum:
                self._landing.decide_many(touched, Change.CHECK, Difference.TIME)
                self._router.check(touched)
            else:
                self._landing.decide_many(touched, Change.CONTENT, Difference.TIME)
                self._router.touch(touched, sum([listing.sizes[row] for row in touched_rows]))
        if checked_rows:
            self._start_checks([first + row for row in checked_rows], listing, checked_rows)

    def _start_checks(self, files: Sequence[int], listing: Listing, rows: Sequence[int]) -> None:
        """Starts the comparison of files whose content alone may differ; `rows` are theirs in `listing`."""
        if not self._options.rewrites:
            self._landing.decide_many(files, Change.CHECK, Difference.NONE)
            self._router.check(files)
            return
        self._landing.decide_many(files, Change.CONTENT, Difference.NONE)
        if self._options.dry_run:
            for file in files:
                self._landing.rehearse(file)
        else:
            self._router.touch(files, sum([listing.sizes[row] for row in rows]))

    def change_symlink(
        self, path: bytes, target: bytes, metadata: Metadata, decision: Decision, listed: Identity | None
    ) -> bool:
        """Replaces a symlink or sets its metadata. Returns True if that touches its directory. `listed`: what
        was at its path; None for nothing."""
        replaced = decision.change is not Change.METADATA
        if replaced and self._is_known_unmade(Kind.SYMLINK, path):
            return False
        if not self._options.dry_run:
            try:
                owner, chosen = self._owner, self._root.storage.of_found
                if replaced:
                    self._root.replace_symlink(path, target, metadata, owner=owner, expected=listed)
                elif listed is not None:
                    self._root.set_metadata(
                        path, Kind.SYMLINK, metadata, owner=owner, expected=listed, chosen=chosen
                    )
            except FileError as error:
                if not (replaced and self._cannot_exist(Kind.SYMLINK, path, error)):
                    self._events.report(Problem(writing_code(error), path, str(error)))
                return replaced
        new = decision.change in (Change.CREATE, Change.REPLACE)
        if replaced and not new:
            # As in rsync, a new link without the source's mtime has another one.
            timed = Difference.TIME if Kind.SYMLINK in self._root.reads.untimed else Difference.NONE
            decision = Decision(
                decision.change,
                decision.row,
                decision.existing_row,
                decision.difference | Difference.CHECKSUM | timed,
            )
        code = itemize(Kind.SYMLINK, decision, transferred=replaced, new=new)
        self._landing.report(ItemChanged(code, path, target))
        return replaced

    def change_node(
        self,
        path: bytes,
        kind: Kind,
        number: int,
        metadata: Metadata,
        decision: Decision,
        listed: Identity | None,
    ) -> bool:
        """Replaces a fifo, socket or device or sets its metadata. Returns True if that touches its directory.
        `listed`: as in `change_symlink`."""
        replaced = decision.change is not Change.METADATA
        if replaced and self._is_known_unmade(Kind.SPECIAL, path):
            return False
        new = decision.change in (Change.CREATE, Change.REPLACE)
        if not self._options.dry_run:
            try:
                owner, chosen = self._owner, self._root.storage.of_found
                if replaced:
                    self._root.replace_node(path, kind, number, metadata, owner=owner, expected=listed)
                elif listed is not None:
                    self._root.set_metadata(
                        path, Kind.SPECIAL, metadata, owner=owner, expected=listed, chosen=chosen
                    )
            except FileError as error:
                if not (replaced and self._cannot_exist(Kind.SPECIAL, path, error)):
                    self._events.report(Problem(writing_code(error), path, str(error)))
                return replaced
        self._landing.report(ItemChanged(itemize(kind, decision, transferred=replaced, new=new), path))
        return replaced

    def _is_known_unmade(self, kind: Kind, path: bytes) -> bool:
        """Notes an entry that an earlier run found not to be possible here: some file systems make something
        else before they refuse. A run that writes anything finds it out again, and tries."""
        storage = self._root.storage
        if storage.is_learned or kind not in storage.facts.keeps.unmade:
            return False
        storage.note(self._shortfall(kind), path, 0)
        return True

    @staticmethod
    def _shortfall(kind: Kind) -> Shortfall:
        return Shortfall.SYMLINK if kind is Kind.SYMLINK else Shortfall.NODE

    def _cannot_exist(self, kind: Kind, path: bytes, error: FileError) -> bool:
        """Notes an entry that could not be made, if the file system has none of its kind."""
        storage, cause = self._root.storage, error.__cause__
        if kind not in storage.facts.keeps.unmade or not isinstance(cause, OSError):
            return False
        storage.note(self._shortfall(kind), path, cause.errno or 0)
        return True

    def _wait_for_way(self, file: int, path: bytes, decision: Decision) -> None:
        """Has an entry wait that has a directory in its place. The content of a file is fetched meanwhile."""
        entry, listed = self._manifest.entry(file), self._landing.listed.of(file)
        self._extraneous.note_in_way(path)
        if entry.kind == Kind.SYMLINK:
            target, metadata = entry.target, entry.metadata
            self._blocked.add(path, lambda: self.change_symlink(path, target, metadata, decision, listed))
        elif entry.kind in NODES:
            kind, number, metadata = Kind(entry.kind), entry.size, entry.metadata
            self._blocked.add(path, lambda: self.change_node(path, kind, number, metadata, decision, listed))
        elif self._options.dry_run or not self._options.removes:
            # Nothing removes what is in the directory. If nothing is, the content is fetched in the end.
            size = entry.size

            def create() -> None:
                self._landing.decide(file, decision)
                self._router.create(file, path, size)

            self._blocked.add(path, create)
        else:
            self._landing.decide(file, decision)
            self._landing.hold(file, path)
            self._router.create(file, path, entry.size)
            self._blocked.add(path, lambda: self._landing.put(path), lambda: self._landing.holds(path))
