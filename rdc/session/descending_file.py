"""One file on its way by descent: its bases, and how far it is, compared or already fetched."""

from __future__ import annotations

from enum import IntEnum

from rdc.errors import ProtocolError
from rdc.session.file_comparison import FileComparison
from rdc.session.file_fetch import FileFetch
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.records import SHORT_REFERENCE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.entries import Identity, Metadata
    from rdc.plan.descent import Part
    from rdc.protocol.messages import TreeAnswer
    from rdc.session.signed_file import SignedFile
    from rdc.session.transfer_context import TransferContext

__all__ = ["DescendingFile", "Stage"]


class Stage(IntEnum):
    """How a file with a base is fetched; each stage runs once."""

    SHORT = 0
    FULL = 1


class DescendingFile:
    """One file between its TreeRequest and its end. An attempt is a comparison, then a fetch, never both."""

    __slots__ = (
        "comparison",
        "estimate",
        "failed",
        "fetch",
        "file",
        "held",
        "leftover",
        "listed",
        "listed_size",
        "metadata",
        "open_requests",
        "outgrown",
        "path",
        "root",
        "size",
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
        self.held: list[SignedFile] = []
        """Its bases: the version at its path first, if there is one."""
        self.leftover: SignedFile | None = None
        """Of its bases the one that an interrupted run left."""
        self.outgrown = False
        """The leftover is gone: what is written holds more by now."""
        self.comparison: FileComparison | None = None
        self.fetch: FileFetch | None = None
        self.open_requests = 0
        """Answers to come: of blocks, then of ranges."""
        self.failed = False
        """This attempt is lost, and ends once all answers are here."""
        self.root = b""
        self.size = 0
        self.metadata: Metadata | None = None
        """Of the new version, as it was signed."""

    def compare(self, context: TransferContext, message: TreeAnswer) -> FileComparison:
        """Begins an attempt, with the bases that it has."""
        self.comparison = FileComparison(context, message, self.width, self.held)
        return self.comparison

    def begin_fetch(self, context: TransferContext, parts: Sequence[Part], *, blank: bool = False) -> None:
        """It was compared: `parts` is its recipe, `blank` as FileFetch has it."""
        self.comparison = None
        self.fetch = FileFetch(
            context,
            self.file,
            self.path,
            parts,
            self.held,
            size=self.size,
            root=self.root,
            width=self.width,
            blank=blank,
        )

    def fetching(self) -> FileFetch:
        """ProtocolError where an answer came to what was not asked for."""
        if self.fetch is None:
            raise ProtocolError(f"literals of file {self.file} that were not asked for")
        return self.fetch

    def replaced(self, context: TransferContext) -> Identity | None:
        """What the new version is going to replace: the old one as it was signed, or nothing."""
        first = self.held[0]
        return first.identity if first.path == self.path else context.expected(self.file, self.path)

    def unanswered(self) -> list[int | None]:
        """The requests that were sent, as StaleAnswers has them."""
        nodes = () if self.comparison is None else self.comparison.asked_nodes
        return [*nodes, *[None] * self.open_requests]

    def escalate(self) -> None:
        """From here on with whole digests."""
        self.stage, self.width = Stage.FULL, DIGEST_BYTES

    def release(self) -> None:
        """Gives back what the present attempt holds open."""
        if self.fetch is not None:
            self.fetch.restart()
        self.comparison = self.fetch = None
        self.failed = False
