"""Times that differ and are taken as equal: within --modify-window, and beyond what a file system can hold.

For a time that the destination's file system cannot hold, the kernel stores the nearest one that it can, in
whole seconds. Such a time says no more about a file than that its time lies beyond the limit. So an entry
whose time is a limit counts as having any wanted time beyond it, and the content of a file is compared, as
with --checksum. A second run changes nothing, and no changed content is missed.
"""

from __future__ import annotations

from array import array

from rdc.lean.records import dataclass, replace
from rdc.model.entries import DEVICES, Kind, Listing, Metadata
from rdc.model.preserved import real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.sync import SyncOptions

_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """The whole seconds that a file system may store for earlier and for later times."""

    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()


_INT32_FIRST, _INT32_LAST = -(1 << 31), (1 << 31) - 1
_EXT4_LAST, _XFS_LAST = (1 << 34) - 1 - (1 << 31), 16_299_260_424

_BY_TYPE = {
    0xEF53: TimeLimits(frozenset((_INT32_FIRST,)), frozenset((_INT32_LAST, _EXT4_LAST))),
    0x58465342: TimeLimits(frozenset((_INT32_FIRST,)), frozenset((_INT32_LAST, _XFS_LAST))),
    0x482B: TimeLimits(frozenset((-2_082_844_800,)), frozenset((2_212_122_495,))),
    0x4D44: TimeLimits(frozenset((315_532_800,)), frozenset((4_354_819_198,))),
    0x2011BAB0: TimeLimits(frozenset((315_532_800,)), frozenset((4_354_819_199,))),
    0x9123683E: TimeLimits(),
    0x01021994: TimeLimits(),
}
"""By f_type of statfs(2): ext4 with small and with large inodes, XFS without and with bigtime, HFS+, FAT,
exFAT; btrfs and tmpfs hold all. Source: s_time_min and s_time_max of the file systems in Linux 6.1."""

_ANY = TimeLimits(
    frozenset((0, *(second for one in _BY_TYPE.values() for second in one.first))),
    frozenset(((1 << 32) - 1, *(second for one in _BY_TYPE.values() for second in one.last))),
)
"""Limits of any other type: a file server may store on any of the file systems above, and NFS 3 sends 32 bits
without a sign."""

_EARLY_NS, _LATE_NS = max(_ANY.first) * _SECOND, min(_ANY.last) * _SECOND


def time_limits(type_: int) -> TimeLimits:
    """Return the limits of a file system of this f_type of statfs(2)."""
    return _BY_TYPE.get(type_, _ANY)


@dataclass(frozen=True, slots=True)
class Clamped:
    """A listing compared with what exists at the destination."""

    wanted: Listing
    """With the existing mtimes where those are limits and the wanted ones lie beyond them."""
    files: frozenset[int]
    """Rows of the files among them."""


def is_clamped(existing: int, wanted: int, limits: TimeLimits) -> bool:
    """Return whether a file system of these limits may have stored `existing` when it was given `wanted`;
    both are packed."""
    there, time = real_time(existing), real_time(wanted)
    seconds, rest = divmod(there, _SECOND)
    return not rest and (
        (time > there and seconds in limits.last) or (time < there and seconds in limits.first)
    )


def with_clamped_times(wanted: Listing, existing: Listing, limits_of: Callable[[], TimeLimits]) -> Clamped:
    """Compare the times of the entries of two listings of one directory that have one name and kind.
    `limits_of`: returns those of its file system; called only for times that may be affected."""
    found = wanted.mtimes
    # Packed times are in order but for stamps among each other.
    if not found or (min(found) >= _EARLY_NS and max(found) <= _LATE_NS):
        return Clamped(wanted, frozenset())
    limits = limits_of()
    rows = {name: row for row, name in enumerate(existing.names)}
    mtimes = array("q", found)
    clamped = []
    for row, (name, kind) in enumerate(zip(wanted.names, wanted.kinds, strict=True)):
        other = rows.get(name)
        if other is None or existing.kinds[other] != kind or kind in DEVICES:
            continue
        there = existing.mtimes[other]
        if there != mtimes[row] and is_clamped(there, mtimes[row], limits):
            mtimes[row] = there
            clamped.append(row)
    files = frozenset(row for row in clamped if wanted.kinds[row] == Kind.FILE)
    return Clamped(replace(wanted, mtimes=mtimes) if clamped else wanted, files)


def with_clamped_time(existing: Metadata, wanted: Metadata, limits_of: Callable[[], TimeLimits]) -> Metadata:
    """Return `existing` with the mtime of `wanted` if it has the limit that stands for it."""
    if existing.mtime_ns != wanted.mtime_ns and is_clamped(existing.mtime_ns, wanted.mtime_ns, limits_of()):
        return replace(existing, mtime_ns=wanted.mtime_ns)
    return existing


def with_equal_times(wanted: Listing, existing: Listing, options: SyncOptions) -> Listing:
    """Return `wanted` with the mtimes of `existing` where both have an entry of one kind and --modify-window
    takes the two for one time. What is compared, or set without new content, then keeps the existing time."""
    window = options.modify_window
    if window is None:
        return wanted
    rows = {name: row for row, name in enumerate(existing.names)}
    mtimes = array("q", wanted.mtimes)
    links, existing_links = wanted.links(), existing.links()
    changed = False
    for row, (name, kind, mtime) in enumerate(zip(wanted.names, wanted.kinds, mtimes, strict=True)):
        other = rows.get(name)
        if other is None or existing.kinds[other] != kind:
            continue
        # What is made anew gets the time of its source.
        if kind == Kind.SYMLINK and links[row] != existing_links[other]:
            continue
        if kind in DEVICES and wanted.sizes[row] != existing.sizes[other]:
            continue
        if existing.mtimes[other] != mtime and _are_close(existing.mtimes[other], mtime, window):
            mtimes[row], changed = existing.mtimes[other], True
    return replace(wanted, mtimes=mtimes) if changed else wanted


def with_equal_time(existing: Metadata, wanted: Metadata, options: SyncOptions) -> Metadata:
    """Return `existing` with the mtime of `wanted` if --modify-window takes the two for one time."""
    window = options.modify_window
    if window is None or not _are_close(existing.mtime_ns, wanted.mtime_ns, window):
        return existing
    return replace(existing, mtime_ns=wanted.mtime_ns)


def _are_close(a_ns: int, b_ns: int, window: int) -> bool:
    """Whether `window` seconds or less lie between two times, in whole seconds as in rsync."""
    return abs(real_time(a_ns) // _SECOND - real_time(b_ns) // _SECOND) <= window
