"""Faked: the metadata that --fake-super keeps in an extended attribute, in rsync's form.

An entry that this user may not make is a plain file. `user.rsync.%stat` holds its real metadata: mode with
format, number of a device, owner and group, as "100644 0,0 1000:1000". The owner of the real entry can
always read and write it. An entry without the attribute is what it is.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from functools import partial

from rdc.files.base.entry_path import at_entry, leading_to
from rdc.files.base.metadata import set_on_name
from rdc.lean.records import dataclass
from rdc.model.preserved import packed_time, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Metadata

__all__ = ["FAKED_NAME", "Faked", "read_faked", "set_faked_on_name", "set_faked_open"]

FAKED_NAME = "user.rsync.%stat"

_PATTERN = re.compile(rb"([0-7]{1,7}) ([0-9]{1,10}),([0-9]{1,10}) ([0-9]{1,10}):([0-9]{1,10})")
_NONE = {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOENT, errno.EPERM}
_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_ID_LIMIT = 1 << 32


@dataclass(frozen=True, slots=True)
class Faked:
    """The metadata of the entry that a plain file or directory stands for."""

    mode: int
    """With the format, as st_mode."""
    major: int
    minor: int
    uid: int
    gid: int

    @property
    def text(self) -> bytes:
        """The value of the attribute."""
        return b"%o %d,%d %d:%d" % (self.mode, self.major, self.minor, self.uid, self.gid)


def read_faked(entry: bytes | int, found: os.stat_result) -> Faked | None:
    """Return what a file or directory stands for; None if it has no such attribute.

    `entry`: a path such as `at_entry` gives, or an open file. `found` is its stat. Raises OSError,
    ValueError for a value of another form."""
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return None
    try:
        value = os.getxattr(entry, FAKED_NAME, follow_symlinks=isinstance(entry, int))
    except OSError as error:
        if error.errno in _NONE:
            return None
        raise
    match = _PATTERN.fullmatch(value)
    if match is None:
        raise ValueError(repr(value[:40]))
    faked = Faked(int(match[1], 8), *map(int, match.groups()[1:]))
    is_directory = stat.S_ISDIR(faked.mode)
    if is_directory != stat.S_ISDIR(found.st_mode) or max(faked.uid, faked.gid) >= _ID_LIMIT:
        raise ValueError(repr(value[:40]))
    return faked


def set_faked_on_name(
    name: bytes,
    directory: int,
    wanted: Metadata,
    *,
    owner: bool,
    new: Faked | None = None,
    timed: bool = True,
) -> None:
    """Set the metadata of an entry of the open directory `directory`, as far as this user may, and keep the
    rest. `new`: the format and the device number of an entry that was just made; None: they stay. `timed`:
    the mtime is set. Raises OSError, ValueError as `read_faked` does."""
    fd = os.open(name, _PATH, dir_fd=directory)
    try:
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
            faked = new or at_entry(directory, name, partial(read_faked, found=found))
            with leading_to(fd, directory, name) as entry:
                _set(entry, found, wanted, faked, owner=owner, timed=timed)
        elif timed:
            # A link or special file that a run without --fake-super made: nothing can be kept of it.
            set_on_name(name, directory, found, wanted, owner=False)
    finally:
        os.close(fd)


def set_faked_open(fd: int, wanted: Metadata, *, owner: bool, timed: bool = True) -> None:
    """Do that for the file open at `fd`."""
    found = os.fstat(fd)
    _set(fd, found, wanted, read_faked(fd, found), owner=owner, timed=timed)


def _set(
    path: bytes | int,
    found: os.stat_result,
    wanted: Metadata,
    faked: Faked | None,
    *,
    owner: bool,
    timed: bool,
) -> None:
    """Set the metadata of what a path below /proc, or a descriptor, leads to, of which `faked` was kept."""
    if timed and packed_time(found.st_mtime_ns) != wanted.mtime_ns:
        os.utime(path, ns=(found.st_atime_ns, real_time(wanted.mtime_ns)))
    format_ = stat.S_IFMT(found.st_mode if faked is None else faked.mode)
    mode = wanted.mode & 0o777 | (0o700 if stat.S_ISDIR(found.st_mode) else 0o600)
    if mode != stat.S_IMODE(found.st_mode):
        os.chmod(path, mode)
    there = (found.st_uid, found.st_gid)
    known = there if faked is None else (faked.uid, faked.gid)
    uid, gid = (wanted.uid, wanted.gid) if owner else known
    major, minor = (0, 0) if faked is None else (faked.major, faked.minor)
    kept = Faked(format_ | wanted.mode, major, minor, uid, gid)
    if kept.mode == stat.S_IFMT(found.st_mode) | mode and (uid, gid) == there:
        try:
            os.removexattr(path, FAKED_NAME)
        except OSError as error:
            if error.errno not in _NONE:
                raise
        return
    try:
        present = os.getxattr(path, FAKED_NAME)
    except OSError:
        present = b""
    if present != kept.text:
        os.setxattr(path, FAKED_NAME, kept.text)
