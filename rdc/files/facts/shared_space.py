"""Computes what sharing a range of one file with another's would free, from where both lie on disk."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from rdc.files.facts.extents import Extent, extents
from rdc.lean.typed import NamedTuple
from rdc.model.duplicates import Sharing

__all__ = ["Part", "Use", "compare_places", "measure_sharing"]


class Use(Enum):
    """How the bytes of a file's range use the disk, in relation to another file's."""

    SAME = "same"
    """They are the other file's bytes."""
    OWN = "own"
    """Nothing else refers to them, and they take their length on disk."""
    COMPRESSED = "compressed"
    """Nothing else refers to them, and they take less than their length."""
    HELD = "held"
    """Something else refers to them as well."""
    PARTIAL = "partial"
    """Parts of an extent that is freed only as a whole; or it is not known where they are."""


class Part(NamedTuple):
    """A part of a range, relative to the range's start, in bytes."""

    start: int
    end: int
    use: Use
    physical: int
    """Where it begins on the volume; inside a compressed extent, where that begins."""
    beside_hole: bool
    """Whether the other file has a hole there."""


class _Piece(NamedTuple):
    """The part of an extent within a range, relative to the range's start."""

    start: int
    end: int
    extent: Extent
    offset: int
    """Offset of the range's start in the file."""

    def physical_offset(self, at: int) -> int | None:
        return None if self.extent.in_metadata else self.extent.physical_offset(self.offset + at)


def compare_places(
    source: int, source_offset: int, destination: int, offset: int, length: int, *, whole_extents: bool
) -> Iterator[Part]:
    """Yield the parts of the destination's range that use the disk, in order: not its holes, and not what
    lies inside metadata, where nothing can share it.

    `length` is rounded up to blocks if the range ends with the file. `whole_extents` says that the file
    system frees an extent only as a whole (btrfs). Raises OSError as `extents` does.
    """
    others = _pieces(source, source_offset, length)
    other = next(others, None)
    for piece in _pieces(destination, offset, length):
        extent = piece.extent
        whole = extent.start >= offset and extent.end <= offset + length
        use = _use(extent, freed=whole or not whole_extents)
        at = piece.start
        while at < piece.end:
            while other is not None and other.end <= at:
                other = next(others, None)
            if other is None or other.start >= piece.end:
                stop, hole, equal = piece.end, True, False
            elif other.start > at:
                stop, hole, equal = other.start, True, False
            else:
                stop, hole = min(piece.end, other.end), False
                found = other.physical_offset(at)
                equal = found is not None and found == piece.physical_offset(at)
            if not extent.in_metadata:
                yield Part(at, stop, Use.SAME if equal else use, extent.physical_offset(offset + at), hole)
            at = stop


def _use(extent: Extent, *, freed: bool) -> Use:
    if not freed or extent.is_elsewhere:
        return Use.PARTIAL
    if extent.is_shared:
        return Use.HELD
    return Use.COMPRESSED if extent.is_encoded else Use.OWN


def measure_sharing(
    source: int, source_offset: int, destination: int, offset: int, length: int, *, whole_extents: bool
) -> Sharing:
    """Return the sums of what `compare_places` finds."""
    sums = dict.fromkeys(Use, 0)
    for part in compare_places(
        source, source_offset, destination, offset, length, whole_extents=whole_extents
    ):
        sums[part.use] += part.end - part.start
    return Sharing(*(sums[use] for use in (Use.SAME, Use.OWN, Use.COMPRESSED, Use.HELD, Use.PARTIAL)))


def _pieces(fd: int, offset: int, length: int) -> Iterator[_Piece]:
    for extent in extents(fd, offset, offset + length):
        start, end = max(extent.start, offset), min(extent.end, offset + length)
        yield _Piece(start - offset, end - offset, extent, offset)
