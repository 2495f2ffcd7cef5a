"""Partial files of interrupted runs: bases for the same files in this run, removed at its end.

Only rdc's own temporaries count (rdc.files.base.own_temporary). Other entries with reserved names
stay.
"""

from __future__ import annotations

import contextlib
import os

from rdc.errors import FileError, printable
from rdc.files.base.relative_path import join
from rdc.files.base.temporary_names import OWN_DIRECTORIES, is_temporary_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.replace.distant_replacement import Leftovers
    from rdc.files.replace.partial_directory import PartialDirectory
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.tree.filters import FilterList
    from rdc.tree.selection import Selection

__all__ = ["PartialFiles", "left_alone", "refused_name"]


def _left_out(filters: FilterList, path: bytes) -> bool:
    try:
        return filters.excluded(path, False)
    except FileError:
        return True  # its rules cannot be read, so its directory is left alone, which the run reports


def refused_name(path: bytes) -> str:
    """The message for an entry of the source that is refused because of its name."""
    return (
        f"{printable(path)}: refused, because rdc keeps this form of names for its temporary files; rename it"
        " at the source"
    )


def left_alone(path: bytes) -> str:
    """The message for a local entry that has a reserved name and is not a temporary of rdc."""
    return (
        f"{printable(path)}: left alone: it has the name of a temporary file, but is no copy that rdc was"
        " making; look at it, then rename or remove it"
    )


class PartialFiles:
    """Entries with reserved names that listings found, by directory."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._names: dict[bytes, list[bytes]] = {}
        self.any_found = False
        """Whether any listing found such names. Most runs find none."""
        self._elsewhere: list[Leftovers | PartialDirectory] = []
        if root.writes.distant is not None:
            from rdc.files.replace.distant_replacement import Leftovers

            self._elsewhere.append(Leftovers(root, root.writes.distant))
        if root.writes.partials is not None:
            from rdc.files.replace.partial_directory import PartialDirectory

            if isinstance(root.writes.partials, PartialDirectory):
                self._elsewhere.append(root.writes.partials)
        self.any_found = any(self._elsewhere)
        self._owners: dict[bytes, Leftovers | PartialDirectory] = {}
        """Where each path that begins with a slash is."""

    def note(self, directory: bytes, names: list[bytes]) -> None:
        """Stores the reserved names that a listing found in a directory."""
        self._names[directory] = names
        self.any_found = True

    def of(self, path: bytes) -> bytes | None:
        """Path of the longest partial copy that rdc made of `path`; None if there is none. It begins with a
        slash if the copy is in the directory of --temp-dir or --partial-dir.

        Removes shorter partial copies of the same file.
        """
        for store in self._elsewhere:
            found_there = store.of(path)
            if found_there is not None:
                self._owners[found_there] = store
                return found_there
        if not self._names:
            return None
        from rdc.files.base.own_temporary import is_own_partial

        directory, name = os.path.split(path)
        own = [found for found in self._names.get(directory, ()) if is_temporary_of(found, name)]
        sized = []
        # A temporary hard link to a finished file is no partial copy. The last sweep removes it: removing it
        # now changes the finished file's ctime, which looks like a write by another program.
        for found in own:
            try:
                here = self._root.directory(directory)
                entry = os.stat(found, dir_fd=here.fd, follow_symlinks=False)
                if is_own_partial(found, entry, os.fstat(here.fd)):
                    sized.append((entry.st_size, found))
            except (FileError, OSError):
                continue  # another run finished it
        if not sized:
            return None
        from rdc.files.replace.sweep_temporaries import sweep_temporaries

        sized.sort()
        sweep_temporaries(self._root, directory, [found for _, found in sized[:-1]])
        return join(directory, sized[-1][1])

    def open(self, path: bytes) -> SourceFile:
        """Opens a partial file. Raises FileError."""
        store = self._owners.get(path)
        return self._root.open_read(path) if store is None else store.open(path)

    def remove(self, path: bytes) -> None:
        """Removes one partial file."""
        if path in self._owners:
            self._owners.pop(path).remove([path])
            return
        from rdc.files.replace.sweep_temporaries import sweep_temporaries

        directory, name = os.path.split(path)
        with contextlib.suppress(FileError):
            sweep_temporaries(self._root, directory, [name])
        self._names[directory] = [found for found in self._names.get(directory, ()) if found != name]

    def foreign(
        self, filters: FilterList, *, only: bytes | None, selection: Selection | None = None
    ) -> list[bytes]:
        """Paths of entries with reserved names that are not temporaries of rdc, except excluded ones.

        `only`: the one name that counts in the top directory; None: all count. `selection`: what counts;
        None: all.
        """
        if not self._names:
            return []  # most runs end here and import nothing
        from rdc.files.replace.sweep_temporaries import foreign_names

        found = []
        for directory, names in sorted(self._names.items()):
            try:
                foreign = foreign_names(self._root, directory, names)
            except FileError:
                continue  # the directory vanished
            counted = (
                name
                for name in foreign
                if (directory or (only in (None, name) and name not in OWN_DIRECTORIES))
                and (selection is None or selection.takes(directory, name))
            )
            found += [join(directory, name) for name in counted]
        return [path for path in found if not _left_out(filters, path)]

    def sweep(self) -> None:
        """Removes all remaining temporaries of rdc."""
        for store in self._elsewhere:
            store.remove()
        if not self._names:
            return
        from rdc.files.replace.sweep_temporaries import sweep_temporaries

        for directory, names in self._names.items():
            try:
                sweep_temporaries(self._root, directory, names)
            except FileError:
                continue  # the directory vanished
        self._names = {}
