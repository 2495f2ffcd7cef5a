"""The destination's tree as a run left it, if nothing in it is still to be done."""

from __future__ import annotations

from bisect import bisect_left

from rdc.errors import FileError
from rdc.model.entries import EMPTY_LISTING, Kind, strings
from rdc.plan.compare import compare
from rdc.plan.outcome import outcome
from rdc.progress import silent
from rdc.tree.manifest import Manifest
from rdc.tree.walk import PackedWalk, join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from rdc.files.confined import Root
    from rdc.model.entries import Listing, PackedListing
    from rdc.model.kept import Kept
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.tree.filters import FilterList

__all__ = ["SettledTree"]

_NOTHING = EMPTY_LISTING.packed()


class _UnsettledError(Exception):
    """A directory still differs."""


class SettledTree:
    def __init__(
        self, root: Root, start: Start, options: SyncOptions, filters: FilterList, *, kept: Kept
    ) -> None:
        self._root = root
        self._start = start
        self._options = options
        self._filters = filters
        self._kept = kept

    def read(self, wanted: Manifest, before: Manifest | None, changed: AbstractSet[bytes]) -> Manifest | None:
        """Our tree as the run left it; None when something in it is still to be done, or it is unreadable."""
        try:
            own = None if before is None else self._amended_tree(wanted, before, changed)
            return self._walked_tree(wanted, before, changed) if own is None else own
        except (FileError, _UnsettledError):
            return None

    def _amended_tree(
        self, wanted: Manifest, before: Manifest, changed: AbstractSet[bytes]
    ) -> Manifest | None:
        """`before` with its directories in `changed` as they are now; None where others came or went, which
        takes a walk.

        Where the options say what was done they are not read again, which of a tree with changes all over
        would be half of a walk: this manifest and `wanted` differ in nothing that is to be done, and should
        somebody have meddled, then no tree has it.
        """
        own, row = Manifest(), 0
        # Directories whose entries have other attributes and nothing else: often all of a tree.
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
                self._demand_settled(wanted, path, listing)
            else:
                theirs = wanted.number(path)
                listing = outcome(_NOTHING if theirs is None else wanted.packed(theirs), known)
            held, found = _directories_in(known), _directories_in(listing)
            if held - found or any(join(path, name) not in changed for name in found - held):
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
        """The rows that a directory, which we have as `number`, has in `wanted`, where these are what it has
        now: names and kinds are those it had. None where that is not so, or not for sure."""
        theirs = wanted.number(path)
        if number is None or theirs is None or self._options.delete or self._options.narrows:
            return None
        rows, held = (range(one.firsts[at], one.end(at)) for one, at in ((wanted, theirs), (before, number)))
        kinds = wanted.kinds[rows.start : rows.stop]
        alike = kinds == before.kinds[held.start : held.stop] and Kind.SPECIAL not in kinds
        return rows if alike and wanted.names(theirs) == before.names(number) else None

    def _read(self, path: bytes) -> PackedListing:
        """What a walk finds in one directory."""
        only = self._start.only or None
        walk = PackedWalk(self._root, self._filters, silent, only=only, start=path)
        return next(iter(walk)).listing

    def _walked_tree(
        self, wanted: Manifest, before: Manifest | None, changed: AbstractSet[bytes]
    ) -> Manifest | None:
        def unchanged(path: bytes) -> PackedListing | None:
            number = None if before is None or path in changed else before.number(path)
            return None if before is None or number is None else before.packed(number)

        walk = PackedWalk(self._root, self._filters, silent, only=self._start.only or None, known=unchanged)
        own = Manifest()
        for path, listing in walk:
            own.add(path, listing)
            if before is None or path in changed or before.number(path) is None:
                self._demand_settled(wanted, path, listing)
        return None if walk.read_errors else own

    def _demand_settled(self, wanted: Manifest, path: bytes, listing: PackedListing) -> None:
        number = wanted.number(path)
        there = EMPTY_LISTING if number is None else wanted.listing(number)
        if self._differs(there, listing.unpacked()):
            raise _UnsettledError

    def _differs(self, wanted: Listing, held: Listing) -> bool:
        comparison = compare(wanted, held, kept=self._kept, checksum=False)
        if self._options.narrows:
            from rdc.plan.narrowing import narrow

            comparison = narrow(comparison, wanted, held, options=self._options, kept=self._kept).comparison
        # What came after its directory was looked at is still to be deleted.
        return bool(comparison) or (self._options.delete and bool(comparison.extra))


def _walk_order(path: bytes) -> bytes:
    """Sorts directories as a walk finds them: no name has a byte as low as NUL."""
    return path.replace(b"/", b"\0")


def _directories_in(listing: PackedListing) -> set[bytes]:
    names = strings(listing.names)
    return {names[row] for row in listing.rows_of(Kind.DIRECTORY)}
