"""What a Root shows where a sync is to take entries for something else than their stat on disk says: files
that --fake-super made, munged links, special files by their kinds, times that do not matter."""

from __future__ import annotations

import os
import stat
from functools import partial

from rdc.errors import FileError
from rdc.files.base.entry_check import stat_entry
from rdc.files.base.entry_path import at_entry
from rdc.files.base.faked_stat import FAKED_NAME, Faked, read_faked
from rdc.files.base.metadata import kind_of
from rdc.files.base.relative_path import join
from rdc.files.root.listing_reference import packed_inodes
from rdc.files.root.node_kinds import FORMAT_OF_KIND, node_of, with_node_kinds
from rdc.files.root.policies import MUNGE
from rdc.lean.records import replace
from rdc.limits.wire import PATH_BYTES
from rdc.model.entries import (
    DEVICES,
    Kind,
    Listed,
    Listing,
    PackedInodes,
    device_number,
    little_endian,
    little_endian_integers,
    strings,
)
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from rdc.files.root.policies import Confined

__all__ = ["as_policy_says", "faked_at", "is_node", "restated", "with_stats"]

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
