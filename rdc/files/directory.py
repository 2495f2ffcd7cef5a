"""Descriptors of directories below a root: opened without following any link, kept for a moment, closed once
unused."""

from __future__ import annotations

import errno
import os
import time
from _thread import allocate_lock  # threading's locks are these
from collections.abc import Callable

from rdc.files.descriptors import share_of_descriptors
from rdc.files.syscalls import open_directory_beneath

__all__ = ["Directory", "DirectoryCache"]

CACHED_DIRECTORIES = 64
"""Descriptors kept, and fewer where the limit of them is low: a tree walked depth first needs its depth."""

TRUSTED_SECONDS = 0.05
"""A kept descriptor stands for its path this long and is then opened anew. When somebody moves a directory
away, what follows goes on there for at most this time (a commit checks always); 20 opens a second a directory
cost nothing."""

SEGMENT_BYTES = 4000
"""Path bytes given to one openat2: below PATH_MAX (4,096)."""

# O_PATH: passing through a directory needs search permission only, and nothing is read or written through
# these.
_WALK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Directory:
    """An open O_PATH descriptor, closed with the last reference: a cache may forget it while a writer goes
    on."""

    __slots__ = ("fd", "opened")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.opened = time.monotonic()

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # A default value: at interpreter exit the module may have lost its names already.
        if self.fd >= 0:
            close(self.fd)

    def close(self) -> None:
        """Now, whoever still refers to it: their next call fails with EBADF."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def removed(self) -> bool:
        """Whether the directory has been removed from the file system: then nothing can be in it."""
        return os.fstat(self.fd).st_nlink == 0

    def same(self, other: Directory) -> bool:
        """Whether both are the same directory of the same file system."""
        return os.path.samestat(os.fstat(self.fd), os.fstat(other.fd))


class DirectoryCache:
    """Directories below one root by relative path; safe to share between threads.

    Invariant: every descriptor was reached from the root's without following a link. So a stale one is at
    worst a directory that was inside and has been moved; no symlink planted anywhere can turn it into another
    place.
    """

    def __init__(self, root: Directory) -> None:
        self._root = root
        self._kept: dict[bytes, Directory] = {}
        self._lock = allocate_lock()
        self._whole_paths = True
        self._most = share_of_descriptors(CACHED_DIRECTORIES)

    def knows(self, path: bytes) -> bool:
        """Whether `path` has a descriptor, and so was checked before."""
        return path in self._kept

    def get(self, path: bytes) -> Directory:
        """The directory at `path` (b"" is the root): kept not longer than TRUSTED_SECONDS, or opened now.

        The caller has checked the path. Raises OSError when something on the way is missing, no directory or
        a link.
        """
        if not path:
            return self._root
        kept = self._kept.get(path)
        if kept is not None and time.monotonic() - kept.opened < TRUSTED_SECONDS:
            return kept
        return self.get_fresh(path)

    def get_fresh(self, path: bytes) -> Directory:
        """The directory that `path` names now, opened from the root."""
        if not path:
            return self._root
        opened = self._open(path)
        with self._lock:
            # Removed first, so that insertion order is age and the oldest goes first.
            self._kept.pop(path, None)
            self._kept[path] = opened
            if len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
        return opened

    def forget(self, path: bytes) -> None:
        """Drop the descriptors of `path` and of everything below it."""
        with self._lock:
            below = path + b"/"
            for kept in [k for k in self._kept if not path or k == path or k.startswith(below)]:
                del self._kept[kept]

    def _open(self, path: bytes) -> Directory:
        if self._whole_paths:
            try:
                return self._walk(_segments(path), open_directory_beneath)
            except OSError as error:
                # EPERM is what seccomp filters answer to calls they do not know. EAGAIN: a rename raced.
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
    return os.open(name, _WALK, dir_fd=directory)


def _segments(path: bytes) -> list[bytes]:
    """`path` cut at slashes into pieces that one system call takes."""
    segments = []
    while len(path) > SEGMENT_BYTES:
        # A component has at most 255 bytes, so there is a slash among the last 256.
        cut = path.rindex(b"/", 0, SEGMENT_BYTES)
        segments.append(path[:cut])
        path = path[cut + 1 :]
    segments.append(path)
    return segments
