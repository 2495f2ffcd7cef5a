"""The metadata that both ends of a sync can preserve, and therefore compare.

What one end cannot keep is neither compared nor set, and never written back to the end that it came from.
"""

from __future__ import annotations

from array import array
from enum import IntEnum

from rdc.lean.records import dataclass, replace
from rdc.model.attributes import AttributeKinds
from rdc.model.entries import NODES, Kind, Metadata, little_endian, little_endian_integers
from rdc.model.times import is_distant, packed_time, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.entries import Listing, PackedListing

__all__ = [
    "ALL_MODES",
    "EVERYTHING",
    "EXACT",
    "GRANULARITIES",
    "Granularity",
    "Preserved",
    "Rounding",
    "granularity_of",
]

_SECOND = 1_000_000_000

GRANULARITIES = (
    1,
    100,
    1_000,
    1_000_000,
    10_000_000,
    _SECOND,
    2 * _SECOND,
    60 * _SECOND,
    86_400 * _SECOND,
)
"""Granularities of mtimes in nanoseconds: 1 (ext4, xfs, btrfs, tmpfs), 100 (ntfs, SMB), 1 us (udf), 1 ms, 10
ms (exfat), 1 s (ext3, ext4 with small inodes, hfs+), 2 s (fat), a minute (listings of FTP), a day (object
stores, some archives). Each divides the next, so two file systems both preserve what the coarser one does."""

ALL_MODES = 0o7777
_SET_ID = 0o6000
"""The setuid and setgid bits."""
_SET_GROUP_ID = 0o2000
_PLAIN = 0o777

_TIMED_APART = frozenset((Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK))
"""The kinds that `untimed` may hold. Special files go with regular files."""


class Rounding(IntEnum):
    """Where a time between two multiples goes. The values are part of the protocol."""

    DOWN = 0
    NEAREST = 1
    UP = 2
    ABOUT = 3
    """To no multiple, but to less than a step away, as where a floating-point number holds it."""


@dataclass(frozen=True, slots=True)
class Granularity:
    """What an mtime becomes: a multiple of `step`, unless `rounding` is ABOUT."""

    step: int = 1
    """Nanoseconds, one of GRANULARITIES."""
    rounding: Rounding = Rounding.DOWN

    def of(self, mtime_ns: int) -> int:
        """The multiple that the file system makes of an mtime; with ABOUT, one that stands for most times
        that are less than a step away. A multiple stays as it is."""
        if is_distant(mtime_ns):
            return packed_time(self._rounded(real_time(mtime_ns)))
        return self._rounded(mtime_ns)

    def _rounded(self, mtime_ns: int) -> int:
        if self.rounding in (Rounding.NEAREST, Rounding.ABOUT):
            mtime_ns += self.step // 2
        elif self.rounding is Rounding.UP:
            mtime_ns += self.step - 1
        return mtime_ns - mtime_ns % self.step

    def alike(self, given_ns: int, found_ns: int) -> bool:
        """Whether the file system may have made `found_ns` of an mtime `given_ns`."""
        if self.is_vague:
            return _apart(given_ns, found_ns) < self.step
        return self.of(given_ns) == found_ns

    @property
    def is_vague(self) -> bool:
        return self.rounding is Rounding.ABOUT


EXACT = Granularity()


@dataclass(frozen=True, slots=True)
class Preserved:
    """The preserved metadata of an entry. Sizes and link targets are always preserved.

    What one end preserves has `granularity` alone. What both do, as `both` returns it, has that of the
    destination there and the source's in `source_granularity`. Each end's times are reduced by the *other*
    end's granularity (`at_source`, `at_destination`): its own times are multiples of its own already. If they
    are not, since what was known of its file system is wrong, they differ, which costs a comparison and hides
    no change. A time that may be of either end is reduced by both.
    """

    owner: bool
    """Whether uid and gid are. Without them the setuid and setgid bits are not either: under another owner
    they would grant other rights."""
    granularity: Granularity = EXACT
    modes: int = ALL_MODES
    """The permission bits that are preserved of entries other than directories and symlinks."""
    attributes: AttributeKinds = AttributeKinds.NONE
    """The kinds of extended attributes that are."""
    group: bool = True
    """Whether the gid is, where `owner` is true."""
    directory_modes: int = ALL_MODES
    """The permission bits that are preserved of directories."""
    untimed: frozenset[Kind] = frozenset()
    """The kinds whose mtimes are not preserved, of FILE (special files included), DIRECTORY and SYMLINK. If
    the mtimes of two regular files are equal, these are unchanged; if not, their contents decide."""
    unmade: frozenset[Kind] = frozenset()
    """The kinds that cannot exist, of SYMLINK and SPECIAL (fifos, sockets and devices): their absence does
    not mean that they were deleted."""
    source_granularity: Granularity = EXACT

    def both(self, source: Preserved) -> Preserved:
        """What remains if the destination preserves this and the source `source`.

        The set-id bits of a source without owners say nothing, so the destination's stay.
        """
        both, of_owners = self.also(source), 0 if source.owner else _SET_ID
        return replace(
            both,
            granularity=self.granularity,
            modes=both.modes & ~of_owners,
            directory_modes=both.directory_modes & ~of_owners,
            source_granularity=source.granularity,
        )

    def also(self, other: Preserved) -> Preserved:
        """What remains of entries of one end that is subject to this and to `other`."""
        owner = self.owner and other.owner
        return Preserved(
            owner,
            max(self.granularity, other.granularity, key=lambda one: one.step),
            self.modes & other.modes,
            self.attributes & other.attributes,
            not owner or (self.group and other.group),
            self.directory_modes & other.directory_modes,
            self.untimed | other.untimed,
            self.unmade | other.unmade,
        )

    @property
    def at_source(self) -> Preserved:
        """What both ends preserve, with the granularity by which the source's times are reduced."""
        if self.source_granularity == EXACT:
            return self
        return replace(self, granularity=self._vaguest or self.granularity, source_granularity=EXACT)

    @property
    def at_destination(self) -> Preserved:
        """What both ends preserve, with the granularity by which the destination's times are reduced."""
        if self.granularity == self.source_granularity == EXACT:
            return self
        mine = self._vaguest or self.source_granularity
        return replace(self, granularity=mine, source_granularity=EXACT)

    @property
    def _vaguest(self) -> Granularity | None:
        """The granularity by which the times of both ends are reduced; None if each is reduced by the
        other's. Times of the coarser end that are no multiples have to be."""
        coarser = max(self.granularity, self.source_granularity, key=lambda one: one.step)
        return coarser if coarser.is_vague else None

    # Modes

    def modes_of_kind(self, kind: int) -> int:
        """The permission bits that are preserved of entries of this Kind. Linux stores none for symlinks."""
        if kind == Kind.DIRECTORY:
            return self.directory_modes
        return 0 if kind == Kind.SYMLINK else self.modes

    @property
    def keeps_all_modes(self) -> bool:
        return self.modes == self.directory_modes == ALL_MODES

    def mode(self, mode: int) -> int:
        """The part of a source's mode that is announced."""
        if not self.owner:
            return mode & ~_SET_ID
        return mode if self.group else mode & ~_SET_GROUP_ID

    def metadata(self, metadata: Metadata) -> Metadata:
        """The part of the metadata of a source's entry that is announced."""
        mode = self.mode(metadata.mode)
        return metadata if mode == metadata.mode else replace(metadata, mode=mode)

    def modes_of(self, column: bytes | bytearray) -> bytes | bytearray:
        """The announced part of a column of modes, u16 little-endian; the column itself if that is all."""
        if (self.owner and self.group) or not column:
            return column
        high = column[1::2]
        announced = high.translate(_high_bytes(self.mode(ALL_MODES)))
        if announced == high:
            return column
        modes = bytearray(column)
        modes[1::2] = announced
        return bytes(modes)

    def replaced_mode(self, wanted: Metadata, existing: Metadata) -> int:
        """The mode of a file that gets new content. Bits that are not preserved stay, but without owners no
        set-id bit does: it vouched for the old content."""
        mode = self.onto(wanted, existing, Kind.FILE).mode
        return mode if self.owner else mode & ~_SET_ID

    def announced(self, listing: PackedListing) -> PackedListing:
        """The announced part of a source's entries. Their mtimes are announced as they are."""
        modes = self.modes_of(listing.modes)
        return listing if modes is listing.modes else replace(listing, modes=bytes(modes))

    def listing(self, listing: Listing) -> Listing:
        """The announced part of a Listing."""
        unannounced = ALL_MODES & ~self.mode(ALL_MODES)
        if not any(mode & unannounced for mode in listing.modes):
            return listing
        return replace(listing, modes=array("H", map(self.mode, listing.modes)))

    def made_mode(self, kind: int, mode: int, umask: int) -> int:
        """The mode of a new entry that is announced with `mode`: bits that are not preserved are granted as
        far as `umask` lets, like those of any new entry."""
        kept = ALL_MODES if kind == Kind.SYMLINK else self.modes_of_kind(kind)
        return mode & kept | mode & ~kept & ~umask & _PLAIN

    def made_modes(self, modes: bytes | bytearray, kinds: bytes | bytearray, umask: int) -> bytes | bytearray:
        """A column of announced modes, u16 little-endian, as new entries get them."""
        integers = little_endian_integers("H", modes)
        made = [self.made_mode(kind, mode, umask) for mode, kind in zip(integers, kinds, strict=True)]
        return little_endian(array("H", made))

    def compared_modes(self, modes: bytes | bytearray, kinds: bytes | bytearray) -> bytes | bytearray:
        """The preserved part of a column of modes, u16 little-endian; the column itself if that is all."""
        if self.keeps_all_modes:
            return modes
        masks = [self.modes_of_kind(kind) for kind in range(256)] if kinds else []
        integers = little_endian_integers("H", modes)
        return little_endian(
            array("H", [mode & masks[kind] for mode, kind in zip(integers, kinds, strict=True)])
        )

    # Times

    @property
    def is_coarse(self) -> bool:
        """Whether two versions of a file may well have one mtime, so that equal ones prove nothing."""
        return max(self.granularity.step, self.source_granularity.step) > _TRUSTED_STEP

    @property
    def keeps_all_times(self) -> bool:
        """Whether the mtimes of all entries are preserved to the nanosecond."""
        return not self.untimed and self.granularity == self.source_granularity == EXACT

    def is_timed(self, kind: int) -> bool:
        """Whether mtimes of entries of this Kind are preserved."""
        return (Kind(kind) if kind in _TIMED_APART else Kind.FILE) not in self.untimed

    def same_time(self, wanted_ns: int, existing_ns: int) -> bool:
        """Whether the destination's mtime is what both file systems make of the source's."""
        if wanted_ns == existing_ns:
            return True
        vague = self._vaguest
        if vague is not None and _apart(wanted_ns, existing_ns) < vague.step:
            return True
        return self.granularity.of(wanted_ns) == self.source_granularity.of(existing_ns)

    def mtime(self, mtime_ns: int) -> int:
        """The preserved part of an mtime."""
        return self.granularity.of(self.source_granularity.of(mtime_ns))

    def top_mtime(self, mtime_ns: int) -> int:
        """The compared part of the root directory's mtime."""
        return self.mtime(mtime_ns) if self.is_timed(Kind.DIRECTORY) else 0

    def mtimes(self, column: bytes | bytearray, kinds: bytes | bytearray) -> bytes | bytearray:
        """The compared part of a column of mtimes, i64 little-endian; the column itself if that is all.

        Those of regular files are always compared, and as they are where they prove little: to call two trees
        equal without a look at the contents takes equal times.
        """
        untimed = self.untimed - {Kind.FILE} if self.untimed else self.untimed
        whole = Kind.FILE in self.untimed or self.is_coarse
        if Kind.FILE in self.untimed:
            untimed |= NODES | {Kind.SPECIAL}
        exact = self.granularity == self.source_granularity == EXACT
        if exact and not any(bytes((kind,)) in kinds for kind in untimed):
            return column
        integers = little_endian_integers("q", column)
        of = self.mtime
        return little_endian(
            array(
                "q",
                [
                    0 if kind in untimed else mtime if whole and kind == Kind.FILE else of(mtime)
                    for mtime, kind in zip(integers, kinds, strict=True)
                ],
            )
        )

    # What is set

    def onto(self, wanted: Metadata, now: Metadata, kind: int) -> Metadata:
        """`wanted` for an entry that has the metadata `now`, which keeps what is not preserved. Without
        owners, no set-id bit is wanted.

        An mtime that both file systems take for the wanted one stays as well: that of an original is finer
        than that of its copy.
        """
        kept = ALL_MODES if kind == Kind.SYMLINK else self.modes_of_kind(kind)
        stays = not self.is_timed(kind) or self.same_time(wanted.mtime_ns, now.mtime_ns)
        return Metadata(
            self.mode(wanted.mode) & kept | now.mode & ~kept,
            now.mtime_ns if stays else wanted.mtime_ns,
            wanted.uid if self.owner else now.uid,
            wanted.gid if self.owner and self.group else now.gid,
        )


EVERYTHING = Preserved(owner=True)

_VAGUENESS = 1000
"""The step of an inexact time, as a multiple of its error. Rounding to the step then differs between the time
that is kept and the one that was meant in one case of this many; each of these costs a comparison."""

_VAGUEST_STEP = _SECOND
_TRUSTED_STEP = 2 * _SECOND


def _high_bytes(kept: int) -> bytes:
    """A table of bytes.translate for the high byte of a mode, which leaves the bits `kept`."""
    return bytes(byte & kept >> 8 for byte in range(256))


def _apart(one_ns: int, other_ns: int) -> int:
    """The nanoseconds between two times."""
    return abs(real_time(one_ns) - real_time(other_ns))


def granularity_of(times: Sequence[tuple[int, int]], least: int = 1) -> Granularity | None:
    """The finest granularity, with steps from `least` on, by which mtimes given to a file system became those
    found afterwards; None if none explains them all. `times`: pairs of both, in nanoseconds."""
    error = max(_apart(given, found) for given, found in times)
    for step in GRANULARITIES:
        if step < least:
            continue
        for rounding in (Rounding.DOWN, Rounding.NEAREST, Rounding.UP):
            granularity = Granularity(step, rounding)
            if all(granularity.of(given) == found for given, found in times):
                return granularity
        if error * _VAGUENESS <= step <= _VAGUEST_STEP:
            return Granularity(step, Rounding.ABOUT)
    return None
