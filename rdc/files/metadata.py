"""Setting owner, mode and mtime through a descriptor: only what differs, in the order that keeps setuid
bits."""

from __future__ import annotations

import errno
import os
import stat

from rdc.files.syscalls import chmod_no_follow
from rdc.model.entries import Kind, Metadata

__all__ = ["KIND_OF_FORMAT", "kind_of", "set_on_descriptor", "set_on_found", "set_on_name"]

KIND_OF_FORMAT = bytes(
    {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.DIRECTORY, stat.S_IFLNK: Kind.SYMLINK}.get(
        code << 12, Kind.SPECIAL
    )
    if code < 16
    else 0
    for code in range(256)
)
"""The Kind for each st_mode >> 12, as a table for bytes.translate."""


def kind_of(mode: int) -> Kind:
    """The Kind of a st_mode."""
    return Kind(KIND_OF_FORMAT[mode >> 12])


def set_on_descriptor(fd: int, made: os.stat_result, wanted: Metadata, *, owner: bool) -> None:
    """Give the file open at `fd` the wanted metadata; `made` is its stat from before it was written. Raises
    OSError.

    The mtime is set in any case: writing moved it, also away from the wanted one, which a file that was made
    in the same tick of the clock had by chance.
    chown comes before chmod: the kernel clears setuid and setgid bits when the owner changes. os.utime wants
    an atime too: it gets the one that is there.
    """
    chowned = owner and (made.st_uid != wanted.uid or made.st_gid != wanted.gid)
    if chowned:
        os.chown(fd, wanted.uid, wanted.gid)
    if chowned or stat.S_IMODE(made.st_mode) != wanted.mode:
        os.chmod(fd, wanted.mode)
    os.utime(fd, ns=(made.st_atime_ns, wanted.mtime_ns))


def set_on_found(fd: int, now: os.stat_result, wanted: Metadata, *, owner: bool) -> None:
    """The same for an open file that keeps its content, `now` being its stat. Only what differs is set.

    The mtime first: a write that came between that stat and this would not be seen any more.
    """
    if now.st_mtime_ns != wanted.mtime_ns:
        os.utime(fd, ns=(now.st_atime_ns, wanted.mtime_ns))
    chowned = owner and (now.st_uid != wanted.uid or now.st_gid != wanted.gid)
    if chowned:
        os.chown(fd, wanted.uid, wanted.gid)
    if chowned or stat.S_IMODE(now.st_mode) != wanted.mode:
        os.chmod(fd, wanted.mode)


def set_on_name(name: bytes, directory: int, now: os.stat_result, wanted: Metadata, *, owner: bool) -> None:
    """The same for an entry of the directory open at `directory`, a symlink itself included (its mode
    stays)."""
    chowned = owner and (now.st_uid != wanted.uid or now.st_gid != wanted.gid)
    if chowned:
        os.chown(name, wanted.uid, wanted.gid, dir_fd=directory, follow_symlinks=False)
    if (chowned or stat.S_IMODE(now.st_mode) != wanted.mode) and not stat.S_ISLNK(now.st_mode):
        _chmod(name, directory, wanted.mode)
    if now.st_mtime_ns != wanted.mtime_ns:
        times = (now.st_atime_ns, wanted.mtime_ns)
        os.utime(name, ns=times, dir_fd=directory, follow_symlinks=False)


def _chmod(name: bytes, directory: int, mode: int) -> None:
    """chmod that follows no link and needs no permission to open the entry."""
    try:
        chmod_no_follow(name, directory, mode)
    except OSError as error:
        # EPERM is also what seccomp filters answer to calls they do not know.
        if error.errno not in {errno.ENOSYS, errno.EPERM, errno.EINVAL}:
            raise
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            # The kernel refuses fchmod on O_PATH; its name under /proc leads to the very object it holds.
            # Were that a symlink by now, chmod would refuse it too.
            os.chmod(b"/proc/self/fd/%d" % fd, mode)
        finally:
            os.close(fd)
