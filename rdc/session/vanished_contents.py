"""What is in the files that vanished: signed when it is first asked for, and remembered within bounds."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.limits import SIGNED_KIN
from rdc.records import dataclass
from rdc.session.signed_file import SignedFile
from rdc.signature.records import SHORT_REFERENCE_BYTES, root_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Identity
    from rdc.session.commands import Conversation
    from rdc.session.transfer_context import TransferContext
    from rdc.session.vanished import Vanished
    from rdc.tree.manifest import Entry

__all__ = ["VanishedContent", "VanishedContents"]

TINY_BYTES = 64
"""Below, a file's content costs about what asking for its root does."""

SAME_SIZE_LOOKS = 16
"""Files of one size that are looked into for one new file."""


@dataclass(frozen=True, slots=True)
class VanishedContent:
    """A vanished file as it was when it was read."""

    identity: Identity
    root: bytes
    traits: bytes


class VanishedContents:
    """Of at most SIGNED_KIN files, by their row; of further ones it is found anew each time."""

    def __init__(self, context: TransferContext, vanished: Vanished) -> None:
        self._context = context
        self._vanished = vanished
        self._signed: dict[int, VanishedContent] = {}

    def __contains__(self, row: int) -> bool:
        """It is remembered."""
        return row in self._signed

    def sign(self, row: int, round_: int) -> Conversation[VanishedContent | None]:
        """None: it cannot be read any more."""
        signed = self._signed.get(row)
        if signed is None:
            held = yield from self.held(row, round_)
            if held is None:
                return None
            signed = VanishedContent(held.identity, held.tree.root, held.tree.traits)
            if len(self._signed) < SIGNED_KIN:
                self._signed[row] = signed
        return signed

    def held(self, row: int, round_: int) -> Conversation[SignedFile | None]:
        """As it is now, with its tree. None: it cannot be read any more."""
        path = self._vanished[row].path
        try:
            with self._context.root.open_read(path) as source:
                tree = yield from self._context.sign(source, 0, round_)
                return SignedFile(path, source.identity, tree)
        except FileError:
            return None

    def may_have(self, entry: Entry) -> bool:
        """Whether one has the size of this new file, and asking for that one's root pays."""
        return entry.size >= TINY_BYTES and bool(self._vanished.of_size(entry.size, 1))

    def twin(self, size: int, reference: bytes, round_: int) -> Conversation[int | None]:
        """The row of a vanished file with this size and short root."""
        for row in self._vanished.of_size(size, SAME_SIZE_LOOKS):
            signed = yield from self.sign(row, round_)
            if (
                signed
                and root_reference(signed.root, self._context.secret, SHORT_REFERENCE_BYTES) == reference
            ):
                return row
        return None
