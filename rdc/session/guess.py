"""Pairs of a new and a vanished file that seem to be one: a digest over all their roots says if they are."""

from __future__ import annotations

from array import array

from blake3 import blake3

from rdc.session.identities import Identities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.model.entries import Identity
    from rdc.session.vanished_contents import VanishedContent

__all__ = ["Guess"]


class Guess:
    """Right for all of its pairs, or of no use: one digest says which."""

    __slots__ = ("_digest", "_identities", "failed", "files", "last", "rows")

    def __init__(self, pairs: Sequence[tuple[int, int]], *, last: bool = False) -> None:
        """`pairs`: files, increasing, and the row of the vanished file that each may be. `last`: what is
        wrong is fetched, without another question."""
        self.last = last
        self.files = array("I", (file for file, _ in pairs))
        self.rows = array("I", (row for _, row in pairs))
        self._identities = Identities()
        """Of the vanished files, as far as they have been read."""
        self._digest = blake3()
        """Over their roots."""
        self.failed = False
        """One of either side cannot be read: the digest says nothing."""

    def add(self, content: VanishedContent) -> None:
        """What is in the next of the vanished files."""
        self._identities.append(content.identity)
        self._digest.update(content.root)

    def drop(self, file: int) -> None:
        """The source cannot read this one: its digest will be of the others."""
        self.failed = True
        at = self.files.index(file)
        del self.files[at], self.rows[at]

    def is_right(self, digest: bytes) -> bool:
        """Whether the source's roots, of which this is the digest, are those that were added."""
        return not self.failed and self._digest.digest() == digest

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.files, self.rows, strict=True)

    def identity(self, at: int) -> Identity:
        """Of the vanished file in pair `at`, as it was when it was read."""
        return self._identities[at]
