"""The gaps of a file that a descent leaves, and the windows of a base in which their blocks are looked for.

A gap is a maximal run of unknown chunks. Its window is what the base has between what is known on either
side.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import mul

from rdc.plan.descent import ByteRange, Fetch, Repeat, Reuse, ReuseChunk
from rdc.plan.regions import UNPLACED, Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.plan.regions import Region
    from rdc.signature.tree import SignatureTree

__all__ = ["Gap", "first_parts", "gap_within", "gaps_of"]

MARGIN = 4 << 10
"""Bytes by which a window goes past the known neighbours."""


class Gap:
    """`length` bytes of a file from `offset` on. `windows` are of one base. What precedes the gap goes on
    there at `before`, what follows it begins there at `behind`, or is UNPLACED."""

    __slots__ = ("base", "before", "behind", "end", "looked", "offset", "pieces", "regions", "windows")

    def __init__(
        self, offset: int, length: int, windows: tuple[Window, ...], before: int, behind: int
    ) -> None:
        self.offset = offset
        self.end = offset + length
        self.windows = windows
        self.base = windows[0].base if windows else 0
        self.looked = sum(window.length for window in windows)
        """Bytes of all windows."""
        self.before = before
        self.behind = behind
        self.pieces = array("Q")
        """Of what was found, in order: offset in the file, place in the base, length."""
        self.regions: tuple[Region, ...] = ()


def gaps_of(parts: Sequence[Part], bases: Sequence[SignatureTree]) -> Iterator[Gap]:
    """In order of the file."""
    if not bases:
        return
    starts: dict[int, array[int]] = {}

    def offset(base: int, row: int) -> int:
        if base not in starts:
            level = bases[base].levels[0]
            starts[base] = array("Q", accumulate(map(mul, level.lengths, level.counts), initial=0))
        return starts[base][row]

    before = (0, 0)
    held: ByteRange | None = None
    for at, part in first_parts(parts, 0):
        if isinstance(part, Fetch):
            if held is not None and held.offset + held.length == at:
                held = ByteRange(held.offset, held.length + part.length)
                continue
            if held is not None:
                yield _gap(held, before, None, bases)
            held = ByteRange(at, part.length)
        elif isinstance(part, Reuse | ReuseChunk):
            first, stop = (part.first, part.stop) if isinstance(part, Reuse) else (part.row, part.row + 1)
            if held is not None:
                yield _gap(held, before, (part.base, offset(part.base, first)), bases)
                held = None
            before = (part.base, offset(part.base, stop))
    if held is not None:
        yield _gap(held, before, None, bases)


def _gap(
    held: ByteRange, before: tuple[int, int], after: tuple[int, int] | None, bases: Sequence[SignatureTree]
) -> Gap:
    base, start = before
    size = bases[base].size
    stop, behind = size, UNPLACED
    if after is not None and after[0] == base:
        stop = behind = after[1]
    return gap_within(held, base, (start, stop), (0, size), (start, behind))


def gap_within(
    held: ByteRange, base: int, between: tuple[int, int], bounds: tuple[int, int], around: tuple[int, int]
) -> Gap:
    """The gap `held`, to be looked for in a base `between` these offsets and a little beyond, but not outside
    `bounds`. `around`: its `before` and `behind`.

    The window is linear in the gap's own length, so that no recipe makes the search of a file long."""
    start, stop = max(bounds[0], between[0] - MARGIN), min(bounds[1], between[1] + MARGIN)
    most = 4 * held.length + 8 * MARGIN
    if start < stop <= start + most:
        return Gap(held.offset, held.length, (Window(base, start, stop - start),), *around)
    # Too far apart, or what follows here came before there: about either side of it.
    windows = []
    for begin in (start, max(bounds[0], stop - most // 2)):
        length = min(most // 2, bounds[1] - begin)
        if length > 0:
            windows.append(Window(base, begin, length))
    return Gap(held.offset, held.length, tuple(windows), *around)


def first_parts(parts: Sequence[Part], offset: int) -> Iterator[tuple[int, Part]]:
    """The parts with their offsets in the file, of repeats the first time only."""
    for part in parts:
        if isinstance(part, Repeat):
            yield from first_parts(part.parts, offset)
        else:
            yield offset, part
        offset += part.length * part.count
