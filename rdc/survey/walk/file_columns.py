"""The files of a survey as packed columns: those of one directory as a walk meets them, and those below
several paths together, some forty bytes a file and no object each.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate

from rdc.files.root.root import Root
from rdc.kernel import equal_rows
from rdc.lean.records import Record
from rdc.model.entries import (
    NO_INODES,
    Kind,
    PackedInodes,
    PackedListing,
    chosen,
    little_endian,
    little_endian_integers,
    sliced,
    strings,
)
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    from _typeshed import ReadableBuffer

    from rdc.files.objects.object_store import ListedObjects, ObjectTree
    from rdc.files.root.source_file import SourceFile


class Groups(Record):
    members: array[int]
    """Typecode 'I': the rows of the first group, then those of the next."""
    counts: array[int]
    """Typecode 'I': number of rows in each group."""

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[array[int]]:
        """Yield the rows of each group."""
        at = 0
        for count in self.counts:
            yield self.members[at : at + count]
            at += count

    @classmethod
    def of_rows(cls, groups: Iterable[array[int]]) -> Groups:
        """Make groups from an iterable of their rows."""
        members, counts = array("I"), array("I")
        for group in groups:
            members.extend(group)
            counts.append(len(group))
        return cls(members, counts)

    @classmethod
    def joined(cls, parts: Iterable[Groups]) -> Groups:
        members, counts = array("I"), array("I")
        for part in parts:
            members.extend(part.members)
            counts.extend(part.counts)
        return cls(members, counts)

    def of(self, rows: array[int]) -> Groups:
        """Replace each row number by the entry of `rows` at that position."""
        return Groups(array("I", map(rows.__getitem__, self.members)), self.counts)


def equal_groups(column: ReadableBuffer, width: int) -> Groups:
    """Return the groups of rows of `column`, `width` bytes each, with equal values. Groups are in order of
    value."""
    members, counts = equal_rows(column, width)
    return Groups(little_endian_integers("I", members), little_endian_integers("I", counts))


WINDOW_FILES = 1 << 16
"""Files whose paths are in memory at a time, to be sorted by inode: some ten megabytes."""

SECTOR_BYTES = 512
"""The unit of st_blocks, whatever the file system's block size is."""

UINT32_MAX = (1 << 32) - 1

_NUMBERS = {"sizes": "Q", "mtimes": "q"}
"""The columns of numbers of FileRows, and their typecodes."""


class FileRows(Record):
    """Files of one directory, as little-endian columns. Objects have their versions as inodes, and no links
    and no times."""

    names: bytes
    """Names, each followed by NUL."""
    sizes: bytes
    """u64."""
    mtimes: bytes
    """i64: nanoseconds."""
    inodes: PackedInodes

    def __len__(self) -> int:
        return len(self.sizes) // 8

    @classmethod
    def of_listing(
        cls, listing: PackedListing, inodes: PackedInodes, rows: Sequence[int] | None = None
    ) -> FileRows:
        """Return the regular files of a directory, or those of `rows`."""
        rows = listing.rows_of(Kind.FILE) if rows is None else rows
        if not rows:
            return NO_FILES
        if len(rows) < listing.count:
            listing, inodes = listing.rows(rows), inodes.rows(rows)
        return cls(listing.names, listing.sizes, listing.mtimes, inodes)

    @classmethod
    def of_file(cls, name: bytes, found: os.stat_result) -> FileRows:
        """Return one regular file."""
        allocated = found.st_blocks * SECTOR_BYTES
        size, device, inode, mtime, ctime = (
            (number & (1 << 64) - 1).to_bytes(8, "little")
            for number in (
                *(found.st_size, found.st_dev, found.st_ino),
                *map(packed_time, (found.st_mtime_ns, found.st_ctime_ns)),
            )
        )
        links = min(found.st_nlink, UINT32_MAX).to_bytes(4, "little")
        inodes = PackedInodes(device, inode, links, allocated.to_bytes(8, "little"), ctime)
        return cls(name + b"\0", size, mtime, inodes)

    @classmethod
    def of_objects(cls, listed: ListedObjects) -> FileRows:
        """Return the objects of a directory. They take what they have."""
        zeros, sizes = bytes(8 * len(listed.sizes)), little_endian(listed.sizes)
        versions = PackedInodes(zeros, little_endian(listed.versions), zeros[::2], sizes, zeros)
        return cls(listed.names, sizes, zeros, versions)

    def rows(self, rows: Sequence[int]) -> FileRows:
        """Return these rows only; `rows` increases."""
        if len(rows) == len(self):
            return self
        names = strings(self.names)
        return FileRows(
            b"".join([names[row] + b"\0" for row in rows]),
            inodes=self.inodes.rows(rows),
            **chosen(self, _NUMBERS, rows),
        )

    def part(self, names: list[bytes], start: int, stop: int) -> FileRows:
        """Return the rows [start, stop). `names`: those of all rows."""
        if (start, stop) == (0, len(self)):
            return self
        return FileRows(
            b"".join([name + b"\0" for name in names[start:stop]]),
            inodes=self.inodes.part(start, stop),
            **sliced(self, _NUMBERS, start, stop),
        )


NO_FILES = FileRows(b"", b"", b"", NO_INODES)


class Met(Record):
    """The files of one directory as a walk meets it, or the one file or object that a path of the survey
    names."""

    operand: int
    """Number of the path of the survey."""
    root: Root | ObjectTree
    walked: int
    """Position in the walk over everything."""
    path: bytes
    """The directory's path below `root`."""
    files: FileRows
    is_single: bool = False
    """True if a path of the survey names the file itself. It is directly below `root` then."""

    @property
    def below(self) -> bytes:
        """The directory's path below the path of the survey."""
        return self.path if isinstance(self.root, Root) else self.path[2:]

    @property
    def shown(self) -> bytes:
        """The directory as the user would type it."""
        return self.root.shown(self.path) or b"."

    @property
    def bytes(self) -> int:
        """The bytes of all its files, as listed."""
        return sum(little_endian_integers("Q", self.files.sizes))


class Directory(Record):
    """One directory whose files are in columns."""

    root: Root | ObjectTree
    prefix: bytes
    """The part of a path before a name in it, relative to `root`: empty, or ending in a slash."""
    shown: bytes
    """The prefix as the user would type it."""
    number: int = -1
    """Its number in ChunkLocations or DirectoryRows, if it is in one of them."""


class Batch(Record):
    """Some files of one tree."""

    root: Root
    rows: list[int]
    paths: bytes
    """Relative to `root`, each followed by NUL."""
    wanted: array[int]
    """Typecode 'Q': device, inode and size of each."""


class FileColumns:
    """Regular files, one per row, in the order they were found."""

    def __init__(self) -> None:
        self.sizes = array("Q")
        self.devices = array("Q")
        self.inodes = array("Q")
        self.allocated = array("Q")
        """Bytes on disk: fewer than the size in a file with holes."""
        self.firsts = array("Q")
        """The first row of each PATH that was walked, in their order."""
        self._directories: list[Directory] = []
        self._starts = array("Q")
        """The first row of each directory."""
        self._names: list[bytes] = []
        """The names in each directory, each followed by NUL."""
        self._ends: dict[int, array[int]] = {}
        """The ends of names, for directories of which a name was asked for."""

    def __len__(self) -> int:
        return len(self.sizes)

    def add(self, directory: Directory, files: FileRows) -> None:
        if not len(files):
            return
        self._starts.append(len(self))
        self._directories.append(directory)
        self._names.append(files.names)
        self.sizes += little_endian_integers("Q", files.sizes)
        self.devices += little_endian_integers("Q", files.inodes.devices)
        self.inodes += little_endian_integers("Q", files.inodes.inodes)
        self.allocated += little_endian_integers("Q", files.inodes.allocated)

    def chosen(self, rows: Sequence[int]) -> FileColumns:
        """Return the columns of only these rows, which must increase."""
        made = FileColumns()
        made.firsts.extend(bisect_left(rows, first) for first in self.firsts)
        at = 0
        while at < len(rows):
            number = self._number(rows[at])
            first, end = self._starts[number], self._end(number)
            last = bisect_left(rows, end, at)
            names = self._names[number]
            if last - at < end - first:
                every = strings(names)
                names = b"".join([every[row - first] + b"\0" for row in rows[at:last]])
            made._starts.append(at)
            made._directories.append(self._directories[number])
            made._names.append(names)
            at = last
        for name in ("sizes", "devices", "inodes", "allocated"):
            setattr(made, name, array("Q", map(getattr(self, name).__getitem__, rows)))
        return made

    def _number(self, row: int) -> int:
        """Return the number of the directory of a row."""
        return bisect_right(self._starts, row) - 1

    def _end(self, number: int) -> int:
        """Return the row after the last one of a directory."""
        return self._starts[number + 1] if number + 1 < len(self._starts) else len(self)

    def operand(self, row: int) -> int:
        """Return the number of the PATH below which a row was found."""
        return bisect_right(self.firsts, row) - 1

    def directory(self, row: int) -> Directory:
        return self._directories[self._number(row)]

    def by_directory(self) -> Iterator[tuple[Directory, int, list[bytes]]]:
        """Yield each directory, its first row, and the names of its rows."""
        for directory, start, names in zip(self._directories, self._starts, self._names, strict=True):
            yield directory, start, strings(names)

    def name(self, row: int) -> bytes:
        number = self._number(row)
        names, ends = self._names[number], self._ends.get(number)
        if ends is None:
            ends = array("Q", accumulate([len(name) + 1 for name in strings(names)], initial=0))
            self._ends[number] = ends
        at = row - self._starts[number]
        return names[ends[at] : ends[at + 1] - 1]

    def path(self, row: int) -> bytes:
        """Return the path of a row relative to the root of its tree."""
        return self.directory(row).prefix + self.name(row)

    def shown(self, row: int) -> bytes:
        """Return the path of a row as the user would type it."""
        return self.directory(row).shown + self.name(row)

    def open(self, row: int) -> SourceFile:
        """Open whatever file has this path now. Raises FileError."""
        root = self.directory(row).root
        assert isinstance(root, Root)  # noqa: S101 - objects are opened as FoundFile
        return root.open_read(self.path(row))

    def unallocated(self, row: int) -> int:
        """Return the bytes of a row's size that take no space on disk."""
        return max(0, self.sizes[row] - self.allocated[row])

    def identities(self, rows: Sequence[int]) -> array[int]:
        """Typecode 'Q': device and inode of each row."""
        return _interleaved(rows, self.devices, self.inodes)

    def wanted(self, rows: Sequence[int]) -> array[int]:
        """Typecode 'Q': listed device, inode and size of each row."""
        return _interleaved(rows, self.devices, self.inodes, self.sizes)

    def batches(self, rows: Sequence[int], most_files: int, most_bytes: int, each: int) -> Iterator[Batch]:
        """Divide `rows` (increasing) into batches of one tree each. Inodes increase within each WINDOW_FILES
        rows.

        A batch has at most `most_files` files and `most_bytes` bytes, counting at most `each` bytes per file.
        """
        for window in self._windows(rows):
            root = self.directory(window[0]).root
            assert isinstance(root, Root)  # noqa: S101 - objects are read otherwise
            paths = self._paths(window)
            # Inode order is near disk order: most file systems place files in the order of their inodes.
            order = sorted(
                range(len(window)), key=array("Q", map(self.inodes.__getitem__, window)).__getitem__
            )
            sizes = [min(self.sizes[row], each) for row in window]
            part: list[int] = []
            part_bytes = 0
            for at in order:
                size = sizes[at]
                if part and (len(part) == most_files or part_bytes + size > most_bytes):
                    yield self._batch(root, [window[i] for i in part], [paths[i] for i in part])
                    part, part_bytes = [], 0
                part.append(at)
                part_bytes += size
            yield self._batch(root, [window[i] for i in part], [paths[i] for i in part])

    def _windows(self, rows: Sequence[int]) -> Iterator[Sequence[int]]:
        """Divide `rows` into parts of at most WINDOW_FILES, each of one tree."""
        at = 0
        for end in [*self._tree_ends(), len(self)]:
            last = bisect_left(rows, end, at)
            for start in range(at, last, WINDOW_FILES):
                yield rows[start : min(start + WINDOW_FILES, last)]
            at = last

    def _tree_ends(self) -> Iterator[int]:
        """Yield the first row of each tree except the first."""
        for number in range(1, len(self._directories)):
            if self._directories[number].root is not self._directories[number - 1].root:
                yield self._starts[number]

    def _paths(self, rows: Sequence[int]) -> list[bytes]:
        """Return the paths of increasing rows, relative to the root of their tree, each followed by NUL."""
        paths = []
        first = end = 0
        names: list[bytes] = []
        prefix = b""
        for row in rows:
            if row >= end:
                number = self._number(row)
                first, end = self._starts[number], self._end(number)
                names, prefix = strings(self._names[number]), self._directories[number].prefix
            paths.append(prefix + names[row - first] + b"\0")
        return paths

    def _batch(self, root: Root, rows: list[int], paths: list[bytes]) -> Batch:
        return Batch(root, rows, b"".join(paths), self.wanted(rows))


def _interleaved(rows: Sequence[int], *columns: array[int]) -> array[int]:
    """Return one column that has the numbers of each row side by side: typecode 'Q'."""
    width = len(columns)
    made = array("Q", bytes(8 * width * len(rows)))
    for at, column in enumerate(columns):
        made[at::width] = array("Q", map(column.__getitem__, rows))
    return made


# Hard links: which rows count as files, and which are other names of these files.


class OtherNames:
    """For each row that counts as a file, the rows of its other names. Twelve bytes per name."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        """`pairs`: a row that counts as a file, and a row of another name of it."""
        pairs.sort()
        self._firsts = array("I", [first for first, _ in pairs])
        self.rows = array("I", [other for _, other in pairs])
        """The rows of all other names."""

    def __len__(self) -> int:
        return len(self.rows)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Return each row that counts as a file, with the row of another name of it."""
        return zip(self._firsts, self.rows, strict=True)

    def of(self, row: int) -> array[int]:
        """Return the other names of `row`, in increasing order."""
        start = bisect_left(self._firsts, row)
        return self.rows[start : bisect_left(self._firsts, row + 1, start)]


def split_names(files: FileColumns, rows: Sequence[int]) -> tuple[array[int], OtherNames]:
    """Split `rows` into those that count as files, each the first name of its file, and their other
    names."""
    groups = equal_groups(files.identities(rows), 16)
    if not len(groups):
        return array("I", rows), OtherNames([])
    pairs = []
    other = bytearray(len(rows))
    for positions in groups:
        first = min(rows[position] for position in positions)
        for position in positions:
            if rows[position] != first:
                other[position] = 1
                pairs.append((first, rows[position]))
    return array("I", [row for position, row in enumerate(rows) if not other[position]]), OtherNames(pairs)
