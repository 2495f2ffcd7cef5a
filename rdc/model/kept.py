"""What both ends of a sync can keep of an entry besides its content, and so what is compared."""

from __future__ import annotations

from array import array

from rdc.model.attributes import AttributeKinds
from rdc.model.entries import little_endian, little_endian_integers
from rdc.records import dataclass

__all__ = ["EVERYTHING", "GRANULARITIES", "Kept", "granularity_of"]

GRANULARITIES = (1, 100, 1_000, 1_000_000, 10_000_000, 1_000_000_000, 2_000_000_000)
"""Nanoseconds that mtimes are multiples of: 1 (ext4, xfs, btrfs, tmpfs), 100 (ntfs, SMB), 1 us (udf), 1 ms,
10 ms (exfat), 1 s (ext3, ext4 with small inodes, hfs+), 2 s (fat). Each divides the next, so that
what two file systems both keep is what the coarser one does."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Kinds, sizes and links always are."""

    owner: bool
    """uid and gid are."""
    granularity: int = 1
    """mtimes are, down to a multiple of so many nanoseconds; one of GRANULARITIES."""
    modes: bool = True
    """Permissions are."""
    attributes: AttributeKinds = AttributeKinds.NONE
    """These extended attributes are."""

    def both(self, other: Kept) -> Kept:
        """What is left where one side keeps this and the other that."""
        return Kept(
            self.owner and other.owner,
            max(self.granularity, other.granularity),
            self.modes and other.modes,
            self.attributes & other.attributes,
        )

    def mtime(self, mtime_ns: int) -> int:
        """What is left of one mtime. Linux cuts off towards the past, and does not round."""
        return mtime_ns - mtime_ns % self.granularity

    def mtimes(self, column: bytes | bytearray) -> bytes | bytearray:
        """The same of a column, i64 little-endian; where all is kept the column itself."""
        if self.granularity == 1:
            return column
        integers = little_endian_integers("q", column)
        return little_endian(array("q", map(self.mtime, integers)))


EVERYTHING = Kept(owner=True)


def granularity_of(told: int, kept: int) -> int:
    """The step that turned an mtime `told` to a file system into the one that it `kept`; 1 where none did, as
    where a file system rounds: nothing is known then, and everything is compared."""
    steps = (step for step in GRANULARITIES if told - told % step == kept)
    return next(steps, 1)
