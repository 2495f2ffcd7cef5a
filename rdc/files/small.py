"""Small files in bulk: read to be sent, or written aside for a CommitGroup. In C, on Linux.

Whatever does not go the usual way is left to the caller, who does that file again by itself with SourceFile
or Replacement: those know every case and name it. So there are no errors here, and without the C part no
files.
"""

from __future__ import annotations

import os
from array import array
from contextlib import suppress

from rdc.errors import FileError
from rdc.model.entries import strings
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence, Set
    from types import ModuleType

    from typing_extensions import Buffer

    from rdc.files.confined import Root
    from rdc.files.directory import Directory
    from rdc.model.entries import Identity, PackedListing

__all__ = ["NewVersions", "StagedFiles", "StagedVersions", "read_small", "stage_small", "stage_versions"]

FAILED, NOT_EXPECTED = -1, -2
"""In place of the descriptors of files that are not there."""

TEMPORARY_BYTES = 26
"""A temporary's name and its NUL."""


def _built() -> ModuleType | None:
    try:
        from rdc.files import _batch
    except ImportError:  # a checkout without a compiler: correct, and several times slower
        return None
    return _batch if hasattr(_batch, "stage_small") else None


_extension = _built()


def read_small(root: Root, directory: bytes, listing: PackedListing) -> tuple[bytes, bytes]:
    """The contents of those of `listing`'s files that are still as it says, one after the other, and a byte
    an entry: 1 where it is among them. Nothing about such a file changed while it was read."""
    nothing = b"", bytes(listing.count)
    if _extension is None:
        return nothing
    try:
        fd = root.directory(directory)
    except FileError:
        return nothing
    content, good = _extension.read_small(
        fd.fd, listing.names, listing.sizes, listing.mtimes, listing.total_size
    )
    return content, good


def stage_small(
    root: Root, directory: bytes, listing: PackedListing, content: Buffer, *, owner: bool
) -> StagedFiles | None:
    """Writes the files of `listing` under temporary names in `directory`; their bytes lie one after the other
    in `content`. None: it cannot be done so, or is more than may be written below `root`."""
    size = memoryview(content).nbytes
    if _extension is None or not root.may_spend(size, entries=listing.count):
        return None
    root.spend(directory, size, entries=listing.count)
    try:
        opened = root.directory(directory)
    except FileError:
        return None
    fds, temporaries = _extension.stage_small(
        array("i", [opened.fd]) * listing.count,
        listing.names,
        listing.sizes,
        listing.mtimes,
        listing.modes,
        listing.uids,
        listing.gids,
        owner,
        content,
        os.urandom(4 * listing.count),
        None,
    )
    return StagedFiles(directory, opened, listing.names, fds, temporaries)


@dataclass(frozen=True, slots=True)
class NewVersions:
    """Files that are to be replaced, wherever they are, and what is to be there; columns as in a
    PackedListing."""

    paths: Sequence[bytes]
    expected: Sequence[Identity]
    """What is there, and is not to be replaced once it is something else."""
    modes: bytes
    sizes: bytes
    mtimes: bytes
    uids: bytes
    gids: bytes

    def __len__(self) -> int:
        return len(self.paths)

    def slice(self, first: int, stop: int) -> NewVersions:
        """Files [first, stop)."""
        return NewVersions(
            self.paths[first:stop],
            self.expected[first:stop],
            self.modes[2 * first : 2 * stop],
            self.sizes[8 * first : 8 * stop],
            self.mtimes[8 * first : 8 * stop],
            self.uids[4 * first : 4 * stop],
            self.gids[4 * first : 4 * stop],
        )


def stage_versions(
    root: Root, versions: NewVersions, content: Buffer, *, owner: bool
) -> StagedVersions | None:
    """As `stage_small`, for files of any directories that are to replace others."""
    size = memoryview(content).nbytes
    expected = _columns(versions.expected)
    if _extension is None or expected is None or not root.may_spend(size, entries=len(versions)):
        return None
    parents = [path.rpartition(b"/")[0] for path in versions.paths]
    directories: dict[bytes, Directory] = {}
    try:
        for parent in parents:
            if parent not in directories:
                directories[parent] = root.directory(parent)
    except FileError:
        return None
    root.spend(b"", size, entries=len(versions))
    where = [directories[parent] for parent in parents]
    names = b"".join([path.rpartition(b"/")[2] + b"\0" for path in versions.paths])
    fds, temporaries = _extension.stage_small(
        array("i", [directory.fd for directory in where]),
        names,
        versions.sizes,
        versions.mtimes,
        versions.modes,
        versions.uids,
        versions.gids,
        owner,
        content,
        os.urandom(4 * len(versions)),
        expected,
    )
    return StagedVersions(versions, where, names, expected, fds, temporaries)


def _columns(expected: Sequence[Identity]) -> bytes | None:
    """As the C part wants them; None for times that do not fit."""
    try:
        columns = (
            array("Q", [identity.device for identity in expected]),
            array("Q", [identity.inode for identity in expected]),
            array("Q", [identity.size for identity in expected]),
            array("q", [identity.mtime_ns for identity in expected]),
            array("q", [identity.ctime_ns for identity in expected]),
        )
    except OverflowError:
        return None
    return b"".join(columns)


class StagedFiles:
    """Files of one directory under temporary names, open and locked: many Replacements at once."""

    __slots__ = ("_fds", "_names", "_temporaries", "_unplaced", "directory", "names", "path")

    def __init__(
        self, path: bytes, directory: Directory, names: bytes, fds: bytes, temporaries: bytes
    ) -> None:
        self.path = path
        """Of the directory."""
        self.directory = directory
        self.names = strings(names)
        """Those of all files, also of those that failed."""
        self._names = names
        self._fds = array("i", fds)
        self._temporaries = temporaries
        self._unplaced = set(self.live)
        """Rows whose files have their temporary names."""

    def __len__(self) -> int:
        """Files, those that failed included."""
        return len(self._fds)

    @property
    def failed(self) -> list[int]:
        """Rows of which nothing is there."""
        return [row for row, fd in enumerate(self._fds) if fd == FAILED] if FAILED in self._fds else []

    @property
    def live(self) -> list[int]:
        """Rows that are there."""
        return [row for row, fd in enumerate(self._fds) if fd >= 0]

    def path_of(self, row: int) -> bytes:
        return self.path + b"/" + self.names[row] if self.path else self.names[row]

    def directory_of(self, row: int) -> Directory:
        """The one that holds this file."""
        return self.directory

    def expected(self, row: int) -> Identity | None:
        """What it is to replace."""
        return None

    def places(self) -> list[list[int]]:
        """The rows that are there, by directory."""
        live = self.live
        return [live] if live else []

    def fileno(self, row: int) -> int:
        """Its open descriptor."""
        return self._fds[row]

    def temporary(self, row: int) -> bytes:
        """The name it was given."""
        return self._temporaries[row * TEMPORARY_BYTES : (row + 1) * TEMPORARY_BYTES - 1]

    def place(self, passed_over: Set[int] = frozenset()) -> list[int]:
        """Renames each file but some to its name where nothing has it, or what it is to replace; the rows
        where that failed still have their temporary one."""
        if _extension is None:
            raise RuntimeError("nothing can have been staged")
        fds = self._fds
        if passed_over:
            fds = array("i", [FAILED if row in passed_over else fd for row, fd in enumerate(fds)])
        directories, expected = self._where()
        errors = array(
            "i", _extension.place_small(directories, self._temporaries, self._names, fds, expected)
        )
        failed = [row for row, error in enumerate(errors) if error] if any(errors) else []
        self._unplaced = {*failed, *passed_over}
        return failed

    def _where(self) -> tuple[array[int], bytes | None]:
        """A directory's descriptor for each row, and what is expected there."""
        return array("i", [self.directory.fd]) * len(self), None

    def placed(self, row: int) -> None:
        """Its temporary name is no more: it was renamed by other means."""
        self._unplaced.discard(row)

    def drop(self, row: int) -> None:
        """Remove and close a file that is not to be placed."""
        fd, self._fds[row] = self._fds[row], FAILED
        self._unplaced.discard(row)
        if fd >= 0:
            # Already gone, or litter for a later sweep: its lock goes with the descriptor.
            with suppress(OSError):
                os.unlink(self.temporary(row), dir_fd=self.directory_of(row).fd)
            with suppress(OSError):
                os.close(fd)

    def discard(self) -> None:
        """Close all of them, and remove those that were not placed. Never raises, may be repeated."""
        for row in list(self._unplaced):
            self.drop(row)
        if _extension is not None:
            fds, self._fds = self._fds, array("i", [FAILED]) * len(self._fds)
            _extension.close_files(fds)


class StagedVersions(StagedFiles):
    """Files of any directories under temporary names, to replace others."""

    __slots__ = ("_directories", "_expected", "_versions")

    def __init__(
        self,
        versions: NewVersions,
        directories: Sequence[Directory],
        names: bytes,
        expected: bytes,
        fds: bytes,
        temporaries: bytes,
    ) -> None:
        """`directories`: of each file; `expected`: what they are to replace, in columns."""
        super().__init__(b"", directories[0], names, fds, temporaries)
        self._versions = versions
        self._directories = directories
        self._expected = expected

    @property
    def changed(self) -> list[int]:
        """Rows where another file than was expected is: nothing was written for them."""
        return [row for row, fd in enumerate(self._fds) if fd == NOT_EXPECTED]

    def path_of(self, row: int) -> bytes:
        return self._versions.paths[row]

    def directory_of(self, row: int) -> Directory:
        return self._directories[row]

    def expected(self, row: int) -> Identity | None:
        return self._versions.expected[row]

    def places(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for row in self.live:
            found.setdefault(self._directories[row].fd, []).append(row)
        return list(found.values())

    def _where(self) -> tuple[array[int], bytes | None]:
        return array("i", [directory.fd for directory in self._directories]), self._expected
