"""The files that a scan found, listed once: a few dozen bytes each until their turn comes."""

from __future__ import annotations

import random
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from rdc.model.entries import Kind, strings
from rdc.tree.walk import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.confined import Root
    from rdc.model.entries import PackedListing

__all__ = ["Found", "FoundFile"]

LARGE_DIRECTORY = 4096
"""Names from which on a directory's list of them is kept when files are taken in random order."""


class FoundFile:
    """One file to read."""

    __slots__ = ("directory", "path", "root", "size")

    def __init__(self, root: Root, directory: int, path: bytes, size: int) -> None:
        self.root = root
        self.directory = directory
        """Number of its directory in Places."""
        self.path = path
        """Below the root."""
        self.size = size
        """Bytes, as listed."""


class _Directory:
    """The files of one directory, packed."""

    __slots__ = ("first", "names", "number", "path", "root", "sizes")

    def __init__(
        self, root: Root, number: int, path: bytes, names: bytes, sizes: array[int], first: int
    ) -> None:
        self.root, self.number, self.path = root, number, path
        self.names, self.sizes, self.first = names, sizes, first

    def file(self, names: list[bytes], row: int) -> FoundFile:
        return FoundFile(self.root, self.number, join(self.path, names[row]), self.sizes[row])


class Found:
    """All files of a walk, in its order or shuffled."""

    def __init__(self) -> None:
        self._directories: list[_Directory] = []
        self.files = 0
        self.bytes = 0

    def add(self, root: Root, number: int, path: bytes, listing: PackedListing) -> None:
        """The files of directory `number`, which is `path` below `root`."""
        rows = listing.rows_of(Kind.FILE)
        if not rows:
            return
        names, sizes = listing.names, array("Q", listing.sizes)
        if len(rows) < listing.count:
            split = strings(names)
            names = b"\0".join([*[split[row] for row in rows], b""])
            sizes = array("Q", [sizes[row] for row in rows])
        self._directories.append(_Directory(root, number, path, names, sizes, self.files))
        self.files += len(rows)
        self.bytes += sum(sizes)

    def in_order(self) -> Iterator[FoundFile]:
        for directory in self._directories:
            names = strings(directory.names)
            for row in range(len(names)):
                yield directory.file(names, row)

    def shuffled(self, seed: int) -> Iterator[FoundFile]:
        """Every file once, each order equally likely; equal seeds over equal trees give equal orders."""
        order = array("I", range(self.files))
        random.Random(seed).shuffle(order)  # noqa: S311 - a sample, no secret
        firsts = [directory.first for directory in self._directories]
        kept: dict[int, list[bytes]] = {}
        for number in order:
            which = bisect_right(firsts, number) - 1
            directory = self._directories[which]
            names = kept.get(which)
            if names is None:
                names = strings(directory.names)
                if len(names) >= LARGE_DIRECTORY:
                    kept[which] = names
            yield directory.file(names, number - directory.first)
