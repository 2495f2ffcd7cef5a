"""Sets metadata, never granting more than before or in the end; notes what a file system keeps."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import suppress
from functools import partial

from rdc.files.base.paths import at_entry, leading_to
from rdc.files.base.syscalls import chmod_no_follow
from rdc.lean.enums import Enum
from rdc.lean.records import Record, replace
from rdc.model.entries import ALL_FIELDS, ComparedFields, Identity, Kind, Metadata, is_same_entry
from rdc.model.preserved import (
    ACCESS_ACL,
    ALL_MODES,
    DEFAULT_ACL,
    EVERYTHING,
    EXACT,
    PLAIN,
    FileSystemFacts,
    Preserved,
    granularity_of,
    packed_time,
    real_time,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, TypeAlias

    from rdc.files.base.directory_descriptors import Directory


STOPS_THE_RUN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Errors that concern the whole file system: no later entry would fare better."""


class Shortfall(Enum):
    """The operation that failed. The values are the words of messages."""

    OWNER = "owner and group"
    MODE = "permissions"
    TIME = "modification time"
    SYMLINK = "symlink"
    NODE = "special file"


class Shortfalls(Record):
    """The entries for which one thing failed."""

    count: int
    path: bytes
    """The first of them."""
    error: int
    """Its errno; 0: the call succeeded and had no effect."""


Attempt: TypeAlias = "Callable[[Shortfall, Callable[[], None]], bool]"
"""Calls the function. Returns False if it failed and the failure was noted. Raises OSError otherwise."""


def strictly(what: Shortfall, call: Callable[[], None]) -> bool:
    """Call it: the Attempt that notes no failure."""
    call()
    return True


# Sets owner, mode and mtime: only differing values, in an order that keeps setuid bits and never grants more
# access than the entry had before or gets in the end.

KIND_OF_FORMAT = bytes(
    {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.DIRECTORY, stat.S_IFLNK: Kind.SYMLINK}.get(
        code << 12, Kind.SPECIAL
    )
    if code < 16
    else 0
    for code in range(256)
)
"""The Kind for each value of st_mode >> 12, as a table for bytes.translate."""


def kind_of(mode: int) -> Kind:
    """Return the Kind of a st_mode."""
    return Kind(KIND_OF_FORMAT[mode >> 12])


def metadata_of(found: os.stat_result) -> Metadata:
    """Return the metadata in a stat."""
    return Metadata(stat.S_IMODE(found.st_mode), packed_time(found.st_mtime_ns), found.st_uid, found.st_gid)


def narrowed(mode: int, wanted: int) -> int:
    """Return permission bits `mode` without the rights of group and others that `wanted` does not grant.

    Setuid and setgid bits that are not in `wanted` are removed as well. The owner's bits stay, because an
    owner may set them at any time. The sticky bit stays, because it removes rights.
    """
    return mode & (stat.S_ISVTX | stat.S_IRWXU | wanted) | wanted & stat.S_ISVTX


def narrowed_metadata(
    now: os.stat_result, wanted: Metadata, *, owner: bool, mode: int | None = None
) -> Metadata:
    """Return the metadata that `narrow_name` leaves; `now` is the entry's stat, and `mode` its mode by
    then."""
    uid, gid = (wanted.uid, wanted.gid) if owner else (now.st_uid, now.st_gid)
    mode = narrowed(stat.S_IMODE(now.st_mode if mode is None else mode), wanted.mode)
    if _is_chowned(now, wanted, owner=owner) and not stat.S_ISDIR(now.st_mode):
        # chown(2) clears setuid, and setgid where the group may execute.
        mode &= ~(stat.S_ISUID | (stat.S_ISGID if mode & stat.S_IXGRP else 0))
    return Metadata(mode, packed_time(now.st_mtime_ns), uid, gid)


def changes_access(now: os.stat_result, wanted: Metadata, *, owner: bool) -> bool:
    """Return whether an entry that is no symlink needs another mode or owner; `now` is its stat."""
    return stat.S_IMODE(now.st_mode) != wanted.mode or _is_chowned(now, wanted, owner=owner)


def _is_chowned(now: os.stat_result, wanted: Metadata, *, owner: bool) -> bool:
    return owner and (now.st_uid != wanted.uid or now.st_gid != wanted.gid)


def _set_access(
    now: os.stat_result,
    wanted: Metadata,
    owner: bool,
    chown: Callable[[int, int], None],
    chmod: Callable[[int], None],
    attempt: Attempt = strictly,
) -> None:
    """Set owner and mode of an entry, without granting more access at any moment than before or in the end.

    `now` is the entry's stat. If its owner changes, the mode is narrowed first, because the old mode may
    grant the new group more than the wanted one does. chown follows, because it clears setuid and setgid
    bits. The wanted mode is set last, without these bits if the owner could not be set. It is not
    set in vain: some file systems refuse that.
    """
    mode, final = stat.S_IMODE(now.st_mode), wanted.mode
    chowned = _is_chowned(now, wanted, owner=owner)
    if chowned:
        safe = narrowed(mode, wanted.mode)
        if safe != mode and attempt(Shortfall.MODE, partial(chmod, safe)):
            mode = safe
        if not attempt(Shortfall.OWNER, partial(chown, wanted.uid, wanted.gid)):
            final &= ~(stat.S_ISUID | stat.S_ISGID)
    if mode != final or (chowned and final & (stat.S_ISUID | stat.S_ISGID)):
        attempt(Shortfall.MODE, partial(chmod, final))


def set_on_descriptor(
    fd: int,
    made: os.stat_result,
    wanted: Metadata,
    *,
    owner: bool,
    timed: bool = True,
    attempt: Attempt = strictly,
) -> None:
    """Set the metadata of the file open at `fd`; `made` is its stat from before it was written. Raises
    OSError.

    The mtime is always set, unless `timed` is false. Writing moved it, even if the wanted mtime equals the
    one at creation, when both fall in one tick of the clock. os.utime also wants an atime and gets the
    present one.
    """
    _set_access(made, wanted, owner, partial(os.chown, fd), partial(os.chmod, fd), attempt)
    if timed:
        times = (made.st_atime_ns, real_time(wanted.mtime_ns))
        attempt(Shortfall.TIME, partial(os.utime, fd, ns=times))


def set_on_found(fd: int, now: os.stat_result, wanted: Metadata, *, owner: bool) -> None:
    """Set the metadata of an open file whose content stays; `now` is its stat. Only differing values are set.
    Raises OSError.

    The mtime is set first, because it would hide a write made between the stat and this call.
    """
    if packed_time(now.st_mtime_ns) != wanted.mtime_ns:
        os.utime(fd, ns=(now.st_atime_ns, real_time(wanted.mtime_ns)))
    _set_access(now, wanted, owner, partial(os.chown, fd), partial(os.chmod, fd))


def set_on_name(
    name: bytes,
    directory: int,
    now: os.stat_result,
    wanted: Metadata,
    *,
    owner: bool,
    attempt: Attempt = strictly,
) -> None:
    """Set the metadata of an entry of the open directory `directory`; `now` is its stat. Only differing
    values are set. Raises OSError.

    A symlink itself is set; its mode stays.
    """
    if _is_chowned(now, wanted, owner=owner):
        chown = partial(os.chown, name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(now.st_mode):
            attempt(Shortfall.OWNER, partial(chown, wanted.uid, wanted.gid))
        else:
            _set_access(now, wanted, owner, chown, partial(set_mode_on_name, name, directory), attempt)
    elif stat.S_IMODE(now.st_mode) != wanted.mode and not stat.S_ISLNK(now.st_mode):
        attempt(Shortfall.MODE, partial(set_mode_on_name, name, directory, wanted.mode))
    if packed_time(now.st_mtime_ns) != wanted.mtime_ns:
        times = (now.st_atime_ns, real_time(wanted.mtime_ns))
        utime = partial(os.utime, name, ns=times, dir_fd=directory, follow_symlinks=False)
        attempt(Shortfall.TIME, utime)


def would_change(now: os.stat_result, wanted: Metadata, *, owner: bool) -> bool:
    """Return whether `set_on_name` would set anything on an entry whose stat is `now`."""
    return (
        packed_time(now.st_mtime_ns) != wanted.mtime_ns
        or (owner and (now.st_uid != wanted.uid or now.st_gid != wanted.gid))
        or (stat.S_IMODE(now.st_mode) != wanted.mode and not stat.S_ISLNK(now.st_mode))
    )


def narrow_name(name: bytes, directory: int, now: os.stat_result, wanted: Metadata, *, owner: bool) -> bool:
    """Remove rights of group and others that `wanted` does not grant, and with `owner` set uid and gid.

    The entry is no symlink and `now` is its stat. Returns whether anything changed. Only `set_on_name` widens
    it again. Raises OSError.
    """
    mode = stat.S_IMODE(now.st_mode)
    safe = narrowed(mode, wanted.mode)
    if safe != mode:
        set_mode_on_name(name, directory, safe)
    chowned = _is_chowned(now, wanted, owner=owner)
    if chowned:
        os.chown(name, wanted.uid, wanted.gid, dir_fd=directory, follow_symlinks=False)
    return chowned or safe != mode


def set_mode_on_name(name: bytes, directory: int, mode: int) -> None:
    """Set the mode of an entry without following a link and without opening it. Raises OSError."""
    try:
        chmod_no_follow(name, directory, mode)
    except OSError as error:
        # EPERM is also the answer of seccomp filters to unknown calls.
        if error.errno not in {errno.ENOSYS, errno.EPERM, errno.EINVAL}:
            raise
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            # The kernel refuses fchmod on O_PATH descriptors, but accepts their path below /proc, which leads
            # to the object itself. If that is a symlink by now, chmod refuses it too.
            with leading_to(fd, directory, name) as entry:
                os.chmod(entry, mode)
        finally:
            os.close(fd)


# Reads access ACLs, and removes them from entries that must not admit the users they name.
#
# With an access ACL, the group bits of a mode are the mask of that ACL, so setting a mode admits the users
# that the ACL names. Without the ACL those users get the rights of group or others, which can be more. The
# safe order is: clear the bits of group and others, remove the ACL, then set the wanted mode.

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_NONE = {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOSYS}


def read_acl(directory: int, name: bytes) -> bytes:
    """Return the access ACL of an entry of an open directory, or b"" if it has none. Raises OSError."""
    try:
        return at_entry(directory, name, partial(_get, attribute=ACCESS_ACL))
    except OSError as error:
        if error.errno in _NONE:
            return b""
        raise


def shed_acls(name: bytes, directory: int) -> None:
    """Remove both ACLs from a directory that was just made. Raises OSError."""
    take_acl(name, directory, os.stat(name, dir_fd=directory, follow_symlinks=False))
    at_entry(directory, name, partial(_remove, name=DEFAULT_ACL))


def shed_acl(fd: int) -> None:
    """Remove the access ACL from an open file that was just made with a mode for its owner only. Raises
    OSError.

    A file system that answers EIO, and EIO again when the ACL is read, has none: rclone's mounts do so.
    """
    try:
        _remove(fd, ACCESS_ACL)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        try:
            os.getxattr(fd, ACCESS_ACL)
        except OSError as unreadable:
            if unreadable.errno == errno.EIO:
                return
        raise


def take_acl(name: bytes, directory: int, now: os.stat_result) -> None:
    """Remove the access ACL from an entry that is no symlink; `now` is its stat. Raises OSError.

    If it had an ACL, group and others have no rights afterwards.
    """
    if read_acl(directory, name):
        set_mode_on_name(name, directory, stat.S_IMODE(now.st_mode) & ~_OTHERS)
        at_entry(directory, name, partial(_remove, name=ACCESS_ACL))


def take_acl_of(fd: int, now: os.stat_result) -> None:
    """Remove the access ACL from an open file, as `take_acl` does; `now` is its stat. Raises OSError."""
    try:
        os.getxattr(fd, ACCESS_ACL)
    except OSError as error:
        if error.errno in _NONE:
            return
        raise
    os.chmod(fd, stat.S_IMODE(now.st_mode) & ~_OTHERS)
    _remove(fd, ACCESS_ACL)


def has_default_acl(directory: Directory) -> bool:
    """Return whether new entries of the directory inherit an ACL. True also if that cannot be found out."""
    try:
        at_entry(directory.fd, b".", partial(_get, attribute=DEFAULT_ACL))
    except OSError as error:
        return error.errno not in _NONE
    return True


def _get(path: bytes, attribute: bytes) -> bytes:
    return os.getxattr(path, attribute, follow_symlinks=False)


def _remove(file: bytes | int, name: bytes) -> None:
    try:
        # An open file cannot be a symlink, so removexattr rejects follow_symlinks for it.
        if isinstance(file, int):
            os.removexattr(file, name)
        else:
            os.removexattr(file, name, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NONE:
            raise


# Storage: what is known of the file system that a tree is written to, and so what a run sets of its entries.
#
# Each Root has one. Without a sync everything is set, and a failure is an error. A sync says what both ends
# preserve (`agree`), and learns what the file system keeps before its first write (`learn`).


class Storage:
    """The facts of one tree's file system, and the parts of metadata that are set there.

    This is state, not policy: all who write to the tree share one, also through other policies of its Root.
    Whoever sees that something was not kept changes it in place (`learn_from`), for what is written next.
    """

    def __init__(self) -> None:
        self.facts: FileSystemFacts = PLAIN
        self.settles = False
        """True if what is made has to be looked at once more when it is closed and has its name."""
        self.is_learned = False
        """The facts were found out by this run, not by an earlier one or from the type."""
        self.shortfalls: dict[Shortfall, Shortfalls] = {}
        self.preserved: Preserved = EVERYTHING
        """The metadata that both ends preserve, as far as is known."""
        self._made: Preserved = EVERYTHING
        """The metadata that are set on an entry that the run makes. Bits of a mode that only the source lacks
        are."""
        self._makes_whole = True
        """True if all that is wanted stays as it is."""
        self.times_files = True
        """True if regular files get mtimes when they are made."""
        self.is_agreed = False
        """True if a sync writes here, so that content arrives although a part of the metadata does not."""
        self._asked: Preserved | None = None
        self._source: Preserved = EVERYTHING
        self._insists = False
        self.unsynced = 0
        """The errno with which a file system that does not sync refused it; 0: none did."""
        self.borrowed: dict[bytes, int] = {}
        """The modes of directories in which the owner borrowed permissions, by path."""

    def agree(self, asked: Preserved, source: Preserved, *, insists: bool) -> None:
        """Take note of what the options ask to preserve, and of what the source preserves. `insists`: owners
        are set whatever the file system is known to keep."""
        self._asked, self._source, self._insists = asked, source, insists
        self.is_agreed = True
        self._decide()

    def rely_on(self, facts: FileSystemFacts, *, learned: bool) -> None:
        """Take `facts` as those of the file system."""
        self.facts, self.is_learned, self.settles = facts, learned, not facts.is_plain
        self._decide()

    def _decide(self) -> None:
        if self._asked is None:
            return
        keeps = replace(self.facts.keeps, owner=self.facts.keeps.owner or self._insists)
        self.preserved = self._asked.also(keeps).both(self._source)
        every = replace(self._asked, modes=ALL_MODES, directory_modes=ALL_MODES)
        # A new entry's time is set as it is: its own time is no multiple yet.
        made = self._made = replace(every.also(keeps), granularity=EXACT)
        self._makes_whole = made.owner and made.group and made.keeps_all_modes and not made.untimed
        self.times_files = made.is_timed(Kind.FILE)

    @property
    def is_plain(self) -> bool:
        """Return whether everything is set of new entries, and each call does what it says."""
        made = self._made
        return not self.settles and made.keeps_all_modes and made.group and not made.untimed

    @property
    def sets_found_whole(self) -> bool:
        """Return whether all of the metadata is set of entries that were there, but for owners that nobody
        sets."""
        both = self.preserved
        return both.keeps_all_modes and both.keeps_all_times and (both.group or not both.owner)

    # What is set

    def of_made(self, wanted: Metadata, now: os.stat_result) -> Metadata:
        """Return what is set of an entry that the run has made, of which `now` is the stat."""
        if self._makes_whole:
            return wanted
        return self._made.onto(wanted, metadata_of(now), kind_of(now.st_mode))

    def of_settled(self, wanted: Metadata, now: os.stat_result) -> Metadata:
        """Return what is still to be set of an entry that was given `wanted` and has now the stat `now`."""
        wanted = self.of_made(wanted, now)
        as_kept = self.facts.keeps.granularity.alike(wanted.mtime_ns, now.st_mtime_ns)
        return replace(wanted, mtime_ns=now.st_mtime_ns) if as_kept else wanted

    def of_found(self, wanted: Metadata, now: os.stat_result) -> Metadata:
        """Return what is set of an entry that was there, of which `now` is the stat."""
        return self.onto_found(wanted, metadata_of(now), kind_of(now.st_mode))

    def onto_found(self, wanted: Metadata, now: Metadata, kind: int) -> Metadata:
        """Return what is set of an entry that was there, of this Kind and with the metadata `now`."""
        return wanted if self._asked is None else self.preserved.onto(wanted, now, kind)

    def of_directory(self, path: bytes, wanted: Metadata, now: os.stat_result) -> Metadata:
        """Return what is set of the directory at `path` when the work in it is done: as `of_found`, and it
        gets back the mode that it had before its owner borrowed permissions."""
        if self._asked is None:
            return wanted
        mode = self.borrowed.pop(path, None)
        before = metadata_of(now) if mode is None else replace(metadata_of(now), mode=mode)
        return self.preserved.onto(wanted, before, Kind.DIRECTORY)

    # What failed

    def attempts(self, path: bytes) -> Attempt:
        """Return an Attempt that notes what fails for the entry at `path`, unless all entries would fail."""
        return strictly if self._asked is None else partial(self._attempt, path)

    def _attempt(self, path: bytes, what: Shortfall, call: Callable[[], None]) -> bool:
        try:
            call()
        except OSError as error:
            if error.errno in STOPS_THE_RUN:
                raise
            self.note(what, path, error.errno or 0)
            return False
        return True

    def note(self, what: Shortfall, path: bytes, number: int) -> None:
        """Note that `what` failed for the entry at `path`, with this errno."""
        known = self.shortfalls.get(what)
        if known is None:
            self.shortfalls[what] = Shortfalls(1, path, number)
        else:
            self.shortfalls[what] = replace(known, count=known.count + 1)

    def learn_from(self, wanted: Metadata, now: os.stat_result, *, owner: bool) -> None:
        """Take note of the stat that an entry has after `wanted` was set, uid and gid with `owner`: what is
        not as it was set is not kept."""
        found, kind = metadata_of(now), kind_of(now.st_mode)
        keeps = self.facts.keeps
        lost = (wanted.mode ^ found.mode) & ALL_MODES
        if lost and kind is Kind.DIRECTORY:
            keeps = replace(keeps, directory_modes=keeps.directory_modes & ~lost)
        elif lost and kind is not Kind.SYMLINK:
            keeps = replace(keeps, modes=keeps.modes & ~lost)
        if owner and (wanted.uid, wanted.gid) != (found.uid, found.gid):
            keeps = replace(keeps, owner=False)
        if not keeps.granularity.alike(wanted.mtime_ns, found.mtime_ns) and keeps.is_timed(kind):
            coarser = granularity_of(((wanted.mtime_ns, found.mtime_ns),), keeps.granularity.step)
            if coarser is None:
                apart = kind if kind in (Kind.DIRECTORY, Kind.SYMLINK) else Kind.FILE
                keeps = replace(keeps, untimed=keeps.untimed | {apart})
            else:
                keeps = replace(keeps, granularity=coarser)
        if keeps != self.facts.keeps:
            self.rely_on(replace(self.facts, keeps=keeps), learned=self.is_learned)


# EntryCheck: whether an entry is still the one that was listed, apart from what this run itself did to it.
#
# Right before a run changes what is at a path, it looks at it once more. An entry that is not the one that
# was listed belongs to somebody else and stays, and so does one where nothing was listed. Some steps of the
# run change entries that a later step checks: a file loses one of its names or gets one (its ctime changes),
# its metadata are set, it moves. The run notes these, as chains of identities that only its own steps
# connect.

# Waits until the clock that stamps files has passed a file's last change, so that the next change is visible.
#
# A change sets the ctime from this clock, which moves in ticks of 1 to 10 ms, or 1 s on coarse file systems.
# (Since Linux 6.13 some file systems stamp the first change after a stat more finely.) A file that is read in
# the tick of its last change may change again with the same stat. A comparison of two stats would call it
# unchanged, and one mtime would stand for two contents.

_CLOCK_REALTIME_COARSE = 5
"""The value in linux/time.h; Python has no name for it."""

_SECOND = 1_000_000_000
_PAUSE_NS = 1_000_000

FUTURE_NS = 2 * _SECOND
"""A ctime further ahead than this was stamped by another clock, or before this clock was set back. Waiting
for it would prove nothing, or take years."""


def file_clock() -> int:
    """Return the clock that this kernel's file systems stamp with, in nanoseconds: the time of day, up to a
    tick late."""
    if sys.platform.startswith("linux"):
        return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
    return time.time_ns()


def outlast(ctime_ns: int) -> None:
    """Return once any change of the file gives it another ctime than `ctime_ns`. That is nearly always at
    once.

    A ctime of whole seconds is taken for the mark of a file system that keeps no finer times. That is wrong
    once in 10^9 times.
    """
    end = ctime_ns if ctime_ns % _SECOND else ctime_ns + _SECOND - 1
    while end - FUTURE_NS <= (now := file_clock()) <= end:
        time.sleep(min(_PAUSE_NS, end - now + 1) / _SECOND)


REMEMBERED_ENTRIES = 1 << 16
"""Entries whose own steps are remembered, at about 500 bytes each. Beyond this, an entry that the run itself
changed counts as changed by somebody else; the next run goes on with it."""


class Anything(Enum):
    """Type of ANYTHING, for annotations."""

    ANYTHING = "anything"


ANYTHING: Final = Anything.ANYTHING
"""Expect any entry or none, for callers who act on what they did not list. A directory is still
not replaced by another kind of entry."""

Expected: TypeAlias = "Identity | Anything | None"
"""The expected state of a path right before it changes: an entry as it was listed, anything, or nothing."""


def identity_of(found: os.stat_result) -> Identity:
    """Return the identity of an entry with this stat."""
    kind = KIND_OF_FORMAT[found.st_mode >> 12]
    size = found.st_size if kind == Kind.FILE else 0
    mtime, ctime = packed_time(found.st_mtime_ns), packed_time(found.st_ctime_ns)
    return Identity(found.st_dev, found.st_ino, size, mtime, ctime, kind)


def stat_entry(name: bytes, parent: int) -> os.stat_result:
    """Return the stat of an entry of an open directory, without following a link. Raises OSError."""
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def found_at(name: bytes, directory: int) -> os.stat_result | None:
    """Return the stat of an entry of an open directory, None if nothing is there. Raises OSError."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def difference_from(expected: Identity | None, found: os.stat_result | None) -> tuple[str, str]:
    """Return what was expected at a path and what was found there, for a message."""
    if expected is None:
        what = "nothing" if found is None else f"a {kind_of(found.st_mode).name.lower()}"
        return "nothing there", what
    if found is None:
        return f"the {Kind(expected.kind).name.lower()} that was there", "nothing"
    return f"the {Kind(expected.kind).name.lower()} that was there", "that it was changed or replaced"


class _Chain:
    """The identities that one entry had in turn by steps of this run. A file with thousands of names has as
    many."""

    __slots__ = ("_former", "last")

    def __init__(self, first: Identity) -> None:
        self.last = first
        self._former = {first}

    def add(self, identity: Identity) -> None:
        self.last = identity
        self._former.add(identity)

    def had(self, expected: Identity, fields: ComparedFields) -> bool:
        """Return whether one of them is `expected`, as far as `fields` tell."""
        if expected in self._former:
            return True
        if fields == ALL_FIELDS and expected.kind != Kind.DIRECTORY:
            return False
        return any(is_same_entry(expected, former, fields) for former in self._former)


class EntryCheck:
    """Checks whether entries changed, for one tree and one run. Threads may share it."""

    def __init__(self, fields: ComparedFields = ALL_FIELDS) -> None:
        self.fields = fields
        """The parts of identities that count: those that the file system keeps stable and every view shows.
        """
        self._chains: dict[tuple[int, int], _Chain] = {}
        """By device and inode number of the last identity in it."""

    def leave_out(self, fields: ComparedFields) -> None:
        """Have no field count that does not count in `fields`."""
        self.fields = self.fields.both(fields)

    def is_still(self, expected: Identity, now: Identity) -> bool:
        """Return whether `now` is the entry `expected`, or what this run's own steps made of it."""
        if is_same_entry(expected, now, self.fields):
            return True
        chain = self._chains.get((now.device, now.inode))
        return (
            chain is not None
            and is_same_entry(chain.last, now, self.fields)
            and chain.had(expected, self.fields)
        )

    def note(self, before: Identity, after: Identity) -> None:
        """Record that a step of this run turned identity `before` into `after`."""
        if before == after:
            return
        chain = self._chains.pop((before.device, before.inode), None)
        if chain is None or chain.last != before:
            chain = _Chain(before)
        chain.add(after)
        if len(self._chains) >= REMEMBERED_ENTRIES:
            del self._chains[next(iter(self._chains))]
        self._chains[(after.device, after.inode)] = chain

    def note_named(
        self, before: Identity, after: os.stat_result | None, modes: tuple[int, ...] | None = None
    ) -> None:
        """Record that an entry got or lost a name, or was renamed, by a step of this run; `after`: its stat
        now. `modes`: those it may have now, with its kind; None: any. If more than its ctime changed,
        somebody else was there, and nothing is recorded."""
        if after is not None and (modes is None or after.st_mode in modes):
            now = identity_of(after)
            if (before.kind, before.size, before.mtime_ns) == (now.kind, now.size, now.mtime_ns):
                self.note(before, now)

    def take_name(
        self,
        name: bytes,
        directory: int,
        require: Callable[[os.stat_result | None], None],
        step: Callable[[], None],
    ) -> None:
        """Call `step`, which takes `name` of an open directory away from the entry that has it.

        `require` receives the stat of that entry, None if there is none, right before; it raises if the entry
        has to stay. If the entry has other names, it is recognised under these afterwards. Raises OSError.
        """
        found = found_at(name, directory)
        if found is None or found.st_nlink < 2 or stat.S_ISDIR(found.st_mode):
            require(found)
            step()
            return
        try:
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        except FileNotFoundError:
            require(None)
            raise
        try:
            before = identity_of(os.fstat(fd))
            require(found_at(name, directory))
            step()
            # Some file systems know a file by its first name alone, and have lost it now. The step is done.
            with suppress(OSError):
                self.note_named(before, os.fstat(fd))
        finally:
            os.close(fd)
