"""What is here and not at the source: deleted at the end if it is to be, made new files from before."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError
from rdc.limits import VANISHED_FILES
from rdc.model.entries import Kind
from rdc.progress import Problem
from rdc.tree.walk import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.confined import Root
    from rdc.model.entries import Listing
    from rdc.model.sync import SyncOptions
    from rdc.session.boundary import Boundary
    from rdc.session.deletion import Deletion
    from rdc.session.news import News
    from rdc.tree.filters import FilterList

__all__ = ["Extras"]


class Extras:
    """Collected while directories are compared. All of them go or none: whatever makes the source look as if
    it had lost them by accident keeps them all."""

    def __init__(
        self,
        root: Root,
        options: SyncOptions,
        filters: FilterList,
        deletion: Deletion,
        news: News,
        *,
        single: bool,
        boundary: Boundary | None = None,
    ) -> None:
        """`single`: one entry is synced, not what is in a directory. `boundary`: what is beyond it is not
        extra."""
        self._root = root
        self._options = options
        self._filters = filters
        self._deletion = deletion
        self._news = news
        self._single = single
        self._boundary = boundary
        self.found: list[tuple[bytes, int]] = []
        """Path and kind of each; what is below a directory is not named."""
        self.stay = False
        """Something was found that differs and stays so: what was not deleted, or what the options leave
        alone."""

    def add(self, path: bytes, held: Listing, rows: Sequence[int]) -> None:
        """These rows of the directory at `path`; without --delete at most VANISHED_FILES, which are for new
        files to be made from."""
        room = self._options.delete or len(self.found) < VANISHED_FILES
        if room and (self._boundary is None or self._holds(self._boundary, path)):
            self.found += [(join(path, held.names[row]), held.kinds[row]) for row in rows]
            self.stay = self.stay or not self._options.delete
        else:
            self.stay = True

    @staticmethod
    def _holds(boundary: Boundary, path: bytes) -> bool:
        try:
            return boundary.holds(path)
        except FileError:
            return False  # gone meanwhile: nothing of it is to be deleted

    def may_go(self, entries: int, read_errors: int) -> bool:
        """Whether they go (in a dry run: would), so that they may become something else instead. `entries`,
        `read_errors`: of the source."""
        return self._options.delete and not (read_errors or self._seems_lost(entries))

    def delete(self, entries: int, read_errors: int) -> None:
        """Removes them, unless the source, of so many entries, makes that look like an accident."""
        if read_errors:
            errors = f"{read_errors:,} error{'s' * (read_errors != 1)}"
            self._refuse(f"the source could not be read completely ({errors})")
        elif self._seems_lost(entries):
            self._refuse("the source is empty; --force-empty deletes all the same")
        else:
            for path, kind in self.found:
                if not self._deletion.remove(path, kind):
                    self.stay = True

    def _seems_lost(self, entries: int) -> bool:
        """The source has nothing in it: perhaps a file system that is not mounted."""
        return entries <= self._single and not self._options.force_empty

    def _refuse(self, why: str) -> None:
        excluded = self._filters.excluded
        if any(not excluded(path, kind == Kind.DIRECTORY) for path, kind in self.found):
            self._news.report(Problem(ExitCode.PARTIAL, b"", f"nothing was deleted: {why}"))

    def make_way(self, path: bytes, read_errors: int) -> str | None:
        """Empties the directory at `path`, which its successor then replaces in one step; or why not."""
        try:
            if not self._root.list_packed(path).count:
                return None
        except FileError as error:
            if not self._options.delete:
                return f"which cannot be read: {error}"
            # It may be closed to its owner alone: emptying it opens it, or says why not.
        if not self._options.delete:
            return "and it is not empty; --delete removes it"
        if read_errors:
            return "and stays because the source could not be read completely"
        if not self._deletion.empty(path):
            why = "a filter rule, another file system, --max-delete, or an error"
            return f"and what is left in it was not to be deleted ({why})"
        return None
