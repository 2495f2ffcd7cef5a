"""Found: the files that a scan found, stored as columns by directory, some seventy bytes per file."""

from __future__ import annotations

import random
from array import array
from bisect import bisect_right

from rdc.errors import FileError
from rdc.files.base.known_devices import is_unchanged
from rdc.files.base.relative_path import join
from rdc.files.root.root import Root
from rdc.model.entries import Kind, little_endian_integers, strings
from rdc.model.times import packed_time
from rdc.records import dataclass
from rdc.survey.scan.file_rows import FileRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from rdc.files.objects.object_listing import ListedObjects
    from rdc.files.objects.object_tree import ObjectTree
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Identity, PackedInodes, PackedListing

__all__ = ["Found", "FoundDirectory", "FoundFile", "Run"]

LARGE_DIRECTORY = 4096
"""Directories with at least this many names keep their split list while files are taken in random order."""

RUN_FILES = 64
"""Most files in one run. The scan may stop between two runs."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """One file to read."""

    root: Root | ObjectTree
    directory: int
    """Number of its directory in ChunkLocations."""
    path: bytes
    """Path relative to the root."""
    size: int
    """Bytes, as listed."""
    inode: tuple[int, int]
    """Device and inode number, as listed; 0 and the version of an object."""

    @property
    def shown(self) -> bytes:
        """The path as the user would type it."""
        return self.root.shown(self.path)

    def open(self) -> SourceFile:
        """Opens whatever file has this path now, or an object as it was listed. Raises FileError."""
        if isinstance(self.root, Root):
            return self.root.open_read(self.path)
        return self.root.open_object(self.path, self.size, self.inode[1])

    def read_again(self, identity: Identity, offset: int, length: int) -> bytes | None:
        """Reads content if the file still has this identity, else returns None."""
        try:
            with self.open() as source:
                return source.pread(offset, length) if is_unchanged(identity, source.identity) else None
        except FileError:
            return None


class FoundDirectory:
    """The files of one directory, row by row."""

    __slots__ = (
        "allocated",
        "ctimes",
        "devices",
        "first",
        "inodes",
        "links",
        "mtimes",
        "names",
        "number",
        "path",
        "root",
        "sizes",
    )

    def __init__(self, root: Root | ObjectTree, number: int, path: bytes, first: int) -> None:
        self.root = root
        self.number = number
        self.path = path
        self.first = first
        """Number of files found before this directory."""
        self.names = b""
        self.sizes, self.devices, self.inodes, self.allocated = (array("Q") for _ in range(4))
        self.links = array("I")
        self.mtimes, self.ctimes = array("q"), array("q")

    def take(self, files: FileRows) -> None:
        """Fills the columns."""
        inodes = files.inodes
        self.names = files.names
        self.sizes = little_endian_integers("Q", files.sizes)
        self.devices = little_endian_integers("Q", inodes.devices)
        self.inodes = little_endian_integers("Q", inodes.inodes)
        self.allocated = little_endian_integers("Q", inodes.allocated)
        self.links = little_endian_integers("I", inodes.links)
        self.mtimes = little_endian_integers("q", files.mtimes)
        self.ctimes = little_endian_integers("q", inodes.ctimes)

    def take_objects(self, listed: ListedObjects) -> None:
        """Fills the columns with objects. They have no links and no times."""
        zeros = bytes(8 * len(listed.sizes))
        self.names, self.sizes, self.inodes, self.allocated = (
            listed.names,
            listed.sizes,
            listed.versions,
            listed.sizes,
        )
        self.devices, self.links = array("Q", zeros), array("I", zeros[::2])
        self.mtimes, self.ctimes = array("q", zeros), array("q", zeros)

    def take_one(self, name: bytes, found: os.stat_result) -> None:
        self.names = name + b"\0"
        self.sizes.append(found.st_size)
        self.devices.append(found.st_dev)
        self.inodes.append(found.st_ino)
        self.allocated.append(found.st_blocks * 512)
        self.links.append(min(found.st_nlink, _UINT32_MAX))
        self.mtimes.append(packed_time(found.st_mtime_ns))
        self.ctimes.append(packed_time(found.st_ctime_ns))


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring files of one directory: rows `start` to `stop`."""

    directory: FoundDirectory
    names: list[bytes]
    """Names of all rows of the directory."""
    start: int
    stop: int

    def file(self, row: int) -> FoundFile:
        """The file in this row of the directory."""
        here = self.directory
        path, inode = join(here.path, self.names[row]), (here.devices[row], here.inodes[row])
        return FoundFile(here.root, here.number, path, here.sizes[row], inode)

    @property
    def bytes(self) -> int:
        """Of all its files, as listed."""
        return sum(self.directory.sizes[self.start : self.stop])

    def part(self, start: int, stop: int) -> Run:
        return Run(self.directory, self.names, start, stop)


class Found:
    """All files of a walk, in its order or shuffled.

    A search for duplicates uses a ListedTree instead. It sorts all sizes at once and drops most files unread,
    while a scan reads every file, directory by directory.
    """

    def __init__(self) -> None:
        self._directories: list[FoundDirectory] = []
        self._roots: dict[int, Root | ObjectTree] = {}
        self.files = 0
        self.bytes = 0

    def add(
        self,
        root: Root,
        number: int,
        path: bytes,
        listing: PackedListing,
        inodes: PackedInodes,
        rows: list[int] | None = None,
    ) -> None:
        """Adds the files of directory `number`, which lies at `path` below `root`. `rows`: those to add; None
        for all."""
        rows = listing.rows_of(Kind.FILE) if rows is None else rows
        if not rows:
            return
        if len(rows) < listing.count:
            listing, inodes = listing.rows(rows), inodes.rows(rows)
        self.add_rows(root, number, path, FileRows(listing.names, listing.sizes, listing.mtimes, inodes))

    def add_rows(self, root: Root | ObjectTree, number: int, path: bytes, files: FileRows) -> None:
        """Adds files of directory `number`, which lies at `path`, as a list has them."""
        directory = FoundDirectory(root, number, path, self.files)
        directory.take(files)
        self._append(directory)

    def add_file(self, root: Root, number: int, name: bytes, found: os.stat_result) -> None:
        """Adds a single regular file directly below `root`."""
        directory = FoundDirectory(root, number, b"", self.files)
        directory.take_one(name, found)
        self._append(directory)

    def add_objects(self, tree: ObjectTree, number: int, path: bytes, listed: ListedObjects) -> None:
        """Adds the objects of directory `number`, whose path is `path` in `tree`."""
        directory = FoundDirectory(tree, number, path, self.files)
        directory.take_objects(listed)
        self._append(directory)

    def _append(self, directory: FoundDirectory) -> None:
        self._directories.append(directory)
        self._roots[id(directory.root)] = directory.root
        self.files += len(directory.sizes)
        self.bytes += sum(directory.sizes)

    def waits(self) -> bool:
        """Whether a file system with some of the files makes opens wait, as Depth finds out."""
        return any(isinstance(root, Root) and root.depths.opening.now > 1 for root in self._roots.values())

    def release(self) -> None:
        """Closes the descriptors of all roots. No file can be opened from then on."""
        for root in self._roots.values():
            root.release()

    def in_order(self) -> Iterator[Run]:
        for directory in self._directories:
            names = strings(directory.names)
            for start in range(0, len(names), RUN_FILES):
                yield Run(directory, names, start, min(start + RUN_FILES, len(names)))

    def shuffled(self, seed: int) -> Iterator[Run]:
        """Every file once, each as its own run, in random order. All orders are equally likely; the same seed
        over the same tree gives the same order."""
        order = array("I", range(self.files))
        random.Random(seed).shuffle(order)  # noqa: S311 - a sample, no secret
        firsts = array("Q", [directory.first for directory in self._directories])
        cached: dict[int, list[bytes]] = {}
        for number in order:
            which = bisect_right(firsts, number) - 1
            directory = self._directories[which]
            names = cached.get(which)
            if names is None:
                names = strings(directory.names)
                if len(names) >= LARGE_DIRECTORY:
                    cached[which] = names
            yield Run(directory, names, number - directory.first, number - directory.first + 1)


_UINT32_MAX = (1 << 32) - 1
