"""DistantReplacement: the future content of a file, in the directory of --temp-dir until it is complete.

Complete content moves to a temporary beside its target before a CommitGroup takes it. On the file system of
the target that is a rename. From another one it is copied, and the group syncs the copy. From there on all is
as without --temp-dir: no file is ever written where its name is.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from rdc.errors import RdcError
from rdc.files.base.own_temporary import is_own_partial
from rdc.files.base.syscalls import rename_no_replace_between
from rdc.files.base.temporary_names import is_temporary_of, make_aside
from rdc.files.replace.replacement import Replacement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Metadata

__all__ = ["DistantReplacement", "Leftovers"]

_COPIED = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}
"""Errors of a rename after which the content is copied."""


class DistantReplacement(Replacement):
    """A Replacement that begins in `root.writes.distant`, under a name that stands for the whole path."""

    __slots__ = ()

    def _create(self, directory: Directory, target: bytes) -> None:
        distant = (self.root.writes.distant or self.root).top()
        if self.root.writes.undo is not None and self.root.writes.distant_path is not None:
            self.root.writes.undo.entering(self.root.writes.distant_path, distant.fd)
        super()._create(distant, self.path)

    def seal(self, metadata: Metadata, *, owner: bool) -> None:
        """Move the content beside its target, then do what Replacement.seal does. Raises RdcError."""
        try:
            directory, target = self.root.locate_to_write(self.path)
            self._bring(directory, target)
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "move its new content beside it") from error
        except RdcError:
            self.abandon()
            raise
        super().seal(metadata, owner=owner)

    def _bring(self, directory: Directory, target: bytes) -> None:
        old = self.temporary

        def move(aside: bytes) -> None:
            rename_no_replace_between(old, self.directory.fd, aside, directory.fd)

        try:
            self._name = make_aside(target, move)
        except OSError as error:
            if error.errno not in _COPIED:
                raise
            self._copy(directory, target)
        self.directory = directory

    def _copy(self, directory: Directory, target: bytes) -> None:
        """Begin anew beside the target, with a copy of what was written. Raises OSError, RdcError."""
        fd, name, distant, size = self._fd, self.temporary, self.directory, self.size
        self._fd, self._name, self.size, self._cloned, self._hole = -1, None, 0, 0, (-1, -1)
        try:
            super()._create(directory, target)
            if self.copy_from(fd, 0, size, holes=True) != size:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        finally:
            with suppress(OSError):
                os.unlink(name, dir_fd=distant.fd)
            os.close(fd)


class Leftovers:
    """Partial files of earlier runs in `root.writes.distant`. Their paths here begin with a slash."""

    def __init__(self, root: Root, distant: Root) -> None:
        """Raises FileError if `distant` cannot be listed."""
        self._root = root
        self._distant = distant
        self._names = distant.listed(b"").reserved

    def of(self, path: bytes) -> bytes | None:
        """Return the longest that is a copy of the file at `path`; None for none."""
        sized = []
        top = os.fstat(self._distant.fileno())
        for name in self._names:
            with suppress(OSError):
                if is_temporary_of(name, path):
                    found = os.stat(name, dir_fd=self._distant.fileno(), follow_symlinks=False)
                    if is_own_partial(name, found, top):
                        sized.append((found.st_size, name))
        return b"/" + max(sized)[1] if sized else None

    def open(self, path: bytes) -> SourceFile:
        """Open one that `of` returned. Raises FileError."""
        return self._distant.open_read(path[1:])

    def remove(self, names: list[bytes] | None = None) -> None:
        """Remove those of these paths that no run writes; None: all."""
        from rdc.files.replace.sweep_temporaries import sweep_temporaries

        if self._root.append_only:
            return
        chosen = self._names if names is None else [path[1:] for path in names]
        sweep_temporaries(self._distant, b"", chosen)
        self._names = tuple([name for name in self._names if name not in chosen])

    def __bool__(self) -> bool:
        return bool(self._names)
