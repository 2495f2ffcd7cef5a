"""A guess that some new files are renamed removed files; one digest over all their roots confirms it."""

from __future__ import annotations

from array import array

from blake3 import blake3

from rdc.model.entries import Identity, IdentityColumns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.session.renames.removed_contents import RemovedContent

__all__ = ["RenameGuess"]


class RenameGuess:
    """Pairs of a new and a removed file. One digest tells whether all pairs are right."""

    __slots__ = ("_digest", "_identities", "failed", "files", "last", "rows")

    def __init__(self, pairs: Sequence[tuple[int, int]], *, last: bool = False) -> None:
        """`pairs`: new files, increasing, and the row of a removed file for each. `last`: if the guess is
        wrong, its files are fetched without another request."""
        self.last = last
        self.files = array("I", (file for file, _ in pairs))
        self.rows = array("I", (row for _, row in pairs))
        self._identities = IdentityColumns()
        """Identities of the removed files that were read so far."""
        self._digest = blake3()
        """The digest over their roots."""
        self.failed = False
        """A file of either side cannot be read, so the digest cannot confirm the guess."""

    def add(self, content: RemovedContent) -> None:
        """Adds the content of the next removed file."""
        self._identities.append(content.identity)
        self._digest.update(content.root)

    def drop(self, file: int) -> None:
        """Removes a file that the source cannot read: its digest will be over the others."""
        self.failed = True
        at = self.files.index(file)
        del self.files[at], self.rows[at]

    def is_right(self, digest: bytes) -> bool:
        """Tells whether the source's digest equals the one over the added contents."""
        return not self.failed and self._digest.digest() == digest

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.files, self.rows, strict=True)

    def identity(self, at: int) -> Identity:
        """Returns the identity of the removed file in pair `at` when it was read."""
        return self._identities[at]
