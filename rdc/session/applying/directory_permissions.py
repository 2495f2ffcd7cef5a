"""Narrows the permissions of directories before anything lands in them; see CONSISTENCY.md."""

from __future__ import annotations

import stat
from contextlib import suppress

from rdc.errors import FileError
from rdc.lean.records import replace
from rdc.model.entries import Kind
from rdc.plan.compare import Difference
from rdc.progress import Problem
from rdc.session.applying.writing_code import writing_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity, Metadata
    from rdc.session.runtime.event_relay import EventRelay
    from rdc.session.trees.wanted_xattrs import WantedXattrs

__all__ = ["DirectoryPermissions"]

_ACCESS = int(Difference.PERMISSIONS | Difference.OWNER | Difference.GROUP)
"""The differences that change who may use an entry."""


class DirectoryPermissions:
    """The permissions that directories have while a run works in them.

    Row numbers are rows of the source's manifest; row -1 is the root directory of the tree.
    """

    def __init__(
        self, root: Root, events: EventRelay, xattrs: WantedXattrs | None, *, owner: bool, dry_run: bool
    ) -> None:
        """`owner`: the run sets owners and groups. `xattrs`: the extended attributes that the source
        announced; None if the run does not preserve any."""
        self._root = root
        self._events = events
        self._xattrs = xattrs
        self._owner = owner
        self._dry_run = dry_run

    def make_directory(self, path: bytes, metadata: Metadata, *, replaces: Identity | None) -> bool:
        """Makes a directory that only its owner may use until its contents are there; False on failure.

        `replaces`: the entry of another kind that was listed in its place.
        """
        try:
            if replaces is not None:
                self._root.replace_with_directory(path, 0o700, expected=replaces)
                made = False  # another program may have made it meanwhile
            else:
                made = self._root.make_directory(path, 0o700)
            if not made:
                self._close(path, replace(metadata, mode=stat.S_IRWXU))
        except FileError as error:
            self._events.report(Problem(writing_code(error), path, str(error)))
            return False
        return True

    def _close(self, path: bytes, metadata: Metadata) -> None:
        """Removes every permission of group and others of a directory that is to be as if it was made now."""
        if not self._root.append_only:
            with suppress(FileError):
                self._root.narrow_directory(path, metadata, owner=self._owner)

    def narrow(self, path: bytes, metadata: Metadata) -> None:
        """Removes every permission of an existing directory that `metadata` does not grant.

        The caller does this before anything lands in or below the directory. A directory that this user may
        not change stays as it is; the end of the run reports it. Below an append-only root no existing
        directory changes.
        """
        if self._dry_run or self._root.append_only:
            return
        try:
            chosen = self._root.storage.of_found
            self._root.narrow_directory(path, metadata, owner=self._owner, chosen=chosen)
        except FileError:
            return

    def narrow_if_needed(
        self, row: int, path: bytes, metadata: Metadata, differing: Difference
    ) -> tuple[Metadata, bool]:
        """Narrows an existing directory if it differs in access or gets another ACL.

        Returns the metadata that the directory gets before its ACL, and whether the run has to set them even
        if nothing in the directory changes. Does nothing below an append-only root.
        """
        if self._root.append_only:
            return metadata, False
        before_acl = self._before_acl(row, path, metadata)
        if before_acl is not metadata or int(differing) & _ACCESS:
            self.narrow(path, before_acl)
        return before_acl, before_acl is not metadata

    def guarded(self, row: int, metadata: Metadata) -> Metadata:
        """Metadata for an entry that has no ACL yet: its mode grants nothing that the ACL will deny."""
        if self._xattrs is None:
            return metadata
        return replace(metadata, mode=self._xattrs.guarded_mode(row, metadata.mode))

    def set_at_once(self, path: bytes, metadata: Metadata) -> None:
        """Below an append-only root, gives a new directory its mode and owner now.

        No later run could set them if this one is interrupted. Elsewhere does nothing: the end of the run
        sets them.
        """
        if self._root.append_only:
            usable = replace(metadata, mode=metadata.mode | 0o700)
            try:
                self._root.set_metadata(
                    path, Kind.DIRECTORY, usable, owner=self._owner, chosen=self._root.storage.of_made
                )
            except FileError as error:
                self._events.report(Problem(writing_code(error), path, str(error)))

    def _before_acl(self, row: int, path: bytes, metadata: Metadata) -> Metadata:
        """Metadata for an existing entry before it gets its ACL; `metadata` itself if the ACL stays."""
        xattrs = self._xattrs
        if xattrs is None or not xattrs.guards or not self._has_other_acl(xattrs, row, path):
            return metadata
        # An existing ACL uses the group bits as its mask; without them it admits nobody.
        return self.guarded(row, replace(metadata, mode=metadata.mode & ~stat.S_IRWXG))

    def _has_other_acl(self, xattrs: WantedXattrs, row: int, path: bytes) -> bool:
        """Whether an existing entry's access ACL differs from the wanted one. A missing ACL counts too."""
        wanted = xattrs.acl_of(row)
        if wanted is None:
            return False
        from rdc.files.base.access_acl import read_acl

        try:
            directory, name = self._root.locate(path)
            return read_acl(directory.fd, name) != wanted
        except (OSError, FileError):
            return False  # the first step that works in the directory reports the error
