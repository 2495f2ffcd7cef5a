"""--modify-window: times that are a little apart count as equal, in whole seconds as in rsync."""

from __future__ import annotations

from array import array

from rdc.model.entries import DEVICES, Kind
from rdc.model.times import real_time
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Listing, Metadata

__all__ = ["with_equal_time", "with_equal_times"]

_SECOND = 10**9
"""Nanoseconds."""


def with_equal_times(wanted: Listing, existing: Listing, window: int) -> Listing:
    """`wanted` with the mtimes of `existing` where both have an entry of one kind and `window` seconds or
    less lie between them. What is compared, or set without new content, then keeps the existing time."""
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


def with_equal_time(existing: Metadata, wanted: Metadata, window: int) -> Metadata:
    """`existing` with the mtime of `wanted` if `window` seconds or less lie between them."""
    close = _are_close(existing.mtime_ns, wanted.mtime_ns, window)
    return replace(existing, mtime_ns=wanted.mtime_ns) if close else existing


def _are_close(a_ns: int, b_ns: int, window: int) -> bool:
    return abs(real_time(a_ns) // _SECOND - real_time(b_ns) // _SECOND) <= window
