"""The regular files below several paths as packed columns: some forty bytes a file and no object each."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.confined import Root
    from rdc.files.source import SourceFile

__all__ = ["Batch", "FileColumns", "ListedDirectory"]

WINDOW_FILES = 1 << 16
"""Files whose paths are at hand at a time and are put into the order of the disk: some ten megabytes."""


@dataclass(frozen=True, slots=True)
class ListedDirectory:
    """How it is reached, and how a person reaches it."""

    root: Root
    prefix: bytes
    """What stands before a name in it, relative to `root`: empty, or ending in a slash."""
    shown: bytes
    """The same as a person types it."""


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
    """Regular files, row by row in the order they were found."""

    def __init__(self) -> None:
        self.sizes = array("Q")
        self.devices = array("Q")
        self.inodes = array("Q")
        self._directories: list[ListedDirectory] = []
        self._starts = array("Q")
        """The first row of each directory."""
        self._names = bytearray()
        """Each followed by NUL."""
        self._ends = array("Q", [0])
        """Where the name of each row ends; the first is that of no row."""

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
        """Relative to the root of its tree."""
        return self.directory(row).prefix + self.name(row)

    def shown(self, row: int) -> bytes:
        """As a person reaches it."""
        return self.directory(row).shown + self.name(row)

    def open(self, row: int) -> SourceFile:
        """Whatever is there now. Raises FileError."""
        return self.directory(row).root.open_read(self.path(row))

    def all_shown(self, rows: Sequence[int]) -> list[bytes]:
        """The same of many."""
        names, ends = self._names, self._ends
        starts, directories = self._starts, self._directories
        return [
            directories[bisect_right(starts, row) - 1].shown + names[ends[row] : ends[row + 1] - 1]
            for row in rows
        ]

    def wanted(self, rows: Sequence[int]) -> array[int]:
        """Typecode 'Q': device, inode and size of each, as they were listed."""
        column = array("Q", bytes(24 * len(rows)))
        column[0::3] = array("Q", map(self.devices.__getitem__, rows))
        column[1::3] = array("Q", map(self.inodes.__getitem__, rows))
        column[2::3] = array("Q", map(self.sizes.__getitem__, rows))
        return column

    def batches(self, rows: Sequence[int], most_files: int, most_bytes: int, each: int) -> Iterator[Batch]:
        """`rows` (increasing) in parts of one tree each; inodes ascend among WINDOW_FILES.

        A part has at most `most_files`, of which at most `each` bytes are read, together `most_bytes`.
        """
        for window in self._windows(rows):
            root = self.directory(window[0]).root
            paths = self._paths(window)
            # Near the order on the disk: most file systems place files as they number them.
            order = sorted(
                range(len(window)), key=array("Q", map(self.inodes.__getitem__, window)).__getitem__
            )
            sizes = [min(self.sizes[row], each) for row in window]
            part: list[int] = []
            held = 0
            for at in order:
                size = sizes[at]
                if part and (len(part) == most_files or held + size > most_bytes):
                    yield self._batch(root, [window[i] for i in part], [paths[i] for i in part])
                    part, held = [], 0
                part.append(at)
                held += size
            yield self._batch(root, [window[i] for i in part], [paths[i] for i in part])

    def _windows(self, rows: Sequence[int]) -> Iterator[Sequence[int]]:
        """`rows` in parts of at most WINDOW_FILES, each of one tree."""
        at = 0
        for end in [*self._tree_ends(), len(self)]:
            last = bisect_left(rows, end, at)
            for start in range(at, last, WINDOW_FILES):
                yield rows[start : min(start + WINDOW_FILES, last)]
            at = last

    def _tree_ends(self) -> Iterator[int]:
        """The first row of each tree but the first."""
        for number in range(1, len(self._directories)):
            if self._directories[number].root is not self._directories[number - 1].root:
                yield self._starts[number]

    def _paths(self, rows: Sequence[int]) -> list[bytes]:
        """Of increasing rows, each followed by NUL: relative to the root of their tree."""
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
