"""Makes one name a hard link to another file with the same content, so that no bytes can be lost on the way.

Both files are held (rdc.files.held): nobody can write to them unseen from before the comparison until the
end, and whoever wants to waits. Then, for each name:

1. `link` makes a second name of the kept file, beside the name it will take.
2. `exchange` looks whether all is as it was compared, and lets the two names change places in one step
   (RENAME_EXCHANGE). If what it displaced is not the very file that was compared, that goes back.
3. `sync_names` makes the directory durable.
4. `discard` looks once more whether somebody, who had found the displaced file under its name, asked to write
   to it, and if so puts it back; else it removes it. This is the only step that destroys anything.

From the exchange on whoever opens the name gets the kept file, as after any hard link. So nothing that
happens to the kept file after the exchange takes it back: that would part a writer from the name he used.

rename(2) over the name would do for 2 to 4, but would destroy unseen a file that somebody moved there after
the last look. INSTANCES.md has the analysis of kills and races.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress

from rdc.files.displaced import displaced_name
from rdc.files.failure import changed
from rdc.files.swap import put_back
from rdc.files.syscalls import rename_exchange, syncfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.errors import RdcError
    from rdc.files.confined import Root
    from rdc.files.directory import Directory
    from rdc.files.held import HeldFile

__all__ = ["LinkSwap", "sync_contents", "sync_directory", "sync_names"]

STALL_SECONDS = 0.5
"""How long the look before an exchange holds good. A lease keeps writers off for at least a second after they
asked, however /proc/sys/fs/lease-break-time is set."""

SYNCFS_FROM = 16
"""From so many files or directories on one syncfs replaces their fsyncs: in a batch it costs less than they
do, alone it waits for whatever else was written there."""

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
    """One name on its way from its own file, `old`, to the file `kept`. Calls come in the order above.

    Whoever made the two HeldFiles has compared them, and keeps them until the end. Each call raises FileError
    or FileChangedError, and leaves the name with a whole file; after an error nothing is left to do.
    """

    def __init__(self, root: Root, path: bytes, old: HeldFile, kept: HeldFile) -> None:
        self.root = root
        self.path = path
        self._old = old
        self._kept = kept
        directory, self.name = root.locate(path, fresh=True)
        self.directory: Directory = directory
        self.displaced = displaced_name(self.name, old.identity.size, old.metadata)
        """The name beside it: first of the new link, then of the old file."""

    def link(self) -> None:
        try:
            # Through the descriptor: the link is to the very file that was compared, whatever has its name.
            os.link(b"/proc/self/fd/%d" % self._kept.fileno(), self.displaced, dst_dir_fd=self.directory.fd)
        except OSError as error:
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
        # A lease holds a writer off for a second at least; a process can be stopped for longer.
        stalled = time.monotonic() - looked > STALL_SECONDS
        self._check_displaced(stalled=stalled)

    def discard(self) -> None:
        self._check_displaced()
        try:
            os.unlink(self.displaced, dir_fd=self.directory.fd)
        except OSError as error:
            raise self.root.failure(error, self.path, "remove the file that it replaced") from error

    def undo(self) -> None:
        """After `exchange`, where something else went wrong: put the old file back, or leave it beside for a
        later run. Never raises."""
        with suppress(OSError):
            if self._kept.is_intact():
                self._put_back()

    def _unlike_compared(self) -> str | None:
        """Before the exchange: what is not as it was when the two were compared."""
        try:
            if not self._old.is_at(self.name, self.directory.fd):
                return "another file in its place"
            return self._old.describe_change() or self._kept.describe_change()
        except OSError as error:
            self._unlink_quietly()
            raise self._failure(error, "link it") from error

    def _check_displaced(self, *, stalled: bool = False) -> None:
        """Raise, with the name given back to what was displaced, unless that is the file that was compared.

        Where somebody wants to write to the kept file as well, he may have found it under this name: then
        each of two writers has a file that is his, and both files stay.
        """
        try:
            found = None
            if not self._old.is_at(self.displaced, self.directory.fd):
                found = "another file in its place"
            elif stalled and self._kept.describe_rewrite() is not None:
                found = "that the file it should become was written to"
            else:
                found = self._old.describe_change()
                if found is not None and not self._kept.is_intact():
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
            advice=f"look at {os.fsdecode(self.displaced)} beside it, which holds what it was",
        )

    def _changed(self, found: str) -> RdcError:
        return changed(self.path, self.root.shown(self.path), "the file that was compared", found)

    def _put_back(self) -> None:
        put_back(self.displaced, self.name, self.directory.fd, os.fstat(self._kept.fileno()))

    def _failure(self, error: OSError, doing: str) -> RdcError:
        if error.errno not in _FOUND_AND_ADVICE:
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
        # A spare link to a file that has other names: litter at worst, and a later run removes it.
        with suppress(OSError):
            os.unlink(self.displaced, dir_fd=self.directory.fd)


def sync_contents(files: Sequence[HeldFile]) -> None:
    """Make files durable: what is to stand for another must be on disk before that one goes. Raises
    OSError."""
    if not _sync_volumes([file.fileno() for file in files]):
        for file in files:
            os.fsync(file.fileno())


def sync_names(swaps: Sequence[LinkSwap]) -> None:
    """Make the names durable that were exchanged. Raises OSError."""
    directories: list[Directory] = []
    for swap in swaps:
        if not any(swap.directory is known for known in directories[-1:]):
            directories.append(swap.directory)
    opened = [os.open(b".", _DIRECTORY, dir_fd=directory.fd) for directory in directories]
    try:
        if not _sync_volumes(opened):
            for fd in opened:
                _sync_directory(fd)
    finally:
        for fd in opened:
            os.close(fd)


def sync_directory(directory: Directory) -> None:
    """Make the names of one directory durable. Raises OSError."""
    fd = os.open(b".", _DIRECTORY, dir_fd=directory.fd)
    try:
        _sync_directory(fd)
    finally:
        os.close(fd)


def _sync_directory(fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError as error:
        # Some network file systems know no fsync of directories: their renames are done when they return.
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:
            raise


def _sync_volumes(fds: Sequence[int]) -> bool:
    """One syncfs for each file system; False where that is not worth it or not possible."""
    if len(fds) < SYNCFS_FROM:
        return False
    one_of_each = {os.fstat(fd).st_dev: fd for fd in fds}
    try:
        for fd in one_of_each.values():
            syncfs(fd)
    except OSError:
        return False
    return True
