"""Contents of removed files: each is signed at its first use, and cached within bounds."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.lean.records import dataclass
from rdc.limits.sessions import SIGNED_RENAME_CANDIDATES
from rdc.session.transfer.bases import SignedFile, sign_file
from rdc.signature.codec import SHORT_REFERENCE_BYTES, root_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Identity
    from rdc.session.renames.removed_files import RemovedFiles
    from rdc.session.runtime.commands import Conversation
    from rdc.session.transfer.destination import Destination
    from rdc.tree.manifest import Entry

__all__ = ["RemovedContent", "RemovedContents"]

TINY_BYTES = 64
"""Requesting the root of a smaller file costs about as much as its content."""

SAME_SIZE_LOOKS = 16
"""Removed files of one size that are signed for one new file."""


@dataclass(frozen=True, slots=True)
class RemovedContent:
    """Root and traits of a removed file, and its identity when it was read."""

    identity: Identity
    root: bytes
    traits: bytes


class RemovedContents:
    """Contents by row in RemovedFiles. At most SIGNED_RENAME_CANDIDATES are
    cached; others are signed again each time."""

    def __init__(self, context: Destination, removed_files: RemovedFiles) -> None:
        self._context = context
        self._removed = removed_files
        self._signed: dict[int, RemovedContent] = {}

    def __contains__(self, row: int) -> bool:
        """Tells whether a content is cached."""
        return row in self._signed

    def sign(self, row: int, round_: int) -> Conversation[RemovedContent | None]:
        """Returns the content of a removed file, or None if it cannot be read."""
        signed = self._signed.get(row)
        if signed is None:
            file = yield from self.signed(row, round_)
            if file is None:
                return None
            signed = RemovedContent(file.identity, file.tree.root, file.tree.traits)
            if len(self._signed) < SIGNED_RENAME_CANDIDATES:
                self._signed[row] = signed
        return signed

    def signed(self, row: int, round_: int) -> Conversation[SignedFile | None]:
        """Signs the current version of a removed file. Returns None if it cannot be read."""
        path = self._removed[row].path
        try:
            with self._context.root.open_read(path) as source:
                tree = yield from sign_file(self._context, source, 0, round_)
                return SignedFile(path, source.identity, tree)
        except FileError:
            return None

    def may_have(self, entry: Entry) -> bool:
        """Tells whether a removed file has the size of this new one, and requesting a root pays."""
        return entry.size >= TINY_BYTES and bool(self._removed.of_size(entry.size, 1))

    def twin(self, size: int, reference: bytes, round_: int) -> Conversation[int | None]:
        """Returns the row of a removed file with this size in bytes and this short root, or None."""
        for row in self._removed.of_size(size, SAME_SIZE_LOOKS):
            signed = yield from self.sign(row, round_)
            if (
                signed
                and root_reference(signed.root, self._context.secret, SHORT_REFERENCE_BYTES) == reference
            ):
                return row
        return None
