"""A local file with its signature. Reading it later returns the signed bytes or raises an error."""

from __future__ import annotations

from rdc.errors import printable
from rdc.files.root.memory_file import MemoryFile
from rdc.records import dataclass
from rdc.session.trees.errors import MismatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Identity
    from rdc.signature.tree import SignatureTree

__all__ = ["ChangedBaseError", "SignedFile"]


class ChangedBaseError(MismatchError):
    """A file changed after it was signed. The caller has to sign it again."""


@dataclass(frozen=True, slots=True)
class SignedFile:
    """A base of new versions, or a file with the content of one."""

    path: bytes
    identity: Identity
    tree: SignatureTree
    kept: SourceFile | None = None
    """The file, open since it was signed, because another file will take its path."""
    content: bytes = b""
    """The whole content, if it is small and there was memory for it; else b""."""

    def open(self, root: Root) -> SourceFile:
        """Opens the file. Raises ChangedBaseError if it changed after it was signed.

        Content in memory is not checked here; see `check`.
        """
        if self.content:
            return MemoryFile(root, self.path, self.identity, self.content)
        if self.kept is not None:
            return self.kept.again()
        source = root.open_read(self.path)
        if source.identity != self.identity:
            source.close()
            raise self._changed()
        return source

    def check(self, root: Root) -> None:
        """Raises ChangedBaseError if the content in memory is no longer the content at the path.

        A new version must be made from the file that it replaces.
        """
        if self.content and root.identity(self.path) != self.identity:
            raise self._changed()

    def _changed(self) -> ChangedBaseError:
        return ChangedBaseError(self.path, f"{printable(self.path)}: the old file changed while it was used")
