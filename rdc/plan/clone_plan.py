"""Plans which ranges of a new version begin as clones of its bases, so that they go on sharing blocks."""

from __future__ import annotations

from array import array

from rdc.kernel.recipe_rows import copies_of_instructions
from rdc.plan.descent import Fetch, Patch, Reuse, ReuseChunk
from rdc.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree

__all__ = ["Clone", "plan_clones"]

CLONE_BYTES = 64 << 10
"""Bytes of the shortest clone. A shorter range is written in less time, and would split the file further."""

BRIDGED_BYTES = 1 << 20
"""Most bytes between two ranges of one clone. What lies between is cloned as well, and written over."""


RUN = -1
"""In place of a base: a run of equal chunks, most often zeros. They may be in place whatever is cloned."""


class Clone(NamedTuple):
    """Bytes `start` to `stop` of a new version that begin as those of a base, `shift` bytes further on."""

    start: int
    stop: int
    base: int
    shift: int


def plan_clones(
    parts: Sequence[Part],
    trees: Sequence[SignatureTree],
    offset: Callable[[int, int], int],
    block: int,
) -> list[Clone]:
    """Returns the ranges to clone for a new version made of `parts`, in order, without overlap.

    `trees`: of the bases. `offset`: returns where the chunk of a base's row begins. `block`: all limits are
    multiples of it, but for an end that is the end of both files.
    """
    found: list[Clone] = []
    size = sum(part.length * part.count for part in parts)

    def keep(run: Clone) -> None:
        start = -(-run.start // block) * block
        stop = run.stop
        if stop != size or stop + run.shift != trees[run.base].size:
            stop = stop // block * block
        if stop - start >= CLONE_BYTES:
            found.append(Clone(start, stop, run.base, run.shift))

    run: Clone | None = None
    reach = 0
    for copy in _copies(parts, trees, offset):
        if run is not None and copy.base == RUN and copy.start <= reach:
            reach = max(reach, copy.stop + BRIDGED_BYTES)
        if copy.base == RUN or copy.shift % block or copy.stop - copy.start < block:
            continue
        if run is None:
            run = copy
        elif (copy.base, copy.shift) == (run.base, run.shift) and copy.start <= reach:
            run = Clone(run.start, copy.stop, run.base, run.shift)
        elif (
            copy.stop - copy.start >= CLONE_BYTES or run.stop - run.start < CLONE_BYTES or copy.start > reach
        ):
            keep(run)
            run = copy
        else:
            continue
        reach = max(reach, run.stop + BRIDGED_BYTES)
    if run is not None:
        keep(run)
    return found


def _copies(
    parts: Sequence[Part], trees: Sequence[SignatureTree], offset: Callable[[int, int], int]
) -> Iterator[Clone]:
    """Yields every range that `parts` copy from a base, in file order. Of repeated ones, the first.

    A run of equal chunks comes once more, as a range of the base RUN.
    """
    at = 0
    for part in parts:
        if isinstance(part, Reuse):
            yield Clone(at, at + part.length, part.base, offset(part.base, part.first) - at)
        elif isinstance(part, ReuseChunk):
            # The base may hold the chunk several times in a row as well.
            times = min(part.count, trees[part.base].levels[0].counts[part.row])
            yield Clone(at, at + part.length * times, part.base, offset(part.base, part.row) - at)
            if part.count > 1:
                yield Clone(at, at + part.length * part.count, RUN, 0)
        elif isinstance(part, Fetch):
            if part.count > 1:
                yield Clone(at, at + part.length * part.count, RUN, 0)
        elif isinstance(part, Patch):
            rows = iter(array("Q", copies_of_instructions(part.chunk_recipe.instructions, at)))
            for start, base, base_offset, length in zip(rows, rows, rows, rows, strict=True):
                yield Clone(start, start + length, base, base_offset - start)
        at += part.length * part.count
