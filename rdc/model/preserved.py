"""The metadata that both ends of a sync can preserve, and therefore compare."""

from __future__ import annotations

from array import array

from rdc.model.attributes import AttributeKinds
from rdc.model.entries import little_endian, little_endian_integers
from rdc.model.times import is_distant, packed_time, real_time
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Listing, Metadata, PackedListing

__all__ = ["EVERYTHING", "GRANULARITIES", "Preserved", "granularity_of"]

GRANULARITIES = (1, 100, 1_000, 1_000_000, 10_000_000, 1_000_000_000, 2_000_000_000)
"""Granularities of mtimes in nanoseconds: 1 (ext4, xfs, btrfs, tmpfs), 100 (ntfs, SMB), 1 us (udf), 1 ms, 10
ms (exfat), 1 s (ext3, ext4 with small inodes, hfs+), 2 s (fat). Each divides the next, so two file systems
both preserve what the coarser one does."""


_SET_ID = 0o6000
"""The setuid and setgid bits."""

_WITHOUT_SET_ID = bytes(byte & ~(_SET_ID >> 8) & 0xFF for byte in range(256))
"""Table of bytes.translate for the high byte of a mode."""


@dataclass(frozen=True, slots=True)
class Preserved:
    """The preserved metadata of an entry. Kinds, sizes and link targets are always preserved."""

    owner: bool
    """Whether uid and gid are. Without them the setuid and setgid bits are not either: under another owner
    they would grant other rights."""
    granularity: int = 1
    """The granularity of mtimes in nanoseconds, one of GRANULARITIES."""
    modes: bool = True
    """Whether permissions are."""
    attributes: AttributeKinds = AttributeKinds.NONE
    """The kinds of extended attributes that are."""

    def both(self, other: Preserved) -> Preserved:
        """What remains if one side preserves this and the other side `other`."""
        return Preserved(
            self.owner and other.owner,
            max(self.granularity, other.granularity),
            self.modes and other.modes,
            self.attributes & other.attributes,
        )

    def mode(self, mode: int) -> int:
        """The preserved part of the mode of a source's entry of any kind."""
        return mode if self.owner else mode & ~_SET_ID

    def metadata(self, metadata: Metadata) -> Metadata:
        """The preserved part of an entry's metadata."""
        mode = self.mode(metadata.mode)
        return metadata if mode == metadata.mode else replace(metadata, mode=mode)

    def modes_of(self, column: bytes | bytearray) -> bytes | bytearray:
        """The preserved part of a column of modes, u16 little-endian; the column itself if everything is
        preserved."""
        if self.owner or not column:
            return column
        high = column[1::2]
        preserved = high.translate(_WITHOUT_SET_ID)
        if preserved == high:
            return column
        modes = bytearray(column)
        modes[1::2] = preserved
        return bytes(modes)

    def announced(self, listing: PackedListing) -> PackedListing:
        """The preserved part of a source's entries, without their mtimes."""
        modes = self.modes_of(listing.modes)
        return listing if modes is listing.modes else replace(listing, modes=bytes(modes))

    def listing(self, listing: Listing) -> Listing:
        """The preserved part of a Listing."""
        if self.owner or not any(mode & _SET_ID for mode in listing.modes):
            return listing
        return replace(listing, modes=array("H", map(self.mode, listing.modes)))

    def mtime(self, mtime_ns: int) -> int:
        """The preserved part of an mtime. Linux truncates towards the past and does not round."""
        if is_distant(mtime_ns):
            real = real_time(mtime_ns)
            return packed_time(real - real % self.granularity)
        return mtime_ns - mtime_ns % self.granularity

    def mtimes(self, column: bytes | bytearray) -> bytes | bytearray:
        """The preserved part of a column of mtimes, i64 little-endian; the column itself if everything is
        preserved."""
        if self.granularity == 1:
            return column
        integers = little_endian_integers("q", column)
        return little_endian(array("q", map(self.mtime, integers)))


EVERYTHING = Preserved(owner=True)


def granularity_of(given: int, preserved: int) -> int:
    """The granularity that turned an mtime `given` to a file system into the one it `preserved`. 1 if none
    did, for example on a file system that rounds: then everything is compared."""
    steps = (step for step in GRANULARITIES if given - given % step == preserved)
    return next(steps, 1)
