"""Directories in which a run changed something, and directories whose metadata it sets at the end."""

from __future__ import annotations

from functools import partial

from rdc.errors import FileError
from rdc.files.base.relative_path import join
from rdc.lean.records import dataclass
from rdc.limits.sessions import CHANGED_PATHS_BYTES, SHORT_PATH
from rdc.model.entries import Kind
from rdc.progress import Problem
from rdc.session.applying.writing_code import writing_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set

    from rdc.files.root.root import Root
    from rdc.model.entries import Metadata
    from rdc.session.runtime.event_relay import EventRelay

__all__ = ["TouchedDirectories"]

CHANGED_PATH_OVERHEAD = 100
"""Bytes that a set needs for each path besides the path itself."""


@dataclass(frozen=True, slots=True)
class _Touched:
    """A directory whose own metadata the run sets at the end."""

    parent: bytes
    """The parent of a long path, which consecutive siblings share; b"" if the path is short."""
    name: bytes
    """The rest of the path; b"" for the root."""
    metadata: Metadata
    made: bool
    """The run made it, so that its mode so far is nobody's choice."""

    @property
    def path(self) -> bytes:
        return join(self.parent, self.name)


class TouchedDirectories:
    """Collects directories in the order in which they were compared: parents before children."""

    def __init__(self) -> None:
        self._touched: list[_Touched] = []
        self._changed: set[bytes] = set()
        self._changed_bytes = 0

    def add(self, path: bytes, metadata: Metadata, *, made: bool) -> None:
        """Sets `metadata` of the directory at the end of the run. `made`: the run made the directory."""
        parent, name = b"", path
        if len(path) > SHORT_PATH:
            parent, _, name = path.rpartition(b"/")
            before = self._touched[-1].parent if self._touched else b""
            parent = before if before == parent else parent
        self._touched.append(_Touched(parent, name, metadata, made))

    def note_changed(self, path: bytes) -> None:
        """Notes that the run changed something in the directory."""
        if self._changed_bytes > CHANGED_PATHS_BYTES:
            return
        self._changed.add(path)
        self._changed_bytes += len(path) + CHANGED_PATH_OVERHEAD
        if self._changed_bytes > CHANGED_PATHS_BYTES:
            self._changed.clear()

    @property
    def changed(self) -> Set[bytes] | None:
        """Directories in which something changed. None: too many to remember."""
        return None if self._changed_bytes > CHANGED_PATHS_BYTES else self._changed

    def set_metadata(self, root: Root, events: EventRelay, *, owner: bool, with_root: bool) -> None:
        """Sets the metadata of all collected directories, children before parents.

        Work in a directory changes its mtime, so this is the last step. `with_root`: False if the root is
        only the directory that holds the one synced entry. What both ends cannot preserve stays as it is.
        """
        storage = root.storage
        for touched in reversed(self._touched):
            path = touched.path
            if path == b"" and not with_root:
                continue
            try:
                if root.may_change(path):
                    chosen = storage.of_made if touched.made else partial(storage.of_directory, path)
                    root.set_metadata(path, Kind.DIRECTORY, touched.metadata, owner=owner, chosen=chosen)
            except FileError as error:
                events.report(Problem(writing_code(error), path, str(error)))
