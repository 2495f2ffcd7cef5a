"""The entries that a Root shows where a sync is to take entries for something else than their stat on disk
says: files that --fake-super made, munged links, special files by their kinds, times that do not matter."""

from __future__ import annotations

import errno
import os
import re
import stat
from array import array
from functools import partial

from rdc.errors import FileError
from rdc.files.base.metadata import kind_of, set_on_name, stat_entry
from rdc.files.base.paths import at_entry, join, leading_to
from rdc.files.root.lister import packed_inodes
from rdc.files.root.policies import MUNGE, Confined
from rdc.lean.records import Record, replace
from rdc.limits import PATH_BYTES
from rdc.model.entries import (
    DEVICES,
    Kind,
    Listed,
    Listing,
    Metadata,
    PackedInodes,
    device_number,
    little_endian,
    little_endian_integers,
    strings,
)
from rdc.model.preserved import packed_time, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Set


FORMAT_OF_KIND = {
    Kind.FIFO: stat.S_IFIFO,
    Kind.SOCKET: stat.S_IFSOCK,
    Kind.CHARACTER_DEVICE: stat.S_IFCHR,
    Kind.BLOCK_DEVICE: stat.S_IFBLK,
}
_KIND_OF_FORMAT = {format_: kind for kind, format_ in FORMAT_OF_KIND.items()}


def is_of_kind(mode: int, kind: Kind) -> bool:
    """Return whether an entry with that st_mode has this kind."""
    if kind in FORMAT_OF_KIND:
        return stat.S_IFMT(mode) == FORMAT_OF_KIND[kind]
    return kind_of(mode) is kind


def node_of(found: os.stat_result) -> tuple[Kind, int]:
    """Return the kind and the number of a special file. Raises ValueError for a device that no listing can
    have."""
    kind = _KIND_OF_FORMAT[stat.S_IFMT(found.st_mode)]
    device = (os.major(found.st_rdev), os.minor(found.st_rdev)) if kind in DEVICES else (0, 0)
    return kind, device_number(*device)


def with_node_kinds(root: Confined, path: bytes, listed: Listed) -> Listed:
    """Return the entries of the directory at `path`, in which special files of the kinds that `root` shows
    are what they are.

    Each is looked at once more. They are rare, and trees without them pay nothing.
    """
    listing = listed.listing
    names, kinds = strings(listing.names), bytearray(listing.kinds)
    sizes: array[int] = little_endian_integers("Q", listing.sizes)
    for row in listing.rows_of(Kind.SPECIAL):
        try:
            parent, name = root.locate(join(path, names[row]))
            found = stat_entry(name, parent.fd)
            kind = _KIND_OF_FORMAT.get(stat.S_IFMT(found.st_mode), Kind.SPECIAL)
            if kind in root.reads.nodes:
                if kind in DEVICES:
                    sizes[row] = device_number(os.major(found.st_rdev), os.minor(found.st_rdev))
                kinds[row] = kind
        except (OSError, ValueError, FileError):
            continue  # gone meanwhile, or a device that no other machine can have: left alone, and named
    return replace(listed, listing=replace(listing, kinds=bytes(kinds), sizes=little_endian(sizes)))


# Faked: the metadata that --fake-super keeps in an extended attribute, in rsync's form.
#
# An entry that this user may not make is a plain file. `user.rsync.%stat` holds its real metadata: mode with
# format, number of a device, owner and group, as "100644 0,0 1000:1000". The owner of the real entry can
# always read and write it. An entry without the attribute is what it is.

FAKED_NAME = "user.rsync.%stat"

_PATTERN = re.compile(rb"([0-7]{1,7}) ([0-9]{1,10}),([0-9]{1,10}) ([0-9]{1,10}):([0-9]{1,10})")
_NONE = {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOENT, errno.EPERM}
_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_ID_LIMIT = 1 << 32


class Faked(Record):
    """The metadata of the entry that a plain file or directory stands for."""

    mode: int
    """The mode with the format, as st_mode."""
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
    shown = stat.S_IMODE(found.st_mode)
    if mode != shown:
        os.chmod(path, mode)
        shown = stat.S_IMODE(os.stat(path).st_mode)  # some file systems change nothing and say nothing
    there = (found.st_uid, found.st_gid)
    known = there if faked is None else (faked.uid, faked.gid)
    uid, gid = (wanted.uid, wanted.gid) if owner else known
    major, minor = (0, 0) if faked is None else (faked.major, faked.minor)
    kept = Faked(format_ | wanted.mode, major, minor, uid, gid)
    if kept.mode == stat.S_IFMT(found.st_mode) | shown and (uid, gid) == there:
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


_KINDS = {format_: kind for kind, format_ in FORMAT_OF_KIND.items()}
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_READABLE = (Kind.FILE, Kind.DIRECTORY)


def as_policy_says(root: Confined, path: bytes, listed: Listed) -> Listed:
    """Return the directory at `path` as the ReadPolicy of `root` has it shown, but for followed links. What
    entries stand for comes first: a faked link may be munged, and a faked device has a kind. Raises
    RdcError."""
    reads = root.reads
    if reads.fakes:
        listed = _unfaked(root, path, listed)
    if reads.untimed:
        listed = _timeless(listed, reads.untimed)
    if reads.unmunges or reads.munges:
        listed = _unmunged(listed, made=reads.munges)
    if reads.nodes and Kind.SPECIAL in listed.listing.kinds:
        listed = with_node_kinds(root, path, listed)
    return listed


def _timeless(listed: Listed, kinds: frozenset[Kind]) -> Listed:
    """Return the entries with mtime 0 for those of some kinds, so that their mtimes never differ."""
    listing = listed.listing
    rows = [row for kind in kinds for row in listing.rows_of(kind)]
    if not rows:
        return listed
    mtimes = little_endian_integers("q", listing.mtimes)
    for row in rows:
        mtimes[row] = 0
    return replace(listed, listing=replace(listing, mtimes=little_endian(mtimes)))


def _unmunged(listed: Listed, *, made: bool) -> Listed:
    """Return the entries with the targets of munged symlinks as they were. `made`: munged symlinks are what
    is wanted. Then others differ from all that is."""
    listing = listed.listing
    if not listing.targets:
        return listed

    def shown(target: bytes) -> bytes:
        if target.startswith(MUNGE) and len(target) > len(MUNGE):
            return target[len(MUNGE) :]
        return MUNGE + target if made else target

    targets = b"".join(shown(target) + b"\0" for target in strings(listing.targets))
    return replace(listed, listing=replace(listing, targets=targets))


def with_stats(listed: Listed, stats: Mapping[int, os.stat_result], dropped: Set[int]) -> Listed:
    """Return a directory in which `stats` say what the symlinks in these rows are, without rows `dropped`."""
    shown = replace(
        listed,
        listing=restated(listed.listing.unpacked(), stats).packed(),
        inodes=_with_inodes(listed.inodes, stats),
    )
    return shown.rows([row for row in range(shown.listing.count) if row not in dropped])


def restated(listing: Listing, stats: Mapping[int, os.stat_result]) -> Listing:
    """Return a listing in which `stats` say what the symlinks in these rows are."""
    kinds, links = bytearray(listing.kinds), listing.links()
    modes, sizes, mtimes = listing.modes[:], listing.sizes[:], listing.mtimes[:]
    uids, gids = listing.uids[:], listing.gids[:]
    for row, found in stats.items():
        kinds[row] = kind_of(found.st_mode)
        modes[row] = found.st_mode & 0o7777
        sizes[row] = found.st_size if kinds[row] == Kind.FILE else 0
        mtimes[row] = packed_time(found.st_mtime_ns)
        uids[row], gids[row] = found.st_uid, found.st_gid
        del links[row]
    return replace(
        listing,
        kinds=bytes(kinds),
        modes=modes,
        sizes=sizes,
        mtimes=mtimes,
        uids=uids,
        gids=gids,
        targets=tuple(links.values()),
    )


def _with_inodes(inodes: PackedInodes, stats: Mapping[int, os.stat_result]) -> PackedInodes:
    if not stats:
        return inodes
    others = packed_inodes(list(stats.values()))
    columns = {}
    for name, width in (("devices", 8), ("inodes", 8), ("links", 4), ("allocated", 8), ("ctimes", 8)):
        column, given = bytearray(getattr(inodes, name)), getattr(others, name)
        for number, row in enumerate(stats):
            column[width * row : width * (row + 1)] = given[width * number : width * (number + 1)]
        columns[name] = bytes(column)
    return replace(inodes, **columns)


def faked_at(root: Confined, path: bytes) -> Faked | None:
    """Return what the entry at `path` stands for; None if it is what it is. Raises RdcError."""

    def read(name: bytes, parent: int) -> Faked | None:
        return at_entry(parent, name, partial(read_faked, found=stat_entry(name, parent)))

    try:
        return root.perform(path, "read what it stands for", read, reading=True)
    except ValueError as error:
        raise _wrong(root, path, "mode, device, owner and group, as rsync writes them", str(error)) from error


def _unfaked(root: Confined, path: bytes, listed: Listed) -> Listed:
    """Read the attribute of each file and directory of a listing."""
    listing = listed.listing
    plain = listing.unpacked()
    kinds, links = bytearray(plain.kinds), dict(plain.links())
    found = False
    for row in [row for kind in _READABLE for row in listing.rows_of(kind)]:
        entry = join(path, plain.names[row])
        try:
            faked = faked_at(root, entry)
            if faked is None:
                continue
            kind = _kind(root, faked)
            if kind is Kind.SYMLINK:
                links[row] = _link_text(root, entry)
        except FileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue
            raise
        found, kinds[row] = True, kind
        plain.modes[row] = stat.S_IMODE(faked.mode)
        plain.uids[row], plain.gids[row] = faked.uid, faked.gid
        if kind is not Kind.FILE:
            plain.sizes[row] = device_number(faked.major, faked.minor) if kind in DEVICES else 0
    if not found:
        return listed
    targets = tuple(links[row] for row in sorted(links))
    return replace(listed, listing=replace(plain, kinds=bytes(kinds), targets=targets).packed())


def _kind(root: Confined, faked: Faked) -> Kind:
    kind = _KINDS.get(stat.S_IFMT(faked.mode))
    if kind is None:
        return kind_of(faked.mode)
    if kind in DEVICES:
        try:
            device_number(faked.major, faked.minor)
        except ValueError:
            return Kind.SPECIAL
    return kind if kind in root.reads.nodes else Kind.SPECIAL


def _link_text(root: Confined, path: bytes) -> bytes:
    """Read the target of a symlink, which is the content of the file that stands for it."""

    def read(name: bytes, parent: int) -> bytes:
        fd = os.open(name, _READ, dir_fd=parent)
        try:
            return os.pread(fd, PATH_BYTES + 1, 0)
        finally:
            os.close(fd)

    text = root.perform(path, "read the link that it stands for", read, reading=True)
    if not text or b"\0" in text or len(text) > PATH_BYTES:
        raise _wrong(root, path, "the target of a link in it", repr(text[:40]))
    return text


def _wrong(root: Confined, path: bytes, expected: str, found: str) -> FileError:
    return root.refused(
        path,
        "read what it stands for",
        expected=expected,
        found=found,
        advice=f"remove its attribute {FAKED_NAME}, or leave out --fake-super",
    )


def is_node(root: Confined, path: bytes, kind: Kind, number: int) -> bool:
    """Return whether the entry at `path` is a special file of that kind and device number, or stands for one
    (--fake-super). Raises FileError."""
    try:
        if not root.reads.fakes:
            return node_of(root.perform(path, "look at it", stat_entry)) == (kind, number)
        faked = faked_at(root, path)
        if faked is None or stat.S_IFMT(faked.mode) != FORMAT_OF_KIND[kind]:
            return False
        return kind not in DEVICES or device_number(faked.major, faked.minor) == number
    except (KeyError, ValueError):
        return False  # no special file, or a device that no listing can have
