"""LinkSwap: turns one name into a hard link to another file with the same content, without losing any write.

Both files are leased (rdc.files.names.leased_file) from before the comparison until the end, so no process
can write to them unnoticed; writers wait. Each name takes these steps:

1. `link` makes another name of the original file, beside the name it will take.
2. `exchange` checks that both files are as they were compared, and exchanges the two names in one step
   (RENAME_EXCHANGE). If that displaced another file than the one compared, the file is put back.
3. The caller makes the directory durable.
4. `discard` checks once more whether a process that opened the displaced file wants to write to it. If so,
   the file is put back; otherwise it is removed. Only this step destroys anything.

After the exchange, opening the name opens the original file, as after any hard link. What happens to the kept
file from then on does not undo the exchange, because that would separate a writer from the name it used.

rename(2) over the name could replace steps 2 to 4, but it would silently destroy a file moved there after the
last check. INSTANCES.md analyses kills and races.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress

from rdc.errors import printable
from rdc.files.base.durability import flush
from rdc.files.base.entry_path import WithoutProcError, has_proc
from rdc.files.base.os_errors import changed
from rdc.files.base.syscalls import rename_exchange
from rdc.files.names.displaced_names import displaced_name
from rdc.files.names.swap_names import put_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.errors import RdcError
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.names.leased_file import LeasedFile
    from rdc.files.root.root import Root

__all__ = ["LinkSwap", "sync_directory"]

STALL_SECONDS = 0.5
"""How long a check before an exchange stays valid. A lease delays writers for at least one second, whatever
/proc/sys/fs/lease-break-time says."""

_NO_EXCHANGE = (
    "a file system that cannot let two names change places",
    "hard links are not made here; without --hardlink, blocks are shared where that is possible",
)
_FOUND_AND_ADVICE = {
    errno.ENOSYS: _NO_EXCHANGE,
    errno.EINVAL: _NO_EXCHANGE,
    errno.EMLINK: (
        "as many links to one file as this file system allows",
        "the other names stay as they are",
    ),
    errno.EEXIST: (
        "that its name beside it, .rdc-<16 hex digits>.old, is taken",
        "look at what has that name, then rename or remove it",
    ),
    errno.EXDEV: ("another file system, subvolume or mount", "hard links stay within one"),
    errno.EPERM: (
        "an immutable file, one of somebody else, or a file system without hard links",
        "run as its owner or as root; lsattr shows an 'i' where chattr -i helps",
    ),
    errno.EOPNOTSUPP: ("a file system without hard links", "nothing was changed"),
    errno.EROFS: ("a read-only file system", "mount it read-write and run again"),
}


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class LinkSwap:
    """One name on its way from its own file, `old`, to the file `original`. Calls come in the order of the
    module docstring.

    The caller has compared the two LeasedFiles and holds them until the end. Each call raises FileError or
    FileChangedError and leaves the name with a whole file. After an error nothing remains to be done.
    """

    def __init__(
        self,
        root: Root,
        path: bytes,
        old: LeasedFile,
        original: LeasedFile,
        directory: Directory | None = None,
    ) -> None:
        """`directory`: that of `path`, opened a moment ago."""
        root.check_change(path, "link it")
        self.root = root
        self.path = path
        self._old = old
        self._original = original
        self.name = path.rpartition(b"/")[2]
        self.directory: Directory = root.locate(path, fresh=True)[0] if directory is None else directory
        self.displaced = displaced_name(self.name, old.identity.size, old.metadata)
        """The name beside it, which first belongs to the new link and then to the old file."""

        self.refusal: int | None = None
        """The errno of `link` if it failed."""

    def link(self) -> None:
        try:
            if not has_proc():
                raise WithoutProcError
            # The path through the descriptor links the file that was compared, whichever name it has now.
            os.link(
                b"/proc/self/fd/%d" % self._original.fileno(), self.displaced, dst_dir_fd=self.directory.fd
            )
        except OSError as error:
            self.refusal = error.errno
            raise self._failure(error, "link it") from error

    def exchange(self) -> None:
        looked = time.monotonic()
        found = self._unlike_compared()
        if found is not None:
            self._unlink_quietly()
            raise self._changed(found)
        try:
            rename_exchange(self.displaced, self.name, self.directory.fd)
        except OSError as error:
            self._unlink_quietly()
            if error.errno == errno.ENOENT:
                raise self._changed("that it is gone") from error
            raise self._failure(error, "link it") from error
        # A lease delays a writer for at least a second, but this process may have been stopped for longer.
        stalled = time.monotonic() - looked > STALL_SECONDS
        self._check_displaced(stalled=stalled)

    def depart(self, *, first: bool) -> None:
        """Link and exchange. `first` does not matter here: a link changes the ctimes of both files."""
        self.link()
        self.exchange()

    def check_departed(self) -> None:
        """Raise, and give the name back, unless the file that lost it is the one that was compared."""
        self._check_displaced()

    def discard(self) -> None:
        self._check_displaced()
        try:
            os.unlink(self.displaced, dir_fd=self.directory.fd)
        except OSError as error:
            raise self.root.failure(error, self.path, "remove the file that it replaced") from error

    finish = discard

    def undo(self) -> None:
        """Put the old file back after `exchange`, because something else failed. Never raises.

        If the original file is being written to, the old file stays beside it for a later run.
        """
        with suppress(OSError):
            if self._original.is_intact():
                self._put_back()

    def _unlike_compared(self) -> str | None:
        """Return what changed since the comparison, before the exchange; None if nothing did."""
        try:
            if not self._old.is_at(self.name, self.directory.fd):
                return "another file in its place"
            return self._old.describe_change() or self._original.describe_change()
        except OSError as error:
            self._unlink_quietly()
            raise self._failure(error, "link it") from error

    def _check_displaced(self, *, stalled: bool = False) -> None:
        """Raise, and give the name back, unless the displaced file is the one that was compared.

        If a process also wants to write to the original file, it may have opened it under this name. Then two
        writers each have a file of their own, and both files stay.
        """
        try:
            found = None
            if not self._old.is_at(self.displaced, self.directory.fd):
                found = "another file in its place"
            elif stalled and self._original.describe_rewrite() is not None:
                found = "that the file it should become was written to"
            else:
                found = self._old.describe_change()
                if found is not None and not self._original.is_intact():
                    raise self._two_files("that both it and the file it became were written to")
            if found is not None:
                self._put_back()
        except OSError as error:
            raise self._two_files(os.strerror(error.errno or 0)) from error
        if found is not None:
            raise self._changed(found)

    def _two_files(self, found: str) -> RdcError:
        return self.root.refused(
            self.path,
            "link it",
            expected="the file that was compared",
            found=found,
            advice=f"look at {printable(self.displaced)} beside it, which holds what it was",
        )

    def _changed(self, found: str) -> RdcError:
        return changed(self.path, self.root.shown(self.path), "the file that was compared", found)

    def _put_back(self) -> None:
        put_back(self.displaced, self.name, self.directory.fd, os.fstat(self._original.fileno()))

    def _failure(self, error: OSError, doing: str) -> RdcError:
        if error.errno not in _FOUND_AND_ADVICE or isinstance(error, WithoutProcError):
            return self.root.failure(error, self.path, doing)
        found, advice = _FOUND_AND_ADVICE[error.errno]
        code = errno.errorcode.get(error.errno, error.errno)
        return self.root.refused(
            self.path,
            doing,
            expected="a place where names can be linked",
            found=f"{found} ({code})",
            advice=advice,
        )

    def _unlink_quietly(self) -> None:
        # The file has other names. If its spare link stays, a later run removes it.
        with suppress(OSError):
            if self._original.is_at(self.displaced, self.directory.fd):
                os.unlink(self.displaced, dir_fd=self.directory.fd)


def sync_directory(directory: Directory) -> None:
    """Make the names of one directory durable. Raises OSError."""
    fd = os.open(b".", _DIRECTORY, dir_fd=directory.fd)
    try:
        _sync_directory(fd)
    finally:
        os.close(fd)


def _sync_directory(fd: int) -> None:
    try:
        flush(fd)
    except OSError as error:
        # Some network file systems do not sync directories: their renames are durable when they return.
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:
            raise
