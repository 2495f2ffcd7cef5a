"""Separation: replaces one hard link of a file by a copy with the same bytes, metadata and attributes."""

from __future__ import annotations

import os

from rdc.files.base.durability import make_durable
from rdc.files.base.os_errors import changed
from rdc.files.base.syscalls import rename_exchange
from rdc.files.names.leased_file import LeasedFile
from rdc.files.names.return_name import CopiedReturn, Returned
from rdc.files.names.seal_copy import copy_of
from rdc.files.names.swap_names import put_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.replace.replacement import Replacement
    from rdc.files.root.root import Root

__all__ = ["Separation", "unlink_copy"]

_DOING = "make it a file of its own"


class Separation(CopiedReturn):
    """One name, a hard link to a leased file, that gets a copy of it. The file keeps its other names."""

    def __init__(
        self, root: Root, path: bytes, directory: Directory, linked: LeasedFile, content: bytes | None = None
    ) -> None:
        """`linked`: held by the caller until `finish`."""
        returned = Returned(linked.metadata, linked.attributes, linked.atime_ns)
        super().__init__(root, path, directory, returned, content)
        self._linked = linked
        self._beside = b""

    def _copied(self) -> Replacement:
        size = self._linked.identity.size
        copy = copy_of(self.root, self.path, self._linked.fileno(), size)
        if copy.size != size:
            copy.abandon()
            raise changed(self.path, self.root.shown(self.path), f"{size} bytes", "fewer")
        return copy

    def _check(self) -> None:
        # The copy is complete: no process wrote to the file while the lease held.
        self._linked.check()

    def _take_with(self, beside: bytes, fd: int) -> None:
        linked, directory, made = self._linked, self.directory.fd, os.fstat(fd)
        rename_exchange(beside, self.name, directory)
        # The temporary name belongs to the old link now, so abandoning the copy must not remove it.
        self._renamed()
        if not linked.is_at(beside, directory) or not linked.is_intact():
            put_back(beside, self.name, directory, made)
            raise changed(
                self.path, self.root.shown(self.path), "the hard link that was copied", "that it was changed"
            )
        self._beside = beside

    def finish(self) -> None:
        try:
            if self._beside and self._linked.is_at(self._beside, self.directory.fd):
                os.unlink(self._beside, dir_fd=self.directory.fd)
        except OSError as error:
            raise self.root.failure(error, self.path, "remove the link that it replaced") from error


def unlink_copy(root: Root, path: bytes, inode: int) -> int:
    """Give `path`, a hard link to the file with inode number `inode`, a copy of its own; return its size in
    bytes.

    The copy is durable before it takes the name, and the file keeps its other names. A file that another
    process moved to this name meanwhile is put back. Raises FileError, FileChangedError or OutOfSpaceError;
    the name then keeps its file.
    """
    with LeasedFile(root, path) as linked:
        if linked.identity.inode != inode or linked.links < 2:
            raise changed(path, root.shown(path), "a hard link", "a file of its own")
        one = Separation(root, path, root.locate(path, fresh=True)[0], linked)
        copied = one.stage()
        try:
            make_durable([copied])
            one.take()
            make_durable([], one.directories)
        except OSError as error:
            raise root.failure(error, path, _DOING) from error
        finally:
            one.drop()
        one.finish()
        return linked.identity.size
