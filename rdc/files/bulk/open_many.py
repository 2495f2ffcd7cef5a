"""OpenedFiles: many small files of one tree, opened, read and given metadata together, in C on Linux.

A file that meets any difficulty is left to the caller, who repeats it with SourceFile and Root, which handle
and name every case. So nothing here raises errors for single files. Without the C part this way does not
exist; see `can_open`.
"""

from __future__ import annotations

from array import array
from contextlib import suppress

from rdc.files import _files
from rdc.files.base.descriptor_limit import share_of_descriptors
from rdc.files.depth.depth import RowsSeen
from rdc.files.root.confined_root import NO_ATIME
from rdc.lean.typed import Protocol
from rdc.limits.sessions import OPENED_FILES
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType, TracebackType

    from typing_extensions import Buffer

    from rdc.files.root.root import Root

__all__ = [
    "CHANGED",
    "FAILED",
    "METADATA_SET",
    "MetadataColumns",
    "OpenedFiles",
    "can_open",
    "most_opened",
]

FAILED, METADATA_SET, CHANGED = range(3)
"""Outcomes of `set_metadata`: nothing is known to be done; metadata set; the file is not the one that was
read."""


_extension: ModuleType | None = _files if hasattr(_files, "open_files") else None
"""The C part, which Linux alone has."""


def can_open() -> bool:
    """Return whether the C part exists."""
    return _extension is not None


def most_opened(root: Root | None = None) -> int:
    """Return how many files may be open at a time: OPENED_FILES, or fewer if the descriptor limit is low.

    With `root`, also fewer while it has to be found out how many of its files to open at once.
    """
    most = share_of_descriptors(OPENED_FILES)
    return most if root is None else min(most, root.depths.opening.rows)


class MetadataColumns(Protocol):
    """The wanted metadata of entries, as columns of a PackedListing or a manifest."""

    @property
    def modes(self) -> Buffer: ...
    @property
    def mtimes(self) -> Buffer: ...
    @property
    def uids(self) -> Buffer: ...
    @property
    def gids(self) -> Buffer: ...


class OpenedFiles:
    """Regular files below `root`, each open for reading unless opening it failed.

    `paths` are relative, each followed by NUL. They are checked here, and no link is followed. At most
    `most_opened()` files; more could exhaust the descriptors.
    """

    __slots__ = ("_fds", "ctimes", "devices", "inodes", "mtimes", "paths", "root", "sizes")

    def __init__(self, root: Root, paths: bytes) -> None:
        if _extension is None:
            raise RuntimeError("there is no such way here")
        self.root = root
        self.paths = paths = root.beneath(paths)
        depth = root.depths.opening
        fds, devices, inodes, sizes, mtimes, ctimes, seen = _extension.open_files(
            root.fileno(), paths, depth.now
        )
        self._fds = array("i", fds)
        depth.saw(RowsSeen(*seen))
        if root.reads.keeps_atimes:
            _keep_atimes(self._fds)
        self.devices = array("Q", devices)
        self.inodes = array("Q", inodes)
        self.sizes = array("Q", sizes)
        """Bytes when the file was opened. All columns hold 0 for a file that is not open."""
        self.mtimes = array("q", mtimes)
        self.ctimes = array("q", ctimes)

    def __len__(self) -> int:
        return len(self._fds)

    @property
    def failed(self) -> list[int]:
        """Rows that are not open."""
        return [row for row, fd in enumerate(self._fds) if fd < 0] if -1 in self._fds else []

    def identity(self, row: int) -> Identity:
        """Return the identity of an open row when it was opened."""
        return Identity(
            self.devices[row],
            self.inodes[row],
            self.sizes[row],
            self.mtimes[row],
            self.ctimes[row],
        )

    def read(self, rows: Sequence[int]) -> tuple[bytes, bytes]:
        """Read open rows whole. Return the contents of the unchanged files, joined, and a byte per row: 1 if
        its file is among them.

        A file counts as unchanged if its stat equals the one at opening, before and after the read.
        """
        if _extension is None:
            raise RuntimeError("nothing can have been opened")
        columns = (self._fds, self.sizes, self.mtimes, self.ctimes)
        depth = self.root.depths.reading
        content, good, seen = _extension.read_files(*(_chosen(column, rows) for column in columns), depth.now)
        depth.saw(RowsSeen(*seen))
        return content, good

    def set_metadata(
        self, rows: Sequence[int], entries: Sequence[int], wanted: MetadataColumns, *, owner: bool
    ) -> bytes:
        """Set the metadata of open rows to that of `entries` (one per row) in `wanted`; return an outcome per
        row.

        It does what Root.set_metadata does, but on the open files. FAILED is also the outcome for a file with
        several names whose mtime would change.
        """
        if _extension is None:
            raise RuntimeError("nothing can have been opened")
        if self.root.append_only or self.root.writes.undo is not None or not self.root.writes_in_bulk:
            # The caller repeats each file singly: a refusal names it, and an undo notes it.
            return bytes([FAILED]) * len(rows)
        fds, ctimes = _chosen(self._fds, rows), _chosen(self.ctimes, rows)
        depth = self.root.depths.setting
        columns = (wanted.modes, wanted.mtimes, wanted.uids, wanted.gids)
        outcomes: bytes
        outcomes, seen = _extension.set_metadata_of_files(
            fds, ctimes, array("Q", entries), *columns, owner, depth.now
        )
        depth.saw(RowsSeen(*seen))
        return outcomes

    def close(self) -> None:
        """Close all files. Never raises; may be called again."""
        if _extension is not None:
            fds, self._fds = self._fds, array("i", [-1]) * len(self._fds)
            _extension.close_files(fds)

    def __enter__(self) -> OpenedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _keep_atimes(fds: array[int]) -> None:
    """Have reads of these open files leave their access times, where this process may ask for that."""
    import fcntl

    for fd in fds:
        if fd >= 0:
            with suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | NO_ATIME)


def _chosen(column: array[int], rows: Sequence[int]) -> array[int]:
    """Return increasing rows of a column. Consecutive rows are sliced, without work per row."""
    if rows and rows[-1] - rows[0] == len(rows) - 1:
        return column[rows[0] : rows[-1] + 1]
    return array(column.typecode, [column[row] for row in rows])
