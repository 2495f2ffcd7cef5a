"""Files as tests of links make them, and as programs save them."""

from __future__ import annotations

from pathlib import Path

from rdc.files.base.paths import changed
from rdc.files.base.taking_names import make_durable
from rdc.files.names.leased_files import LeasedFile
from rdc.files.names.return_name import Separation
from rdc.files.root.root import Root

__all__ = ["CONTENT", "TIME", "replace", "unlink_copy"]

CONTENT = bytes(range(256)) * 40
TIME = 1_234_567_890_123_456_789


def replace(path: Path, content: bytes) -> None:
    """Replace a file as programs save one: write beside it, then rename."""
    beside = path.with_name("saved")
    beside.write_bytes(content)
    beside.rename(path)


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
            raise root.failure(error, path, "make it a file of its own") from error
        finally:
            one.drop()
        one.finish()
        return linked.identity.size
