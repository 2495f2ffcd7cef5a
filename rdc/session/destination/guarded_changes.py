"""--guard for changes: compared directories wait until it is known how many entries would change."""

from __future__ import annotations

from rdc.files.base.relative_path import join
from rdc.limits.sessions import GUARDED_ENTRIES
from rdc.model.entries import Kind, Listing
from rdc.model.runs import stopped_text
from rdc.plan.compare import Change, compare
from rdc.session.applying.allowed_changes import ComparedDirectory
from rdc.session.applying.announced_directory import AnnouncedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.sync import SyncOptions
    from rdc.plan.compare import Comparison
    from rdc.session.applying.directory_changes import DirectoryChanges
    from rdc.session.trees.destination_storage import DestinationStorage

__all__ = ["GuardedChanges"]


class GuardedChanges:
    """Stands before the parts that change directories: it counts, and passes everything on at the end.

    What counts are files and symlinks of the destination that differ in size, time or kind, as far as options
    let them change. Nothing is written before `release`.
    """

    def __init__(
        self, directories: DirectoryChanges, options: SyncOptions, storage: DestinationStorage
    ) -> None:
        self._directories = directories
        self._options = options
        self._storage = storage
        root = directories.announced(b"")
        self._expected: dict[bytes, AnnouncedDirectory] = {} if root is None else {b"": root}
        self._steps: list[Callable[[], object]] = []
        self._changing = 0
        self._seen = 0
        """Entries of the destination in compared directories."""

    # What the comparisons ask for

    def announced(self, path: bytes) -> AnnouncedDirectory | None:
        return self._expected.get(path)

    def expect(self, path: bytes, announced: AnnouncedDirectory) -> None:
        self._expected[path] = announced
        self._steps.append(lambda: self._directories.expect(path, announced))

    def mark_unchanged(self, path: bytes) -> bool:
        known = self._expected.get(path)
        if known is not None and (known.new or known.lost):
            return False
        self._expected.pop(path, None)
        self._steps.append(lambda: self._directories.mark_unchanged(path))
        return True

    def compare(self, path: bytes, first: int, listing: Listing, existing: Listing | None) -> None:
        known = self._expected.pop(path)
        lost = known.lost or existing is None
        here: set[bytes] = set()
        if existing is not None and not lost:
            here = {existing.names[row] for row in existing.rows_of(Kind.DIRECTORY)}
            self._seen += len(existing)
            self._count(ComparedDirectory(path, first, listing, existing))
        for row in listing.rows_of(Kind.DIRECTORY):
            name = listing.names[row]
            announced = AnnouncedDirectory(listing.metadata(row), name not in here, False, lost)
            self._expected[join(path, name)] = announced
        self._steps.append(lambda: self._directories.compare(path, first, listing, existing))

    def restore_permissions_later(self, path: bytes) -> None:
        self._steps.append(lambda: self._directories.restore_permissions_later(path))

    # The decision

    def _count(self, directory: ComparedDirectory) -> None:
        directory = directory.with_equal_times(self._options)
        comparison = compare(
            directory.listing,
            directory.existing,
            preserved=self._storage.preserved,
            checksum=self._options.checksum,
        )
        if self._options.narrows:
            comparison = self._narrowed(directory, comparison)
        changes = (Change.CONTENT, Change.REPLACE)
        self._changing += sum(decision.change in changes for decision in comparison.decisions)
        self._changing += len(comparison.touched)

    def _narrowed(self, directory: ComparedDirectory, comparison: Comparison) -> Comparison:
        from rdc.plan.skip_options import narrow

        return narrow(
            comparison,
            directory.listing,
            directory.existing,
            options=self._options,
            preserved=self._storage.preserved,
            path=directory.path,
        ).comparison

    def stopped(self, entries: int | None) -> str | None:
        """Says how many of how many entries would change, if these are more than the guard lets pass.

        `entries`: of the destination; None if all its directories were compared.
        """
        share, total = self._options.guard, self._seen if entries is None else entries
        if share is None or total < GUARDED_ENTRIES or self._changing * 100 <= share * total:
            return None
        return stopped_text("changed", self._changing, total, share)

    def release(self) -> None:
        """Has everything done that was asked for meanwhile."""
        steps, self._steps = self._steps, []
        for step in steps:
            step()
