"""Serves the file system of limited_mount.py: python -m tests.support.storage.limited_server POINT BEHIND."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import stat
import sys
import time
from typing import Any, NoReturn

os.environ["FUSE_LIBRARY_NAME"] = "fuse3"  # version 2 does not pass the flags of a rename

import mfusepy

from tests.support.storage.limited_mount import CONTROL, PLAIN, Oddities

__all__: list[str] = []

_UTIME_NOW, _UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
_NO_REPLACE = 1
_SYSTEM = (
    "f_bavail",
    "f_bfree",
    "f_blocks",
    "f_bsize",
    "f_favail",
    "f_ffree",
    "f_files",
    "f_frsize",
    "f_namemax",
)


def _refuse(name: str) -> NoReturn:
    number = getattr(errno, name)
    raise OSError(number, os.strerror(number))


def _check(name: str) -> None:
    """Fail as a field of Oddities says."""
    if name:
        _refuse(name)


class Passing(mfusepy.Operations):  # type: ignore[misc] # mfusepy has no types
    """Passes each call on to the directory, as far as it is not odd."""

    use_ns = True

    def __init__(self, behind: str) -> None:
        self._behind = behind
        self.odd = PLAIN
        self._numbers = itertools.count(1000)
        self._inodes: dict[str, int] = {}
        self._writing: dict[int, str] = {}
        """The real paths of files that are open for writing."""
        self._dirty: set[int] = set()
        self._changes = 0

    def _change(self, *refusals: str) -> None:
        """Count a call that changes something, unless it is refused."""
        for name in refusals:
            _check(name)
        self._changes += 1

    def _real(self, path: str) -> str:
        if not self.odd.folds:
            return self._behind + path
        real = self._behind
        for name in path.strip("/").split("/"):
            there = os.path.join(real, name)
            if name and not os.path.lexists(there):
                with contextlib.suppress(OSError):
                    alike = [other for other in os.listdir(real) if other.casefold() == name.casefold()]
                    there = os.path.join(real, alike[0]) if alike else there
            real = there
        return real

    def _rounded(self, time_ns: int) -> int:
        step = self.odd.step
        if self.odd.rounding == "float":
            return int(time_ns / 1e9 * 1e9)
        time_ns += {"near": step // 2, "up": step - 1}.get(self.odd.rounding, 0)
        return time_ns - time_ns % step

    # Looks

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        odd, found = self.odd, os.lstat(self._real(path))
        mode, is_directory = found.st_mode, stat.S_ISDIR(found.st_mode)
        if not stat.S_ISLNK(mode):
            fixed = odd.directory_mode if is_directory else odd.file_mode
            mode = stat.S_IFMT(mode) | mode & odd.modes | fixed & ~odd.modes
        now = time.time_ns()
        mtime = now if is_directory and odd.directory_times == "now" else found.st_mtime_ns
        return {
            "st_mode": mode,
            "st_ino": self._inode(path, found),
            "st_nlink": {0: found.st_nlink, -1: 0}.get(odd.links, odd.links),
            "st_uid": found.st_uid if odd.owner < 0 else odd.owner,
            "st_gid": found.st_gid if odd.owner < 0 else odd.owner,
            "st_size": found.st_size,
            "st_blocks": found.st_blocks,
            "st_rdev": found.st_rdev,
            "st_atime": found.st_atime_ns,
            "st_mtime": self._rounded(mtime),
            "st_ctime": self._rounded(now if odd.ctime == "now" else found.st_ctime_ns),
        }

    def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, Any], int]]:
        below = path.rstrip("/") + "/"
        found: list[tuple[str, dict[str, Any], int]] = [(".", self.getattr(path), 0), ("..", {}, 0)]
        for name in os.listdir(self._real(path)):
            with contextlib.suppress(OSError):
                found.append((name, self.getattr(below + name), 0))
        return found

    def readlink(self, path: str) -> str:
        return os.readlink(self._real(path))

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._behind)
        return {name: getattr(found, name) for name in _SYSTEM}

    # Files

    def _opened(self, path: str, flags: int, mode: int = 0) -> int:
        fd = os.open(self._real(path), flags & ~os.O_NOFOLLOW, mode)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            self._writing[fd] = self._real(path)
        return fd

    def create(self, path: str, mode: int, fi: int = 0) -> int:
        self._change(self.odd.exclusive if fi & os.O_EXCL else "")
        fd = self._opened(path, fi | os.O_CREAT, mode & 0o7777)
        self._dirty.add(fd)
        self._give(path)
        return fd

    def open(self, path: str, flags: int) -> int:
        return self._opened(path, flags & ~(os.O_CREAT | os.O_EXCL))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._change(self.odd.seek if offset != os.fstat(fh).st_size else "")
        self._dirty.add(fh)
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        self._change(self.odd.grow if length > os.lstat(self._real(path)).st_size else "")
        os.truncate(self._real(path) if fh is None else fh, length)

    def flush(self, path: str, fh: int) -> None:
        if self.odd.time_at_close and fh in self._dirty:
            os.utime(fh)

    def release(self, path: str, fh: int) -> None:
        self.flush(path, fh)
        self._dirty.discard(fh)
        self._writing.pop(fh, None)
        os.close(fh)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        _check(self.odd.fsync)

    def fsyncdir(self, path: str, datasync: int, fh: int) -> None:
        _check(self.odd.fsyncdir)

    def flock(self, path: str, fh: int, op: int) -> None:
        _check(self.odd.flock)
        fcntl.flock(fh, op)

    def fallocate(self, path: str, mode: int, offset: int, size: int, fh: int) -> None:
        _refuse(self.odd.fallocate)

    # Metadata

    def _change_metadata(self, path: str, *refusals: str) -> None:
        self._change(self.odd.change_open if self._real(path) in self._writing.values() else "", *refusals)

    def chmod(self, path: str, mode: int) -> None:
        self._change_metadata(path, self.odd.chmod)
        os.chmod(self._real(path), stat.S_IMODE(mode))

    def chown(self, path: str, uid: int, gid: int) -> None:
        ignored = self.odd.chown == "ignored"
        self._change_metadata(path, "" if ignored else self.odd.chown)
        if not ignored:
            os.chown(self._real(path), uid, gid, follow_symlinks=False)

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
        odd, real = self.odd, self._real(path)
        found = os.lstat(real)
        how = odd.times
        if how == "kept" and stat.S_ISDIR(found.st_mode):
            how = odd.directory_times
        elif how == "kept" and stat.S_ISLNK(found.st_mode):
            how = odd.link_times
        silent = how in {"kept", "ignored", "now"}
        self._change_metadata(path, "" if silent else how)
        if how == "kept":
            atime, mtime = times or (_UTIME_NOW, _UTIME_NOW)
            chosen = _chosen(atime, found.st_atime_ns), self._rounded(_chosen(mtime, found.st_mtime_ns))
            os.utime(real, ns=chosen, follow_symlinks=False)

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> None:
        if (path, name) == ("/", CONTROL):
            self.odd = Oddities(**json.loads(value))
            return
        self._change(self.odd.xattrs)
        os.setxattr(self._real(path), name, value, options, follow_symlinks=False)

    def getxattr(self, path: str, name: str, position: int = 0) -> bytes:
        if (path, name) == ("/", CONTROL):
            return b"%d" % self._changes
        _check(self.odd.xattrs)
        return os.getxattr(self._real(path), name, follow_symlinks=False)

    def listxattr(self, path: str) -> list[str]:
        _check(self.odd.xattrs)
        return os.listxattr(self._real(path), follow_symlinks=False)

    def removexattr(self, path: str, name: str) -> None:
        self._change(self.odd.xattrs)
        os.removexattr(self._real(path), name, follow_symlinks=False)

    # Names

    def _give(self, path: str) -> None:
        """Give a new entry to the user who made it."""
        uid, gid, _ = mfusepy.fuse_get_context()
        os.chown(self._real(path), uid, gid, follow_symlinks=False)

    def mkdir(self, path: str, mode: int) -> None:
        self._change()
        os.mkdir(self._real(path), mode)
        self._give(path)

    def _inode(self, path: str, found: os.stat_result) -> int:
        if self.odd.inodes == "by name":
            return self._inodes.setdefault(path, len(self._inodes) + 1)
        return {"kept": found.st_ino, "same": 1}.get(self.odd.inodes) or next(self._numbers)

    def mknod(self, path: str, mode: int, dev: int) -> None:
        if self.odd.mknod == "another kind":
            os.close(os.open(self._real(path), os.O_CREAT | os.O_EXCL, 0o600))
            _refuse("EIO")
        self._change(self.odd.mknod)
        os.mknod(self._real(path), mode, dev)
        self._give(path)

    def symlink(self, target: str, source: str) -> None:
        self._change(self.odd.symlink)
        os.symlink(source, self._real(target))
        self._give(target)

    def link(self, target: str, source: str) -> None:
        self._change(self.odd.link)
        os.link(self._real(source), self._real(target), follow_symlinks=False)

    def unlink(self, path: str) -> None:
        self._change()
        os.unlink(self._real(path))

    def rmdir(self, path: str) -> None:
        self._change()
        os.rmdir(self._real(path))

    def rename(self, old: str, new: str, flags: int = 0) -> None:
        odd, source, target = self.odd, self._real(old), self._real(new)
        if flags and odd.flags != "ignored":
            _check(odd.flags or ("EEXIST" if os.path.lexists(target) else ""))
            _check("" if flags == _NO_REPLACE else "EINVAL")
        busy = odd.rename_open if source in self._writing.values() else ""
        self._change(busy, odd.rename_over if os.path.lexists(target) and target != source else "")
        os.rename(source, target)
        self._writing = {fd: target if path == source else path for fd, path in self._writing.items()}
        if odd.time_at_rename:
            os.utime(target, follow_symlinks=False)


class Mount(mfusepy.FUSE):  # type: ignore[misc] # mfusepy has no types
    """Also passes what the library leaves out: flags of a rename, and times that are to stay."""

    def rename_fuse_3(self, old: bytes, new: bytes, flags: int) -> int:
        self.operations.rename(os.fsdecode(old), os.fsdecode(new), flags)
        return 0

    def utimens_fuse_3(self, path: bytes, buf: Any, fip: Any) -> int:
        def of(spec: Any) -> int:
            special = spec.tv_nsec in {_UTIME_NOW, _UTIME_OMIT}
            return int(spec.tv_nsec if special else spec.tv_sec * 10**9 + spec.tv_nsec)

        times = (of(buf.contents.actime), of(buf.contents.modtime)) if buf else None
        self.operations.utimens(os.fsdecode(path), times)
        return 0


def _chosen(given: int, present: int) -> int:
    """The time that utimensat is to set; `present`: the one that the file has."""
    return time.time_ns() if given == _UTIME_NOW else present if given == _UTIME_OMIT else given


if __name__ == "__main__":
    os.umask(0)
    Mount(
        Passing(sys.argv[2]),
        sys.argv[1],
        foreground=True,
        nothreads=True,
        allow_other=True,
        fsname="odd",
        subtype="odd",
        use_ino=True,
        hard_remove=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
    )
