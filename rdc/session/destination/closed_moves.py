"""Closes entries that a turn renames out of directories that kept users out.

A turn announces renames before other changes. At the source, a file that only its directory protected may
have got a narrower mode before it was moved. The destination would expose the file in its new place until
the turn announces that mode, so the file stays closed until the turn has announced everything.
"""

from __future__ import annotations

import stat

from rdc.errors import FileError
from rdc.files.base.relative_path import join
from rdc.lean.records import replace
from rdc.model.entries import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.entries import Listing, Metadata

__all__ = ["ClosedMoves"]

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_READ_AND_SEARCH = 0o055
"""The bits of a directory that hides nothing from its group and others."""


class ClosedMoves:
    """The closed entries of one turn. They have no permission bits for group and others."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._modes: dict[bytes, int] = {}
        """For each closed path, the mode that it gets when the turn has announced everything."""

    def closed(self, found: Metadata, old: bytes, new: bytes) -> Metadata:
        """The metadata for an entry that is renamed from `old` to `new`: closed if a directory hid it.

        `found`: its metadata now. Raises FileError.
        """
        above = set(_directories_above(new))
        hidden = any(
            self._root.metadata(path).mode & _READ_AND_SEARCH != _READ_AND_SEARCH
            for path in _directories_above(old)
            if path not in above
        )
        return replace(found, mode=found.mode & ~_OTHERS) if hidden else found

    def renamed(self, old: bytes, new: bytes, found: Metadata, closed: Metadata) -> None:
        """Notes that an entry was renamed with everything below it.

        `found`: its metadata before; `closed`: its metadata now.
        """
        below = old + b"/"
        for path in [path for path in self._modes if path == old or path.startswith(below)]:
            self._modes[new + path[len(old) :]] = self._modes.pop(path)
        if closed != found:
            self._modes.setdefault(new, found.mode)

    def unclosed(self, directory: bytes, existing: Listing) -> Listing:
        """The listing `existing` of a directory, with the modes that closed entries had before."""
        if not self._modes:
            return existing
        modes = existing.modes[:]
        for row, name in enumerate(existing.names):
            modes[row] = self._modes.get(join(directory, name), modes[row])
        return replace(existing, modes=modes)

    def note_announced(
        self, directory: bytes, metadata: Metadata, listing: Listing, existing: Listing
    ) -> None:
        """Notes the modes that the source announced for a directory and some of its entries.

        `existing`: the destination's listing of the directory.
        """
        if not self._modes:
            return
        if directory in self._modes:
            self._modes[directory] = metadata.mode
        here = {name: row for row, name in enumerate(existing.names)}
        for row, name in enumerate(listing.names):
            path = join(directory, name)
            if path in self._modes and name in here:
                self._modes[path] = listing.modes[row]
                if listing.kinds[row] == Kind.FILE and not _is_current(listing, row, existing, here[name]):
                    del self._modes[path]  # new content will replace this file, so it stays closed

    def open(self) -> None:
        """Gives each closed entry that still exists its mode. The turn has announced everything."""
        modes, self._modes = self._modes, {}
        for path, mode in modes.items():
            try:
                kind = self._root.kind(path)
                if kind is not None:
                    metadata = replace(self._root.metadata(path), mode=mode)
                    self._root.set_metadata(path, kind, metadata, owner=False)
            except FileError:
                continue  # the entry vanished or now belongs to another user, so this turn did not close it


def _directories_above(path: bytes) -> list[bytes]:
    """The directories above `path`, without the root."""
    names = path.split(b"/")
    return [b"/".join(names[:count]) for count in range(1, len(names))]


def _is_current(listing: Listing, row: int, existing: Listing, here: int) -> bool:
    """Whether the destination's file has the announced size and mtime."""
    return (listing.sizes[row], listing.mtimes[row]) == (existing.sizes[here], existing.mtimes[here])
