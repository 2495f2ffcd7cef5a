"""InodeWalk: walks a confined tree for measurements and yields each directory's entries with their inodes."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError
from rdc.files.base.relative_path import join
from rdc.files.depth.list_ahead import ListAhead
from rdc.model.entries import Kind, PackedInodes, PackedListing, strings
from rdc.progress import Problem
from rdc.records import dataclass
from rdc.tree.walk import lookalikes, passed_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.files.root.root import Root
    from rdc.progress import Reporter
    from rdc.tree.filters import FilterList

__all__ = ["InodeDirectory", "InodeWalk"]


@dataclass(frozen=True, slots=True)
class InodeDirectory:
    """One directory of a walk: its relative path, the entries that the filters leave, their inodes."""

    path: bytes
    listing: PackedListing
    inodes: PackedInodes


class InodeWalk:
    """Yields the directories of a PackedWalk in the same order, with the same filters. Links are never
    followed.

    An unreadable directory is reported and skipped; an unreadable root raises FileError. Special files stay
    in the listing and are not reported, because nothing is done with them. Entries with a reserved name are
    left out and reported as in a PackedWalk.
    """

    def __init__(
        self,
        root: Root,
        filters: FilterList,
        reporter: Reporter,
        descend: Callable[[int, int], bool] | None = None,
    ) -> None:
        """`descend` receives device and inode number of each directory below the root, and decides whether it
        is entered. The directory stays in its parent's listing."""
        self._root = root
        self._filters = filters
        self._report = reporter
        self._descend = descend

    def __iter__(self) -> Iterator[InodeDirectory]:
        lister = ListAhead(self._root, inodes=True)
        try:
            yield from self._directories(lister)
        finally:
            lister.close()

    def _directories(self, lister: ListAhead) -> Iterator[InodeDirectory]:
        todo = [b""]
        while todo:
            path = todo.pop()
            try:
                found = lister.take(path, todo)
                listing, inodes = found.listing, found.inodes
                if inodes is None:
                    raise RuntimeError("a listing without the inodes that were asked for")
                for entry in lookalikes(path, found.reserved, self._filters) if found.reserved else ():
                    self._report(Problem(ExitCode.OK, entry, passed_over(self._root.shown(entry))))
                if self._filters:
                    included = self._included(path, listing)
                    if len(included) < len(listing):
                        listing, inodes = listing.rows(included), inodes.rows(included)
            except FileError as error:
                if path == b"":
                    raise
                self._report(Problem(error.code, path, str(error)))
                continue
            yield InodeDirectory(path, listing, inodes)
            below = listing.rows_of(Kind.DIRECTORY)
            if self._descend is not None:
                below = [row for row in below if self._descend(*inodes.identity(row))]
            if below:
                names = strings(listing.names)
                todo += [join(path, names[row]) for row in reversed(below)]

    def _included(self, path: bytes, listing: PackedListing) -> list[int]:
        excluded = self._filters.excluded
        return [
            row
            for row, (name, kind) in enumerate(zip(strings(listing.names), listing.kinds, strict=True))
            if not excluded(join(path, name), kind == Kind.DIRECTORY)
        ]
