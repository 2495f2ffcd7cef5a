"""Gives a temporary its name where a file system may lack the call for it.

What the kernel can promise is tried first. Only where no call promises anything, a look precedes the call.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from rdc.files.base.known_devices import honours_no_replace, same_entry
from rdc.files.base.shortfalls import STOPS_THE_RUN
from rdc.files.base.syscalls import rename_no_replace
from rdc.files.base.temporary_names import make_aside

__all__ = [
    "create_temporary",
    "has_name",
    "hold_free_name",
    "is_refused",
    "replace_name",
    "take_free_name",
]

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


def hold_free_name(old: bytes, new: bytes, directory: int) -> bool:
    """Rename `old` to `new` within `directory` by a call that never replaces an entry: renameat2 without
    replacing, else link(2). Return False if the file system has neither. Raises OSError, FileExistsError if
    `new` is taken.

    With link(2) `old` goes in a second step: it is our temporary, to which nobody else gives content. After a
    kill in between, a sweep removes the name that is left.
    """
    if honours_no_replace(directory):
        try:
            rename_no_replace(old, new, directory)
        except OSError as error:
            if not is_refused(error):
                raise
        else:
            return True
    try:
        os.link(old, new, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        # ENOENT is what the kernel says of a file that its file system counts no name of.
        if not is_refused(error) and error.errno not in {errno.EXDEV, errno.ENOENT}:
            raise
        return False
    try:
        os.unlink(old, dir_fd=directory)
    except OSError as error:
        try:
            os.unlink(new, dir_fd=directory)
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
    """Raises OSError. No link(2): where the entry is another user's, its second name could not go again."""
    _check_free(aside, directory)
    os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)


def _check_free(name: bytes, directory: int) -> None:
    """Raises OSError, FileExistsError if the name is taken."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
