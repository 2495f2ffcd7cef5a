"""ListedTree: all entries found below several paths, as packed columns from which files are selected."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from rdc.model.entries import Kind, little_endian_integers, strings
from rdc.survey.walk.file_columns import FileColumns, ListedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from rdc.model.entries import PackedInodes, PackedListing

__all__ = ["ListedTree"]

SECTOR_BYTES = 512
"""The unit of st_blocks, whatever the file system's block size is."""


class ListedTree:
    """All entries that were walked, one per row. Directories and links are included with size 0."""

    def __init__(self) -> None:
        self.sizes = array("Q")
        self.kinds = bytearray()
        """One `Kind` per row."""
        self._devices = array("Q")
        self._inodes = array("Q")
        self._allocated = array("Q")
        self._directories: list[ListedDirectory] = []
        self._names: list[bytes] = []
        self._starts = array("Q")

    def __len__(self) -> int:
        return len(self.sizes)

    def add(
        self,
        directory: ListedDirectory,
        listing: PackedListing,
        inodes: PackedInodes,
        rows: Sequence[int] | None = None,
    ) -> None:
        """Adds a directory's entries, or only those of `rows`."""
        if rows is not None and not rows:
            return
        self._starts.append(len(self.sizes))
        self._directories.append(directory)
        if rows is None:
            self._names.append(listing.names)
            self.kinds += listing.kinds
        else:
            names = strings(listing.names)
            self._names.append(b"".join([names[row] + b"\0" for row in rows]))
            self.kinds += bytes(map(listing.kinds.__getitem__, rows))
        for column, packed in (
            (self.sizes, listing.sizes),
            (self._devices, inodes.devices),
            (self._inodes, inodes.inodes),
            (self._allocated, inodes.allocated),
        ):
            numbers = little_endian_integers("Q", packed)
            column.extend(numbers if rows is None else map(numbers.__getitem__, rows))

    def add_file(self, directory: ListedDirectory, name: bytes, found: os.stat_result) -> None:
        """Adds one regular file."""
        self._starts.append(len(self.sizes))
        self._directories.append(directory)
        self._names.append(name + b"\0")
        self.kinds.append(Kind.FILE)
        self.sizes.append(found.st_size)
        self._devices.append(found.st_dev)
        self._inodes.append(found.st_ino)
        self._allocated.append(found.st_blocks * SECTOR_BYTES)

    def take_out(self, row: int) -> None:
        """Marks an entry as no regular file."""
        self.sizes[row] = 0
        self.kinds[row] = Kind.SPECIAL

    def identities(self, rows: Sequence[int]) -> array[int]:
        """Typecode 'Q': device and inode of each row."""
        column = array("Q", bytes(16 * len(rows)))
        column[0::2] = array("Q", map(self._devices.__getitem__, rows))
        column[1::2] = array("Q", map(self._inodes.__getitem__, rows))
        return column

    def files(self, rows: Sequence[int]) -> FileColumns:
        """Only these rows, which must increase, in this order."""
        chosen = FileColumns()
        at = 0
        while at < len(rows):
            number = bisect_right(self._starts, rows[at]) - 1
            first = self._starts[number]
            end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.sizes)
            last = at
            while last < len(rows) and rows[last] < end:
                last += 1
            names = strings(self._names[number])
            if last - at < end - first:
                names = [names[row - first] for row in rows[at:last]]
            chosen.add(self._directories[number], names)
            at = last
        chosen.sizes = array("Q", map(self.sizes.__getitem__, rows))
        chosen.devices = array("Q", map(self._devices.__getitem__, rows))
        chosen.inodes = array("Q", map(self._inodes.__getitem__, rows))
        chosen.allocated = array("Q", map(self._allocated.__getitem__, rows))
        return chosen
