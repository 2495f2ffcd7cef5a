"""ScannedFile: one file that a scan reads singly, with what fstat and its extents say."""

from __future__ import annotations

from itertools import islice

from rdc.errors import FileError
from rdc.files.facts.extents import holes, shared_bytes
from rdc.limits.searches import SCAN_HOLES
from rdc.survey.count.holes import NO_HOLES, Holes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.objects.object_source import ObjectSource
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Identity
    from rdc.survey.count.fixed_blocks import FixedBlocks
    from rdc.survey.scan.found_files import FoundFile

__all__ = ["ScannedFile", "SharingDevices"]

_SHARING = {0x9123683E, 0x58465342, 0xCA451A4E, 0x7461636F}
"""f_type of btrfs, xfs, bcachefs and ocfs2, which can share extents. On other file systems the query would
cost one system call per file for nothing."""


class SharingDevices:
    """Remembers which devices hold file systems that share extents between files. Threads may share one."""

    def __init__(self) -> None:
        self._known: dict[int, bool] = {0: False}
        """By device. Objects have device 0."""

    def known(self, device: int) -> bool | None:
        """Whether this device holds such a file system. None if none of its files was asked about."""
        return self._known.get(device)

    def has(self, source: SourceFile) -> bool:
        """Whether the open file lies on such a file system."""
        device = source.identity.device
        known = self._known.get(device)
        if known is None:
            from rdc.files.facts.filesystem_id import type_of

            known = self._known[device] = type_of(source.fileno()) in _SHARING
        return known


class ScannedFile:
    """A file to be read. `identity`, `allocated`, `shared` and `holes` are set when it is opened."""

    __slots__ = (
        "_object",
        "_sharing",
        "allocated",
        "blocks",
        "content",
        "found",
        "holes",
        "identity",
        "shared",
    )

    identity: Identity
    """Identity of the opened file."""

    def __init__(self, found: FoundFile, sharing: SharingDevices, blocks: FixedBlocks | None) -> None:
        """`blocks`: receives the content as it is read, unless the file has holes."""
        self._sharing = sharing
        self.found = found
        self.blocks = blocks
        self.allocated = 0
        self.shared = 0
        """Bytes in shared extents."""
        self.holes = NO_HOLES
        self.content: bytes | FileError | None = None
        """What an object has, if it was read with others, or why it could not be read."""
        self._object: ObjectSource | None = None
        """An object that was opened. It has its last ranges in memory, which would be requests."""

    def open(self) -> SourceFile:
        """Opens the file; runs in any thread. Raises FileError."""
        if isinstance(self.content, FileError):
            raise self.content
        source = self.found.open()
        try:
            if source.fileno() < 0:
                self._take_object(source)
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

    def _take_object(self, source: SourceFile) -> None:
        from rdc.files.objects.object_source import ObjectSource

        assert isinstance(source, ObjectSource)  # noqa: S101 - all others have descriptors
        if isinstance(self.content, bytes):
            source.fill(self.content)
        self._object = source

    def read(self, offset: int, length: int) -> bytes | None:
        """Reads content again. None if the file has changed or is gone."""
        if self._object is not None:
            try:
                return self._object.pread(offset, length)
            except FileError:
                return None
        return self.found.read_again(self.identity, offset, length)
