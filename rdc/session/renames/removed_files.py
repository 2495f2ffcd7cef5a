"""Removed files: local files that the source no longer has, where the content of its new files may be.

They are columns with sorted indices of rows, because a whole tree may have moved.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from zlib import crc32

from rdc.errors import FileError
from rdc.limits.sessions import REMOVED_FILES
from rdc.model.entries import Kind, strings
from rdc.progress import silent
from rdc.tree.manifest import Manifest
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.model.entries import Identity, PackedListing
    from rdc.model.preserved import Preserved
    from rdc.session.landing.listed_entries import Extraneous
    from rdc.session.trees.mount_boundary import MountBoundary
    from rdc.tree.filters import FilterList
    from rdc.tree.manifest import Entry

__all__ = ["RemovedFiles"]


class RemovedFiles:
    """Files that a comparison found to be extraneous, and all files in extraneous directories.

    Excluded and unreadable files are left out. A row is only a hint: its user has to open and check the file.
    """

    def __init__(
        self,
        root: Root,
        filters: FilterList,
        extra: Iterable[Extraneous],
        preserved: Preserved,
        listed: Callable[[bytes], Identity | None],
        boundary: MountBoundary | None = None,
    ) -> None:
        """`preserved`: the precision of mtimes. `listed`: what was listed at a path, of what may go.
        `boundary`: nothing beyond it counts as removed."""
        self.listed = listed
        self._enter = None if boundary is None else boundary.enters
        self._there, self._here = preserved.at_source, preserved.at_destination
        self._root = root
        self._filters = filters
        self._files = Manifest()
        alone: dict[bytes, set[bytes]] = {}
        for path, kind, _ in extra:
            try:
                if filters.excluded(path, kind == Kind.DIRECTORY):
                    continue
            except FileError:
                continue  # its rules cannot be read
            if kind == Kind.DIRECTORY:
                self._add_tree(path)
            elif kind == Kind.FILE:
                directory, name = os.path.split(path)
                alone.setdefault(directory, set()).add(name)
        for directory, names in alone.items():
            self._add_some(directory, names)
        rows = [row for row, kind in enumerate(self._files.kinds) if kind == Kind.FILE]
        sizes = memoryview(bytes(self._files.sizes)).cast("Q")
        self._by_size = _Index([sizes[row] for row in rows], rows)
        hashes = list(self._name_hashes())
        self._by_name = _Index(hashes, rows)
        mtimes = memoryview(bytes(self._here.mtimes(self._files.mtimes, self._files.kinds))).cast("q")
        stamps = [_stamp(sizes[row], mtimes[row]) for row in rows]
        self._by_stamp = _Index(stamps, rows)
        self._by_all = _Index([stamp ^ hash_ for stamp, hash_ in zip(stamps, hashes, strict=True)], rows)

    def __len__(self) -> int:
        """The number of files."""
        return len(self._by_size)

    def __getitem__(self, row: int) -> Entry:
        return self._files.entry(row)

    @property
    def rows(self) -> int:
        """The number of rows, directories included."""
        return len(self._files)

    def of_size(self, size: int, most: int) -> Sequence[int]:
        """Returns rows of up to `most` files of `size` bytes, in the order of the walk."""
        return self._by_size.rows(size, most)

    def from_size(self, size: int) -> Iterator[int]:
        """Returns rows of all files of at least `size` bytes, the smallest first."""
        return self._by_size.rows_from(size)

    def like(self, entry: Entry, most: int) -> Iterator[int]:
        """Yields rows of up to `most` files with the size and mtime of `entry`, those with its name first."""
        size, mtime = entry.size, self._there.mtime(entry.metadata.mtime_ns)
        stamp = _stamp(size, mtime)
        named = self._by_all.rows(stamp ^ crc32(os.path.basename(entry.path)), most)
        for row in (*named, *self._by_stamp.rows(stamp, most - len(named))):
            found = self[row]
            if (found.size, self._here.mtime(found.metadata.mtime_ns)) == (size, mtime):
                yield row

    def of_name(self, name: bytes, most: int) -> list[int]:
        """Returns rows of up to `most` files of this name in any directory."""
        rows = self._by_name.rows(crc32(name), most)
        return [row for row in rows if os.path.basename(self[row].path) == name]

    def _name_hashes(self) -> Iterable[int]:
        for directory in range(len(self._files.directories)):
            listing = self._files.packed(directory)
            for name, kind in zip(strings(listing.names), listing.kinds, strict=True):
                if kind == Kind.FILE:
                    yield crc32(name)

    def _add_tree(self, path: bytes) -> None:
        try:
            for directory, listing, _ in Walk(
                self._root, self._filters, silent, start=path, enter=self._enter
            ):
                self._add(directory, listing)
        except FileError:
            return

    def _add_some(self, directory: bytes, names: set[bytes]) -> None:
        try:
            listing = self._root.listed(directory).listing
        except FileError:
            return
        rows = [row for row, name in enumerate(strings(listing.names)) if name in names]
        self._add(directory, listing.rows(rows))

    def _add(self, directory: bytes, listing: PackedListing) -> None:
        if len(self._files) + listing.count <= REMOVED_FILES:
            self._files.add(directory, listing)


def _stamp(size: int, mtime_ns: int) -> int:
    """Returns a 64-bit hash of size and mtime."""
    return hash((size, mtime_ns)) & 0xFFFF_FFFF_FFFF_FFFF


class _Index:
    """Rows by a key that several rows may share."""

    def __init__(self, keys: Sequence[int], rows: Sequence[int]) -> None:
        order = sorted(range(len(rows)), key=keys.__getitem__)
        self._keys = array("Q", (keys[i] for i in order))
        self._rows = array("I", (rows[i] for i in order))

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, key: int, most: int) -> array[int]:
        """Returns up to `most` rows with this key."""
        first = stop = bisect_left(self._keys, key)
        end = min(first + most, len(self._keys))
        while stop < end and self._keys[stop] == key:
            stop += 1
        return self._rows[first:stop]

    def rows_from(self, key: int) -> Iterator[int]:
        """Returns the rows with this key or a greater one, by increasing keys."""
        return (self._rows[at] for at in range(bisect_left(self._keys, key), len(self._rows)))
