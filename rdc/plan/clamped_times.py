"""Times that the destination's file system cannot hold.

The kernel then stores the nearest time that it can, in whole seconds. Such a time says no more about a file
than that its time lies beyond the limit. So an entry whose time is a limit counts as having any wanted time
beyond it, and the content of a file is compared, as with --checksum. A second run changes nothing, and no
changed content is missed.
"""

from __future__ import annotations

from array import array

from rdc.model.entries import DEVICES, Kind
from rdc.model.times import real_time
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Listing, Metadata

__all__ = ["Clamped", "is_clamped", "with_clamped_time", "with_clamped_times"]

_SECOND = 10**9

FIRST_SECONDS = (-(1 << 31), -2_082_844_800, 0, 315_532_800)
"""First seconds of file systems: ext4, XFS and others with 32 bits; HFS+; NFS 3; FAT and exFAT."""

LAST_SECONDS = (
    (1 << 31) - 1,
    2_212_122_495,
    (1 << 32) - 1,
    4_354_819_198,
    4_354_819_199,
    (1 << 34) - 1 - (1 << 31),
    16_299_260_424,
)
"""Last seconds: 32 bits with a sign; HFS+; NFS 3; FAT; exFAT; ext4 with 256-byte inodes; XFS with bigtime.

Source: s_time_min and s_time_max of the file systems in Linux 6.1."""

_FIRST = frozenset(FIRST_SECONDS)
_LAST = frozenset(LAST_SECONDS)
_EARLY_NS, _LATE_NS = max(FIRST_SECONDS) * _SECOND, min(LAST_SECONDS) * _SECOND


@dataclass(frozen=True, slots=True)
class Clamped:
    """A listing compared with what exists at the destination."""

    wanted: Listing
    """With the existing mtimes where those are limits and the wanted ones lie beyond them."""
    files: frozenset[int]
    """Rows of the files among them."""


def is_clamped(existing: int, wanted: int) -> bool:
    """Return whether a file system may have stored `existing` when it was given `wanted`; both are packed."""
    there, time = real_time(existing), real_time(wanted)
    seconds, rest = divmod(there, _SECOND)
    return not rest and ((time > there and seconds in _LAST) or (time < there and seconds in _FIRST))


def with_clamped_times(wanted: Listing, existing: Listing) -> Clamped:
    """Compare the times of the entries of two listings of one directory that have one name and kind."""
    found = wanted.mtimes
    # Packed times are in order but for stamps among each other.
    if not found or (min(found) >= _EARLY_NS and max(found) <= _LATE_NS):
        return Clamped(wanted, frozenset())
    rows = {name: row for row, name in enumerate(existing.names)}
    mtimes = array("q", found)
    clamped = []
    for row, (name, kind) in enumerate(zip(wanted.names, wanted.kinds, strict=True)):
        other = rows.get(name)
        if other is None or existing.kinds[other] != kind or kind in DEVICES:
            continue
        there = existing.mtimes[other]
        if there != mtimes[row] and is_clamped(there, mtimes[row]):
            mtimes[row] = there
            clamped.append(row)
    files = frozenset(row for row in clamped if wanted.kinds[row] == Kind.FILE)
    return Clamped(replace(wanted, mtimes=mtimes) if clamped else wanted, files)


def with_clamped_time(existing: Metadata, wanted: Metadata) -> Metadata:
    """Return `existing` with the mtime of `wanted` if it has the limit that stands for it."""
    if existing.mtime_ns != wanted.mtime_ns and is_clamped(existing.mtime_ns, wanted.mtime_ns):
        return replace(existing, mtime_ns=wanted.mtime_ns)
    return existing
