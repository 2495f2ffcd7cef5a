"""The exact resemblance of candidate pairs: their shingles are compared."""

from __future__ import annotations

from array import array

from rdc.documents.find.shingle_sets import ShingleSets
from rdc.kernel.overlaps import set_resemblances
from rdc.limits.documents import OVERLAP_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.documents.find.corpus import Corpus

__all__ = ["resemblances"]

_SLICE = 1 << 16
"""Pairs whose documents are looked up together."""


def resemblances(
    corpus: Corpus, compared: array[int], pairs: Sequence[int], threshold: float
) -> array[float]:
    """The Jaccard resemblance of each pair: the shingles that both have, divided by those that either has.
    It is 0 for pairs below the threshold. `pairs`: as candidate_batches() yields them."""
    found = array("d")
    for at in range(0, len(pairs), _SLICE):
        # Halves of the same pair lie side by side, in either order.
        halves = array("I", array("Q", pairs[at : at + _SLICE]).tobytes())
        positions = sorted(set(halves))
        sets = ShingleSets(corpus, [compared[position] for position in positions])
        found += _compared(sets, _numbered(halves, positions), threshold)
    return found


def _compared(sets: ShingleSets, numbers: array[int], threshold: float) -> array[float]:
    """`numbers`: the positions in `sets`, two a pair. They are halved until their shingles are few."""
    chosen = sorted(set(numbers))
    if len(numbers) > 2 and sets.size(chosen) > OVERLAP_BYTES:
        half = len(numbers) // 4 * 2
        return _compared(sets, numbers[:half], threshold) + _compared(sets, numbers[half:], threshold)
    pairs = _numbered(numbers, chosen)
    return array("d", set_resemblances(sets.values(chosen), sets.offsets(chosen), pairs, threshold))


def _numbered(numbers: array[int], chosen: list[int]) -> array[int]:
    """Replaces each number by its position among the chosen ones."""
    order = dict(zip(chosen, range(len(chosen)), strict=True))
    return array("I", map(order.__getitem__, numbers))
