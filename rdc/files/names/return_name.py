"""Gives a removed duplicate its name back, from where it lies or by a copy of the file that stayed.

Nothing is overwritten: a name is taken only while it is free, or while the symbolic link that stands for the
file has it. In that case two names are exchanged, and what was displaced is looked at before it is removed.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from blake3 import blake3

from rdc.files.base.os_errors import changed
from rdc.files.base.syscalls import rename_exchange, rename_no_replace, rename_no_replace_between
from rdc.files.names.hard_link import sync_directories, sync_directory
from rdc.files.names.seal_copy import seal_like
from rdc.files.replace.replacement import Replacement
from rdc.files.root.source_file import SPAN_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.model.attributes import Attributes
    from rdc.model.entries import Metadata

__all__ = ["is_link_with", "remove_spare_link", "return_copy", "return_displaced", "return_moved"]

_DOING = "bring it back"


def is_link_with(name: bytes, directory: int, text: bytes) -> bool:
    """Return whether a name is a symbolic link with this text."""
    try:
        return bool(text) and os.readlink(name, dir_fd=directory) == text
    except OSError:
        return False


def remove_spare_link(root: Root, path: bytes, displaced: bytes, text: bytes) -> None:
    """Remove the link beside `path` that was made but never took the name. Raises RdcError."""
    root.check_change(path, "remove the link beside it")
    directory, _ = root.locate(path, fresh=True)
    try:
        if is_link_with(displaced, directory.fd, text):
            os.unlink(displaced, dir_fd=directory.fd)
    except OSError as error:
        raise root.failure(error, path, "remove the link beside it") from error


def return_displaced(root: Root, path: bytes, displaced: bytes, text: bytes) -> None:
    """Rename the file `displaced`, beside `path`, back to it. `text`: of the link that may have its name.

    Raises RdcError; the file then stays where it is.
    """
    root.check_change(path, _DOING)
    directory, name = root.locate(path, fresh=True)
    try:
        _take(displaced, name, directory.fd, text)
        sync_directory(directory)
    except OSError as error:
        raise root.failure(error, path, _DOING) from error


def return_moved(root: Root, path: bytes, into: Root, destination: bytes) -> bool:
    """Rename the file at `destination` below `into` back to `path`.

    Return False if they are on different file systems. Raises RdcError; the file then stays where it is.
    """
    root.check_change(path, _DOING)
    into.check_change(destination, _DOING)
    directory, name = root.locate(path, fresh=True)
    there, moved = into.locate(destination, fresh=True)
    try:
        rename_no_replace_between(moved, there.fd, name, directory.fd)
        sync_directories((directory, there))
    except OSError as error:
        if error.errno == errno.EXDEV:
            return False
        raise root.failure(error, path, _DOING) from error
    return True


def return_copy(
    root: Root,
    path: bytes,
    source: SourceFile,
    digest: bytes,
    metadata: Metadata,
    attributes: Attributes,
    atime_ns: int,
    text: bytes,
) -> None:
    """Give `path` a copy of `source`, if that has the content of `digest`. `text` as in `return_displaced`.

    The copy is complete and durable before it takes the name. Raises RdcError; the name is as before then.
    """
    root.check_change(path, _DOING)
    hasher = blake3()
    with Replacement(root, path, expected_size=source.size, allocated=source.taken) as copy:
        for offset in range(0, source.size, SPAN_BYTES):
            span = source.pread(offset, min(SPAN_BYTES, source.size - offset))
            hasher.update(span)
            copy.write(span)
        if hasher.digest() != digest:
            raise changed(path, root.shown(path), "the content that it had", f"another in {_name(source)}")
        try:
            seal_like(copy, metadata, attributes)
            os.utime(copy.fileno(), ns=(atime_ns, metadata.mtime_ns))
            name = path.rpartition(b"/")[2]
            temporary = copy.temporary
            _take(temporary, name, copy.directory.fd, text)
            copy.renamed()
            sync_directory(copy.directory)
        except OSError as error:
            raise root.failure(error, path, _DOING) from error


def _name(source: SourceFile) -> str:
    from rdc.errors import printable

    return printable(source.path)


def _take(beside: bytes, name: bytes, directory: int, text: bytes) -> None:
    """Rename `beside` to `name`, which is free or the link with `text`. Raises OSError, EEXIST if it is
    neither."""
    if not is_link_with(name, directory, text):
        rename_no_replace(beside, name, directory)
        return
    ours = os.stat(beside, dir_fd=directory, follow_symlinks=False)
    rename_exchange(beside, name, directory)
    if is_link_with(beside, directory, text):
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=directory)
        return
    # Another process moved a file to the name at the last moment: it is newer, and goes back.
    rename_exchange(beside, name, directory)
    if not os.path.samestat(os.stat(beside, dir_fd=directory, follow_symlinks=False), ours):
        rename_exchange(beside, name, directory)
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
