"""Setting owner, mode and mtime through a descriptor: only what differs, in the order that keeps setuid
bits."""

from __future__ import annotations

import os
import stat

from rdc.model.entries import Kind, Metadata

__all__ = ["KIND_OF_FORMAT", "kind_of", "set_metadata_of", "through_path_descriptor"]

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


def set_metadata_of(target: int | bytes, now: os.stat_result, wanted: Metadata, *, owner: bool) -> None:
    """Give what `target` (a descriptor, or `through_path_descriptor`) names the wanted metadata; `now` is its
    stat.

    Raises OSError. chown comes before chmod: the kernel clears setuid and setgid bits when the owner changes.
    A symlink's mode means nothing and is left. os.utime wants an atime too: it gets the one that is there.
    """
    chowned = owner and (now.st_uid != wanted.uid or now.st_gid != wanted.gid)
    if chowned:
        os.chown(target, wanted.uid, wanted.gid)
    if (chowned or stat.S_IMODE(now.st_mode) != wanted.mode) and not stat.S_ISLNK(now.st_mode):
        os.chmod(target, wanted.mode)
    if now.st_mtime_ns != wanted.mtime_ns:
        os.utime(target, ns=(now.st_atime_ns, wanted.mtime_ns))


def through_path_descriptor(fd: int) -> bytes:
    """A name for what an O_PATH descriptor holds, where the kernel refuses the descriptor itself.

    It leads to that very object, a symlink included: nothing is followed and nobody can swap the entry in
    between.
    """
    return b"/proc/self/fd/%d" % fd
