"""Gives a file whose content was looked at the metadata it is to have, if it is that file still.

An mtime says which content a file has: set on a file that was written to since the look, it would hide that
from every later comparison by size and time. Set on a file that has other names, it would be theirs as well.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import partial

from rdc.errors import FileChangedError, FileError
from rdc.files.lease import take_lease
from rdc.files.metadata import set_on_found, set_on_name
from rdc.files.replacement import Replacement
from rdc.files.source import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.confined import Root
    from rdc.files.placing import Placing
    from rdc.model.entries import Identity, Metadata

__all__ = ["copy_file", "settle_file"]

_DOING = "set its metadata"


def settle_file(
    root: Root,
    placing: Placing,
    path: bytes,
    metadata: Metadata,
    *,
    owner: bool,
    is_meant: Callable[[Identity], bool],
) -> None:
    """Sets mode, mtime and, with `owner`, uid and gid of the regular file at `path`, if `is_meant` says so of
    what is there now, or was before something was done here under another of its names, as `placing` knows.
    FileError, and nothing is set, where neither is so.

    Where the mtime is the wanted one already, none is set. Else nobody writes to it between that look and the
    setting, where the kernel grants a lease. Of others' files, of those that somebody has open for writing,
    and where there are no leases, the two follow each other at once, and who writes in between gets an mtime
    that does not show it.
    """

    def check(now: os.stat_result) -> None:
        found = identity_of(now)
        if not stat.S_ISREG(now.st_mode) or not (is_meant(found) or placing.explains(is_meant, found)):
            raise _another(root, path)

    def note(before: os.stat_result, after: os.stat_result) -> None:
        if (after.st_size, after.st_mtime_ns) == (before.st_size, metadata.mtime_ns):
            placing.parted.note(identity_of(before), identity_of(after))

    def set_on_entry(name: bytes, parent: int, *, mtime: bool) -> bool:
        """False, and nothing is set, where an mtime would be."""
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if now.st_mtime_ns != metadata.mtime_ns and not mtime:
            return False
        check(now)
        set_on_name(name, parent, now, metadata, owner=owner)
        if now.st_nlink > 1:
            note(now, os.stat(name, dir_fd=parent, follow_symlinks=False))
        return True

    if root.perform(path, _DOING, partial(set_on_entry, mtime=False)):
        return
    try:
        source = root.open_read(path)
    except FileChangedError as error:
        raise _another(root, path) from error
    except FileError as error:
        if not isinstance(error.__cause__, PermissionError):
            raise
        root.perform(path, _DOING, partial(set_on_entry, mtime=True))
        return
    with source:
        try:
            with suppress(OSError):
                take_lease(source.fileno())
            now = os.fstat(source.fileno())
            check(now)
            set_on_found(source.fileno(), now, metadata, owner=owner)
            if now.st_nlink > 1:
                note(now, os.fstat(source.fileno()))
        except OSError as error:
            raise root.failure(error, path, _DOING) from error


def copy_file(root: Root, placing: Placing, path: bytes, held: Identity) -> Replacement:
    """A copy of the regular file at `path`, if that is `held` but for what was done here under another of its
    names, as `placing` knows: to be put into its place, if it is so then, too. FileError, and nothing is
    left, where it is not, or cannot be copied; OutOfSpaceError."""
    try:
        source = root.open_read(path)
    except FileChangedError as error:
        raise _another(root, path) from error
    with source:
        if source.identity != held and not placing.explains(lambda state: state == held, source.identity):
            raise _another(root, path)
        source.rest()
        copy = Replacement(root, path, expected_size=source.size)
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
        advice="what is there was kept; run again once nothing else changes it",
    )
