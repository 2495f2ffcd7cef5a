"""Found: the files that a scan found, stored as columns by directory, some seventy bytes per file."""

from __future__ import annotations

import os
import random
from array import array

from rdc.errors import FileError
from rdc.files.base.known_devices import is_unchanged
from rdc.files.root.root import Root
from rdc.lean.records import dataclass
from rdc.model.entries import little_endian_integers, strings
from rdc.survey.walk.file_columns import Directory, FileColumns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.objects.object_tree import ObjectTree
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Identity
    from rdc.survey.walk.file_columns import FileRows, Met

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


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring files of one directory: rows `start` to `stop` of what was found."""

    found: Found
    directory: Directory
    names: list[bytes]
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def file(self, row: int) -> FoundFile:
        found, here = self.found, self.directory
        path, inode = here.prefix + self.names[row - self.start], (found.devices[row], found.inodes[row])
        return FoundFile(here.root, here.number, path, found.sizes[row], inode)

    @property
    def bytes(self) -> int:
        """Of all its files, as listed."""
        return sum(self.found.sizes[self.start : self.stop])

    def part(self, start: int, stop: int) -> Run:
        names = self.names[start - self.start : stop - self.start]
        return Run(self.found, self.directory, names, start, stop)


class Found(FileColumns):
    """All files of a walk, in its order or shuffled, with what else a scan asks of a listing.

    A search for duplicates sorts all sizes at once and drops most files unread, while a scan reads every
    file, directory by directory.
    """

    def __init__(self) -> None:
        super().__init__()
        self.links = array("I")
        self.mtimes, self.ctimes = array("q"), array("q")
        self._roots: dict[int, Root | ObjectTree] = {}
        self.bytes = 0

    def add_met(self, met: Met, number: int, files: FileRows) -> None:
        """Adds files of the directory `number`."""
        path = met.path
        shown = os.path.join(met.root.shown(path), b"")
        self.add(Directory(met.root, path + b"/" if path else b"", shown, number), files)

    def add(self, directory: Directory, files: FileRows) -> None:
        first = len(self)
        super().add(directory, files)
        self.links += little_endian_integers("I", files.inodes.links)
        self.mtimes += little_endian_integers("q", files.mtimes)
        self.ctimes += little_endian_integers("q", files.inodes.ctimes)
        self._roots[id(directory.root)] = directory.root
        self.bytes += sum(self.sizes[first:])

    def waits(self) -> bool:
        """Whether a file system with some of the files makes opens wait, as Depth finds out."""
        return any(isinstance(root, Root) and root.depths.opening.now > 1 for root in self._roots.values())

    def release(self) -> None:
        """Closes the descriptors of all roots. No file can be opened from then on."""
        for root in self._roots.values():
            root.release()

    def in_order(self) -> Iterator[Run]:
        for number, directory in enumerate(self._directories):
            names, first = strings(self._names[number]), self._starts[number]
            for start in range(0, len(names), RUN_FILES):
                some = names[start : start + RUN_FILES]
                yield Run(self, directory, some, first + start, first + start + len(some))

    def shuffled(self, seed: int) -> Iterator[Run]:
        """Every file once, each as its own run, in random order. All orders are equally likely; the same seed
        over the same tree gives the same order."""
        order = array("I", range(len(self)))
        random.Random(seed).shuffle(order)  # noqa: S311 - a sample, no secret
        cached: dict[int, list[bytes]] = {}
        for row in order:
            number = self._number(row)
            names = cached.get(number)
            if names is None:
                names = strings(self._names[number])
                if len(names) >= LARGE_DIRECTORY:
                    cached[number] = names
            yield Run(self, self._directories[number], [names[row - self._starts[number]]], row, row + 1)
