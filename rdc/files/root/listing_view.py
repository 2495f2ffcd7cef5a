"""How a Root shows entries whose stat on disk is not what a sync is to take."""

from __future__ import annotations

from array import array

from rdc.files.base.metadata import kind_of
from rdc.model.entries import Kind, Listing, PackedInodes, little_endian, little_endian_integers, strings
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Set

    from rdc.files.root.confined_access import ConfinedAccess
    from rdc.files.root.entry_writer import EntryWriter
    from rdc.model.entries import PackedListing

__all__ = ["Munged", "Timeless", "make_munged", "omit_times", "show_unmunged", "with_stats"]

MUNGE = b"/rsyncd-munged/"
"""What rsync puts in front of a target to make a symlink that leads nowhere."""

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_UINT32_MAX = (1 << 32) - 1


def omit_times(root: ConfinedAccess, kinds: frozenset[Kind]) -> None:
    """Have `root` show no mtimes of entries of these kinds, and set none."""
    root.untimed = kinds
    root.views = (*root.views, Timeless(kinds))


@dataclass(frozen=True, slots=True)
class Timeless:
    """Shows mtime 0 for entries of some kinds, so that their mtimes never differ."""

    kinds: frozenset[Kind]

    def shown(
        self, root: ConfinedAccess, path: bytes, listing: PackedListing, inodes: PackedInodes | None
    ) -> tuple[PackedListing, PackedInodes | None]:
        rows = [row for kind in self.kinds for row in listing.rows_of(kind)]
        if rows:
            mtimes = little_endian_integers("q", listing.mtimes)
            for row in rows:
                mtimes[row] = 0
            listing = replace(listing, mtimes=little_endian(mtimes))
        return listing, inodes


def show_unmunged(root: ConfinedAccess) -> None:
    """Have `root` show munged symlinks with their real targets."""
    root.views = (*root.views, Munged(made=False))


def make_munged(root: EntryWriter) -> None:
    """Have `root` make munged symlinks, and show symlinks as what they would have to be made from."""
    root.munge = MUNGE
    root.views = (*root.views, Munged(made=True))


@dataclass(frozen=True, slots=True)
class Munged:
    """Shows the targets of munged symlinks without what makes them lead nowhere."""

    made: bool
    """Whether munged symlinks are what is wanted. Then others differ from all that is."""

    def shown(
        self, root: ConfinedAccess, path: bytes, listing: PackedListing, inodes: PackedInodes | None
    ) -> tuple[PackedListing, PackedInodes | None]:
        if listing.targets:
            targets = b"".join(self._shown(target) + b"\0" for target in strings(listing.targets))
            listing = replace(listing, targets=targets)
        return listing, inodes

    def _shown(self, target: bytes) -> bytes:
        if target.startswith(MUNGE) and len(target) > len(MUNGE):
            return target[len(MUNGE) :]
        return MUNGE + target if self.made else target


def with_stats(
    listing: PackedListing,
    inodes: PackedInodes | None,
    stats: Mapping[int, os.stat_result],
    dropped: Set[int],
) -> tuple[PackedListing, PackedInodes | None]:
    """Return a listing in which `stats` say what the symlinks in these rows are, without rows `dropped`."""
    plain = listing.unpacked()
    kinds, links = bytearray(plain.kinds), plain.links()
    for row, found in stats.items():
        kinds[row] = kind_of(found.st_mode)
        plain.modes[row] = found.st_mode & 0o7777
        plain.sizes[row] = found.st_size if kinds[row] == Kind.FILE else 0
        plain.mtimes[row] = _clamped(found.st_mtime_ns)
        plain.uids[row], plain.gids[row] = found.st_uid, found.st_gid
        del links[row]
    shown = Listing(
        plain.names,
        bytes(kinds),
        plain.modes,
        plain.sizes,
        plain.mtimes,
        plain.uids,
        plain.gids,
        tuple(links.values()),
    )
    if inodes is not None:
        inodes = _with_inodes(inodes, stats)
    if dropped:
        rows = [row for row in range(len(shown)) if row not in dropped]
        shown, inodes = shown.rows(rows), None if inodes is None else inodes.rows(rows)
    return shown.packed(), inodes


def _with_inodes(inodes: PackedInodes, stats: Mapping[int, os.stat_result]) -> PackedInodes:
    def column(packed: bytes, typecode: str, values: Mapping[int, int]) -> bytes:
        numbers: array[int] = little_endian_integers(typecode, packed)
        for row, value in values.items():
            numbers[row] = value
        return little_endian(numbers)

    return PackedInodes(
        column(inodes.devices, "Q", {row: found.st_dev for row, found in stats.items()}),
        column(inodes.inodes, "Q", {row: found.st_ino for row, found in stats.items()}),
        column(inodes.links, "I", {row: min(found.st_nlink, _UINT32_MAX) for row, found in stats.items()}),
        column(inodes.allocated, "Q", {row: found.st_blocks * 512 for row, found in stats.items()}),
        column(inodes.ctimes, "q", {row: _clamped(found.st_ctime_ns) for row, found in stats.items()}),
    )


def _clamped(nanoseconds: int) -> int:
    """A time as listings have it (rdc.files.root.listing_reference)."""
    return min(max(nanoseconds, _INT64_MIN), _INT64_MAX)
