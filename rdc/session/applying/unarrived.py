"""Names that the destination lacked and that did not arrive. While there are some, nothing is deleted.

A new name may be that of a file that was moved at the source. If its content cannot be read, written or
verified, the old name at the destination has the last copy.

What counts is the destination itself, not the kind of problem: if a problem with an entry was reported, and
the destination has nothing of its kind at its path when deletions are due, the entry did not arrive; nor did
a new file if a file of another size is there, which somebody else put there. A changed file that failed keeps
its old version, and a file whose metadata failed is there.
"""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.temporary_names import refused_component
from rdc.model.entries import NODES, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.progress import Problem
    from rdc.session.landing.file_commits import FileCommits
    from rdc.tree.manifest import Manifest

__all__ = ["Unarrived", "incomplete"]

_NO_MATTER = {ExitCode.OK, ExitCode.VANISHED, ExitCode.MAX_DELETE}
"""Codes of notices, of source files that vanished or changed while they were read, and of deletions."""


def incomplete(read_errors: int) -> str | None:
    """Why nothing may be deleted after so many read errors of the source; None: there were none."""
    if not read_errors:
        return None
    return f"the source could not be read completely ({read_errors:,} error{'s' * (read_errors != 1)})"


class Unarrived:
    """Collects the problems of one comparison at the destination."""

    def __init__(
        self, root: Root, wanted: Manifest, landing: FileCommits, *, earlier: str | None = None
    ) -> None:
        """`wanted`: the source's entries. `landing`: knows which files are new. `earlier`: why nothing might
        be deleted in an earlier turn of the session; None: nothing was withheld since the last comparison of
        whole trees."""
        self._root = root
        self._wanted = wanted
        self._landing = landing
        self._earlier = earlier
        self._rows: set[int] = set()
        """Of entries with problems."""
        self._unread: set[bytes] = set()
        """Directories of which it is not known what they lack."""

    def note(self, problem: Problem) -> None:
        """Takes a problem of this side. Reserved names never arrive, as if a rule left them out."""
        if problem.code not in _NO_MATTER and refused_component(problem.path) is None:
            row = self._wanted.row(problem.path)
            if row is not None:
                self._rows.add(row)

    def note_unread(self, directory: bytes) -> None:
        """The source has entries in a directory that cannot be listed here."""
        self._unread.add(directory)

    def reason(self) -> str | None:
        """Why nothing may be deleted now; None: every new name arrived."""
        missing = [path for row in sorted(self._rows) if (path := self._missing(row)) is not None]
        count = len(missing) + len(self._unread)
        if not count:
            return None if self._earlier is None else f"an earlier turn was incomplete: {self._earlier}"
        if not missing:
            shown = printable(self._root.shown(min(self._unread)))
            return f"what is new in {shown} did not arrive"
        shown = printable(self._root.shown(missing[0]))
        return (
            f"{count:,} new entries did not arrive, such as {shown}"
            if count > 1
            else (f"a new entry did not arrive, {shown}")
        )

    def _missing(self, row: int) -> bytes | None:
        """The path of an entry if nothing of its kind is there, or if that cannot be told."""
        entry = self._wanted.entry(row)
        path, kind = entry.path, Kind.SPECIAL if entry.kind in NODES else entry.kind
        try:
            if kind == Kind.DIRECTORY:
                self._root.directory(path, fresh=True)  # it may be reached by a link that stands for it
                return None
            if self._root.kind(path) != kind:
                return path
            if kind == Kind.FILE and self._landing.is_new(row):
                size, _ = self._landing.landed(row) or (entry.size, 0)
                return None if self._root.identity(path).size == size else path
            return None
        except FileError:
            return path
