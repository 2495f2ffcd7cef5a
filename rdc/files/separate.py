"""Makes one of a file's hard links a file of its own again: the same bytes, metadata and attributes."""

from __future__ import annotations

import os

from rdc.files.attributes import write_attributes
from rdc.files.failure import changed
from rdc.files.hard_link import sync_directory
from rdc.files.held import HeldFile
from rdc.files.replacement import Replacement
from rdc.files.swap import put_back
from rdc.files.syscalls import rename_exchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root

__all__ = ["separate"]


def separate(root: Root, path: bytes, inode: int) -> int:
    """Give `path`, a hard link to the file with this inode number, a copy of its own; returns its bytes.

    The copy is durable before it takes the name, the file keeps its other names, and a file that somebody
    moved to this name meanwhile goes back. Raises FileError, FileChangedError, OutOfSpaceError; the name then
    is what it was.
    """
    with HeldFile(root, path) as linked:
        size = linked.identity.size
        if linked.identity.inode != inode or linked.links < 2:
            raise changed(path, root.shown(path), "a hard link", "a file of its own")
        with Replacement(root, path, expected_size=size) as copy:
            if copy.copy_from(linked.fileno(), 0, size) != size:
                raise changed(path, root.shown(path), f"{size} bytes", "fewer")
            copy.seal(linked.metadata, owner=True)
            try:
                write_attributes(copy.fileno(), linked.attributes)
                os.fsync(copy.fileno())
                # Copying never fell behind a writer: there was none, or one is waiting now.
                linked.check()
                _take_name(root, path, copy, linked)
            except OSError as error:
                raise root.failure(error, path, "make it a file of its own") from error
    return size


def _take_name(root: Root, path: bytes, copy: Replacement, linked: HeldFile) -> None:
    """Raises OSError, FileChangedError."""
    directory, name, beside = copy.directory, path.rpartition(b"/")[2], copy.temporary
    made = os.fstat(copy.fileno())
    rename_exchange(beside, name, directory.fd)
    # From here on the name beside is not the copy's: abandoning the copy must not remove it.
    copy.renamed()
    if not linked.is_at(beside, directory.fd) or not linked.is_intact():
        put_back(beside, name, directory.fd, made)
        raise changed(path, root.shown(path), "the hard link that was copied", "that it was changed")
    sync_directory(directory)
    os.unlink(beside, dir_fd=directory.fd)
