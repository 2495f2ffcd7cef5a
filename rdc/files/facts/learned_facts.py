"""Finds out by a trial what a file system keeps of entries, and on which of its answers one can rely.

The trial takes place in a directory of its own, which only its owner may use, and which is gone afterwards. A
kill in the middle leaves that directory with a few tiny entries, under a temporary's name. A later sweep
removes it (`empty_leftover`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import contextmanager, suppress
from functools import partial

from rdc.errors import FileError
from rdc.files.base.known_devices import note_facts, stable_fields
from rdc.files.base.metadata import set_mode_on_name
from rdc.files.base.shortfalls import Shortfall
from rdc.files.base.syscalls import refresh_stat, rename_no_replace
from rdc.files.base.taking_names import create_temporary, replace_name
from rdc.files.base.temporary_names import make_aside
from rdc.lean.records import dataclass, replace
from rdc.model.entries import ComparedFields, Kind
from rdc.model.preserved import (
    ALL_KEPT,
    ALL_MODES,
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

__all__ = ["TRIAL_SECONDS", "TRIED", "Learned", "empty_leftover", "learn_facts"]

TRIAL_SECONDS = 600
"""Where directories cannot be locked: one that was last changed so long ago is what a kill left. A trial
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


@dataclass(frozen=True, slots=True)
class Learned:
    """What a trial found out."""

    facts: FileSystemFacts
    refusals: Mapping[Shortfall, int]
    """What of files could not be set, with the errno of the call. What is set in vain is not among it."""


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
        locked = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)
        try:
            _lock(locked)
            yield inside
        finally:
            _empty(inside)
            os.close(inside)
            os.close(locked)
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
    """One trial in an empty directory that is open."""

    def __init__(self, inside: int, *, owners: bool) -> None:
        self._inside = inside
        self._owners = owners
        self.refusals: dict[Shortfall, int] = {}

    def facts(self) -> FileSystemFacts:
        """Raises OSError if not even a file can be made."""
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
        if self._owners:
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
        fd = create_temporary(b"a", self._inside)
        steady = True
        try:
            os.write(fd, _CONTENT)
            steady = self._can(lambda: os.fchmod(fd, 0o400)) and steady
            steady = self._can(lambda: os.utime(fd, ns=(TRIED[0], TRIED[0]))) and steady
            opened = os.fstat(fd)
        finally:
            os.close(fd)
        closed = self._stat(b"a")
        os.rename(b"a", b"b", src_dir_fd=self._inside, dst_dir_fd=self._inside)
        renamed = self._stat(b"b")
        states = [(found.st_mode, found.st_mtime_ns) for found in (opened, closed, renamed)]
        return steady and states[0] == states[1] == states[2]

    def _granularity(self, name: bytes) -> Granularity | None:
        """The granularity of mtimes of an entry; None if it keeps none."""
        pairs = []
        for given in TRIED:
            try:
                os.utime(name, ns=(given, given), dir_fd=self._inside, follow_symlinks=False)
            except OSError as error:
                if name == b"b":
                    self.refusals[Shortfall.TIME] = error.errno or 0
                return None
            pairs.append((given, self._stat(name).st_mtime_ns))
        return granularity_of(pairs)

    def _modes(self, name: bytes, privileged: bool) -> int:
        """The bits of the mode that an entry keeps. Without privileges the kernel may drop some others."""
        for bits in (ALL_MODES, _PLAIN_BITS) if privileged else (_PLAIN_BITS,):
            kept = bits
            try:
                for pattern in _PATTERNS:
                    set_mode_on_name(name, self._inside, pattern & bits)
                    kept &= ~(self._stat(name).st_mode ^ pattern)
            except OSError as error:
                if name == b"b":
                    self.refusals[Shortfall.MODE] = error.errno or 0
                continue
            finally:
                with suppress(OSError):
                    set_mode_on_name(name, self._inside, 0o700)
            self.refusals.pop(Shortfall.MODE, None)
            return kept if privileged or kept != bits else ALL_MODES
        return 0

    def _keeps_owner(self, name: bytes) -> bool:
        before = self._stat(name)
        try:
            os.chown(name, _OTHER_ID, _OTHER_ID, dir_fd=self._inside, follow_symlinks=False)
            found = self._stat(name)
            return (found.st_uid, found.st_gid) == (_OTHER_ID, _OTHER_ID)
        except OSError as error:
            # A container may lack that number. Its own it has.
            own = partial(os.chown, name, os.geteuid(), os.getegid())
            return error.errno == errno.EINVAL and self._can(
                lambda: own(dir_fd=self._inside, follow_symlinks=False)
            )
        finally:
            with suppress(OSError):
                os.chown(name, before.st_uid, before.st_gid, dir_fd=self._inside, follow_symlinks=False)

    def _directories(self, keeps: Preserved) -> Preserved:
        os.mkdir(b"e", 0o700, dir_fd=self._inside)
        modes = self._modes(b"e", os.geteuid() == 0)
        if not self._keeps_times(b"e", keeps):
            keeps = replace(keeps, untimed=keeps.untimed | {Kind.DIRECTORY})
        return replace(keeps, directory_modes=modes)

    def _other_kinds(self, keeps: Preserved) -> Preserved:
        if not self._can(lambda: os.symlink(b"a", b"l", dir_fd=self._inside)):
            # Some may have been made elsewhere. Whether their times can be set remains unknown.
            keeps = replace(
                keeps, unmade=keeps.unmade | {Kind.SYMLINK}, untimed=keeps.untimed | {Kind.SYMLINK}
            )
        elif not self._keeps_times(b"l", keeps):
            keeps = replace(keeps, untimed=keeps.untimed | {Kind.SYMLINK})
        if not self._can(lambda: os.mkfifo(b"p", 0o600, dir_fd=self._inside)):
            keeps = replace(keeps, unmade=keeps.unmade | {Kind.SPECIAL})
        return keeps

    def _keeps_times(self, name: bytes, keeps: Preserved) -> bool:
        """Whether an entry's mtimes are as exact as those of files, or the file's are not kept."""
        found = self._granularity(name)
        if found is None:
            return False
        return Kind.FILE in keeps.untimed or found.step <= keeps.granularity.step

    def _keeps_attributes(self, name: bytes) -> bool:
        if not hasattr(os, "setxattr"):  # macOS
            return False
        path = b"/proc/self/fd/%d/" % self._inside + name
        try:
            os.setxattr(path, b"user.rdc", b"1")
            return os.getxattr(path, b"user.rdc") == b"1"
        except FileNotFoundError:
            return True  # without /proc nothing is known
        except OSError:
            return False

    def _honours_no_replace(self, old: bytes, new: bytes) -> bool:
        """Move `old` over an empty file `new`. Return whether a rename without replacing refused to."""
        os.close(create_temporary(new, self._inside))
        try:
            rename_no_replace(old, new, self._inside)
        except OSError:
            replace_name(old, new, self._inside)
            return True
        return False

    def _links(self, old: bytes, new: bytes) -> bool:
        """Return whether a file can have two names and shows that: over SFTP each name has its own inode."""
        try:
            os.link(old, new, src_dir_fd=self._inside, dst_dir_fd=self._inside, follow_symlinks=False)
        except OSError:
            return False
        one, other = self._stat(old), self._stat(new)
        os.unlink(new, dir_fd=self._inside)
        return one.st_ino == other.st_ino and min(one.st_nlink, other.st_nlink) > 1

    @staticmethod
    def _can(call: Callable[[], None]) -> bool:
        try:
            call()
        except OSError:
            return False
        return True

    def _stat(self, name: bytes) -> os.stat_result:
        with suppress(OSError):
            refresh_stat(name, self._inside)
        return os.stat(name, dir_fd=self._inside, follow_symlinks=False)
