"""Makes one name a hard link to another file with the same content, so that no bytes can be lost on the way.

Both files are held (rdc.files.held): nobody can write to them unseen from before the comparison until the
end. Then, for each name:

1. `link` makes a second name of the kept file, beside the name it will take.
2. `exchange` lets the two change places in one step (RENAME_EXCHANGE), and looks at what it displaced. If
   that is not the very file that was compared, unwritten and unchanged, it goes back the same way.
3. `sync` makes the directory durable.
4. `discard` looks once more whether somebody asked to write to the displaced file, and if so puts it back;
   else it removes it. This is the only step that destroys anything.

rename(2) over the name would do for 2 to 4, but would destroy unseen a file that somebody moved there after
the last look. INSTANCES.md has the analysis of kills and races.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rdc.files.displaced import displaced_name
from rdc.files.failure import changed
from rdc.files.swap import put_back
from rdc.files.syscalls import rename_exchange, syncfs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.errors import RdcError
    from rdc.files.confined import Root
    from rdc.files.directory import Directory
    from rdc.files.held import HeldFile

__all__ = ["LinkSwap", "sync_contents", "sync_directory", "sync_names"]

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
        self.displaced = displaced_name(self.name)
        """The name beside it: first of the new link, then of the old file."""

    def link(self) -> None:
        try:
            # Through the descriptor: the link is to the very file that was compared, whatever has its name.
            os.link(b"/proc/self/fd/%d" % self._kept.fileno(), self.displaced, dst_dir_fd=self.directory.fd)
        except OSError as error:
            raise self._failure(error, "link it") from error

    def exchange(self) -> None:
        try:
            rename_exchange(self.displaced, self.name, self.directory.fd)
        except OSError as error:
            self._unlink_quietly()
            if error.errno == errno.ENOENT:
                shown = self.root.shown(self.path)
                raise changed(self.path, shown, "the file that was compared", "that it is gone") from error
            raise self._failure(error, "link it") from error
        self._check_or_put_back()

    def discard(self) -> None:
        self._check_or_put_back()
        try:
            os.unlink(self.displaced, dir_fd=self.directory.fd)
        except OSError as error:
            raise self.root.failure(error, self.path, "remove the file that it replaced") from error

    def undo(self) -> None:
        """After `exchange`, where something else went wrong: put the old file back. Never raises."""
        with suppress(OSError):
            self._put_back()

    def _unexpected(self) -> str | None:
        """What is wrong with the displaced file, or with the comparison."""
        if not self._old.is_at(self.displaced, self.directory.fd):
            return "another file in its place"
        found = self._old.describe_change()
        # The kept file must have stood still until the names had changed places. Who asks to write to it now
        # waits, so that what was compared is still so.
        return found if found is not None else self._kept.describe_change()

    def _check_or_put_back(self) -> None:
        try:
            found = self._unexpected()
            if found is not None:
                self._put_back()
        except OSError as error:
            advice = f"its content is here, or in {os.fsdecode(self.displaced)} beside it"
            raise self.root.refused(
                self.path,
                "put it back",
                expected="that its directory is left alone for a moment",
                found=os.strerror(error.errno or 0),
                advice=advice,
            ) from error
        if found is not None:
            raise changed(self.path, self.root.shown(self.path), "the file that was compared", found)

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
