"""A file held here, as it was when it was signed: whoever takes bytes of it later gets these, or an error."""

from __future__ import annotations

from rdc.errors import printable
from rdc.files.source import HeldContent
from rdc.records import dataclass
from rdc.session.mismatch import MismatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.model.entries import Identity
    from rdc.signature.tree import SignatureTree

__all__ = ["ChangedBaseError", "SignedFile"]


class ChangedBaseError(MismatchError):
    """A file changed since it was signed: it is to be signed anew."""


@dataclass(frozen=True, slots=True)
class SignedFile:
    """A base of new versions, or what has the content of one."""

    path: bytes
    identity: Identity
    tree: SignatureTree
    kept: SourceFile | None = None
    """Open since then: its path is going to be another file's."""
    content: bytes = b""
    """All of it, where it is small and there was room to keep it."""

    def open(self, root: Root) -> SourceFile:
        """ChangedBaseError when it changed since it was signed; `check` says that of what is in memory."""
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
        """ChangedBaseError when what `open` gives from memory is no more at the path: a new version is to
        be made from what it replaces."""
        if self.content and root.identity(self.path) != self.identity:
            raise self._changed()

    def _changed(self) -> ChangedBaseError:
        return ChangedBaseError(self.path, f"{printable(self.path)}: the old file changed while it was used")
