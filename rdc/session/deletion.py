"""Removes what the source does not have: last of all, guarded, one entry at a time."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, printable
from rdc.files.sweep import sweep
from rdc.model.entries import Kind
from rdc.plan.itemize import DELETING
from rdc.progress import ItemChanged, Problem
from rdc.session.rights import lend_rights
from rdc.tree.walk import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.confined import Root
    from rdc.session.boundary import Boundary
    from rdc.session.news import News
    from rdc.tree.filters import FilterList

__all__ = ["Deletion"]


class _Frame:
    """A directory being emptied; `gone`: so far nothing stayed in it."""

    __slots__ = ("children", "gone", "path")

    def __init__(self, path: bytes, children: Iterator[tuple[bytes, int]], *, gone: bool) -> None:
        self.path = path
        self.children = children
        self.gone = gone


class Deletion:
    """Deletes paths and what is below them; entries that a filter rule excludes stay, and so do the
    directories that hold one. Stops at `limit` entries with exit code 25.
    """

    def __init__(
        self,
        root: Root,
        filters: FilterList,
        news: News,
        *,
        limit: int | None,
        dry: bool,
        boundary: Boundary | None = None,
    ) -> None:
        """`boundary`: nothing is deleted beyond it."""
        self._root = root
        self._filters = filters
        self._news = news
        self._limit = limit
        self._dry = dry
        self._boundary = boundary
        self._spared: set[bytes] = set()
        self.deleted = 0
        self.refused = 0

    def spare(self, path: bytes) -> None:
        """In a dry run: this file would have become another one by then."""
        self._spared.add(path)

    def remove(self, path: bytes, kind: int) -> bool:
        """True when nothing is left at `path` (in a dry run: would be)."""
        if self._filters.excluded(path, kind == Kind.DIRECTORY):
            return False
        if kind == Kind.DIRECTORY and not self.empty(path):
            return False
        return self._remove_one(path, kind)

    def empty(self, path: bytes) -> bool:
        """Removes what is in a directory; True when nothing is left in it.

        A stack instead of recursion: depth is the tree's, which anybody may have made.
        """
        stack = [self._enter(path)]
        while True:
            frame = stack[-1]
            child = next(frame.children, None)
            if child is None:
                stack.pop()
                if not stack:
                    return frame.gone
                if not (frame.gone and self._remove_one(frame.path, Kind.DIRECTORY)):
                    stack[-1].gone = False
            elif self._filters.excluded(child[0], child[1] == Kind.DIRECTORY):
                frame.gone = False
            elif child[1] == Kind.DIRECTORY:
                stack.append(self._enter(child[0]))
            elif not self._remove_one(*child):
                frame.gone = False

    def _enter(self, path: bytes) -> _Frame:
        try:
            if self._boundary is not None and not self._boundary.holds(path):
                text = f"{printable(path)}: kept, it lies on another file system"
                self._news.report(Problem(ExitCode.OK, path, text))
                return _Frame(path, iter(()), gone=False)
            stale: list[bytes] = []
            if not self._dry:
                lend_rights(self._root, path)
            listing = self._root.list(path, on_temporary=stale.append)
            if stale and not self._dry:
                sweep(self._root, path, stale)
        except FileError as error:
            if error.code is not ExitCode.VANISHED:
                self._news.report(Problem(error.code, path, str(error)))
                return _Frame(path, iter(()), gone=False)
            return _Frame(path, iter(()), gone=True)
        children = ((join(path, name), kind) for name, kind in zip(listing.names, listing.kinds, strict=True))
        return _Frame(path, children, gone=True)

    def _remove_one(self, path: bytes, kind: int) -> bool:
        if path in self._spared:
            return True
        if self._limit is not None and self.deleted >= self._limit:
            self.refused += 1
            return False
        remove = self._root.remove_directory if kind == Kind.DIRECTORY else self._root.remove_file
        try:
            if not self._dry and not remove(path):
                return True  # it was moved, or somebody else was faster
        except FileError as error:
            self._news.report(Problem(error.code, path, str(error)))
            return False
        self.deleted += 1
        self._news.report(ItemChanged(DELETING, path + b"/" if kind == Kind.DIRECTORY else path))
        return True

    def finish(self) -> None:
        """Names what the limit kept from being deleted."""
        if self.refused:
            text = f"{self.refused} more entries were not deleted: the limit is {self._limit} (--max-delete)"
            self._news.report(Problem(ExitCode.MAX_DELETE, b"", text))
