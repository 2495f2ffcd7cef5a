"""The exact resemblance of candidate pairs: their shingles are compared, in threads where they are many."""

from __future__ import annotations

from array import array
from functools import partial

from rdc.documents.find.shingle_sets import ShingleSets
from rdc.kernel import ranked_numbers, set_resemblances
from rdc.lean.records import dataclass
from rdc.limits.searches import OVERLAP_BYTES
from rdc.survey.read.ordered_threads import ALONE, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.documents.find.corpus import Corpus

__all__ = ["Compared", "compared_pairs"]

_SLICE = 1 << 16
"""Pairs whose documents are looked up together."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Some candidate pairs."""

    pairs: array[int]
    """Pairs of a batch of WaitingPairs, in its order."""
    resemblances: array[float]
    """The Jaccard resemblance of each: the shingles that both have, divided by those that either has. It is 0
    for pairs below the threshold."""


def compared_pairs(
    corpus: Corpus, compared: array[int], batches: Iterable[array[int]], threshold: float, workers: int
) -> Iterator[Compared]:
    """Compares all pairs of the batches of WaitingPairs, in their order."""
    return in_order(
        partial(_compare, threshold=threshold), _comparisons(corpus, compared, batches, workers), workers
    )


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


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Pairs whose shingles are in memory together."""

    sets: ShingleSets
    pairs: array[int]
    numbers: _Ranked
    """The positions in `sets`, two a pair."""


def _compare(comparison: _Comparison, threshold: float) -> Compared:
    """Threads may call it in parallel."""
    sets, numbers = comparison.sets, comparison.numbers
    values, offsets = sets.values(numbers.different), sets.offsets(numbers.different)
    found = array("d", set_resemblances(values, offsets, numbers.ranks, threshold))
    return Compared(comparison.pairs, found)


def _comparisons(
    corpus: Corpus, compared: array[int], batches: Iterable[array[int]], workers: int
) -> Iterator[_Comparison]:
    """The pairs of all batches, divided so that the shingles of those in progress take OVERLAP_BYTES."""
    count = 0
    for batch in batches:
        for at in range(0, len(batch), _SLICE):
            pairs = array("Q", batch[at : at + _SLICE])
            # Halves of the same pair lie side by side, in either order.
            ranked = _Ranked.of(pairs)
            sets = ShingleSets(corpus, array("I", map(compared.__getitem__, ranked.different)))
            waiting = [(pairs, ranked.ranks)]
            while waiting:
                pairs, numbers = waiting.pop()
                ranked = _Ranked.of(numbers)
                # The first ones run alone.
                most = OVERLAP_BYTES if count < ALONE else OVERLAP_BYTES // workers
                if len(pairs) > 1 and sets.size(ranked.different) > most:
                    half = len(pairs) // 2
                    waiting += [(pairs[half:], numbers[2 * half :]), (pairs[:half], numbers[: 2 * half])]
                    continue
                yield _Comparison(sets, pairs, ranked)
                count += 1
