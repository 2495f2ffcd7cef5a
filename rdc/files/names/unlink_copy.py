"""unlink_copy: replaces one hard link of a file by a copy with the same bytes, metadata and attributes."""

from __future__ import annotations

import os

from rdc.files.base.os_errors import changed
from rdc.files.base.syscalls import rename_exchange
from rdc.files.names.hard_link import sync_directory
from rdc.files.names.leased_file import LeasedFile
from rdc.files.names.seal_copy import seal_like
from rdc.files.names.swap_names import put_back
from rdc.files.replace.replacement import Replacement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root

__all__ = ["unlink_copy"]


def unlink_copy(root: Root, path: bytes, inode: int) -> int:
    """Give `path`, a hard link to the file with inode number `inode`, a copy of its own; return its size in
    bytes.

    The copy is durable before it takes the name, and the file keeps its other names. A file that another
    process moved to this name meanwhile is put back. Raises FileError, FileChangedError or OutOfSpaceError;
    the name then keeps its file.
    """
    root.check_change(path, "make it a file of its own")
    with LeasedFile(root, path) as linked:
        size = linked.identity.size
        if linked.identity.inode != inode or linked.links < 2:
            raise changed(path, root.shown(path), "a hard link", "a file of its own")
        with Replacement(root, path, expected_size=size, allocated=linked.taken) as copy:
            if copy.copy_from(linked.fileno(), 0, size) != size:
                raise changed(path, root.shown(path), f"{size} bytes", "fewer")
            try:
                seal_like(copy, linked.metadata, linked.attributes)
                # The copy is complete: no process wrote to the file while the lease held.
                linked.check()
                _take_name(root, path, copy, linked)
            except OSError as error:
                raise root.failure(error, path, "make it a file of its own") from error
    return size


def _take_name(root: Root, path: bytes, copy: Replacement, linked: LeasedFile) -> None:
    """Exchange the copy with the name, and remove the old link. Raises OSError, FileChangedError."""
    directory, name, beside = copy.directory, path.rpartition(b"/")[2], copy.temporary
    made = os.fstat(copy.fileno())
    rename_exchange(beside, name, directory.fd)
    # The temporary name belongs to the old link now, so abandoning the copy must not remove it.
    copy.renamed()
    if not linked.is_at(beside, directory.fd) or not linked.is_intact():
        put_back(beside, name, directory.fd, made)
        raise changed(path, root.shown(path), "the hard link that was copied", "that it was changed")
    sync_directory(directory)
    os.unlink(beside, dir_fd=directory.fd)
