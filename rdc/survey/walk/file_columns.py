"""The regular files below several paths as packed columns: some forty bytes a file and no object each."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile

__all__ = ["Batch", "FileColumns", "ListedDirectory"]

WINDOW_FILES = 1 << 16
"""Files whose paths are in memory at a time, to be sorted by inode: some ten megabytes."""


@dataclass(frozen=True, slots=True)
class ListedDirectory:
    """One directory of a tree that was walked."""

    root: Root
    prefix: bytes
    """The part of a path before a name in it, relative to `root`: empty, or ending in a slash."""
    shown: bytes
    """The prefix as the user would type it."""


@dataclass(frozen=True, slots=True)
class Batch:
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
        self._directories: list[ListedDirectory] = []
        self._starts = array("Q")
        """The first row of each directory."""
        self._names = bytearray()
        """Each name is followed by NUL."""
        self._ends = array("Q", [0])
        """End of each row's name in `_names`; the first entry is 0."""

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, directory: ListedDirectory, names: list[bytes]) -> None:
        self._starts.append(len(self))
        self._directories.append(directory)
        end = len(self._names)
        for name in names:
            end += len(name) + 1
            self._ends.append(end)
        self._names += b"\0".join(names) + b"\0"

    def directory(self, row: int) -> ListedDirectory:
        return self._directories[bisect_right(self._starts, row) - 1]

    def name(self, row: int) -> bytes:
        return bytes(self._names[self._ends[row] : self._ends[row + 1] - 1])

    def path(self, row: int) -> bytes:
        """Path of a row relative to the root of its tree."""
        return self.directory(row).prefix + self.name(row)

    def shown(self, row: int) -> bytes:
        """Path of a row as the user would type it."""
        return self.directory(row).shown + self.name(row)

    def open(self, row: int) -> SourceFile:
        """Opens whatever file has this path now. Raises FileError."""
        return self.directory(row).root.open_read(self.path(row))

    def unallocated(self, row: int) -> int:
        """Bytes of a row's size that take no space on disk."""
        return max(0, self.sizes[row] - self.allocated[row])

    def all_shown(self, rows: Sequence[int]) -> list[bytes]:
        """The result of `shown` for many rows."""
        names, ends = self._names, self._ends
        starts, directories = self._starts, self._directories
        return [
            directories[bisect_right(starts, row) - 1].shown + names[ends[row] : ends[row + 1] - 1]
            for row in rows
        ]

    def wanted(self, rows: Sequence[int]) -> array[int]:
        """Typecode 'Q': listed device, inode and size of each row."""
        column = array("Q", bytes(24 * len(rows)))
        column[0::3] = array("Q", map(self.devices.__getitem__, rows))
        column[1::3] = array("Q", map(self.inodes.__getitem__, rows))
        column[2::3] = array("Q", map(self.sizes.__getitem__, rows))
        return column

    def batches(self, rows: Sequence[int], most_files: int, most_bytes: int, each: int) -> Iterator[Batch]:
        """Divides `rows` (increasing) into batches of one tree each. Inodes increase within each WINDOW_FILES
        rows.

        A batch has at most `most_files` files and `most_bytes` bytes, counting at most `each` bytes per file.
        """
        for window in self._windows(rows):
            root = self.directory(window[0]).root
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
        """Divides `rows` into parts of at most WINDOW_FILES, each of one tree."""
        at = 0
        for end in [*self._tree_ends(), len(self)]:
            last = bisect_left(rows, end, at)
            for start in range(at, last, WINDOW_FILES):
                yield rows[start : min(start + WINDOW_FILES, last)]
            at = last

    def _tree_ends(self) -> Iterator[int]:
        """The first row of each tree except the first."""
        for number in range(1, len(self._directories)):
            if self._directories[number].root is not self._directories[number - 1].root:
                yield self._starts[number]

    def _paths(self, rows: Sequence[int]) -> list[bytes]:
        """Paths of increasing rows, relative to the root of their tree, each followed by NUL."""
        paths = []
        number, end = -1, 0
        names, ends = self._names, self._ends
        prefix = b""
        for row in rows:
            if row >= end:
                number = bisect_right(self._starts, row) - 1
                end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self)
                prefix = self._directories[number].prefix
            paths.append(prefix + names[ends[row] : ends[row + 1]])
        return paths

    def _batch(self, root: Root, rows: list[int], paths: list[bytes]) -> Batch:
        return Batch(root, rows, b"".join(paths), self.wanted(rows))
