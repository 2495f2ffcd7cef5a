"""Walks a confined tree for those who measure it: each directory's entries, and which files they are."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.model.entries import Kind, PackedInodes, PackedListing, strings
from rdc.progress import Problem
from rdc.records import dataclass
from rdc.tree.walk import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.files.confined import Root
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
    """The directories of a PackedWalk in the same order, by the same filters; never follows links.

    A directory that cannot be read is reported and passed over, an unreadable root is raised. Files that are
    neither directory nor regular are left in the listing unsaid: nothing is going to be done with them.
    """

    def __init__(
        self,
        root: Root,
        filters: FilterList,
        reporter: Reporter,
        descend: Callable[[int, int], bool] | None = None,
    ) -> None:
        """`descend` is asked with device and inode number of each directory below the root whether to go
        there; it stays in its parent's listing."""
        self._root = root
        self._filters = filters
        self._report = reporter
        self._descend = descend

    def __iter__(self) -> Iterator[InodeDirectory]:
        todo = [b""]
        while todo:
            path = todo.pop()
            try:
                listing, inodes = self._root.list_inodes(path)
            except FileError as error:
                if path == b"":
                    raise
                self._report(Problem(error.code, path, str(error)))
                continue
            if self._filters:
                kept = self._kept(path, listing)
                if len(kept) < len(listing):
                    listing, inodes = listing.rows(kept), inodes.rows(kept)
            yield InodeDirectory(path, listing, inodes)
            below = listing.rows_of(Kind.DIRECTORY)
            if self._descend is not None:
                below = [row for row in below if self._descend(*inodes.identity(row))]
            if below:
                names = strings(listing.names)
                todo += [join(path, names[row]) for row in reversed(below)]

    def _kept(self, path: bytes, listing: PackedListing) -> list[int]:
        excluded = self._filters.excluded
        return [
            row
            for row, (name, kind) in enumerate(zip(strings(listing.names), listing.kinds, strict=True))
            if not excluded(join(path, name), kind == Kind.DIRECTORY)
        ]
