"""Paths below a root: valid ones, those of entries of open directories, and names that rdc reserves."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from bisect import bisect_left
from contextlib import contextmanager, suppress
from functools import cache, partial

from rdc.errors import FileChangedError, FileError, OutOfSpaceError, RdcError, printable
from rdc.files.base.syscalls import unshare_working_directory
from rdc.lean.records import Record
from rdc.limits import NAME_BYTES, PATH_BYTES, PATH_DEPTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    T = TypeVar("T")


# Checks relative paths below a root: bytes, plain names joined by single slashes.

_NO_NAMES = frozenset((b"", b".", b".."))


def join(parent: bytes, name: bytes) -> bytes:
    """Return the path of `name` in the directory `parent`; b"" is the root."""
    return parent + b"/" + name if parent else name


def check_name(path: bytes, name: bytes) -> None:
    """Raise FileError unless `name` may be a component of `path`. The caller guarantees that it holds no
    slash."""
    if not name:
        raise _refused(path, "an empty component (an absolute path, a double or a trailing slash)")
    if len(name) > NAME_BYTES:
        raise _refused(path, f"a component of {len(name)} bytes (the limit is {NAME_BYTES})")
    if name in {b".", b".."}:
        raise _refused(path, f"the component {name.decode()!r}")
    if b"\0" in name:
        raise _refused(path, "a NUL byte")


def check_path(path: bytes) -> None:
    """Raise FileError unless `path` is b"" (the root) or plain names joined by single slashes.

    A checked path can still meet symlinks; DirectoryCache refuses those.
    """
    if len(path) > PATH_BYTES:
        raise _refused(path[:NAME_BYTES], f"{len(path)} bytes (the limit is {PATH_BYTES})")
    if path.count(b"/") >= PATH_DEPTH:
        raise _refused(path[:NAME_BYTES], f"{path.count(b'/') + 1} components (the limit is {PATH_DEPTH})")
    if path:
        names = path.split(b"/")
        # Checked together: one call per component would dominate the work in deep trees.
        if b"\0" in path or max(map(len, names)) > NAME_BYTES or not _NO_NAMES.isdisjoint(names):
            for name in names:
                check_name(path, name)


def _refused(path: bytes, found: str) -> FileError:
    shown = printable(path)
    return FileError(
        path, f"{shown}: expected a relative path of plain names, found {found}; this entry is left alone"
    )


# Calls that the system offers only by path, on entries of open directories, with and without /proc.
#
# A path below /proc leads through a descriptor. It is the quickest way, and on an entry that is open as a
# path the only one that cannot miss it. Where /proc is not mounted, as in a chroot or on a rescue system:
#
# - A call by name is made in a thread of its own, which works in the directory. Its working directory is no
#   other thread's.
# - A call on an entry that is open as a path is made on a descriptor of the same entry, opened again.
# - What neither can do raises WithoutProcError.


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_REGULAR = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class WithoutProcError(OSError):
    """/proc is not mounted, and nothing else does what was asked for."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSYS, "/proc is not mounted")


@cache
def has_proc() -> bool:
    """Return whether paths below /proc lead through descriptors. Asked once in the life of a process."""
    return os.path.exists(b"/proc/self/fd")


def at_entry(directory: int, name: bytes, call: Callable[[bytes], T]) -> T:
    """Call with a path to the entry `name` of an open directory, which may be open as a path only. The call
    must not follow the last component if it is a link. Raises what the call raises, and OSError."""
    if has_proc():
        return call(b"/proc/self/fd/%d/%s" % (directory, name))
    return in_directory(directory, partial(call, name))


def in_directory(directory: int, call: Callable[[], T]) -> T:
    """Call in a thread whose working directory is the open `directory`. Raises what the call raises, and
    OSError: WithoutProcError where a thread cannot have one of its own."""
    from rdc.lean.threads import Threads

    def work() -> T:
        try:
            unshare_working_directory()
        except OSError as error:
            raise WithoutProcError from error
        os.fchdir(directory)
        return call()

    threads = Threads(1, "rdc working directory")
    try:
        return threads.submit(work).result()
    finally:
        threads.close()


@contextmanager
def leading_to(fd: int, directory: int, name: bytes) -> Iterator[bytes | int]:
    """Yield a path or a descriptor of the very entry that is open at `fd`, maybe as a path, and that is no
    symlink. `directory` and `name` say where it was found.

    Raises OSError: WithoutProcError for an entry that must be opened again and cannot be.
    """
    if has_proc():
        yield b"/proc/self/fd/%d" % fd
        return
    again = _opened_again(fd, directory, name)
    try:
        if not os.path.samestat(os.fstat(again), os.fstat(fd)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        yield again
    finally:
        os.close(again)


def _opened_again(fd: int, directory: int, name: bytes) -> int:
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        return os.open(b".", _DIRECTORY, dir_fd=fd)
    if not stat.S_ISREG(mode):
        raise WithoutProcError  # to open a device may move it
    try:
        return os.open(name, os.O_RDONLY | _REGULAR, dir_fd=directory)
    except PermissionError:
        try:
            return os.open(name, os.O_WRONLY | _REGULAR, dir_fd=directory)
        except PermissionError:
            raise WithoutProcError from None


def path_of_directory(fd: int) -> bytes:
    """Return the absolute path, free of links, of an open directory. Raises OSError."""
    if has_proc():
        return os.readlink(b"/proc/self/fd/%d" % fd)
    return in_directory(fd, os.getcwdb)


# Names that rdc reserves: temporaries (`.tmp`), and files that were displaced while another took their name
# (`.old`).
#
# Every name of the form `.rdc-<16 hex digits>.tmp` or `.old` is reserved, and no sync carries it. A reserved
# name alone proves nothing: rdc.files.replace.commit_group decides which entries rdc may remove.
#
# Three more names are reserved:
#
# - `.rdc-undo`: the directory at the top of a destination with what rdc.undoing keeps.
# - `.rdc-unite`: the same for what a sync in both directions keeps.
# - `.rdc.parts`: the file in a directory of --partial-dir that says which parts rdc put there.
#
# A file system may take other names for these: in another letter case, with characters that it ignores, or as
# short names. No listing hides such a name, but no peer may use one: `stands_for_reserved` knows them.

UNDO_NAME = b".rdc-undo"
"""The directory of what syncs keep to be undone (rdc.undoing)."""

UNITE_NAME = b".rdc-unite"
"""The directory of what syncs in both directions keep."""

PARTS_NAME = b".rdc.parts"
"""The record of a directory of --partial-dir (rdc.files.replace.partial_directory)."""

OWN_DIRECTORIES = (UNDO_NAME, UNITE_NAME)
"""Directories that only rdc works in, and that no option and no link may lead into."""

RESERVED_PATTERN = rb"\.rdc(?:-(?:[0-9a-f]{16}\.(?:tmp|old)|undo|unite)|\.parts)"
"""A regular expression for the whole name. In a temporary, 8 of the 16 digits are the CRC-32 of the target's
name, 4 are random, and 4 check the others. O_EXCL detects two equal names."""

_PREFIX = b".rdc-"
_SUFFIX = b".tmp"

_START = b".rdc"
"""The start of all reserved names."""

RESERVED_RANGE = (_START + b"-", _START + b"/")
"""Bounds of reserved names in byte order: first (inclusive) and last (exclusive). '.' follows '-', and '/'
follows '.'."""

ATTEMPTS = 64
"""Names tried if a drawn name is taken. For each existing temporary of the target, that has a probability of
1 in 65,536."""


def is_reserved(name: bytes) -> bool:
    """Return whether `name` (one component) has the form that rdc reserves."""
    if not name.startswith(_START):
        return False
    import re

    return re.fullmatch(RESERVED_PATTERN, name) is not None


def reserved_rows(names: Sequence[bytes]) -> list[int]:
    """Return the rows of sorted names that are reserved. Without any, the cost is one binary search."""
    first = bisect_left(names, RESERVED_RANGE[0])
    if first == len(names) or names[first] >= RESERVED_RANGE[1]:
        return []
    last = bisect_left(names, RESERVED_RANGE[1])
    return [row for row in range(first, last) if is_reserved(names[row])]


# What is left of a non-ASCII name without these may be compared with their beginning: no letter of that
# is the folded form of another character.
_NOT_ASCII = bytes(range(0x80, 0x100))

_SHORT_PATTERN = rb"rd(?:c-(?:un|[0-9a-f]{2})|c|[0-9a-f]{4})~[0-9]{1,6}(?:\.(?:tmp|old|par))?"
"""Short names (8.3) that VFAT and NTFS give to reserved ones, and under which they find them."""


def stands_for_reserved(name: bytes) -> bool:
    """Return whether some file system takes `name` (one component) for a reserved name.

    Such names differ in letter case, have characters that file systems ignore (Unicode's default ignorable
    ones, dots and spaces at the end, what follows a colon), or are short names.
    """
    if name.isascii():
        return (_START in name.lower() or b"~" in name) and _folds_to_reserved(name)
    return _START in name.translate(None, _NOT_ASCII).lower() and _folds_to_reserved(_without_ignored(name))


def refused_rows(names: Sequence[bytes]) -> list[int]:
    """Return the rows of names that stand for reserved ones. Without any, it costs one search in all of
    them."""
    joined = b"\0".join(names)
    ascii_part = joined if joined.isascii() else joined.translate(None, _NOT_ASCII)
    if _START not in ascii_part.lower() and b"~" not in joined:
        return []
    return [row for row, name in enumerate(names) if stands_for_reserved(name)]


def refused_component(path: bytes) -> bytes | None:
    """Return the first component of a path that stands for a reserved name; None for none."""
    if _START in path.translate(None, _NOT_ASCII).lower() or b"~" in path:
        return next(filter(stands_for_reserved, path.split(b"/")), None)
    return None


def _folds_to_reserved(name: bytes) -> bool:
    import re

    folded = name.partition(b":")[0].lower().rstrip(b". ")
    return is_reserved(folded) or re.fullmatch(_SHORT_PATTERN, folded) is not None


def _without_ignored(name: bytes) -> bytes:
    """Return a name as file systems compare it that fold case by Unicode and ignore characters."""
    from unicodedata import category, normalize

    text = normalize("NFD", name.decode("utf-8", "replace"))
    kept = (each for each in text if category(each) != "Cf" and not _is_ignorable(ord(each)))
    return "".join(kept).casefold().encode()


def _is_ignorable(point: int) -> bool:
    """Return whether Unicode says of a code point that is no format character (Cf) that it is ignored."""
    ranges = (
        (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065),
        (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF),
    )  # fmt: skip
    return any(first <= point <= last for first, last in ranges)


def is_temporary(name: bytes) -> bool:
    """Return whether `temporary_name` can give `name` (one component): its check digits are right.

    1 in 65,536 other reserved names passes as well.
    """
    return is_reserved(name) and name.endswith(_digits(name[:-8], 4) + _SUFFIX)


def temporary_name(target: bytes) -> bytes:
    """Return a new name for a temporary that will become `target` (one component)."""
    head = _PREFIX + _digits(target, 8) + os.urandom(2).hex().encode()
    return head + _digits(head, 4) + _SUFFIX


def is_temporary_of(name: bytes, target: bytes) -> bool:
    """Return whether `name` may be a temporary of `target`, left by an interrupted run."""
    return is_temporary(name) and name.startswith(_PREFIX + _digits(target, 8))


def make_aside(target: bytes, make: Callable[[bytes], None]) -> bytes:
    """Call `make` with a new temporary name of `target`; return the name.

    `make` must raise FileExistsError if the name is taken. Raises OSError.
    """
    for attempt in range(ATTEMPTS):
        name = temporary_name(target)
        try:
            make(name)
        except FileExistsError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return name
    raise AssertionError("unreachable")


def _digits(text: bytes, count: int) -> bytes:
    """Return a checksum of `text` as `count` hexadecimal digits, at most 8."""
    from zlib import crc32

    return b"%0*x" % (count, crc32(text) & (1 << 4 * count) - 1)


# Finds out whether an open directory is one that only rdc works in, or lies in one (`OWN_DIRECTORIES`).
#
# Its path does not prove that: a symlink, a short name or a bind mount may lead to it. So each directory on
# the way up is compared with what the reserved names name in the directory above it.

_ABOVE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def lies_in_own_directory(fd: int) -> bool:
    """Return whether the directory open at `fd` is an own directory of rdc or below one.

    The way up ends where this process may go no further. Raises OSError if `fd` is no open directory.
    """
    current, found = os.dup(fd), os.fstat(fd)
    try:
        for _ in range(PATH_DEPTH):
            try:
                above = os.open(b"..", _ABOVE, dir_fd=current)
            except OSError:
                return False
            os.close(current)
            current = above
            there = os.fstat(above)
            if os.path.samestat(there, found):
                return False
            for name in OWN_DIRECTORIES:
                with suppress(OSError):
                    if os.path.samestat(os.stat(name, dir_fd=above, follow_symlinks=False), found):
                        return True
            found = there
    finally:
        os.close(current)
    return False


_STOPS_THE_RUN = {
    errno.ENOSPC: "free space on the destination and run again; every file is whole, old or new",
    errno.EDQUOT: "free space or raise the quota, then run again; every file is whole, old or new",
    errno.EROFS: "mount the destination read-write and run again",
}

# While a tree is read, these errors mean that the entry is no longer what its listing says.
_GONE = {errno.ENOENT, errno.ESTALE}
_REPLACED = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.EINVAL}

_FOUND = {
    errno.ELOOP: "a symbolic link (links inside a tree are never followed)",
    errno.ENOTDIR: "something that is not a directory, or a symbolic link, on the way",
    errno.EISDIR: "a directory",
}

_ADVICE = {
    errno.ENOSPC: "free space on the file system that is mounted there, then run again",
    errno.EDQUOT: "free space or raise the quota on the file system that is mounted there, then run again",
    errno.EROFS: "mount that file system read-write, or leave the path out",
    errno.EACCES: "check its permissions and those of its directory, then run again",
    errno.EPERM: "run as its owner or as root, or leave out what needs it",
    errno.ENOENT: "run again once nothing else changes this tree",
    errno.ELOOP: "remove the link, or sync the place it points to",
    errno.ENOTDIR: "run again once nothing else changes this tree",
    errno.EISDIR: "remove the directory first, or sync with --delete",
    errno.ENOTEMPTY: "something was added to it meanwhile, or is kept there; run again",
    errno.EEXIST: "run again once nothing else changes this tree",
    errno.EIO: "check the disk and the system log; the old file is untouched",
    errno.EMFILE: "raise the limit of open files (ulimit -n) and run again",
    errno.ENFILE: "the system has run out of open files; close some and run again",
    errno.EBUSY: "it is in use or a mount point; run again later",
    errno.ETXTBSY: "it is being run; run again later",
    errno.ENAMETOOLONG: "this file system takes shorter names only; rename it at the source",
    errno.EFBIG: "this file system or a limit (ulimit -f) takes smaller files only",
    errno.EINVAL: "this file system does not take it; look at the name and the file system's options",
    errno.EILSEQ: "this file system takes only names in its own encoding; rename it at the source",
}


def failure(
    error: OSError,
    path: bytes,
    shown: bytes,
    doing: str,
    *,
    reading: bool = False,
    cause: Cause | None = None,
    nested: bool = False,
) -> RdcError:
    """Return the error to raise for a failed system call.

    `path` is relative to the root and travels in the error. `shown` is the path in the message. `doing`
    completes "cannot ...". With `reading`, a missing or replaced entry gives a FileChangedError (exit code
    24). `cause`: what is known beyond the errno. `nested`: it failed on a file system that is mounted below
    the root. If that is full or read-only, its entries fail one by one; if the root's own is, the run ends.
    """
    number = error.errno or 0
    name = printable(shown)
    reason = f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"
    if cause is not None:
        text = f"{name}: cannot {doing}: found {cause.found}; {cause.advice}"
        return OutOfSpaceError(text) if number in _STOPS_THE_RUN and not nested else FileError(path, text)
    if number in _STOPS_THE_RUN and not nested:
        return OutOfSpaceError(f"{name}: cannot {doing}: {reason}; {_STOPS_THE_RUN[number]}")
    if reading and number in _GONE:
        return FileChangedError(
            path,
            f"{name}: cannot {doing}: expected it to be there still, but it vanished; "
            "run again to sync its present state",
        )
    if isinstance(error, WithoutProcError):
        return FileError(path, f"{name}: cannot {doing}: /proc is not mounted; mount it and run again")
    found = _FOUND.get(number, reason)
    advice = _ADVICE.get(number, "look at the file and its file system, then run again")
    if reading and number == errno.EISDIR:
        advice = "name a file, or run again where it was one a moment ago"
    kind = FileChangedError if reading and number in _REPLACED else FileError
    return kind(path, f"{name}: cannot {doing}: found {found}; {advice}")


def unreadable(error: OSError, path: bytes, shown: bytes) -> RdcError:
    """Return the error to raise where the content of an open file cannot be read. No other entry can have
    taken its place, so only ESTALE says that it vanished."""
    return failure(error, path, shown, "read it", reading=error.errno == errno.ESTALE)


def refused(path: bytes, shown: bytes, doing: str, *, expected: str, found: str, advice: str) -> FileError:
    """Return a FileError (exit code 23) for a state that no system call reported."""
    name = printable(shown)
    return FileError(path, f"{name}: cannot {doing}: expected {expected}, found {found}; {advice}")


def changed(path: bytes, shown: bytes, expected: str, found: str) -> FileChangedError:
    """Return a FileChangedError (exit code 24) for a source that changed while it was read."""
    name = printable(shown)
    return FileChangedError(
        path,
        f"{name}: changed while it was read: expected {expected}, found {found}; "
        "run again once it is left alone",
    )


# Looks behind an errno that stands for several states: which of them is it here? Only messages use it.

_GET_FLAGS = 0x80086601  # FS_IOC_GETFLAGS where a long has 64 bits
_FLAGS = ((0x10, "immutable", "i"), (0x20, "append-only", "a"))
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Cause(Record):
    """The state, and what to do about it."""

    found: str
    advice: str


def cause_of(error: OSError, name: bytes, directory: int) -> Cause | None:
    """Return what made a call fail for the entry `name` of an open directory; None if the errno says all that
    is known."""
    with suppress(OSError):
        if error.errno == errno.ENOSPC and _lacks_inodes(directory):
            return Cause(
                "that no inodes are left, only blocks (ENOSPC): its file system takes no further entries",
                "remove entries there, or make it with more inodes (df -i), then run again",
            )
        if error.errno == errno.EPERM:
            return _flag_of(name, directory)
    return None


def is_of_another_mount(error: OSError, name: bytes, directory: int, top: int) -> bool:
    """Return whether a full or read-only file system is another one than the tree's, mounted in it: then it
    concerns the entries there alone. The call failed for `name`, which may be the mount point, in the open
    `directory`; `top` is the tree's.

    A bind mount may be read-only while its file system is not, so the flag of the mount counts. Of two
    subvolumes of one full file system, each is told by its own entries.
    """
    if _is_another(error, directory, top):
        return True
    try:
        entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return False
    try:
        return _is_another(error, entry, top)
    finally:
        os.close(entry)


def _is_another(error: OSError, fd: int, top: int) -> bool:
    if error.errno == errno.EROFS:
        here, root = (bool(os.fstatvfs(one).f_flag & os.ST_RDONLY) for one in (fd, top))
        return here and not root
    return os.fstat(fd).st_dev != os.fstat(top).st_dev


def _lacks_inodes(directory: int) -> bool:
    found = os.fstatvfs(directory)
    return found.f_files > 0 and found.f_favail == 0 and found.f_bavail > 0


def _flag_of(name: bytes, directory: int) -> Cause | None:
    """Return the flag that forbids changes, root's among them, of an entry or of its directory."""
    for entry, what in ((name, "it has"), (b".", "its directory has")):
        flags = 0
        with suppress(OSError):
            flags = _flags(entry, directory)
        for flag, title, letter in _FLAGS:
            if flags & flag:
                return Cause(
                    f"that {what} the {title} flag (EPERM), which keeps root out, too",
                    f"chattr -{letter} takes it away; then run again",
                )
    if os.geteuid() == 0:
        return Cause(
            f"{os.strerror(errno.EPERM)} (EPERM), for root as well",
            f"see what protects {printable(name)}: its file system, or a security module of the kernel",
        )
    return None


def _flags(name: bytes, directory: int) -> int:
    kind = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        return 0  # to open a device may have effects
    fd = os.open(name, _OPEN, dir_fd=directory)
    try:
        answer = fcntl.ioctl(fd, _GET_FLAGS, bytes(8))
    finally:
        os.close(fd)
    (flags,) = struct.unpack_from("=I", answer)
    return int(flags)
