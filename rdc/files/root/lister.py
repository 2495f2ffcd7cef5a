"""Reads one directory: in C on Linux, elsewhere by the Python that defines what the C part does."""

from __future__ import annotations

import errno
import os
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from stat import S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, S_ISLNK

from rdc.files import _files
from rdc.files.base.metadata import KIND_OF_FORMAT
from rdc.files.base.paths import reserved_rows
from rdc.files.depth import Looking, RowsSeen
from rdc.lean.records import Record, replace
from rdc.limits import DIRECTORY_BYTES, ENTRY_BYTES, NAME_BYTES
from rdc.model.entries import (
    BadCall,
    BadEntry,
    Kind,
    Listed,
    ListedDirectories,
    Listing,
    PackedInodes,
    PackedListing,
    little_endian_integers,
    strings,
)
from rdc.model.preserved import packed_time, packed_times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


# Reads one directory into a Listed. It defines what read_directory.c does faster.

_UINT32_MAX = (1 << 32) - 1

_FORMATS = frozenset((S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK))

LINK_LOOKS = 8
"""Looks at a name that is a link and something else by turns."""


def read_directory(fd: int, limit: int = DIRECTORY_BYTES) -> Listed:
    """Return the entries of the directory open for reading at `fd`, with one fstatat each.

    Reserved names (rdc.files.base.paths) are apart and not looked at. So are entries that cannot be
    looked at: a name longer than NAME_BYTES, any errno but ENOENT, a link whose target cannot be read, a kind
    that no system knows. An entry that vanishes between the reading of its name and its stat is left out. A
    link that something else replaces before its target is read is looked at again.

    Raises OSError: EOVERFLOW if names, targets and ENTRY_BYTES per entry exceed `limit` bytes, and the error
    of the directory itself if no entry can be looked at because of it, as without the right to search it.
    """
    encoding = sys.getfilesystemencoding()
    os.lseek(fd, 0, os.SEEK_SET)
    entries: dict[bytes, os.DirEntry[str]] = {}
    with os.scandir(fd) as scanned:
        for entry in scanned:
            name = entry.name.encode(encoding, "surrogateescape")
            limit -= ENTRY_BYTES + len(name) + 1
            if limit < 0:
                raise _failed(errno.EOVERFLOW)
            entries[name] = entry
    if not entries and os.fstat(fd).st_nlink == 0:
        # The C library returns no error for a directory that was removed.
        raise _failed(errno.ENOENT)
    names = sorted(entries)
    reserved = [names[row] for row in reserved_rows(names)]
    stats: dict[bytes, os.stat_result] = {}
    targets: dict[bytes, bytes] = {}
    bad: list[BadEntry] = []
    for name in sorted(entries.keys() - reserved):
        entry = entries[name]
        try:
            found, target = _look(name, fd, partial(entry.stat, follow_symlinks=False))
        except FileNotFoundError:
            continue
        except _BadError as error:
            directory = _is_directory(entry) if error.call in (BadCall.NAME, BadCall.STAT) else False
            bad.append(BadEntry(name, error.errno or 0, error.call, directory))
            continue
        stats[name] = found
        if target is not None:
            targets[name] = target
    if any(one.call is BadCall.STAT for one in bad):
        os.stat(b".", dir_fd=fd)
    if sum(map(len, targets.values())) + len(targets) > limit:
        raise _failed(errno.EOVERFLOW)
    return listed_of(stats, targets, reserved, bad)


def look_at(name: bytes, directory: int) -> Listed:
    """Return what `read_directory` returns of this one entry, which need not be there, of an open directory.
    The directory is not read. Raises OSError if the directory does not let its entries be looked at."""
    try:
        found, target = _look(
            name, directory, partial(os.stat, name, dir_fd=directory, follow_symlinks=False)
        )
    except FileNotFoundError:
        return listed_of({}, {})
    except _BadError as error:
        if error.call is BadCall.STAT:
            os.stat(b".", dir_fd=directory)
        return listed_of({}, {}, (), [BadEntry(name, error.errno or 0, error.call, is_directory=False)])
    return listed_of({name: found}, {} if target is None else {name: target})


class _BadError(OSError):
    """An entry that cannot be looked at, and the call that failed."""

    def __init__(self, error: OSError, call: BadCall) -> None:
        super().__init__(error.errno, error.strerror)
        self.call = call


def _look(
    name: bytes, directory: int, stat_entry: Callable[[], os.stat_result]
) -> tuple[os.stat_result, bytes | None]:
    """Return the stat of an entry, and its target if it is a link. Raises FileNotFoundError, _BadError."""
    target: bytes | None = None
    call = BadCall.NAME
    try:
        if len(name) > NAME_BYTES:
            raise _failed(errno.ENAMETOOLONG)
        call = BadCall.STAT
        found = stat_entry()
        for _ in range(LINK_LOOKS):
            if not S_ISLNK(found.st_mode):
                break
            call = BadCall.READ_LINK
            try:
                target = _read_link(name, directory)
                break
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
            call = BadCall.STAT
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if S_ISLNK(found.st_mode) and target is None:
            call = BadCall.READ_LINK
            raise _failed(errno.EINVAL)
        call = BadCall.KIND
        if S_IFMT(found.st_mode) not in _FORMATS:
            raise _failed(errno.EUCLEAN)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _BadError(error, call) from error
    return found, target


def listed_of(
    stats: Mapping[bytes, os.stat_result],
    targets: Mapping[bytes, bytes],
    reserved: Sequence[bytes] = (),
    bad: Sequence[BadEntry] = (),
) -> Listed:
    """Return a directory with these entries, by increasing name. `targets`: of the symlinks."""
    found = list(stats.values())
    kinds = bytes([each.st_mode >> 12 for each in found]).translate(KIND_OF_FORMAT)
    sizes = array("Q", [each.st_size for each in found])
    for row, kind in enumerate(kinds):
        if kind != Kind.FILE:
            sizes[row] = 0
    listing = Listing(
        names=tuple(stats),
        kinds=kinds,
        modes=array("H", [each.st_mode & 0o7777 for each in found]),
        sizes=sizes,
        mtimes=times_of([each.st_mtime_ns for each in found]),
        uids=array("I", [each.st_uid for each in found]),
        gids=array("I", [each.st_gid for each in found]),
        targets=tuple([targets[name] for name in stats if name in targets]),
    )
    return Listed(listing.packed(), packed_inodes(found), tuple(reserved), tuple(bad))


def packed_inodes(stats: Sequence[os.stat_result]) -> PackedInodes:
    """Return the inodes of entries, row by row."""
    return PackedInodes(
        devices=_packed("<Q", [found.st_dev for found in stats]),
        inodes=_packed("<Q", [found.st_ino for found in stats]),
        links=_packed("<I", [min(found.st_nlink, _UINT32_MAX) for found in stats]),
        allocated=_packed("<Q", [found.st_blocks * 512 for found in stats]),
        ctimes=_packed("<q", list(times_of([found.st_ctime_ns for found in stats]))),
    )


def times_of(times: Iterable[int]) -> array[int]:
    """Return packed times, of nanoseconds since the epoch."""
    return array("q", packed_times(list(times)))


def _failed(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _read_link(name: bytes, directory: int) -> bytes:
    target = os.readlink(name, dir_fd=directory)
    if b"\0" in target:
        raise _failed(errno.EIO)
    return target


def _is_directory(entry: os.DirEntry[str]) -> bool:
    """Return what the directory says of its entry, without a look at that."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _packed(format_: str, numbers: list[int]) -> bytes:
    return struct.pack(f"{format_[0]}{len(numbers)}{format_[1]}", *numbers)


# Reads one directory: in C on Linux, elsewhere as rdc.files.root.lister defines.

_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


_extension: ModuleType | None = _files if hasattr(_files, "list_directory") else None
"""The C part, which Linux alone has."""


def list_directory(
    directory: int, path: bytes = b"", *, limit: int = DIRECTORY_BYTES, depth: Looking | None = None
) -> Listed:
    """Return what `read_directory` returns for the directory at `path` below the one open
    at `directory`, or for that one itself.

    No link is followed. `depth`: of the looks at entries, one at a time if there is none. Raises OSError:
    EINVAL for a path that is not plain names, EOVERFLOW for a directory of more than `limit` bytes.
    """
    if _extension is None:
        fd = open_directory(directory, path) if path else os.open(b".", _READ, dir_fd=directory)
        try:
            return read_directory(fd, limit)
        finally:
            os.close(fd)
    now, most = (1, 1) if depth is None else (depth.now, depth.most)
    columns, inodes, reserved, mtimes, ctimes, bad, seen = _extension.list_directory(
        directory, path, limit, now, most
    )
    if depth is not None:
        depth.saw(RowsSeen(*seen))
    return _listed(columns, inodes, reserved, mtimes, ctimes, bad)


def _listed(
    columns: tuple[Any, ...],
    inodes: tuple[bytes, ...],
    reserved: bytes,
    mtimes: Sequence[tuple[int, int, int]] | None,
    ctimes: Sequence[tuple[int, int, int]] | None,
    bad: Sequence[tuple[bytes, int, int, bool]] | None,
) -> Listed:
    """Return one directory as the C code tells of it."""
    listing, nodes = PackedListing(*columns), PackedInodes(*inodes)
    if mtimes:
        listing = replace(listing, mtimes=_with_stamps(listing.mtimes, mtimes))
    if ctimes:
        nodes = replace(nodes, ctimes=_with_stamps(nodes.ctimes, ctimes))
    return Listed(
        listing,
        nodes,
        tuple(strings(reserved)) if reserved else (),
        tuple([BadEntry(name, number, BadCall(call), known) for name, number, call, known in bad])
        if bad
        else (),
    )


# Reads several directories of a walk in one call, on Linux alone.

RUN_DIRECTORIES = 64
RUN_ROWS = 4096
"""Entries from which on a run ends, and the most of a directory that joins one."""
RUN_PATHS = 1 << 20
"""Bytes of the paths of directories to come, from which on a run ends."""
RUN_SLOW = 8
"""Directories whose calls made it wait, from which on a run ends, so that more are put in flight."""
RUN_PATH_BYTES = 2_048
"""Most bytes of a path in a run, so that none needs a check of its depth."""


class Run(Record):
    """The directories that one call listed, and how long the call waited for storage."""

    directories: ListedDirectories
    todo: list[bytes]
    """The paths of the directories to come, the next one last."""
    alone: tuple[bytes, Listed] | None
    """The directory after these, if it is no plain one; those in it are not in `todo`."""
    failed: bool
    """True if the next directory could not be listed. It is still the last one of `todo`."""
    looked: int
    """Directories that were read."""
    slow: int
    """The calls among them whose mean wait was longer than WAIT_NANOSECONDS."""
    waited: int
    """Nanoseconds of a mean call of each, added up."""
    elapsed: int
    """Nanoseconds of all calls."""


def list_directories(
    directory: int, todo: Sequence[bytes], *, limit: int = DIRECTORY_BYTES, depth: Looking | None = None
) -> Run | None:
    """List the directories at the paths `todo` below the one open at `directory`, the last one first, and
    those in each before others.

    A run takes only plain directories: no name is reserved, no entry bad or special, no time distant and no
    directory in it of another file system, and there are at most RUN_ROWS entries. Another one ends it, as an
    error does. `limit` and `depth`: as for `list_directory`. No link is followed. None: this system has no
    such call.
    """
    if _extension is None:
        return None
    now, most = (1, 1) if depth is None else (depth.now, depth.most)
    walked, rows, columns, rest, error, alone, waits, seen = _extension.list_directories(
        directory, b"".join([path + b"\0" for path in todo]), limit, now, most
    )
    if depth is not None:
        depth.saw(RowsSeen(*seen))
    paths, text, *starts = columns[13:]
    firsts, texts, links = [little_endian_integers("Q", column) for column in starts]
    listing, inodes = PackedListing(rows, *columns[:8]), PackedInodes(*columns[8:13])
    listed = ListedDirectories(walked, strings(paths), firsts, text, texts, links, listing, inodes)
    other = None if alone is None else (alone[0], _listed(*alone[1][:-1]))
    return Run(listed, strings(rest), other, bool(error), *waits)


def open_directory(directory: int, path: bytes) -> int:
    """Return a descriptor for reading of the directory at `path` (not empty), below the one open at
    `directory`.

    No link is followed. Raises OSError; EINVAL for a path that is not plain names.
    """
    if _extension is not None:
        opened: int = _extension.open_directory(directory, path)
        return opened
    here = os.dup(directory)
    *above, last = path.split(b"/")
    for name, flags in [*((name, _PASS) for name in above), (last, _READ)]:
        try:
            if name in {b"", b".", b".."}:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            opened = os.open(name, flags, dir_fd=here)
        finally:
            os.close(here)
        here = opened
    return here


def _with_stamps(column: bytes, times: Sequence[tuple[int, int, int]]) -> bytes:
    """Return a column of packed times with the stamps of distant ones: row, seconds, nanoseconds."""
    packed = bytearray(column)
    for row, seconds, rest in times:
        stamp = packed_time(seconds * 1_000_000_000 + rest)
        packed[8 * row : 8 * row + 8] = stamp.to_bytes(8, "little", signed=True)
    return bytes(packed)
