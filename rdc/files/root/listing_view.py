"""How a Root shows entries whose stat on disk is not what a sync is to take."""

from __future__ import annotations

from rdc.files.base.metadata import kind_of
from rdc.files.root.listing_reference import packed_inodes
from rdc.model.entries import ComparedFields, Kind, little_endian, little_endian_integers, strings
from rdc.model.times import packed_time
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Set

    from rdc.files.root.confined_access import ConfinedAccess
    from rdc.files.root.entry_writer import EntryWriter
    from rdc.files.root.write_permission import WritePermission
    from rdc.model.entries import Listing, PackedInodes
    from rdc.model.listed import Listed

__all__ = ["Munged", "Timeless", "make_munged", "omit_times", "restated", "show_unmunged", "with_stats"]

MUNGE = b"/rsyncd-munged/"
"""What rsync puts in front of a target to make a symlink that leads nowhere."""


def omit_times(root: WritePermission, kinds: frozenset[Kind]) -> None:
    """Have `root` show no mtimes of entries of these kinds, and set none."""
    root.untimed = kinds
    root.views = (*root.views, Timeless(kinds))
    if Kind.SYMLINK in kinds:
        root.check.leave_out(ComparedFields(mtime=False))


@dataclass(frozen=True, slots=True)
class Timeless:
    """Shows mtime 0 for entries of some kinds, so that their mtimes never differ."""

    kinds: frozenset[Kind]

    def shown(self, root: ConfinedAccess, path: bytes, listed: Listed) -> Listed:
        listing = listed.listing
        rows = [row for kind in self.kinds for row in listing.rows_of(kind)]
        if rows:
            mtimes = little_endian_integers("q", listing.mtimes)
            for row in rows:
                mtimes[row] = 0
            listing = replace(listing, mtimes=little_endian(mtimes))
            listed = replace(listed, listing=listing)
        return listed


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

    def shown(self, root: ConfinedAccess, path: bytes, listed: Listed) -> Listed:
        listing = listed.listing
        if listing.targets:
            targets = b"".join(self._shown(target) + b"\0" for target in strings(listing.targets))
            listed = replace(listed, listing=replace(listing, targets=targets))
        return listed

    def _shown(self, target: bytes) -> bytes:
        if target.startswith(MUNGE) and len(target) > len(MUNGE):
            return target[len(MUNGE) :]
        return MUNGE + target if self.made else target


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
