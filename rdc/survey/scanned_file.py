"""One file that a scan reads by itself, with what was seen of it when it was opened."""

from __future__ import annotations

from itertools import islice

from rdc.files.extents import holes, shared_bytes
from rdc.limits import SCAN_HOLES
from rdc.survey.holes import NO_HOLES, Holes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.source import SourceFile
    from rdc.model.entries import Identity
    from rdc.survey.fixed import FixedBlocks
    from rdc.survey.found import FoundFile

__all__ = ["ScannedFile", "SharingDevices"]

_SHARING = {0x9123683E, 0x58465342, 0xCA451A4E, 0x7461636F}
"""f_type of btrfs, xfs, bcachefs, ocfs2: where extents can be shared. Elsewhere the question costs a system
call a file for nothing."""


class SharingDevices:
    """Which devices hold file systems that share extents between files. Threads may ask side by side."""

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}

    def has(self, source: SourceFile) -> bool:
        """Whether the open file lies on such a one."""
        device = source.identity.device
        known = self._known.get(device)
        if known is None:
            from rdc.files.filesystem import type_of

            known = self._known[device] = type_of(source.fileno()) in _SHARING
        return known


class ScannedFile:
    """Before it is opened nothing is known but what was found."""

    __slots__ = ("_sharing", "allocated", "blocks", "found", "holes", "identity", "shared")

    identity: Identity
    """Of the file that was opened."""

    def __init__(self, found: FoundFile, sharing: SharingDevices, blocks: FixedBlocks | None) -> None:
        """`blocks`: takes its content as it is read, where it has no holes."""
        self._sharing = sharing
        self.found = found
        self.blocks = blocks
        self.allocated = 0
        self.shared = 0
        """Bytes in shared extents."""
        self.holes = NO_HOLES

    def open(self) -> SourceFile:
        """Raises FileError. Called in any thread."""
        source = self.found.open()
        try:
            self.identity = source.identity
            self.allocated = source.allocated
            if source.allocated < source.size:
                self.holes = Holes(islice(holes(source.fileno(), source.size), SCAN_HOLES))
            if self.blocks is not None and not self.holes:
                source.on_span = self.blocks.span
            if self._sharing.has(source):
                self.shared = shared_bytes(source.fileno())
        except BaseException:
            source.close()
            raise
        return source

    def read(self, offset: int, length: int) -> bytes | None:
        """Content once more, while the file is what it was."""
        return self.found.read_again(self.identity, offset, length)
