"""Guesses: bounds what a source may find out of local files by fingerprints that it made up.

A destination looks for a source's fingerprints in its own files, and asks for the ranges that it did not
find. So a source that has no such content learns which of its guesses are here. An honest one has the
content: its claims hold, but for false matches, and its files come out right. One whose claims or files fail
too often gets no more answers of that kind from the file that it guessed about, and then from none:
everything else comes whole.
"""

from __future__ import annotations

from rdc.limits.sessions import FAILED_FILES, FAILED_OF_BASE, WRONG_CELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Guesses"]


class Guesses:
    """What was claimed in a session, and what of that did not hold."""

    def __init__(self) -> None:
        self._claimed: dict[bytes, int] = {}
        self._wrong: dict[bytes, int] = {}
        """Check blocks, by path of the base. Bases without a wrong one are not kept in the second."""
        self._failed: dict[bytes, int] = {}
        """Attempts, by path of the base."""
        self._failures = 0
        self._all_claimed = self._all_wrong = 0

    @property
    def spent(self) -> bool:
        """Whether no local file is to be compared any more in this session."""
        if self._failures >= FAILED_FILES:
            return True
        return self._all_wrong > 0 and _too_many(self._all_wrong, self._all_claimed)

    def is_spent(self, path: bytes) -> bool:
        """Whether the local file at `path` is not to be compared any more."""
        if self.spent or self._failed.get(path, 0) >= FAILED_OF_BASE:
            return True
        wrong = self._wrong.get(path, 0)
        return wrong > 0 and _too_many(wrong, self._claimed.get(path, 0))

    def claimed(self, paths: Iterable[bytes], cells: int) -> None:
        """Notes that so many check blocks with content of the files at `paths` were claimed."""
        for path in paths if cells else ():
            self._claimed[path] = self._claimed.get(path, 0) + cells
        self._all_claimed += cells

    def wrong(self, paths: Iterable[bytes], cells: int) -> None:
        """Notes that the source corrected so many of them."""
        for path in paths:
            self._wrong[path] = self._wrong.get(path, 0) + cells
        self._all_wrong += cells

    def failed(self, paths: Iterable[bytes]) -> None:
        """Notes that what was made with content of the files at `paths` did not have the announced digest."""
        self._failures += 1
        for path in paths:
            self._failed[path] = self._failed.get(path, 0) + 1


def _too_many(wrong: int, claimed: int) -> bool:
    """Whether more is wrong than an honest source's false matches are."""
    return wrong > WRONG_CELLS and 2 * wrong > claimed
