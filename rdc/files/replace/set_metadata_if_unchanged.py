"""Sets the metadata of a file whose content was compared, if it is still that file.

An mtime vouches for content. Set on a file that was written to since the comparison, it would hide that write
from every later comparison by size and time. Set on a file with other names, it would apply to those as well.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import partial

from rdc.errors import FileChangedError, FileError
from rdc.files.base.metadata import (
    changes_access,
    identity_of,
    set_on_found,
    set_on_name,
    take_acl,
    take_acl_of,
)
from rdc.files.base.syscalls import take_lease
from rdc.files.replace.replacement import Replacement
from rdc.lean.typed import NamedTuple
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity, Metadata


_DOING = "set its metadata"


def set_metadata_if_unchanged(
    root: Root,
    path: bytes,
    metadata: Metadata,
    *,
    owner: bool,
    expected: Identity,
) -> None:
    """Set mode, mtime and, with `owner`, uid and gid of the regular file at `path`, if it is the expected
    file, or what this run's own steps made of that. Otherwise nothing is set and FileError is raised.

    Where ACLs are kept, a file whose mode or owner changes loses its ACL first, because the group bits act as
    the ACL's mask and would admit users it names. The wanted ACL is set later.

    If the mtime differs, a read lease keeps writers away between the check and the change, where the kernel
    grants one. It grants none for files of other users, files open for writing, and file systems without
    leases. There the two steps follow each other at once, and a write between them would get an mtime that
    hides it.
    """

    change = _Change(root, path, metadata, owner, expected)
    if root.perform(path, _DOING, partial(change.set_by_name, mtime=False)):
        return
    try:
        source = root.open_read(path)
    except FileChangedError as error:
        raise _another(root, path) from error
    except FileError as error:
        if not isinstance(error.__cause__, PermissionError):
            raise
        root.perform(path, _DOING, partial(change.set_by_name, mtime=True))
        return
    with source:
        try:
            change.set_by_descriptor(source.fileno())
        except OSError as error:
            raise root.failure(error, path, _DOING) from error


class _Change(NamedTuple):
    """The wanted metadata of one file, and which file is expected."""

    root: Root
    path: bytes
    metadata: Metadata
    owner: bool
    expected: Identity

    def set_by_name(self, name: bytes, parent: int, *, mtime: bool) -> bool:
        """Check the entry and set its metadata. Raises FileError, OSError.

        Returns False, and sets nothing, if the mtime differs and `mtime` does not allow to set it.
        """
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
        change = self._chosen(now)
        if packed_time(now.st_mtime_ns) != change.metadata.mtime_ns and not mtime:
            return False
        change._check(now)
        if self.root.writes.undo is not None:
            change._keep_undo(name, parent)
            now = os.stat(name, dir_fd=parent, follow_symlinks=False)
            change._check(now)
        if change._loses_acl(now):
            take_acl(name, parent, now)
            now = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if self.root.reads.fakes:
            from rdc.files.root.listing_view import set_faked_on_name

            set_faked_on_name(name, parent, change.metadata, owner=self.owner)
        else:
            set_on_name(name, parent, now, change.metadata, owner=self.owner)
        if change._is_looked_at_again(now):
            change._look_again(now, os.stat(name, dir_fd=parent, follow_symlinks=False))
        return True

    def set_by_descriptor(self, fd: int) -> None:
        """Lease the open file if possible, check it and set its metadata. Raises FileError, OSError."""
        with suppress(OSError):
            take_lease(fd)
        now = os.fstat(fd)
        change = self._chosen(now)
        change._check(now)
        if self.root.writes.undo is not None:
            change._keep_undo_by_path()
            now = os.fstat(fd)
            change._check(now)
        if change._loses_acl(now):
            take_acl_of(fd, now)
            now = os.fstat(fd)
        if self.root.reads.fakes:
            from rdc.files.root.listing_view import set_faked_open

            set_faked_open(fd, change.metadata, owner=self.owner)
        else:
            set_on_found(fd, now, change.metadata, owner=self.owner)
        if change._is_looked_at_again(now):
            change._look_again(now, os.fstat(fd))

    def _chosen(self, now: os.stat_result) -> _Change:
        """Return this change, reduced to what is preserved: the entry, whose stat is `now`, keeps the
        rest."""
        return self._replace(metadata=self.root.storage.of_found(self.metadata, now))

    def _is_looked_at_again(self, before: os.stat_result) -> bool:
        return before.st_nlink > 1 or self.root.writes.undo is not None or not self.root.storage.is_plain

    def _look_again(self, before: os.stat_result, after: os.stat_result) -> None:
        """Take note of what the change did."""
        if before.st_nlink > 1 or self.root.writes.undo is not None:
            self._note(before, after)
        if not self.root.storage.is_plain and not self.root.reads.fakes:
            self.root.storage.learn_from(self.metadata, after, owner=self.owner)

    def _keep_undo(self, name: bytes, parent: int) -> None:
        if self.root.writes.undo is not None:
            self.root.writes.undo.changing(self.path, name, parent, self.metadata)

    def _keep_undo_by_path(self) -> None:
        if self.root.writes.undo is not None:
            directory, name = self.root.locate(self.path)
            self._keep_undo(name, directory.fd)

    def _check(self, now: os.stat_result) -> None:
        found = identity_of(now)
        if not stat.S_ISREG(now.st_mode):
            raise _another(self.root, self.path)
        if not self.root.check.is_still(self.expected, found):
            raise _another(self.root, self.path)
        self.root.check_made(self.path, now, _DOING)

    def _loses_acl(self, now: os.stat_result) -> bool:
        return self.root.writes.sheds_acls and changes_access(now, self.metadata, owner=self.owner)

    def _note(self, before: os.stat_result, after: os.stat_result) -> None:
        """Record the change for the file's other names, unless its size or mtime is not as expected, and for
        what is kept to be undone."""
        if self.root.writes.undo is not None:
            self.root.writes.undo.changed(self.path, after)
        if (after.st_size, packed_time(after.st_mtime_ns)) == (before.st_size, self.metadata.mtime_ns):
            self.root.check.note(identity_of(before), identity_of(after))


def copy_file(root: Root, path: bytes, expected: Identity) -> Replacement:
    """Return a copy of the regular file at `path`, to be put in its place, if the file still has identity
    `expected`.

    This run's own steps do not count. Raises FileError if it is another file or
    cannot be copied, and OutOfSpaceError; nothing is left then.
    """
    root.check_change(path, _DOING)
    try:
        source = root.open_read(path)
    except FileChangedError as error:
        raise _another(root, path) from error
    with source:
        if not root.check.is_still(expected, source.identity):
            raise _another(root, path)
        source.rest()
        copy = Replacement(root, path, expected_size=source.size, allocated=source.taken)
        if copy.copy_from(source.fileno(), 0, source.size) != source.size:
            copy.abandon()
            raise _another(root, path)
    return copy


def _another(root: Root, path: bytes) -> FileError:
    return root.refused(
        path,
        _DOING,
        expected="the file that was compared",
        found="that it was changed or replaced",
        advice="the existing entry was kept; run again once nothing else changes it",
    )
