"""Computes what sharing a range of one file with another's would free, from where both lie on disk."""

from __future__ import annotations

from collections.abc import Iterator

from rdc.files.facts.extents import Extent, extents
from rdc.model.instances import Sharing
from rdc.typed import NamedTuple

__all__ = ["measure_sharing"]


class _Part(NamedTuple):
    """The part of an extent within a range, relative to the range's start."""

    start: int
    end: int
    extent: Extent
    offset: int
    """Offset of the range's start in the file."""

    def physical_offset(self, at: int) -> int | None:
        return None if self.extent.in_metadata else self.extent.physical_offset(self.offset + at)


def measure_sharing(
    source: int, source_offset: int, destination: int, offset: int, length: int, *, whole_extents: bool
) -> Sharing:
    """Return how much of the destination's range already lies where the source's does, and how much it alone
    holds.

    `length` is rounded up to blocks if the range ends with the file. `whole_extents` says that the file
    system frees an extent only as a whole (btrfs). Raises OSError as `extents` does.
    """
    others = _parts(source, source_offset, length)
    other = next(others, None)
    same = own = perhaps = 0
    for part in _parts(destination, offset, length):
        extent = part.extent
        inside = extent.start >= offset and extent.end <= offset + length
        alone = extent.alone and (inside or not whole_extents)
        at = part.start
        while at < part.end:
            while other is not None and other.end <= at:
                other = next(others, None)
            if other is None or other.start >= part.end:
                stop, equal = part.end, False
            elif other.start > at:
                stop, equal = other.start, False
            else:
                stop = min(part.end, other.end)
                found = other.physical_offset(at)
                equal = found is not None and found == part.physical_offset(at)
            if equal:
                same += stop - at
            elif not extent.in_metadata:
                own += (stop - at) * alone
                perhaps += (stop - at) * (not alone)
            at = stop
    return Sharing(same, own, perhaps)


def _parts(fd: int, offset: int, length: int) -> Iterator[_Part]:
    for extent in extents(fd, offset, offset + length):
        start, end = max(extent.start, offset), min(extent.end, offset + length)
        yield _Part(start - offset, end - offset, extent, offset)
