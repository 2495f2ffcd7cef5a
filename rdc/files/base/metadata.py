"""Sets owner, mode and mtime: only differing values, in an order that keeps setuid bits and never grants more
access than the entry had before or gets in the end."""

from __future__ import annotations

import errno
import os
import stat
from functools import partial

from rdc.files.base.entry_path import leading_to
from rdc.files.base.shortfalls import Shortfall, strictly
from rdc.files.base.syscalls import chmod_no_follow
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import packed_time, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.base.shortfalls import Attempt

__all__ = [
    "KIND_OF_FORMAT",
    "changes_access",
    "kind_of",
    "metadata_of",
    "narrow_name",
    "narrowed",
    "narrowed_metadata",
    "set_mode_on_name",
    "set_on_descriptor",
    "set_on_found",
    "set_on_name",
    "would_change",
]

KIND_OF_FORMAT = bytes(
    {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.DIRECTORY, stat.S_IFLNK: Kind.SYMLINK}.get(
        code << 12, Kind.SPECIAL
    )
    if code < 16
    else 0
    for code in range(256)
)
"""The Kind for each value of st_mode >> 12, as a table for bytes.translate."""


def kind_of(mode: int) -> Kind:
    """Return the Kind of a st_mode."""
    return Kind(KIND_OF_FORMAT[mode >> 12])


def metadata_of(found: os.stat_result) -> Metadata:
    """Return the metadata in a stat."""
    return Metadata(stat.S_IMODE(found.st_mode), packed_time(found.st_mtime_ns), found.st_uid, found.st_gid)


def narrowed(mode: int, wanted: int) -> int:
    """Return permission bits `mode` without the rights of group and others that `wanted` does not grant.

    Setuid and setgid bits that are not in `wanted` are removed as well. The owner's bits stay, because an
    owner may set them at any time. The sticky bit stays, because it removes rights.
    """
    return mode & (stat.S_ISVTX | stat.S_IRWXU | wanted) | wanted & stat.S_ISVTX


def narrowed_metadata(
    now: os.stat_result, wanted: Metadata, *, owner: bool, mode: int | None = None
) -> Metadata:
    """Return the metadata that `narrow_name` leaves; `now` is the entry's stat, and `mode` its mode by
    then."""
    uid, gid = (wanted.uid, wanted.gid) if owner else (now.st_uid, now.st_gid)
    mode = narrowed(stat.S_IMODE(now.st_mode if mode is None else mode), wanted.mode)
    if _is_chowned(now, wanted, owner=owner) and not stat.S_ISDIR(now.st_mode):
        # chown(2) clears setuid, and setgid where the group may execute.
        mode &= ~(stat.S_ISUID | (stat.S_ISGID if mode & stat.S_IXGRP else 0))
    return Metadata(mode, packed_time(now.st_mtime_ns), uid, gid)


def changes_access(now: os.stat_result, wanted: Metadata, *, owner: bool) -> bool:
    """Return whether an entry that is no symlink needs another mode or owner; `now` is its stat."""
    return stat.S_IMODE(now.st_mode) != wanted.mode or _is_chowned(now, wanted, owner=owner)


def _is_chowned(now: os.stat_result, wanted: Metadata, *, owner: bool) -> bool:
    return owner and (now.st_uid != wanted.uid or now.st_gid != wanted.gid)


def _set_access(
    now: os.stat_result,
    wanted: Metadata,
    owner: bool,
    chown: Callable[[int, int], None],
    chmod: Callable[[int], None],
    attempt: Attempt = strictly,
) -> None:
    """Set owner and mode of an entry, without granting more access at any moment than before or in the end.

    `now` is the entry's stat. If its owner changes, the mode is narrowed first, because the old mode may
    grant the new group more than the wanted one does. chown follows, because it clears setuid and setgid
    bits. The wanted mode is set last, without these bits if the owner could not be set. It is not
    set in vain: some file systems refuse that.
    """
    mode, final = stat.S_IMODE(now.st_mode), wanted.mode
    chowned = _is_chowned(now, wanted, owner=owner)
    if chowned:
        safe = narrowed(mode, wanted.mode)
        if safe != mode and attempt(Shortfall.MODE, partial(chmod, safe)):
            mode = safe
        if not attempt(Shortfall.OWNER, partial(chown, wanted.uid, wanted.gid)):
            final &= ~(stat.S_ISUID | stat.S_ISGID)
    if mode != final or (chowned and final & (stat.S_ISUID | stat.S_ISGID)):
        attempt(Shortfall.MODE, partial(chmod, final))


def set_on_descriptor(
    fd: int,
    made: os.stat_result,
    wanted: Metadata,
    *,
    owner: bool,
    timed: bool = True,
    attempt: Attempt = strictly,
) -> None:
    """Set the metadata of the file open at `fd`; `made` is its stat from before it was written. Raises
    OSError.

    The mtime is always set, unless `timed` is false. Writing moved it, even if the wanted mtime equals the
    one at creation, when both fall in one tick of the clock. os.utime also wants an atime and gets the
    present one.
    """
    _set_access(made, wanted, owner, partial(os.chown, fd), partial(os.chmod, fd), attempt)
    if timed:
        times = (made.st_atime_ns, real_time(wanted.mtime_ns))
        attempt(Shortfall.TIME, partial(os.utime, fd, ns=times))


def set_on_found(fd: int, now: os.stat_result, wanted: Metadata, *, owner: bool) -> None:
    """Set the metadata of an open file whose content stays; `now` is its stat. Only differing values are set.
    Raises OSError.

    The mtime is set first, because it would hide a write made between the stat and this call.
    """
    if packed_time(now.st_mtime_ns) != wanted.mtime_ns:
        os.utime(fd, ns=(now.st_atime_ns, real_time(wanted.mtime_ns)))
    _set_access(now, wanted, owner, partial(os.chown, fd), partial(os.chmod, fd))


def set_on_name(
    name: bytes,
    directory: int,
    now: os.stat_result,
    wanted: Metadata,
    *,
    owner: bool,
    attempt: Attempt = strictly,
) -> None:
    """Set the metadata of an entry of the open directory `directory`; `now` is its stat. Only differing
    values are set. Raises OSError.

    A symlink itself is set; its mode stays.
    """
    if _is_chowned(now, wanted, owner=owner):
        chown = partial(os.chown, name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(now.st_mode):
            attempt(Shortfall.OWNER, partial(chown, wanted.uid, wanted.gid))
        else:
            _set_access(now, wanted, owner, chown, partial(set_mode_on_name, name, directory), attempt)
    elif stat.S_IMODE(now.st_mode) != wanted.mode and not stat.S_ISLNK(now.st_mode):
        attempt(Shortfall.MODE, partial(set_mode_on_name, name, directory, wanted.mode))
    if packed_time(now.st_mtime_ns) != wanted.mtime_ns:
        times = (now.st_atime_ns, real_time(wanted.mtime_ns))
        utime = partial(os.utime, name, ns=times, dir_fd=directory, follow_symlinks=False)
        attempt(Shortfall.TIME, utime)


def would_change(now: os.stat_result, wanted: Metadata, *, owner: bool) -> bool:
    """Return whether `set_on_name` would set anything on an entry whose stat is `now`."""
    return (
        packed_time(now.st_mtime_ns) != wanted.mtime_ns
        or (owner and (now.st_uid != wanted.uid or now.st_gid != wanted.gid))
        or (stat.S_IMODE(now.st_mode) != wanted.mode and not stat.S_ISLNK(now.st_mode))
    )


def narrow_name(name: bytes, directory: int, now: os.stat_result, wanted: Metadata, *, owner: bool) -> bool:
    """Remove rights of group and others that `wanted` does not grant, and with `owner` set uid and gid.

    The entry is no symlink and `now` is its stat. Returns whether anything changed. Only `set_on_name` widens
    it again. Raises OSError.
    """
    mode = stat.S_IMODE(now.st_mode)
    safe = narrowed(mode, wanted.mode)
    if safe != mode:
        set_mode_on_name(name, directory, safe)
    chowned = _is_chowned(now, wanted, owner=owner)
    if chowned:
        os.chown(name, wanted.uid, wanted.gid, dir_fd=directory, follow_symlinks=False)
    return chowned or safe != mode


def set_mode_on_name(name: bytes, directory: int, mode: int) -> None:
    """Set the mode of an entry without following a link and without opening it. Raises OSError."""
    try:
        chmod_no_follow(name, directory, mode)
    except OSError as error:
        # EPERM is also the answer of seccomp filters to unknown calls.
        if error.errno not in {errno.ENOSYS, errno.EPERM, errno.EINVAL}:
            raise
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            # The kernel refuses fchmod on O_PATH descriptors, but accepts their path below /proc, which leads
            # to the object itself. If that is a symlink by now, chmod refuses it too.
            with leading_to(fd, directory, name) as entry:
                os.chmod(entry, mode)
        finally:
            os.close(fd)
