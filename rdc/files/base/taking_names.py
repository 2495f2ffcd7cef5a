"""Gives names to entries, without a loss whoever else works there, and makes contents and names durable."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from rdc.files.base.directory_descriptors import Directory, honours_no_replace, same_entry
from rdc.files.base.metadata import STOPS_THE_RUN
from rdc.files.base.paths import make_aside
from rdc.files.base.syscalls import full_fsync, rename_exchange, rename_no_replace_between, syncfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


# Gives a temporary its name where a file system may lack the call for it.
#
# What the kernel can promise is tried first. Only where no call promises anything, a look precedes the call.

_CREATE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC

_SAME_ANY_WAY = STOPS_THE_RUN | {
    errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.ENAMETOOLONG,
    errno.ELOOP, errno.EXDEV, errno.EMFILE, errno.ENFILE, errno.EILSEQ, errno.EINTR,
}  # fmt: skip
"""Errors that say something about the entry, not about the call: no other call fares better."""


def is_refused(error: OSError) -> bool:
    """Return whether a file system or a filter may lack the call that failed, so that another may work.

    Real systems refuse what they lack with EINVAL, EPERM, EACCES, EIO, ENOSYS, EOPNOTSUPP and others.
    """
    return error.errno not in _SAME_ANY_WAY


def refuses_links(error: OSError) -> bool:
    """Return whether link(2) may have failed for want of links: a file system has none, or not between these
    two places, or this file takes no further name.

    ENOENT is what the kernel says of a file that its file system counts no name of.
    """
    return error.errno in {errno.EXDEV, errno.ENOENT} or is_refused(error)


def create_temporary(name: bytes, directory: int, mode: int = 0o600) -> int:
    """Return the descriptor of a new file. Raises OSError, FileExistsError if the name is taken.

    Where O_EXCL is refused, a look precedes it. The name of a temporary is random, so that no other process
    of rdc takes it in between; a file that has content or another name is never taken.
    """
    try:
        return os.open(name, _CREATE | os.O_EXCL, mode, dir_fd=directory)
    except OSError as error:
        if not is_refused(error):
            raise
        refusal = error
    _check_free(name, directory)
    try:
        fd = os.open(name, _CREATE, mode, dir_fd=directory)
    except OSError:
        raise refusal from None
    found = os.fstat(fd)
    if found.st_size or found.st_nlink > 1:
        os.close(fd)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    return fd


def hold_free_name(old: bytes, new: bytes, directory: int, *, into: int | None = None) -> bool:
    """Rename `old` in `directory` to `new` there, or in the directory `into`, by a call that never replaces
    an entry: renameat2 without replacing, else link(2). Return False if the file system has neither. Raises
    OSError, FileExistsError if `new` is taken.

    With link(2) `old` goes in a second step: it is our temporary, to which nobody else gives content. After a
    kill in between, a sweep removes the name that is left.
    """
    there = directory if into is None else into
    if honours_no_replace(there):
        try:
            rename_no_replace_between(old, directory, new, there)
        except OSError as error:
            if not is_refused(error):
                raise
        else:
            return True
    try:
        os.link(old, new, src_dir_fd=directory, dst_dir_fd=there, follow_symlinks=False)
    except OSError as error:
        if not refuses_links(error):
            raise
        return False
    try:
        os.unlink(old, dir_fd=directory)
    except OSError as error:
        try:
            os.unlink(new, dir_fd=there)
        except OSError:
            return True  # neither name can go: the content is where it belongs, and a sweep finds the other
        raise error from None
    return True


def take_free_name(old: bytes, new: bytes, directory: int) -> None:
    """Rename `old` to `new`, where nothing is. Raises OSError, FileExistsError if `new` is taken.

    What somebody puts there between a look and the rename is replaced, where `hold_free_name` cannot help.
    """
    if not hold_free_name(old, new, directory):
        _check_free(new, directory)
        os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)


def replace_name(old: bytes, new: bytes, directory: int) -> None:
    """Rename `old` over the file or link `new`. Raises OSError; then `new` is as it was.

    Where a file system renames over nothing, the old entry gets a temporary name first. For a moment nothing
    is at `new`; after a kill then, both versions are under temporary names.
    """
    try:
        os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError as error:
        if not (is_refused(error) or error.errno == errno.EEXIST):
            raise
        refusal = error
    else:
        return
    try:
        aside = make_aside(new, lambda name: _move_aside(new, name, directory))
    except OSError:
        raise refusal from None
    try:
        os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.rename(aside, new, src_dir_fd=directory, dst_dir_fd=directory)
        raise refusal from None
    with suppress(OSError):  # the next sweep removes it
        os.unlink(aside, dir_fd=directory)


def has_name(fd: int, name: bytes, directory: int) -> bool:
    """Return whether the file open at `fd` still has a name. Some file systems count none for any file, so
    `name` is looked at then."""
    found = os.fstat(fd)
    if found.st_nlink:
        return True
    try:
        return same_entry(found, os.stat(name, dir_fd=directory, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _move_aside(name: bytes, aside: bytes, directory: int) -> None:
    """Rename an entry to a free name. Raises OSError. No link(2): where the entry is another user's, its
    second name could not be removed again."""
    _check_free(aside, directory)
    os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)


def _check_free(name: bytes, directory: int) -> None:
    """Raise OSError, FileExistsError if the name is taken."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


# Replaces a file or link by a directory, or an empty directory by a file or link.
#
# rename(2) does neither. Removing the old entry first would leave a moment with nothing there. So a temporary
# and the old entry exchange names in one step, and the old entry is removed afterwards. After a kill in
# between, a sweep finds it under the temporary name.

DIRECTORY_ATTEMPTS = 16
"""Attempts to make the directory. A sweep may remove a temporary directory, which cannot be locked, before
the exchange."""


def directory_over_file(
    name: bytes, directory: int, mode: int, require: Callable[[], None] = lambda: None
) -> None:
    """Make a directory (`mode` less the umask) in place of the file or link `name`. Raises OSError.

    `require` is called right before the two exchange their names; what it raises leaves all as it is. If
    another process has put a directory there meanwhile, it stays with its contents: a directory was wanted.
    """
    for attempt in range(DIRECTORY_ATTEMPTS):
        temporary = make_aside(name, lambda aside: os.mkdir(aside, mode, dir_fd=directory))
        try:
            require()
        except BaseException:
            _rmdir_quietly(temporary, directory)
            raise
        try:
            rename_exchange(temporary, name, directory)
        except FileNotFoundError:
            _rmdir_quietly(temporary, directory)
            if attempt == DIRECTORY_ATTEMPTS - 1:
                raise
        except OSError as error:
            _rmdir_quietly(temporary, directory)
            if not is_refused(error):
                raise
            os.unlink(name, dir_fd=directory)
            os.mkdir(name, mode, dir_fd=directory)
            return
        else:
            try:
                os.unlink(temporary, dir_fd=directory)
            except IsADirectoryError:
                # Another process put a directory there. Under the temporary name no sweep would remove it.
                rename_exchange(temporary, name, directory)
                _rmdir_quietly(temporary, directory)
            except OSError:
                pass  # the next sweep removes it
            return


def file_over_directory(temporary: bytes, name: bytes, directory: int) -> None:
    """Rename the file or link `temporary` to `name`, where an empty directory is.

    Raises OSError; ENOTEMPTY if the directory has entries. It then keeps its name.
    """
    # Removals from the directory must be durable before it gets a temporary name. Otherwise a power cut can
    # leave a temporary directory with files in it, which no sweep removes. Kinds change rarely.
    sync_directory_at(name, directory)
    try:
        rename_exchange(temporary, name, directory)
    except OSError as error:
        if not is_refused(error):
            raise
        os.rmdir(name, dir_fd=directory)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        return
    try:
        os.rmdir(temporary, dir_fd=directory)
    except FileNotFoundError:
        return  # a sweep was faster
    except OSError:
        rename_exchange(temporary, name, directory)
        raise


def _rmdir_quietly(name: bytes, directory: int) -> None:
    with suppress(OSError):
        os.rmdir(name, dir_fd=directory)


CANNOT_SYNC = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})
"""Errors of file systems that do not sync: what they hold is as durable as they make it by themselves."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MACOS = sys.platform == "darwin"

SYNCFS_FROM = 16
"""From this many files and directories on, one syncfs replaces their fsyncs. In a batch it is cheaper; for
few files it would mostly wait for unrelated writes."""


def flush(fd: int) -> int:
    """Make an open file or directory durable. Return 0, or the errno where the file system does not do that.
    Raises OSError."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise
        return error.errno or 0
    if _MACOS:
        with suppress(OSError):  # a volume that cannot has done what it can
            full_fsync(fd)
    return 0


def sync_file_systems(fds: Iterable[int]) -> bool:
    """Call syncfs once per file system of the open files. Return False if it is missing or failed."""
    try:
        for fd in {os.fstat(fd).st_dev: fd for fd in fds}.values():
            syncfs(fd)
    except OSError:
        return False
    return True


def make_durable(fds: Sequence[int], directories: Iterable[Directory] = ()) -> None:
    """Make open files, and the names in directories, durable together. Raises OSError."""
    distinct: dict[tuple[int, int], Directory] = {}
    for directory in {id(one): one for one in directories}.values():
        found = os.fstat(directory.fd)
        distinct[found.st_dev, found.st_ino] = directory
    if len(fds) + len(distinct) >= SYNCFS_FROM and _sync_volumes(fds, distinct):
        return
    for fd in fds:
        flush(fd)
    for (device, _), directory in distinct.items():
        try:
            opened = os.open(b".", _DIRECTORY, dir_fd=directory.fd)
        except PermissionError:
            # A directory that may be written but not read. Syncing the whole file system still works.
            inside = [fd for fd in fds if os.fstat(fd).st_dev == device]
            _sync_whole(inside[0]) if inside else os.sync()
            continue
        _sync_and_close(opened)


def _sync_volumes(fds: Sequence[int], directories: dict[tuple[int, int], Directory]) -> bool:
    """Call syncfs once per file system. Return False if it is missing or failed."""
    try:
        devices = {os.fstat(fd).st_dev: fd for fd in fds}
        for fd in devices.values():
            syncfs(fd)
        for device, directory in {device: one for (device, _), one in directories.items()}.items():
            if device not in devices:
                opened = os.open(b".", _DIRECTORY, dir_fd=directory.fd)
                try:
                    syncfs(opened)
                finally:
                    os.close(opened)
    except OSError:
        return False
    return True


def sync_directory(directory: int, inside: int) -> None:
    """Make the renames in `directory` durable. `inside` is the descriptor of a file in it. Raises OSError."""
    try:
        fd = os.open(b".", _DIRECTORY, dir_fd=directory)
    except PermissionError:
        # A directory that may be written but not read. Syncing the whole file system still works.
        _sync_whole(inside)
        return
    _sync_and_close(fd)


def _sync_whole(fd: int) -> None:
    try:
        syncfs(fd)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise
        os.sync()  # every file system, and without a report of what was lost


def sync_directory_at(name: bytes, directory: int) -> None:
    """Make the changes to names in the directory `name` of an open directory durable. Raises OSError."""
    try:
        fd = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    except PermissionError:
        return  # it may not be read: its names become durable with the file system's next commit
    _sync_and_close(fd)


def sync_directory_of(path: bytes) -> None:
    """Make the creation, replacement or removal of `path` durable, for files outside any tree. Raises
    OSError."""
    try:
        fd = os.open(os.path.dirname(path) or b".", _DIRECTORY)
    except PermissionError:
        return  # it may not be read: as in sync_directory_at
    _sync_and_close(fd)


def _sync_and_close(fd: int) -> None:
    try:
        flush(fd)
    except OSError as error:
        # Some network file systems do not sync directories: their renames are durable when they return.
        if error.errno not in {errno.EPERM, errno.EACCES, errno.EBADF}:
            raise
    finally:
        os.close(fd)
