"""File systems that keep less than Linux promises, and a tree with something of each kind for them."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.support.storage.limited_mount import PLAIN, Oddities

__all__ = ["CASES", "MOST_LINES", "SECOND", "WHEN", "State", "contents", "state", "write_source"]

SECOND = 10**9
WHEN = 1_700_000_000_123_456_789
MOST_LINES = 4
"""The most lines about problems and notices: one a kind, and each of these file systems has few kinds."""

CASES = {
    "nothing odd": PLAIN,
    "2 s": Oddities(step=2 * SECOND),
    "1 s": Oddities(step=SECOND),
    "100 ns": Oddities(step=100),
    "a minute": Oddities(step=60 * SECOND),
    "a day": Oddities(step=86_400 * SECOND),
    "2 s, rounded": Oddities(step=2 * SECOND, rounding="near"),
    "1 s, up": Oddities(step=SECOND, rounding="up"),
    "1 ms, rounded": Oddities(step=10**6, rounding="near"),
    "floating point": Oddities(rounding="float"),
    "times ignored": Oddities(times="ignored"),
    **{f"times {name}": Oddities(times=name) for name in ("EPERM", "ENOSYS", "EIO")},
    **{f"times of directories {how}": Oddities(directory_times=how) for how in ("ignored", "now", "EPERM")},
    **{f"times of symlinks {how}": Oddities(link_times=how) for how in ("ignored", "EOPNOTSUPP")},
    "time at close": Oddities(time_at_close=True),
    "time at rename": Oddities(time_at_rename=True),
    "both": Oddities(time_at_close=True, time_at_rename=True),
    "ctime": Oddities(ctime="now"),
    "0777": Oddities(modes=0, file_mode=0o777, directory_mode=0o777),
    "read-only bits": Oddities(modes=0o7555, file_mode=0, directory_mode=0o200),
    "without go-w": Oddities(modes=0o7755, file_mode=0, directory_mode=0),
    "without set-id bits": Oddities(modes=0o777, file_mode=0, directory_mode=0),
    "fixed modes": Oddities(chmod="EPERM", modes=0),
    **{f"chmod {name}": Oddities(chmod=name) for name in ("EPERM", "EOPNOTSUPP")},
    "owner ignored": Oddities(owner=1000, chown="ignored"),
    "owner": Oddities(owner=0, chown="EPERM"),
    "chown": Oddities(chown="EPERM"),
    **{
        f"no links, {name}": Oddities(link=name, flags="EINVAL")
        for name in ("EIO", "EACCES", "EPERM", "EXDEV", "EINVAL", "ENOSYS")
    },
    "no symlinks": Oddities(symlink="EPERM"),
    "no fifos": Oddities(mknod="EOPNOTSUPP"),
    "fifos of another kind": Oddities(mknod="another kind"),
    "no flags": Oddities(flags="EINVAL"),
    "flags ignored": Oddities(flags="ignored"),
    **{f"rename over, {name}": Oddities(rename_over=name) for name in ("EEXIST", "EPERM", "EACCES")},
    **{f"rename open, {name}": Oddities(rename_open=name) for name in ("EBUSY", "EPERM", "ETXTBSY")},
    **{f"change open, {name}": Oddities(change_open=name) for name in ("EPERM", "EBUSY")},
    **{f"O_EXCL {name}": Oddities(exclusive=name) for name in ("EINVAL", "EOPNOTSUPP")},
    "fallocate": Oddities(fallocate="EIO"),
    "truncate": Oddities(grow="EPERM"),
    "one after the other": Oddities(grow="EINVAL", seek="ESPIPE"),
    **{f"fsync {name}": Oddities(fsync=name, fsyncdir=name) for name in ("EINVAL", "EOPNOTSUPP")},
    "flock": Oddities(flock="EIO"),
    "xattrs": Oddities(xattrs="EOPNOTSUPP"),
    "other inodes": Oddities(inodes="random"),
    "one inode": Oddities(inodes="same"),
    "inodes by name": Oddities(inodes="by name"),
    "one link": Oddities(links=1),
    "no link": Oddities(links=-1),
    "letter case": Oddities(folds=True),
    "FAT": Oddities(
        owner=0, chown="EPERM", chmod="EPERM", modes=0, step=2 * SECOND, link="EPERM", symlink="EPERM",
        mknod="EPERM", flags="EINVAL", xattrs="EOPNOTSUPP", folds=True,
    ),
    "an object store": Oddities(
        time_at_close=True, time_at_rename=True, modes=0, file_mode=0o644, inodes="random", flags="EINVAL",
        link="EIO", symlink="EIO", chown="ignored", owner=0, ctime="now", directory_times="now", step=1000,
    ),
    "all of it": Oddities(
        times="ENOSYS", chmod="ENOSYS", chown="ENOSYS", modes=0, owner=0, link="ENOSYS", symlink="ENOSYS",
        mknod="ENOSYS", flags="EINVAL", rename_over="EEXIST", rename_open="EBUSY", exclusive="EINVAL",
        grow="EPERM", seek="EINVAL", fsync="EINVAL", fsyncdir="EINVAL", xattrs="EOPNOTSUPP", inodes="random",
        links=1, ctime="now", directory_times="now",
    ),
}  # fmt: skip


def write_source(top: Path) -> Path:
    """Files of many modes, owners and times that no coarse file system keeps; links, a fifo and a hole."""
    contents = {
        "a": (0o640, b"aaa"),
        "b": (0o600, b"b" * 5000),
        "script": (0o755, b"#!/bin/sh\n"),
        "big": (0o644, random.Random(1).randbytes(150_000)),
        "empty": (0o444, b""),
        "hole": (0o664, bytes(100_000) + b"x" + bytes(100_000)),
        "d/in": (0o660, b"in"),
        "d/e/deep": (0o4755, b"deep"),
    }
    for number, (name, (mode, content)) in enumerate(contents.items()):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.chown(path, 1000 + number % 3, 2000 + number % 2)
        path.chmod(mode)
        os.utime(path, ns=(WHEN, WHEN + number * 1_234_567_891))
    (top / "link").symlink_to("a")
    os.mkfifo(top / "fifo", 0o620)
    for name in ("link", "fifo", "d/e", "d", "."):
        if name not in {"link", "fifo"}:
            (top / name).chmod(0o750)
        os.utime(top / name, ns=(WHEN, WHEN + 77), follow_symlinks=False)
    return top


State = dict[str, tuple[int, int, int, int, bytes]]


def state(top: Path) -> State:
    """Mode, owner, group, mtime and content of each entry."""
    found = {}
    for path in [top, *sorted(top.rglob("*"))]:
        seen = path.lstat()
        content = os.readlink(os.fsencode(path)) if path.is_symlink() else b""
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else content
        key = str(path.relative_to(top))
        found[key] = (seen.st_mode, seen.st_uid, seen.st_gid, seen.st_mtime_ns, content)
    return found


def contents(top: Path) -> dict[str, bytes]:
    """The content of each regular file."""
    return {
        str(path.relative_to(top)): path.read_bytes()
        for path in top.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
