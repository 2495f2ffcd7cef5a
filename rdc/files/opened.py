"""Many small files of one tree held open: read, and then given their metadata. In C, on Linux.

Whatever does not go the usual way is left to the caller, who does that file again by itself with SourceFile
and Root: those know every case and name it. So there are no errors here, and without the C part no files.
"""

from __future__ import annotations

from array import array

from rdc.files.descriptors import share_of_descriptors
from rdc.limits import OPENED_FILES
from rdc.model.entries import Identity
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType, TracebackType

    from typing_extensions import Buffer

    from rdc.files.confined import Root

__all__ = [
    "CHANGED",
    "FAILED",
    "SETTLED",
    "MetadataColumns",
    "OpenedFiles",
    "can_open",
    "most_opened",
]

FAILED, SETTLED, CHANGED = range(3)
"""Outcomes of `settle`: nothing that is known was done; done; the file is not the one that was read."""


def _built() -> ModuleType | None:
    try:
        from rdc.files import _opened
    except ImportError:  # a checkout without a compiler: correct, and several times slower
        return None
    return _opened if hasattr(_opened, "open_files") else None


_extension = _built()


def can_open() -> bool:
    """Whether there is this way at all."""
    return _extension is not None


def most_opened() -> int:
    """How many may be open at a time: OPENED_FILES, or fewer where the limit of descriptors is low."""
    return share_of_descriptors(OPENED_FILES)


class MetadataColumns(Protocol):
    """What entries are to have, as a PackedListing's columns or a manifest's."""

    @property
    def modes(self) -> Buffer: ...
    @property
    def mtimes(self) -> Buffer: ...
    @property
    def uids(self) -> Buffer: ...
    @property
    def gids(self) -> Buffer: ...


class OpenedFiles:
    """Regular files below `root`, each open for reading unless its opening failed.

    `paths`: relative, each followed by NUL; checked here, no link is followed on the way. At most
    `most_opened()`: with more there may be no descriptor left for anybody else.
    """

    __slots__ = ("_fds", "ctimes", "devices", "inodes", "mtimes", "paths", "root", "sizes")

    def __init__(self, root: Root, paths: bytes) -> None:
        if _extension is None:
            raise RuntimeError("there is no such way here")
        self.root = root
        self.paths = paths
        fds, devices, inodes, sizes, mtimes, ctimes = _extension.open_files(root.fileno(), paths)
        self._fds = array("i", fds)
        self.devices = array("Q", devices)
        self.inodes = array("Q", inodes)
        self.sizes = array("Q", sizes)
        """Bytes, when it was opened. Zeros in all columns for a file that is not open."""
        self.mtimes = array("q", mtimes)
        self.ctimes = array("q", ctimes)

    def __len__(self) -> int:
        return len(self._fds)

    @property
    def failed(self) -> list[int]:
        """Rows that are not open."""
        return [row for row, fd in enumerate(self._fds) if fd < 0] if -1 in self._fds else []

    def identity(self, row: int) -> Identity:
        """Of this open file when it was opened."""
        return Identity(
            self.devices[row], self.inodes[row], self.sizes[row], self.mtimes[row], self.ctimes[row]
        )

    def read(self, rows: Sequence[int]) -> tuple[bytes, bytes]:
        """The contents of those of these open rows that are what they were when they were opened, before and
        after, one behind another; and a byte a row: 1 where it is among them."""
        if _extension is None:
            raise RuntimeError("nothing can have been opened")
        columns = (self._fds, self.sizes, self.mtimes, self.ctimes)
        content, good = _extension.read_files(*(_chosen(column, rows) for column in columns))
        return content, good

    def settle(
        self, rows: Sequence[int], entries: Sequence[int], wanted: MetadataColumns, *, owner: bool
    ) -> bytes:
        """Gives these open rows the metadata that `entries`, one a row, have in `wanted`: as
        Root.set_metadata does, but on the files that were read. FAILED, as where a file with several names is
        to get another mtime, SETTLED or CHANGED for each."""
        if _extension is None:
            raise RuntimeError("nothing can have been opened")
        fds, ctimes = _chosen(self._fds, rows), _chosen(self.ctimes, rows)
        outcomes: bytes = _extension.settle_files(
            fds, ctimes, array("Q", entries), wanted.modes, wanted.mtimes, wanted.uids, wanted.gids, owner
        )
        return outcomes

    def close(self) -> None:
        """Never raises, may be repeated."""
        if _extension is not None:
            fds, self._fds = self._fds, array("i", [-1]) * len(self._fds)
            _extension.close_files(fds)

    def __enter__(self) -> OpenedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _chosen(column: array[int], rows: Sequence[int]) -> array[int]:
    """Increasing rows; those that follow each other cost nothing for each."""
    if rows and rows[-1] - rows[0] == len(rows) - 1:
        return column[rows[0] : rows[-1] + 1]
    return array(column.typecode, [column[row] for row in rows])
