"""A FUSE file system of the tests that shows a directory and keeps less of its entries than Linux promises.

Each field of Oddities is one thing that real file systems do: network mounts, FUSE programs, FAT and NTFS.
python -m tests.support.storage.odd_file_system MOUNT_POINT DIRECTORY JSON serves one until it is unmounted.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support.project_paths import TOP

__all__ = ["Oddities", "odd_mounted"]

MOUNT_SECONDS = 20
_UTIME_NOW, _UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2


@dataclass(frozen=True)
class Oddities:
    """What is odd about a file system. The default of each field is what Linux promises."""

    step: int = 1
    """Nanoseconds. Times are multiples of it."""
    rounding: str = "down"
    """down, up, near or float: a time is kept in a double of seconds."""
    times: str = "kept"
    """kept, ignored (utimensat succeeds and changes nothing), or an errno's name."""
    directory_times: str = "kept"
    """The same for directories; now: a directory's time is the time of day."""
    link_times: str = "kept"
    time_at_close: bool = False
    """Closing a file that was written gives it the time of day."""
    time_at_rename: bool = False
    ctime: str = "kept"
    """kept, or now: it is the time of day at each look."""
    modes: int = 0o7777
    """The bits that chmod changes. The others are those of `file_mode` and `directory_mode`."""
    file_mode: int = 0o755
    directory_mode: int = 0o755
    chmod: str = "kept"
    """kept or an errno's name."""
    owner: int = -1
    """The user and group of everything; -1: as set."""
    chown: str = "kept"
    """kept, ignored or an errno's name."""
    link: str = ""
    """An errno's name, as in the next fields; empty: it works."""
    symlink: str = ""
    mknod: str = ""
    flags: str = ""
    """Of renameat2 with flags; ignored: a rename that replaces."""
    rename_over: str = ""
    """Of a rename to a name that is taken."""
    rename_open: str = ""
    """Of a rename of a file that is open for writing."""
    change_open: str = ""
    """Of chmod, chown and utimensat of a file that is open for writing."""
    exclusive: str = ""
    """Of open with O_EXCL."""
    fallocate: str = "EOPNOTSUPP"
    grow: str = ""
    """Of truncate to a greater size."""
    seek: str = ""
    """Of a write that is not at the end of the file."""
    fsync: str = ""
    fsyncdir: str = ""
    flock: str = ""
    xattrs: str = ""
    inodes: str = "kept"
    """kept, random (another at each look) or same (all have one)."""
    links: int = 0
    """The link count of everything; 0: as it is, -1: 0."""
    folds: bool = False
    """Whether names differ in more than letter case."""
    extra: dict[str, str] = field(default_factory=dict)
    """Mount options."""


@contextlib.contextmanager
def odd_mounted(point: Path, behind: Path, oddities: Oddities) -> Iterator[Path]:
    """Mount at `point` what is in `behind`. Fails, not skips, where FUSE is not to be had."""
    point.mkdir(parents=True, exist_ok=True)
    behind.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "tests.support.storage.odd_file_system", point, behind]
    server = subprocess.Popen([*words, json.dumps(asdict(oddities))], cwd=TOP)
    try:
        end = time.monotonic() + MOUNT_SECONDS
        while not os.path.ismount(point):
            if server.poll() is not None or time.monotonic() > end:
                pytest.fail("these tests need root, /dev/fuse and libfuse (fuse3)")
            time.sleep(0.01)
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=False, capture_output=True)
        try:
            server.wait(MOUNT_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _refuse(name: str) -> NoReturn:
    number = getattr(errno, name)
    raise OSError(number, os.strerror(number))


def _serve(point: str, behind: str, text: str) -> None:
    os.environ["FUSE_LIBRARY_NAME"] = "fuse3"  # version 2 does not pass the flags of a rename
    import mfusepy

    odd = Oddities(**json.loads(text))
    numbers = itertools.count(1000)

    def rounded(time_ns: int) -> int:
        if odd.rounding == "float":
            return int(time_ns / 1e9 * 1e9)
        if odd.rounding == "near":
            time_ns += odd.step // 2
        elif odd.rounding == "up":
            time_ns += odd.step - 1
        return time_ns - time_ns % odd.step

    class Passing(mfusepy.Operations):  # type: ignore[misc]
        """Passes each call on to the directory."""

        use_ns = True

        def __init__(self) -> None:
            self._writing: dict[int, str] = {}
            """The real paths of files that are open for writing."""
            self._dirty: set[int] = set()

        def real(self, path: str) -> str:
            if not odd.folds:
                return behind + path
            real = behind
            for name in path.strip("/").split("/"):
                if not name:
                    continue
                there = os.path.join(real, name)
                if not os.path.lexists(there):
                    with contextlib.suppress(OSError):
                        for other in os.listdir(real):
                            if other.casefold() == name.casefold():
                                there = os.path.join(real, other)
                real = there
            return real

        # Looks

        def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
            found = os.lstat(self.real(path))
            mode, is_directory = found.st_mode, stat.S_ISDIR(found.st_mode)
            if not stat.S_ISLNK(mode):
                fixed = odd.directory_mode if is_directory else odd.file_mode
                mode = stat.S_IFMT(mode) | mode & odd.modes | fixed & ~odd.modes
            now = time.time_ns()
            mtime = now if is_directory and odd.directory_times == "now" else found.st_mtime_ns
            inode = {"kept": found.st_ino, "same": 1}.get(odd.inodes) or next(numbers)
            return {
                "st_mode": mode,
                "st_ino": inode,
                "st_nlink": {0: found.st_nlink, -1: 0}.get(odd.links, odd.links),
                "st_uid": found.st_uid if odd.owner < 0 else odd.owner,
                "st_gid": found.st_gid if odd.owner < 0 else odd.owner,
                "st_size": found.st_size,
                "st_blocks": found.st_blocks,
                "st_rdev": found.st_rdev,
                "st_atime": found.st_atime_ns,
                "st_mtime": rounded(mtime),
                "st_ctime": rounded(now if odd.ctime == "now" else found.st_ctime_ns),
            }

        def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, Any], int]]:
            below = path.rstrip("/") + "/"
            found = []
            for name in os.listdir(self.real(path)):
                with contextlib.suppress(OSError):
                    found.append((name, self.getattr(below + name), 0))
            return [(".", self.getattr(path), 0), ("..", {}, 0), *found]

        def readlink(self, path: str) -> str:
            return os.readlink(self.real(path))

        def statfs(self, path: str) -> dict[str, int]:
            found = os.statvfs(behind)
            names = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files")
            return {name: getattr(found, name) for name in (*names, "f_frsize", "f_namemax")}

        # Files

        def _opened(self, path: str, flags: int, mode: int = 0) -> int:
            fd = os.open(self.real(path), flags & ~os.O_NOFOLLOW, mode)
            if flags & os.O_ACCMODE != os.O_RDONLY:
                self._writing[fd] = self.real(path)
            return fd

        def create(self, path: str, mode: int, fi: int = 0) -> int:
            if odd.exclusive and fi & os.O_EXCL:
                _refuse(odd.exclusive)
            fd = self._opened(path, fi | os.O_CREAT, mode & 0o7777)
            self._dirty.add(fd)
            self._give(path)
            return fd

        def open(self, path: str, flags: int) -> int:
            return self._opened(path, flags & ~(os.O_CREAT | os.O_EXCL))

        def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
            return os.pread(fh, size, offset)

        def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
            if odd.seek and offset != os.fstat(fh).st_size:
                _refuse(odd.seek)
            self._dirty.add(fh)
            return os.pwrite(fh, data, offset)

        def truncate(self, path: str, length: int, fh: int | None = None) -> None:
            if odd.grow and length > os.lstat(self.real(path)).st_size:
                _refuse(odd.grow)
            os.truncate(self.real(path) if fh is None else fh, length)

        def flush(self, path: str, fh: int) -> None:
            if odd.time_at_close and fh in self._dirty:
                os.utime(fh)

        def release(self, path: str, fh: int) -> None:
            if odd.time_at_close and fh in self._dirty:
                os.utime(fh)
            self._dirty.discard(fh)
            self._writing.pop(fh, None)
            os.close(fh)

        def fsync(self, path: str, datasync: int, fh: int) -> None:
            if odd.fsync:
                _refuse(odd.fsync)

        def fsyncdir(self, path: str, datasync: int, fh: int) -> None:
            if odd.fsyncdir:
                _refuse(odd.fsyncdir)

        def flock(self, path: str, fh: int, op: int) -> None:
            import fcntl

            if odd.flock:
                _refuse(odd.flock)
            fcntl.flock(fh, op)

        def fallocate(self, path: str, mode: int, offset: int, size: int, fh: int) -> None:
            _refuse(odd.fallocate)

        # Metadata

        def _check_open(self, path: str) -> None:
            if odd.change_open and self.real(path) in self._writing.values():
                _refuse(odd.change_open)

        def chmod(self, path: str, mode: int) -> None:
            self._check_open(path)
            if odd.chmod != "kept":
                _refuse(odd.chmod)
            os.chmod(self.real(path), stat.S_IMODE(mode))

        def chown(self, path: str, uid: int, gid: int) -> None:
            self._check_open(path)
            if odd.chown not in {"kept", "ignored"}:
                _refuse(odd.chown)
            if odd.chown == "kept":
                os.chown(self.real(path), uid, gid, follow_symlinks=False)

        def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
            self._check_open(path)
            real = self.real(path)
            found = os.lstat(real)
            how = odd.times
            if stat.S_ISDIR(found.st_mode):
                how = odd.directory_times if how == "kept" else how
            elif stat.S_ISLNK(found.st_mode):
                how = odd.link_times if how == "kept" else how
            if how in {"ignored", "now"}:
                return
            if how != "kept":
                _refuse(how)
            atime, mtime = times or (_UTIME_NOW, _UTIME_NOW)
            chosen = (_chosen(atime, found.st_atime_ns), _chosen(mtime, found.st_mtime_ns))
            os.utime(real, ns=(chosen[0], rounded(chosen[1])), follow_symlinks=False)

        # Names

        def _give(self, path: str) -> None:
            """Give a new entry to the user who made it."""
            uid, gid, _ = mfusepy.fuse_get_context()
            os.chown(self.real(path), uid, gid, follow_symlinks=False)

        def mkdir(self, path: str, mode: int) -> None:
            os.mkdir(self.real(path), mode)
            self._give(path)

        def mknod(self, path: str, mode: int, dev: int) -> None:
            if odd.mknod:
                _refuse(odd.mknod)
            os.mknod(self.real(path), mode, dev)
            self._give(path)

        def symlink(self, target: str, source: str) -> None:
            if odd.symlink:
                _refuse(odd.symlink)
            os.symlink(source, self.real(target))
            self._give(target)

        def link(self, target: str, source: str) -> None:
            if odd.link:
                _refuse(odd.link)
            os.link(self.real(source), self.real(target), follow_symlinks=False)

        def unlink(self, path: str) -> None:
            os.unlink(self.real(path))

        def rmdir(self, path: str) -> None:
            os.rmdir(self.real(path))

        def rename(self, old: str, new: str, flags: int = 0) -> None:
            if flags and odd.flags and odd.flags != "ignored":
                _refuse(odd.flags)
            source, target = self.real(old), self.real(new)
            if odd.rename_open and source in self._writing.values():
                _refuse(odd.rename_open)
            if flags == 1 and odd.flags != "ignored" and os.path.lexists(target):
                _refuse("EEXIST")
            if flags & ~1:
                _refuse("EINVAL")
            if odd.rename_over and os.path.lexists(target) and target != source:
                _refuse(odd.rename_over)
            os.rename(source, target)
            for fd, path in self._writing.items():
                if path == source:
                    self._writing[fd] = target
            if odd.time_at_rename:
                os.utime(target, follow_symlinks=False)

    if not odd.xattrs:

        def setxattr(self: Passing, path: str, name: str, value: bytes, options: int, _: int = 0) -> None:
            os.setxattr(self.real(path), name, value, options, follow_symlinks=False)

        def getxattr(self: Passing, path: str, name: str, _: int = 0) -> bytes:
            return os.getxattr(self.real(path), name, follow_symlinks=False)

        def listxattr(self: Passing, path: str) -> list[str]:
            return os.listxattr(self.real(path), follow_symlinks=False)

        def removexattr(self: Passing, path: str, name: str) -> None:
            os.removexattr(self.real(path), name, follow_symlinks=False)

        for function in (setxattr, getxattr, listxattr, removexattr):
            setattr(Passing, function.__name__, function)
    else:

        def refused(*_: object) -> NoReturn:
            _refuse(odd.xattrs)

        for name in ("setxattr", "getxattr", "listxattr", "removexattr"):
            setattr(Passing, name, refused)

    class Mount(mfusepy.FUSE):  # type: ignore[misc]
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

    os.umask(0)
    options: dict[str, Any] = {"attr_timeout": 0, "entry_timeout": 0, "negative_timeout": 0}
    Mount(
        Passing(),
        point,
        foreground=True,
        nothreads=True,
        allow_other=True,
        fsname="odd",
        subtype="odd",
        use_ino=True,
        hard_remove=True,
        **options,
        **odd.extra,
    )


def _chosen(given: int, present: int) -> int:
    """The time that utimensat is to set; `present`: the one that the file has."""
    return time.time_ns() if given == _UTIME_NOW else present if given == _UTIME_OMIT else given


if __name__ == "__main__":
    _serve(*sys.argv[1:])
