"""What interrupted runs left of files: bases for the same files now, removed once the run is through."""

from __future__ import annotations

import contextlib
import os

from rdc.errors import FileError
from rdc.files.sweep import sweep
from rdc.files.temporary import is_temporary_of
from rdc.tree.walk import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root

__all__ = ["Leftovers"]


class Leftovers:
    """Stale temporaries met on the way, by directory."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._names: dict[bytes, list[bytes]] = {}

    def note(self, directory: bytes, names: list[bytes]) -> None:
        """Takes the temporaries that a listing found in a directory."""
        self._names[directory] = names

    def of(self, path: bytes) -> bytes | None:
        """Path of the longest temporary that was to become `path`; None: there is none. Its others go."""
        if not self._names:
            return None
        directory, name = os.path.split(path)
        mine = [found for found in self._names.get(directory, ()) if is_temporary_of(found, name)]
        sized = []
        for found in mine:
            try:
                if self._root.link_count(join(directory, found)) > 1:
                    # A hard link on its way, to a file that is in place: it goes with the last sweep, because
                    # that file's ctime tells of it, which would look like a change while that is replaced.
                    continue
                sized.append((self._root.identity(join(directory, found)).size, found))
            except FileError:
                continue  # somebody else's run has finished it
        if not sized:
            return None
        sized.sort()
        sweep(self._root, directory, [found for _, found in sized[:-1]])
        return join(directory, sized[-1][1])

    def remove(self, path: bytes) -> None:
        """One that is of no more use."""
        directory, name = os.path.split(path)
        with contextlib.suppress(FileError):
            sweep(self._root, directory, [name])
        self._names[directory] = [found for found in self._names.get(directory, ()) if found != name]

    def sweep(self) -> None:
        """Removes all of them: nothing needs them any more."""
        for directory, names in self._names.items():
            try:
                sweep(self._root, directory, names)
            except FileError:
                continue  # gone with its directory
        self._names = {}
