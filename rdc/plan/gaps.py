"""The gaps of a file after a descent, and the windows of a base to search for their blocks.

A gap is a maximal run of unmatched chunks. Its window is what the base has between the gap's matched
neighbours.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import mul

from rdc.plan.descent import ByteRange, Fetch, Repeat, Reuse, ReuseChunk
from rdc.plan.large_gaps import UNPLACED, Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.plan.large_gaps import LargeGap
    from rdc.signature.tree import SignatureTree

__all__ = ["Gap", "first_parts", "gap_within", "gaps_of"]

MARGIN = 4 << 10
"""Bytes by which a window extends past the matched neighbours."""


class Gap:
    """`length` unmatched bytes of a file from `offset` on, with windows of one base.

    The content before the gap continues in the base at `before`. The content after it begins there at
    `behind`. Either may be UNPLACED.
    """

    __slots__ = (
        "base",
        "before",
        "behind",
        "end",
        "large_gaps",
        "matches",
        "offset",
        "window_bytes",
        "windows",
    )

    def __init__(
        self, offset: int, length: int, windows: tuple[Window, ...], before: int, behind: int
    ) -> None:
        self.offset = offset
        self.end = offset + length
        self.windows = windows
        self.base = windows[0].base if windows else 0
        self.window_bytes = sum([window.length for window in windows])
        """Bytes of all windows."""
        self.before = before
        self.behind = behind
        self.matches = array("Q")
        """Matches in order: offset in the file, offset in the base, length."""
        self.large_gaps: tuple[LargeGap, ...] = ()


def gaps_of(parts: Sequence[Part], bases: Sequence[SignatureTree]) -> Iterator[Gap]:
    """Yields the gaps of `parts` in file order."""
    if not bases:
        return
    starts: dict[int, array[int]] = {}

    def offset(base: int, row: int) -> int:
        if base not in starts:
            level = bases[base].levels[0]
            starts[base] = array("Q", accumulate(map(mul, level.lengths, level.counts), initial=0))
        return starts[base][row]

    before = (0, 0)
    unmatched: ByteRange | None = None
    for at, part in first_parts(parts, 0):
        if isinstance(part, Fetch):
            if unmatched is not None and unmatched.offset + unmatched.length == at:
                unmatched = ByteRange(unmatched.offset, unmatched.length + part.length)
                continue
            if unmatched is not None:
                yield _gap(unmatched, before, None, bases)
            unmatched = ByteRange(at, part.length)
        elif isinstance(part, Reuse | ReuseChunk):
            first, stop = (part.first, part.stop) if isinstance(part, Reuse) else (part.row, part.row + 1)
            if unmatched is not None:
                yield _gap(unmatched, before, (part.base, offset(part.base, first)), bases)
                unmatched = None
            before = (part.base, offset(part.base, stop))
    if unmatched is not None:
        yield _gap(unmatched, before, None, bases)


def _gap(
    unmatched: ByteRange,
    before: tuple[int, int],
    after: tuple[int, int] | None,
    bases: Sequence[SignatureTree],
) -> Gap:
    base, start = before
    size = bases[base].size
    stop, behind = size, UNPLACED
    if after is not None and after[0] == base:
        stop = behind = after[1]
    return gap_within(unmatched, base, (start, stop), (0, size), (start, behind))


def gap_within(
    unmatched: ByteRange,
    base: int,
    between: tuple[int, int],
    bounds: tuple[int, int],
    around: tuple[int, int],
) -> Gap:
    """Returns the gap `unmatched` with windows in a base around the offsets `between`, limited to `bounds`.

    `around`: its `before` and `behind`. Windows are linear in the length of the gap, so no recipe can make
    the search of a file long.
    """
    start, stop = max(bounds[0], between[0] - MARGIN), min(bounds[1], between[1] + MARGIN)
    most = 4 * unmatched.length + 8 * MARGIN
    if start < stop <= start + most:
        return Gap(unmatched.offset, unmatched.length, (Window(base, start, stop - start),), *around)
    # The neighbours are too far apart or out of order: search near each of them.
    windows = []
    for begin in (start, max(bounds[0], stop - most // 2)):
        length = min(most // 2, bounds[1] - begin)
        if length > 0:
            windows.append(Window(base, begin, length))
    return Gap(unmatched.offset, unmatched.length, tuple(windows), *around)


def first_parts(parts: Sequence[Part], offset: int) -> list[tuple[int, Part]]:
    """Returns the parts with their offsets in the file. Repeated parts come once, at their first
    occurrence."""
    found: list[tuple[int, Part]] = []
    for part in parts:
        if isinstance(part, Repeat):
            found += first_parts(part.parts, offset)
        else:
            found.append((offset, part))
        offset += part.length * part.count
    return found
