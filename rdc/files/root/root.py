"""Root: one tree and every operation on its entries, confined to it by directory descriptors."""

from __future__ import annotations

import errno
import os

from rdc.errors import RdcError
from rdc.files.base.os_errors import failure, refused
from rdc.files.root.directory_lister import DirectoryLister
from rdc.files.root.entry_reader import EntryReader
from rdc.files.root.entry_writer import EntryWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.confined_access import PartKeeper

__all__ = ["Root"]


class Root(DirectoryLister, EntryReader, EntryWriter):
    """The top directory of a tree. A relative path names every entry; b"" is the root itself.

    Paths are bytes: names joined by single slashes (rdc.files.base.relative_path). Each operation opens its
    directory from the root's descriptor without following a link, then acts on one name in it. Concurrent
    changes to the tree therefore cannot make it read or write outside.

    All failures are RdcErrors. FileError concerns one entry (exit code 23). FileChangedError means that an
    entry vanished or was replaced while the tree was read (24). OutOfSpaceError stops the run: the disk is
    full, over quota or read-only (11). Threads may share a Root."""

    distant: Root | None = None
    """Where temporaries of new content are; None: each is beside its file."""

    distant_path: bytes | None = None
    """The path of `distant` below this root; None if it lies elsewhere."""

    partials: PartKeeper | None = None
    """Where the parts of unfinished files wait; None: where they were written."""

    def release(self) -> None:
        super().release()
        if self.partials is not None:
            self.partials.release()
        if self.distant is not None:
            self.distant.release()

    @classmethod
    def open(
        cls,
        path: bytes,
        *,
        create: bool = False,
        writable: bool = False,
        label: bytes | None = None,
        mode: int = 0o777,
    ) -> Root:
        """Open the directory that a user named. Symlinks in `path` are followed, as rsync does with a
        trailing slash.

        `create` makes a missing last component (`mode` less the umask). `writable` raises OutOfSpaceError for
        a read-only file system now rather than at the first file. `label` replaces `path` in messages, so
        that a server shows no local paths to its peers. Raises FileError if the directory is missing or is
        none."""
        label = path if label is None else label
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            try:
                fd = os.open(path, flags)
            except FileNotFoundError:
                if not create or not path:
                    raise
                os.mkdir(path, mode)
                fd = os.open(path, flags)
        except (OSError, ValueError) as error:
            raise _root_failure(error, label, create=create) from error
        root = cls(fd, label)
        try:
            read_only = writable and os.fstatvfs(fd).f_flag & os.ST_RDONLY
        except OSError as error:  # a mount whose server is gone
            raise _root_failure(error, label, create=False) from error
        if read_only:
            raise failure(OSError(errno.EROFS, ""), b"", label, "write below it")
        return root

    # Where the entries really are. A LayeredRoot shows entries under other paths.

    def top(self) -> Directory:
        """Return the descriptor of the directory that b"" shows. Raises RdcError."""
        return self._directory

    def beneath(self, paths: bytes) -> bytes:
        """Return where entries are below `fileno()`. `paths`: each followed by NUL, as is the result."""
        return paths

    def spread(self, path: bytes, names: bytes) -> Iterator[tuple[Root, bytes, Sequence[int], bytes]]:
        """Yield the real directories of entries of one directory: a Root, the directory's path below it, the
        rows of the entries, and their names. `names`: each followed by NUL."""
        yield self, path, range(names.count(b"\0")), names


def _root_failure(error: OSError | ValueError, label: bytes, *, create: bool) -> RdcError:
    advice = "check the spelling and run again"
    if isinstance(error, ValueError):
        expected, found = "a path without NUL bytes", "one"
    elif isinstance(error, FileNotFoundError):
        expected, found = "a directory", "nothing, not even the directory above it" if create else "nothing"
    elif isinstance(error, NotADirectoryError):
        expected, found = "a directory", "a file, here or on the way"
    elif isinstance(error, FileExistsError):
        # mkdir found a name there that could not be opened.
        expected, found = "a directory", "a symbolic link to nothing"
        advice = "make what it leads to, or remove the link"
    else:
        return failure(error, b"", label, "open it")
    return refused(b"", label, "open it", expected=expected, found=found, advice=advice)
