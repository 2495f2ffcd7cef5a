"""Reads and sets access times, which count as attributes of entries (--atimes)."""

from __future__ import annotations

import errno
import os

from rdc.files.base.entry_path import leading_to
from rdc.files.base.syscalls import set_access_time
from rdc.files.facts.compared_entry import compared_entry
from rdc.model.preserved import ACCESS_TIME, ACCESS_TIME_BYTES, Attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.root.root import Root
    from rdc.model.entries import Kind

__all__ = ["access_time_at", "write_entry_access_time"]

_NS = 10**9


def access_time_at(directory: int, name: bytes) -> Attributes:
    """Return the access time of the entry `name` in an open directory, as an attribute. What is less than a
    second is cut off towards the past. Raises OSError."""
    return _access_time_of(os.stat(name, dir_fd=directory, follow_symlinks=False))


def write_entry_access_time(
    root: Root,
    path: bytes,
    kind: Kind,
    wanted: Attributes,
    *,
    is_meant: Callable[[os.stat_result], bool],
) -> None:
    """Set the access time in `wanted` of an entry that is no symlink; nothing if `wanted` has none. Its
    modification time stays. `is_meant` checks the stat of the open entry.

    Raises FileError. Raises FileChangedError if the entry has another kind or is not the intended one.
    """
    value = dict(wanted).get(ACCESS_TIME)
    if value is None:
        return

    def write(name: bytes, directory: int) -> None:
        with compared_entry(root, path, name, directory, kind, is_meant) as entry:
            now = entry.found
            if _access_time_of(now) != ((ACCESS_TIME, value),):
                root.check_made(path, now, "set its access time")
                seconds = int.from_bytes(value, "little", signed=True)
                try:
                    set_access_time(entry.fd, seconds)
                except OSError as error:
                    if error.errno not in {errno.ENOSYS, errno.EINVAL}:
                        raise
                    # Python sets both times, so a modification time that is set now would be lost.
                    with leading_to(entry.fd, directory, name) as target:
                        os.utime(target, ns=(seconds * _NS, now.st_mtime_ns))
                if root.writes.undo is not None:
                    root.writes.undo.changed(path, os.stat(name, dir_fd=directory, follow_symlinks=False))

    root.perform(path, "set its access time", write)


def _access_time_of(found: os.stat_result) -> Attributes:
    seconds = found.st_atime_ns // _NS
    return ((ACCESS_TIME, seconds.to_bytes(ACCESS_TIME_BYTES, "little", signed=True)),)
