"""The metadata that a file system keeps: by its type or a trial, and under which identity that is
remembered."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import contextmanager, suppress
from functools import partial

from blake3 import blake3

from rdc.errors import FileError
from rdc.files.base.directory_descriptors import VOLATILE_TYPES, note_facts, stable_fields
from rdc.files.base.metadata import Shortfall, set_mode_on_name
from rdc.files.base.paths import make_aside, path_of_directory
from rdc.files.base.syscalls import file_system_type, refresh_stat, rename_no_replace
from rdc.lean.enums import Enum
from rdc.lean.records import Record, replace
from rdc.model.entries import ComparedFields, Kind
from rdc.model.preserved import (
    ALL_KEPT,
    ALL_MODES,
    PLAIN,
    AttributeKinds,
    FileSystemFacts,
    Granularity,
    Preserved,
    granularity_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rdc.files.root.root import Root


# Names the file system of a directory, so that what was learned of it is found again: mount_key.

KEY_BYTES = 16

_LINE_BYTES = 1 << 20
"""Most bytes that are read of the kernel's list of mounts. A longer list has no more keys."""


def mount_key(fd: int) -> bytes:
    """Return 16 bytes for the file system of an open directory as it is mounted. Raises OSError.

    They cover the type, the device or server, the mount point and all mount options: what another option may
    change has another key. Where the kernel does not tell these, the type and the device number stand for
    them.

    Another file system may have the key later, such as another server that answers under the same name. What
    was learned is then wrong for it, until the next run that writes there learns it again.
    """
    found, type_ = os.fstat(fd), type_of(fd)
    text = b"%x\0" % type_
    mount = _mount_of(fd)
    if mount is None:
        text += b"%d\0%d\0" % (found.st_dev, os.fstatvfs(fd).f_flag)
    else:
        # FUSE and network file systems get another device number at each mount.
        text += (b"" if type_ in VOLATILE_TYPES else b"%d" % found.st_dev) + b"\0" + mount
    return blake3(os.fsencode(os.uname().nodename) + b"\0" + text).digest(KEY_BYTES)


def _mount_of(fd: int) -> bytes | None:
    """Return the root, mount point, options, type, source and options of the file system in the kernel's list
    of mounts; None if that cannot be read."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
            numbers = [line.split()[1] for line in file.read(4096).splitlines() if line.startswith(b"mnt_id")]
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read(_LINE_BYTES).splitlines()
    except (OSError, IndexError):
        return None
    for line in lines:
        fields = line.split(b" ")
        if numbers and fields[0] == numbers[0]:
            return b" ".join(fields[3:])
    return None


# What is assumed of a file system while nothing was learned of it: its type decides, and a time in it.

_SECOND = 1_000_000_000
_FINE = 100
"""Nanoseconds. A change time that is no multiple of this does not come from a coarse file system."""

_FAT = replace(ALL_KEPT, owner=False, modes=0, directory_modes=0)

_BY_TYPE = {
    0x4D44: replace(_FAT, granularity=Granularity(2 * _SECOND)),
    0x2011BAB0: replace(_FAT, granularity=Granularity(10_000_000)),
    0x482B: replace(ALL_KEPT, granularity=Granularity(_SECOND)),
    0x9660: replace(ALL_KEPT, granularity=Granularity(_SECOND)),
}
"""By f_type of statfs(2), from linux/magic.h and the file systems' headers: fat, exfat, hfs+, iso9660. On FAT
and exFAT, mount options decide owner and mode; chmod is ignored and chown is an error."""


def facts_by_type(root: Root) -> FileSystemFacts:
    """Return what is assumed of the file system of `root` itself. Nothing is written.

    Of an unknown type the change time of the root directory tells the granularity: a whole second means one
    second, which is wrong once in 10^9 times.
    """
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root.fileno())
    except OSError:
        return PLAIN
    try:
        found = os.fstat(fd)
        stable, known = stable_fields(found.st_dev), _BY_TYPE.get(type_of(fd))
        if known is not None:
            return replace(PLAIN, keeps=known, stable=stable)
        fine = found.st_ctime_ns % _FINE or found.st_ctime_ns % _SECOND
        step = 1 if fine else _SECOND
        return replace(PLAIN, keeps=replace(ALL_KEPT, granularity=Granularity(step)), stable=stable)
    except OSError:
        return PLAIN
    finally:
        os.close(fd)


# The file system of an open file: a lasting identifier, and what its change times prove.


class ChangeTimes(Enum):
    """The proof that an unchanged ctime gives."""

    LOCAL = "local"
    """Every change sets it, from this kernel's own clock (CLOCK_REALTIME_COARSE)."""
    DISTANT = "distant"
    """Every change sets it, from another clock, such as a file server's."""
    NONE = "none"
    """It proves nothing: the file system keeps no change time, or one that can be set back."""

    @property
    def proves_nothing(self) -> bool:
        return self is ChangeTimes.NONE


class FileSystem(Record):
    id: int
    """64 bits. Stable over a reboot if the file system has an identifier of its own."""
    change_times: ChangeTimes


# f_type of statfs(2), from linux/magic.h and the file systems' own headers. On these, this kernel keeps
# inodes and their ctimes. An unlisted type counts as DISTANT, which only costs time.
_LOCAL = {
    0xEF53: "ext2, ext3, ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0xF2F52010: "f2fs",
    0x2FC12FC1: "zfs",
    0xCA451A4E: "bcachefs",
    0x794C7630: "overlayfs",
    0x3153464A: "jfs",
    0x52654973: "reiserfs",
    0x3434: "nilfs2",
}


def file_system_of(fd: int) -> FileSystem:
    """Return the file system that `fd` is on. Raises OSError.

    `id` is f_fsid of statfs(2). ext4, btrfs, f2fs, zfs and others derive it from the volume's UUID, xfs from
    the device number. Where it is 0 (some network file systems), st_dev is used. Both may change over a
    reboot, and then a look-up finds nothing.

    A false match would need a file on another file system with the same inode number, size, mtime and ctime
    to the nanosecond. ctimes can be copied only by copying the whole volume, content included.

    Of a file system that fails statfs(2), as some network mounts do, no ctime proves anything.
    """
    device = os.fstat(fd).st_dev
    try:
        id_ = os.fstatvfs(fd).f_fsid or device
    except OSError:
        return FileSystem(device, ChangeTimes.NONE)
    kind = type_of(fd)
    times = (
        ChangeTimes.LOCAL
        if kind in _LOCAL
        else ChangeTimes.NONE
        if kind in VOLATILE_TYPES
        else ChangeTimes.DISTANT
    )
    return FileSystem(id_ & 0xFFFF_FFFF_FFFF_FFFF, times)


def path_of(fd: int) -> bytes:
    """Return the absolute path of `fd` as this system sees it now, or b"" if it cannot tell: without /proc,
    it cannot of a file."""
    try:
        return path_of_directory(fd)
    except OSError:
        return b""


SHARING_TYPES = frozenset((0x9123683E, 0x58465342, 0xCA451A4E, 0x2FC12FC1, 0x7461636F, 0x6969))
"""f_type of statfs(2) of file systems that may share blocks, from linux/magic.h and the file systems'
headers: btrfs, XFS, bcachefs, ZFS, OCFS2, NFS."""


def type_of(fd: int) -> int:
    """Return f_type of statfs(2), or 0 if it is not available."""
    try:
        return file_system_type(fd)
    except OSError:
        return 0


# Finds out by a trial what a file system keeps of entries, and on which of its answers one can rely.
#
# The trial takes place in a directory of its own, which only its owner may use, and which is gone afterwards.
# A kill in the middle leaves that directory with a few tiny entries, under a temporary's name. A later sweep
# removes it (`empty_leftover`).

TRIAL_SECONDS = 600
"""The age at which a directory that cannot be locked is taken for one that a killed run left. A trial
takes less than a second; over a slow line, some."""

_NAMES = frozenset((b"a", b"b", b"c", b"d", b"e", b"l", b"p"))
"""The entries that a trial makes."""

_CONTENT = b"trial"
_ATTEMPTS = 3

_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

TRIED = (1_000_000_059_987_654_321, 1_000_070_412_123_456_789, 1_000_000_061_123_456_789)
"""Nanoseconds. Each granularity and rounding makes something else of them. FAT begins in 1980, and its times
have no odd seconds."""

_PATTERNS = (0o5525, 0o2252)
"""Modes that have each bit once."""
_PLAIN_BITS = 0o777

_OTHER_ID = 1
"""A user and group that a container has, too."""


class Learned(Record):
    """The result of a trial."""

    facts: FileSystemFacts
    refusals: Mapping[Shortfall, int]
    """The metadata of files that could not be set, with the errno of the call. What is set in vain is not
    among it."""


def learn_facts(root: Root, directory: bytes, *, owners: bool) -> Learned | None:
    """Return what the file system of the directory at a path keeps; None if nothing can be made there.

    `owners`: this process may set owners, so that is tried as well. The directory's own times stay.
    """
    for _ in range(_ATTEMPTS):
        try:
            opened = root.directory(directory)
            with _aside(opened.fd) as inside:
                trial = _Trial(inside, owners=owners)
                facts = trial.facts()
            note_facts(os.fstat(opened.fd).st_dev, facts)
        except FileNotFoundError:
            continue  # swept before it was locked
        except (OSError, FileError):
            return None
        return Learned(facts, trial.refusals)
    return None


@contextmanager
def _aside(parent: int) -> Iterator[int]:
    """Make a directory for a trial, yield its descriptor, and leave no trace of it. Raises OSError."""
    before = os.stat(b".", dir_fd=parent, follow_symlinks=False)
    name = make_aside(b"trial", lambda aside: os.mkdir(aside, 0o700, dir_fd=parent))
    try:
        inside = os.open(name, _PASS, dir_fd=parent)
        try:
            locked = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)
            try:
                _lock(locked)
                yield inside
            finally:
                _empty(inside)
                os.close(locked)
        finally:
            os.close(inside)
    finally:
        with suppress(OSError):
            os.rmdir(name, dir_fd=parent)
        with suppress(OSError):
            os.utime(b".", ns=(before.st_atime_ns, before.st_mtime_ns), dir_fd=parent)


def empty_leftover(name: bytes, directory: int) -> None:
    """Empty what a killed trial left: a directory that has nothing but entries of a trial, and that nobody
    has locked. The caller has made sure that rdc made it. Raises OSError if it stays."""
    inside = os.open(name, _PASS, dir_fd=directory)
    try:
        made = os.fstat(inside)
        listed = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)
        try:
            is_free = _lock(listed) or abs(time.time() - made.st_mtime) >= TRIAL_SECONDS
            names = set(map(os.fsencode, os.listdir(listed)))
        finally:
            os.close(listed)
        if not names <= _NAMES or not is_free:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
        for one in names:
            found = os.stat(one, dir_fd=inside, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and found.st_size > len(_CONTENT):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
        _empty(inside)
    finally:
        os.close(inside)


def _lock(listed: int) -> bool:
    """Lock an open directory. Return False if that cannot be done. Raises BlockingIOError if it is locked."""
    try:
        fcntl.flock(listed, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _empty(inside: int) -> None:
    with suppress(OSError):
        listed = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)
        try:
            for name in os.listdir(listed):
                with suppress(OSError):
                    try:
                        os.unlink(name, dir_fd=inside)
                    except (IsADirectoryError, PermissionError):
                        os.rmdir(name, dir_fd=inside)
        finally:
            os.close(listed)


class _Trial:
    """One trial in an empty directory that is open.

    What it learns is relied on for many entries, so only what tells of the file system counts:
    see `_refusal`. An error that tells of anything else, such as a full disk, ends the trial, and nothing is
    learned.
    """

    def __init__(self, inside: int, *, owners: bool) -> None:
        self._inside = inside
        self._owners = owners
        self.refusals: dict[Shortfall, int] = {}

    def facts(self) -> FileSystemFacts:
        """Find out what the file system keeps. Raises OSError if not even a file can be made."""
        steady = self._is_steady()
        first = self._stat(b"b")
        granularity = self._granularity(b"b")
        keeps = replace(
            ALL_KEPT,
            granularity=granularity or ALL_KEPT.granularity,
            modes=self._modes(b"b", os.geteuid() == 0),
            untimed=frozenset((Kind.FILE,)) if granularity is None else frozenset(),
        )
        changed = self._stat(b"b")
        if first.st_uid != os.geteuid():
            keeps = replace(keeps, owner=False)
        elif self._owners:
            keeps = replace(keeps, owner=self._keeps_owner(b"b"))
        keeps = self._directories(keeps)
        keeps = self._other_kinds(keeps)
        if not self._keeps_attributes(b"b"):
            keeps = replace(keeps, attributes=keeps.attributes & ~(AttributeKinds.USER | AttributeKinds.ROOT))
        no_replace = self._honours_no_replace(b"b", b"c")
        hard_links = self._links(b"c", b"d")
        last = self._stat(b"c")
        known = stable_fields(first.st_dev)
        stable = ComparedFields(
            inode=known.inode and first.st_ino == changed.st_ino == last.st_ino,
            # Nothing changes the file after its owner.
            ctime=known.ctime and self._stat(b"c").st_ctime_ns == last.st_ctime_ns,
        )
        return FileSystemFacts(keeps, stable, steady, no_replace, hard_links)

    def _is_steady(self) -> bool:
        """Make the file b, and return whether what was set of it while it was open stays."""
        from rdc.files.base.taking_names import create_temporary

        fd = create_temporary(b"a", self._inside)
        steady = True
        try:
            os.write(fd, _CONTENT)
            steady = _can(lambda: os.fchmod(fd, 0o400)) and steady
            steady = _can(lambda: os.utime(fd, ns=(TRIED[0], TRIED[0]))) and steady
            opened = os.fstat(fd)
        finally:
            os.close(fd)
        closed = self._stat(b"a")
        os.rename(b"a", b"b", src_dir_fd=self._inside, dst_dir_fd=self._inside)
        renamed = self._stat(b"b")
        states = [(found.st_mode, found.st_mtime_ns) for found in (opened, closed, renamed)]
        return steady and states[0] == states[1] == states[2]

    def _granularity(self, name: bytes) -> Granularity | None:
        """Return the granularity of mtimes of an entry; None if it keeps none."""
        pairs = []
        for given in TRIED:
            set_time = partial(os.utime, name, ns=(given, given), dir_fd=self._inside, follow_symlinks=False)
            error = _refusal(set_time)
            if error is not None:
                if name == b"b":
                    self.refusals[Shortfall.TIME] = error.errno or 0
                return None
            pairs.append((given, self._stat(name).st_mtime_ns))
        return granularity_of(pairs)

    def _modes(self, name: bytes, privileged: bool) -> int:
        """Return the bits of the mode that an entry keeps. Without privileges the kernel may drop some
        others."""
        for bits in (ALL_MODES, _PLAIN_BITS) if privileged else (_PLAIN_BITS,):
            kept, error = bits, None
            for pattern in _PATTERNS:
                error = _refusal(partial(set_mode_on_name, name, self._inside, pattern & bits))
                if error is not None:
                    break
                kept &= ~(self._stat(name).st_mode ^ pattern)
            with suppress(OSError):
                set_mode_on_name(name, self._inside, 0o700)
            if error is None:
                self.refusals.pop(Shortfall.MODE, None)
                return kept if privileged or kept != bits else ALL_MODES
            if name == b"b":
                self.refusals[Shortfall.MODE] = error.errno or 0
        return 0

    def _keeps_owner(self, name: bytes) -> bool:
        before = self._stat(name)
        give = partial(os.chown, name, dir_fd=self._inside, follow_symlinks=False)
        try:
            error = _refusal(lambda: give(_OTHER_ID, _OTHER_ID))
            if error is not None:
                # A container may lack that number. Its own it has.
                own = (os.geteuid(), os.getegid())
                return error.errno == errno.EINVAL and _can(lambda: give(*own))
            found = self._stat(name)
            return (found.st_uid, found.st_gid) == (_OTHER_ID, _OTHER_ID)
        finally:
            with suppress(OSError):
                give(before.st_uid, before.st_gid)

    def _directories(self, keeps: Preserved) -> Preserved:
        os.mkdir(b"e", 0o700, dir_fd=self._inside)
        modes = self._modes(b"e", os.geteuid() == 0)
        if not self._keeps_times(b"e", keeps):
            keeps = replace(keeps, untimed=keeps.untimed | {Kind.DIRECTORY})
        return replace(keeps, directory_modes=modes)

    def _other_kinds(self, keeps: Preserved) -> Preserved:
        if not _can(lambda: os.symlink(b"a", b"l", dir_fd=self._inside)):
            # Some may have been made elsewhere. Whether their times can be set remains unknown.
            keeps = replace(
                keeps, unmade=keeps.unmade | {Kind.SYMLINK}, untimed=keeps.untimed | {Kind.SYMLINK}
            )
        elif not self._keeps_times(b"l", keeps):
            keeps = replace(keeps, untimed=keeps.untimed | {Kind.SYMLINK})
        if not _can(lambda: os.mkfifo(b"p", 0o600, dir_fd=self._inside)):
            keeps = replace(keeps, unmade=keeps.unmade | {Kind.SPECIAL})
        return keeps

    def _keeps_times(self, name: bytes, keeps: Preserved) -> bool:
        """Return whether an entry's mtimes are as exact as those of files, or the file's are not kept."""
        found = self._granularity(name)
        if found is None:
            return False
        return Kind.FILE in keeps.untimed or found.step <= keeps.granularity.step

    def _keeps_attributes(self, name: bytes) -> bool:
        if not hasattr(os, "setxattr"):  # macOS
            return False
        path = b"/proc/self/fd/%d/" % self._inside + name

        def keep() -> None:
            os.setxattr(path, b"user.rdc", b"1")
            if os.getxattr(path, b"user.rdc") != b"1":
                raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

        try:
            return _can(keep)
        except FileNotFoundError:
            return True  # without /proc nothing is known

    def _honours_no_replace(self, old: bytes, new: bytes) -> bool:
        """Move `old` over an empty file `new`. Return whether a rename without replacing refused to."""
        from rdc.files.base.taking_names import create_temporary, replace_name

        os.close(create_temporary(new, self._inside))
        try:
            rename_no_replace(old, new, self._inside)
        except OSError:
            replace_name(old, new, self._inside)
            return True
        return False

    def _links(self, old: bytes, new: bytes) -> bool:
        """Return whether a file can have two names and shows that: over SFTP each name has its own inode."""
        from rdc.files.base.taking_names import refuses_links

        link = partial(os.link, old, new, src_dir_fd=self._inside, dst_dir_fd=self._inside)
        try:
            if not _can(lambda: link(follow_symlinks=False)):
                return False
        except OSError as error:
            if not refuses_links(error):
                raise
            return False
        one, other = self._stat(old), self._stat(new)
        os.unlink(new, dir_fd=self._inside)
        return one.st_ino == other.st_ino and min(one.st_nlink, other.st_nlink) > 1

    def _stat(self, name: bytes) -> os.stat_result:
        with suppress(OSError):
            refresh_stat(name, self._inside)
        return os.stat(name, dir_fd=self._inside, follow_symlinks=False)


def _refusal(call: Callable[[], None]) -> OSError | None:
    """Make a call. Return the error with which the file system refuses it, or None. Raises OSError if the
    error tells of something else.

    Some file systems refuse with EIO what they lack, and a failing disk says the same: then the call is made
    again. If the entry is there by then, the first call made something else before it was refused.
    """
    from rdc.files.base.taking_names import is_refused

    found: OSError | None = None
    for _ in range(2):
        try:
            call()
        except OSError as error:
            if found is not None and error.errno == errno.EEXIST:
                return found
            if not is_refused(error):
                raise
            found = error
            if error.errno == errno.EIO:
                continue
            return error
        return None
    return found


def _can(call: Callable[[], None]) -> bool:
    """Make a call. Return whether the file system has it. Raises OSError as `_refusal` does."""
    return _refusal(call) is None
