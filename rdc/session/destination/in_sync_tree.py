"""Reads the destination's tree after a run and checks that nothing in it is left to do."""

from __future__ import annotations

from bisect import bisect_left

from rdc.errors import FileError
from rdc.files.base.paths import join
from rdc.model.entries import EMPTY_LISTING, Kind, strings
from rdc.plan.compare import compare
from rdc.plan.skip_options import expected_directory, narrow
from rdc.progress import silent
from rdc.tree.manifest import Manifest
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from rdc.files.root.root import Root
    from rdc.model.entries import Listing, PackedListing
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.tree.filters import FilterList


_NOTHING = EMPTY_LISTING.packed()


class _DiffersError(Exception):
    """A directory still differs."""


class InSyncTree:
    """The destination's tree after a run."""

    def __init__(
        self, root: Root, start: Start, options: SyncOptions, filters: FilterList, *, preserved: Preserved
    ) -> None:
        self._root = root
        self._start = start
        self._options = options
        self._filters = filters
        self._preserved = preserved

    def read(self, wanted: Manifest, before: Manifest | None, changed: AbstractSet[bytes]) -> Manifest | None:
        """Return the manifest of the tree; None if something is left to do or cannot be read. Arguments as in
        InSyncPair.remember_in_sync."""
        try:
            own = None if before is None else self._amended_tree(wanted, before, changed)
            return self._walked_tree(wanted, before, changed) if own is None else own
        except (FileError, _DiffersError):
            return None

    def _amended_tree(
        self, wanted: Manifest, before: Manifest, changed: AbstractSet[bytes]
    ) -> Manifest | None:
        """Return the manifest `before`, updated for the directories in `changed`.

        Returns None if directories appeared or vanished elsewhere; then a walk is needed. If the options
        determine what the run did, the directories are not read again: for a tree with changes everywhere
        that would cost half a walk. The result then differs from `wanted` in nothing that is left to do. If
        another program changed the tree meanwhile, no tree has this manifest, and it is never met again.
        """
        own, row = Manifest(), 0
        # A run of directories in which only metadata changed: often the whole tree.
        run = range(0)
        for path in sorted(changed, key=_walk_order):
            number = before.number(path)
            same = self._same_names(wanted, before, path, number)
            if same is not None and number is not None:
                if row != before.firsts[number] or run.stop != same.start:
                    own.take_amended(wanted, run.start, run.stop, {})
                    own.take(before, row, before.firsts[number])
                    run = same
                run, row = range(run.start, same.stop), before.end(number)
                continue
            own.take_amended(wanted, run.start, run.stop, {})
            run = range(0)
            known = _NOTHING if number is None else before.packed(number)
            if self._options.delete or self._options.narrows:
                listing = self._read(path)
                self._demand_in_sync(wanted, path, listing)
            else:
                source_number = wanted.number(path)
                listing = expected_directory(
                    _NOTHING if source_number is None else wanted.packed(source_number), known
                )
            former, found = _directories_in(known), _directories_in(listing)
            if former - found or any(join(path, name) not in changed for name in found - former):
                return None
            if number is None:
                at = bisect_left(before.directories, _walk_order(path), key=_walk_order)
                first = end = before.firsts[at] if at < len(before.firsts) else len(before)
            else:
                first, end = before.firsts[number], before.end(number)
            own.take(before, row, first)
            own.add(path, listing)
            row = end
        own.take_amended(wanted, run.start, run.stop, {})
        own.take(before, row, len(before))
        return own

    def _same_names(
        self, wanted: Manifest, before: Manifest, path: bytes, number: int | None
    ) -> range | None:
        """Return the rows of a directory in `wanted`, if it has the same names and kinds in `before`.

        `number`: the directory's number in `before`. None: names or kinds differ, or it is not certain that
        the directory now has these rows.
        """
        source_number = wanted.number(path)
        if number is None or source_number is None or self._options.delete or self._options.narrows:
            return None
        rows, former = (
            range(one.firsts[at], one.end(at)) for one, at in ((wanted, source_number), (before, number))
        )
        kinds = wanted.kinds[rows.start : rows.stop]
        alike = kinds == before.kinds[former.start : former.stop] and Kind.SPECIAL not in kinds
        return rows if alike and wanted.names(source_number) == before.names(number) else None

    def _read(self, path: bytes) -> PackedListing:
        """Return the listing of one directory, as a walk finds it."""
        only = self._start.only or None
        walk = Walk(self._root, self._filters, silent, only=only, start=path)
        return next(iter(walk)).listing

    def _walked_tree(
        self, wanted: Manifest, before: Manifest | None, changed: AbstractSet[bytes]
    ) -> Manifest | None:
        """Return the manifest of a new walk, which reads only new and changed directories."""

        def unchanged(path: bytes) -> PackedListing | None:
            number = None if before is None or path in changed else before.number(path)
            return None if before is None or number is None else before.packed(number)

        walk = Walk(self._root, self._filters, silent, only=self._start.only or None, known=unchanged)
        own = Manifest()
        for path, listing, _ in walk:
            own.add(path, listing)
            if before is None or path in changed or before.number(path) is None:
                self._demand_in_sync(wanted, path, listing)
        return None if walk.read_errors else own

    def _demand_in_sync(self, wanted: Manifest, path: bytes, listing: PackedListing) -> None:
        """Raise _DiffersError if something is left to do in this directory."""
        number = wanted.number(path)
        there = EMPTY_LISTING if number is None else wanted.listing(number)
        if self._differs(path, there, listing.unpacked()):
            raise _DiffersError

    def _differs(self, path: bytes, wanted: Listing, existing: Listing) -> bool:
        comparison = compare(wanted, existing, preserved=self._preserved, checksum=False)
        if self._options.narrows:
            comparison = narrow(
                comparison,
                wanted,
                existing,
                options=self._options,
                preserved=self._preserved,
                path=path,
            ).comparison
        # An entry that appeared after its directory was compared is still to be deleted.
        return bool(comparison) or (self._options.delete and bool(comparison.extra))


def _walk_order(path: bytes) -> bytes:
    """Return a key that sorts directories in walk order, as no name contains the byte NUL."""
    return path.replace(b"/", b"\0")


def _directories_in(listing: PackedListing) -> set[bytes]:
    """Return the names of the directories in a listing."""
    names = strings(listing.names)
    return {names[row] for row in listing.rows_of(Kind.DIRECTORY)}
