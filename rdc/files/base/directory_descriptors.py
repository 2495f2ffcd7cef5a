"""Descriptors of directories, reached without a link, and what file systems keep stable of stats."""

from __future__ import annotations

import errno
import os
import stat
import time
from _thread import allocate_lock  # threading costs each side of a remote sync 1.4 ms
from collections.abc import Callable

from rdc.files.base.syscalls import file_system_type, open_directory_beneath, share_of_descriptors
from rdc.model.entries import ALL_FIELDS, ComparedFields, Identity, is_same_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from rdc.model.preserved import FileSystemFacts


# What this process knows of the file systems that it opened, by device number: a stat has that and no more.
#
# The type of a file system decides until its facts have been learned (rdc.files.facts.file_systems).

VOLATILE_TYPES = {
    0x4D44: "vfat",
    0x2011BAB0: "exfat",
    0x65735546: "fuse",
    0xFF534D42: "cifs",
    0xFE534D42: "smb2",
    0x517B: "smbfs",
}
"""By f_type of statfs(2). FAT has no change time, and the kernel makes up its inode numbers. FUSE and SMB
return what their servers choose: often the mtime, and another inode number after a while."""

_VOLATILE = ComparedFields(inode=False, ctime=False)

_types: dict[int, int] = {}
"""The type of file system that each device was met with: a device number may be given again."""
_stable: dict[int, ComparedFields] = {}
_replacing: set[int] = set()
"""Devices on which a rename replaces what it is told not to replace."""


def meet(fd: int) -> ComparedFields:
    """Return what the file system of `fd` keeps stable. It is noted by its type, unless it is known. Never
    raises."""
    try:
        device, type_ = os.fstat(fd).st_dev, file_system_type(fd)
    except OSError:
        return ALL_FIELDS
    if _types.get(device) != type_:
        _types[device] = type_
        _stable[device] = _VOLATILE if type_ in VOLATILE_TYPES else ALL_FIELDS
        _replacing.discard(device)
    return _stable[device]


def note_facts(device: int, facts: FileSystemFacts) -> None:
    """Note what was learned of the file system with this device number."""
    _stable[device] = facts.stable
    if facts.no_replace:
        _replacing.discard(device)
    else:
        _replacing.add(device)


def honours_no_replace(directory: int) -> bool:
    """Return whether renameat2 without replacing can be relied on in an open directory. Raises OSError."""
    return not (_replacing and os.fstat(directory).st_dev in _replacing)


def stable_fields(device: int) -> ComparedFields:
    """Return the stable fields of stats with this device number."""
    return _stable.get(device, ALL_FIELDS)


def is_unchanged(before: Identity, now: Identity) -> bool:
    """Return whether two identities are of one entry that nobody changed in between, as far as its file
    system tells."""
    return is_same_entry(before, now, stable_fields(before.device))


def change_time(identity: Identity) -> int:
    """Return the time that any change of a file moves: its ctime, or its mtime where a ctime says nothing."""
    return identity.ctime_ns if stable_fields(identity.device).ctime else identity.mtime_ns


def same_entry(a: os.stat_result, b: os.stat_result) -> bool:
    """Return whether two stats are of one entry, as far as its file system tells. Where inode numbers are not
    stable, any two entries of one kind on one file system may be."""
    if a.st_dev != b.st_dev:
        return False
    return a.st_ino == b.st_ino or not stable_fields(a.st_dev).inode


# Descriptors of directories below a root: opened without following a link, cached briefly, closed when
# unused.

CACHED_DIRECTORIES = 64
"""Descriptors cached, fewer if the descriptor limit is low. A depth-first walk needs as many as the tree is
deep."""

TRUSTED_SECONDS = 0.05
"""Age at which a cached descriptor is opened again. If another process moves a directory, operations continue
in the moved one for at most this time; a commit always checks. 20 opens per second and directory cost
nothing."""

SEGMENT_BYTES = 4000
"""Path bytes passed to one openat2 call. Below PATH_MAX (4,096)."""

# O_PATH needs search permission only. Nothing is read or written through these descriptors.
_WALK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Directory:
    """An open O_PATH descriptor. It closes with the last reference, so a cache can drop it while a writer
    still uses it."""

    __slots__ = ("fd", "opened")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.opened = time.monotonic()

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # `close` is bound as a default value, because at interpreter exit the module's names may be gone.
        if self.fd >= 0:
            close(self.fd)

    def close(self) -> None:
        """Close now. Other holders get EBADF from their next call."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def removed(self) -> bool:
        """Return whether the directory was removed from the file system. If so, it is empty."""
        return os.fstat(self.fd).st_nlink == 0

    def same(self, other: Directory) -> bool:
        """Return whether both are the same directory of the same file system, as far as that tells."""
        return same_entry(os.fstat(self.fd), os.fstat(other.fd))


class DirectoryCache:
    """Directories below one root, by relative path. Threads may share it.

    Invariant: every descriptor was reached from the root's without following a link. A stale descriptor is at
    worst a directory that was inside and has been moved. No planted symlink can redirect it.
    """

    def __init__(self, root: Directory) -> None:
        self._root = root
        self._cached: dict[bytes, Directory] = {}
        self._lock = allocate_lock()
        self._whole_paths = True
        self._limit = share_of_descriptors(CACHED_DIRECTORIES)

    def trusted(self, path: bytes) -> Directory | None:
        """Return the directory at `path` (b"" is the root) if it is cached for at most TRUSTED_SECONDS, and
        so its path was checked."""
        if not path:
            return self._root
        cached = self._cached.get(path)
        trusts = cached is not None and time.monotonic() - cached.opened < TRUSTED_SECONDS
        return cached if trusts else None

    def get_fresh(self, path: bytes) -> Directory:
        """Return the directory that `path` names now, opened from the root.

        The caller has checked the path. Raises OSError if a component is missing, no directory, or a link.
        """
        if not path:
            return self._root
        opened = self._open(path)
        with self._lock:
            # Removed and inserted again, so that insertion order is age and the oldest is evicted first.
            self._cached.pop(path, None)
            self._cached[path] = opened
            if len(self._cached) > self._limit:
                del self._cached[next(iter(self._cached))]
        return opened

    def forget(self, path: bytes) -> None:
        """Drop the descriptors of `path` and of everything below it."""
        with self._lock:
            below = path + b"/"
            for cached in [k for k in self._cached if not path or k == path or k.startswith(below)]:
                del self._cached[cached]

    def _open(self, path: bytes) -> Directory:
        if self._whole_paths:
            try:
                return self._walk(_segments(path), open_directory_beneath)
            except OSError as error:
                # EPERM: a seccomp filter does not know the call. EAGAIN: a rename interfered.
                if error.errno in {errno.ENOSYS, errno.EPERM}:
                    self._whole_paths = False
                elif error.errno not in {errno.EAGAIN, errno.EINTR}:
                    raise
        return self._walk(path.split(b"/"), _open_component)

    def _walk(self, steps: list[bytes], step: Callable[[int, bytes], int]) -> Directory:
        directory = self._root
        for name in steps:
            directory = Directory(step(directory.fd, name))
        return directory


def _open_component(directory: int, name: bytes) -> int:
    try:
        return os.open(name, _WALK, dir_fd=directory)
    except NotADirectoryError as error:
        # openat2 tells a link from a file; messages name it.
        if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
        raise


def _segments(path: bytes) -> list[bytes]:
    """Split `path` at slashes into segments that fit one system call."""
    segments = []
    while len(path) > SEGMENT_BYTES:
        # A component has at most 255 bytes, so the last 256 bytes contain a slash.
        cut = path.rindex(b"/", 0, SEGMENT_BYTES)
        segments.append(path[:cut])
        path = path[cut + 1 :]
    segments.append(path)
    return segments


class Closing:
    """A context manager that closes itself, for classes that hold descriptors."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
