"""Plans which ranges of a new version begin as clones of its bases, so that they go on sharing blocks."""

from __future__ import annotations

from array import array

from rdc.kernel import copies_of_instructions
from rdc.model.entries import Clone
from rdc.plan.descent import Fetch, Patch, Reuse, ReuseChunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree

__all__ = ["plan_clones"]

CLONE_BYTES = 64 << 10
"""Bytes of the shortest clone. A shorter range is written in less time, and would split the file further."""

BRIDGED_BYTES = 1 << 20
"""Most bytes between two ranges of one clone. What lies between is cloned as well, and written over."""


NO_BASE = -1
"""In place of a base: content that comes from none."""


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
    run: Clone | None = None
    reach = 0
    for copy, repeated in _copies(parts, trees, offset):
        if run is not None and copy.start <= reach:
            longer = _joined(run, copy, repeated, trees)
            if longer is not run:
                run, reach = longer, copy.stop + BRIDGED_BYTES
                continue
            if copy.stop - copy.start < CLONE_BYTES <= run.stop - run.start:
                continue  # not worth to end the clone
        if copy.base != NO_BASE and copy.shift % block == 0 and copy.stop - copy.start >= block:
            found += () if run is None else (run,)
            run, reach = copy, copy.stop + BRIDGED_BYTES
    found += () if run is None else (run,)
    size = sum(part.length * part.count for part in parts)
    aligned = [_aligned(run, block, size, trees[run.base].size) for run in found]
    return [clone for clone in aligned if clone.stop - clone.start >= CLONE_BYTES]


def _joined(run: Clone, copy: Clone, repeated: bool, trees: Sequence[SignatureTree]) -> Clone:
    """Returns `run` with a range that follows, or the same `run` if the range does not belong to it."""
    if (copy.base, copy.shift) == (run.base, run.shift):
        return run._replace(stop=copy.stop)
    if not repeated:
        return run
    # The base may end before, or have something else there: then it is written.
    return run._replace(stop=max(run.stop, min(copy.stop, trees[run.base].size - run.shift)))


def _aligned(run: Clone, block: int, size: int, base_size: int) -> Clone:
    """Returns the whole blocks of a range. `size`, `base_size`: of the files, whose last block may be
    short."""
    stop = run.stop
    if stop != size or stop + run.shift != base_size:
        stop = stop // block * block
    return run._replace(start=-(-run.start // block) * block, stop=stop)


def _copies(
    parts: Sequence[Part], trees: Sequence[SignatureTree], offset: Callable[[int, int], int]
) -> Iterator[tuple[Clone, bool]]:
    """Yields every range that `parts` copy from a base, in file order. Of repeated ones, the first.

    True beside it: a run of equal chunks, most often zeros. They may be there whatever is cloned.
    """
    at = 0
    for part in parts:
        if isinstance(part, Reuse):
            repeated = part.stop == part.first + 1 and trees[part.base].levels[0].counts[part.first] > 1
            yield Clone(at, at + part.length, part.base, offset(part.base, part.first) - at), repeated
        elif isinstance(part, ReuseChunk):
            # The base may hold the chunk several times in a row as well.
            times = min(part.count, trees[part.base].levels[0].counts[part.row])
            shift = offset(part.base, part.row) - at
            yield Clone(at, at + part.length * times, part.base, shift), part.count > 1
        elif isinstance(part, Fetch):
            if part.count > 1:
                yield Clone(at, at + part.length * part.count, NO_BASE, 0), True
        elif isinstance(part, Patch):
            rows = iter(array("Q", copies_of_instructions(part.chunk_recipe.instructions, at)))
            for start, base, base_offset, length in zip(rows, rows, rows, rows, strict=True):
                yield Clone(start, start + length, base, base_offset - start), False
        at += part.length * part.count
