"""One file on its way by descent: its bases, how far the comparison is, what is written of it."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from rdc.errors import printable
from rdc.files.source import HeldContent
from rdc.records import dataclass
from rdc.session.rebuild import MismatchError
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.records import SHORT_REFERENCE_BYTES

if TYPE_CHECKING:
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.model.entries import Identity, Metadata
    from rdc.plan.descent import ByteRange, Descent, Part
    from rdc.session.code import Places
    from rdc.session.corrections import Corrections
    from rdc.session.gaps import FileGaps
    from rdc.session.rebuild import Rebuild
    from rdc.signature.tree import SignatureTree

__all__ = ["DescendingFile", "HeldFile", "Stage"]


class Stage(IntEnum):
    """How a file with a base is fetched; each stage runs once."""

    SHORT = 0
    FULL = 1


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A base as it was when it was signed."""

    path: bytes
    identity: Identity
    tree: SignatureTree
    kept: SourceFile | None = None
    """Open since then: its path is going to be another file's."""
    content: bytes = b""
    """All of it, where it is small and there was room to keep it."""

    def open(self, root: Root) -> SourceFile:
        """MismatchError when it changed since it was signed; `check` says that of what is in memory."""
        if self.content:
            return HeldContent(root, self.path, self.identity, self.content)
        if self.kept is not None:
            return self.kept.again()
        source = root.open_read(self.path)
        if source.identity != self.identity:
            source.close()
            raise self._changed()
        return source

    def check(self, root: Root) -> None:
        """MismatchError when what `open` gives from memory is no more at the path: a new version is to
        be made from what it replaces."""
        if self.content and root.identity(self.path) != self.identity:
            raise self._changed()

    def _changed(self) -> MismatchError:
        return MismatchError(self.path, f"{printable(self.path)}: the old file changed while it was used")


class DescendingFile:
    """One file between its TreeRequest and its end."""

    __slots__ = (
        "blank",
        "corrections",
        "descent",
        "estimate",
        "failed",
        "file",
        "gaps",
        "held",
        "known",
        "leftover",
        "listed",
        "listed_size",
        "metadata",
        "open_requests",
        "outgrown",
        "parts",
        "path",
        "places",
        "rebuild",
        "root",
        "size",
        "sources",
        "stage",
        "width",
    )

    def __init__(self, file: int, path: bytes, estimate: int, width: int = SHORT_REFERENCE_BYTES) -> None:
        self.file = file
        self.path = path
        self.estimate = estimate
        """Bytes that its trees take in memory."""
        self.listed: Metadata | None = None
        self.listed_size = 0
        """Metadata and bytes of the new version, as it was listed."""
        self.width = width
        """Bytes of a reference."""
        self.stage = Stage.SHORT
        self.held: list[HeldFile] = []
        """Its bases: the version at its path first, if there is one."""
        self.leftover: HeldFile | None = None
        """Of its bases the one that an interrupted run left."""
        self.descent: Descent | None = None
        self.parts: tuple[Part, ...] = ()
        self.known: tuple[ByteRange, ...] = ()
        """What literals that are on their way are packed with."""
        self.places: Places | None = None
        """Where literals that are on their way belong."""
        self.gaps: FileGaps | None = None
        self.blank = False
        """It was put together from blocks without their targets."""
        self.corrections: Corrections | None = None
        """What the source says of what was found, while its literals are asked for."""
        self.open_requests = 0
        """Answers to come: of blocks, then of ranges."""
        self.rebuild: Rebuild | None = None
        self.sources: list[SourceFile] = []
        self.failed = False
        self.outgrown = False
        """The leftover is gone: what is written holds more by now."""
        self.root = b""
        self.size = 0
        self.metadata: Metadata | None = None

    def escalate(self) -> None:
        """From here on with whole digests."""
        self.stage, self.width = Stage.FULL, DIGEST_BYTES

    def restart(self) -> None:
        """What was written goes; it is to be written again from the same parts."""
        if self.rebuild is not None:
            self.rebuild.temporary.abandon()
        for source in self.sources:
            source.close()
        self.sources = []
        self.rebuild = None

    def release(self) -> None:
        """Gives back what the present attempt holds open."""
        self.restart()
        self.descent = self.gaps = self.places = self.corrections = None
        self.parts = ()
        self.failed = self.blank = False
