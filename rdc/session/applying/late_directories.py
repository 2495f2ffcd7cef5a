"""Directories in which something changes after all directories were compared, such as a hard link."""

from __future__ import annotations

from rdc.session.applying.borrowed_permissions import borrow_permissions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.session.applying.chosen_directories import ChosenDirectories
    from rdc.session.applying.directory_entries import DirectoryEntries
    from rdc.session.applying.touched_directories import TouchedDirectories

__all__ = ["LateDirectories"]


class LateDirectories:
    """Lets this side work in directories once more, and has their metadata set again at the end."""

    def __init__(
        self,
        context: ApplyingContext,
        chosen: ChosenDirectories,
        entries: DirectoryEntries,
        touched: TouchedDirectories,
    ) -> None:
        self._root = context.at.root
        self._has_top = context.at.has_top
        self._manifest = context.at.manifest
        self._chosen = chosen
        self._entries = entries
        self._touched = touched
        self.paths: set[bytes] = set()
        """Of these directories."""

    def touch(self, path: bytes) -> None:
        """Something is about to change in the directory at `path`."""
        if path in self.paths or (not path and not self._has_top) or self._chosen.keeps_own(path):
            return
        self.paths.add(path)
        row = self._manifest.row(path) if path else None
        borrow_permissions(self._root, path)
        metadata = self._entries.root_metadata if row is None else self._manifest.entry(row).metadata
        self._touched.add(path, metadata, made=False)
