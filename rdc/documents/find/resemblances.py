"""The exact resemblance of candidate pairs: their shingles are compared."""

from __future__ import annotations

from array import array

from rdc.documents.find.shingle_sets import ShingleSets
from rdc.kernel.overlaps import ranked_numbers, set_resemblances
from rdc.limits.documents import OVERLAP_BYTES
from rdc.records import dataclass

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
        ranked = _Ranked.of(array("Q", pairs[at : at + _SLICE]))
        documents = array("I", map(compared.__getitem__, ranked.different))
        found += _compared(ShingleSets(corpus, documents), ranked.ranks, threshold)
    return found


def _compared(sets: ShingleSets, numbers: array[int], threshold: float) -> array[float]:
    """`numbers`: the positions in `sets`, two a pair. They are halved until their shingles are few."""
    ranked = _Ranked.of(numbers)
    chosen = ranked.different
    if len(numbers) > 2 and sets.size(chosen) > OVERLAP_BYTES:
        half = len(numbers) // 4 * 2
        return _compared(sets, numbers[:half], threshold) + _compared(sets, numbers[half:], threshold)
    return array("d", set_resemblances(sets.values(chosen), sets.offsets(chosen), ranked.ranks, threshold))


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Numbers as positions among the different ones of them. Typecode 'I'."""

    different: array[int]
    """In order."""
    ranks: array[int]

    @classmethod
    def of(cls, numbers: array[int]) -> _Ranked:
        """`numbers`: any typecode, taken as numbers of 32 bits."""
        different, ranks = ranked_numbers(numbers)
        return cls(array("I", different), array("I", ranks))
