"""Small files of one directory in bulk: read to be sent, or written aside for a CommitGroup. In C, on Linux.

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
from rdc.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from typing_extensions import Buffer

    from rdc.files.confined import Root
    from rdc.files.directory import Directory
    from rdc.model.entries import PackedListing

__all__ = ["StagedFiles", "read_small", "stage_small"]

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
        opened.fd,
        listing.names,
        listing.sizes,
        listing.mtimes,
        listing.modes,
        listing.uids,
        listing.gids,
        owner,
        content,
        os.urandom(4 * listing.count),
    )
    return StagedFiles(directory, opened, listing, fds, temporaries)


class StagedFiles:
    """Files of one directory under temporary names, open and locked: many Replacements at once."""

    __slots__ = ("_fds", "_names", "_temporaries", "_unplaced", "directory", "names", "path")

    def __init__(
        self, path: bytes, directory: Directory, listing: PackedListing, fds: bytes, temporaries: bytes
    ) -> None:
        self.path = path
        """Of the directory."""
        self.directory = directory
        self.names = strings(listing.names)
        """Those of all files, also of those that failed."""
        self._names = listing.names
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
        return [row for row, fd in enumerate(self._fds) if fd < 0] if -1 in self._fds else []

    @property
    def live(self) -> list[int]:
        """Rows that are there."""
        return [row for row, fd in enumerate(self._fds) if fd >= 0]

    def path_of(self, row: int) -> bytes:
        return self.path + b"/" + self.names[row] if self.path else self.names[row]

    def fileno(self, row: int) -> int:
        """Its open descriptor."""
        return self._fds[row]

    def temporary(self, row: int) -> bytes:
        """The name it was given."""
        return self._temporaries[row * TEMPORARY_BYTES : (row + 1) * TEMPORARY_BYTES - 1]

    def place(self) -> list[int]:
        """Renames each file to its name where nothing has it; the rows where that failed still have their
        temporary one."""
        if _extension is None:
            raise RuntimeError("nothing can have been staged")
        errors = array(
            "i", _extension.place_small(self.directory.fd, self._temporaries, self._names, self._fds)
        )
        failed = [row for row, error in enumerate(errors) if error] if any(errors) else []
        self._unplaced = set(failed)
        return failed

    def placed(self, row: int) -> None:
        """Its temporary name is no more: it was renamed by other means."""
        self._unplaced.discard(row)

    def drop(self, row: int) -> None:
        """Remove and close a file that is not to be placed."""
        fd, self._fds[row] = self._fds[row], -1
        self._unplaced.discard(row)
        if fd >= 0:
            # Already gone, or litter for a later sweep: its lock goes with the descriptor.
            with suppress(OSError):
                os.unlink(self.temporary(row), dir_fd=self.directory.fd)
            with suppress(OSError):
                os.close(fd)

    def discard(self) -> None:
        """Close all of them, and remove those that were not placed. Never raises, may be repeated."""
        for row in list(self._unplaced):
            self.drop(row)
        if _extension is not None:
            fds, self._fds = self._fds, array("i", [-1]) * len(self._fds)
            _extension.close_files(fds)
