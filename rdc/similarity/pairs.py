"""SimilarPairs: all pairs of similar files in an index, as a stream in bounded memory."""

from __future__ import annotations

from array import array

from rdc.kernel import TraitPairs
from rdc.lean.records import dataclass
from rdc.limits.searches import SIMILAR_WINDOW, SPANNING_WINDOW
from rdc.similarity.traits import estimate_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

    from rdc.kernel import TraitIndex

__all__ = ["SimilarPair", "SimilarPairs", "keys_of"]


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """Two files that may have much in common. It is a hint, not a measurement."""

    first: int
    """The smaller key."""
    second: int
    matches: int
    """Traits that agree, of twelve."""

    @property
    def jaccard(self) -> float:
        return estimate_of(self.matches).jaccard


class SimilarPairs:
    """An iterator over SimilarPair. Each pair comes once, in no particular order.

    It covers the index as it was when the iterator was made, and takes about 60 bytes per file. A million
    unrelated files take 3 s. That is less than comparing all half a million million pairs: two files with
    more than s matches agree in two traits of one of s sections, so only such files are compared.

    Unrelated files agree by accident: of a million files, 13 million pairs have 4 matches and some 6,000 have
    6. Six matches find a resemblance of 0.8 in 998 of 1,000 cases, and of 0.6 in 85 of 100.

    Groups of related files that would take quadratic time are bounded; `flooded` and `skipped` count what is
    left out.
    """

    __slots__ = ("_found", "_pairs")

    def __init__(self, index: TraitIndex, min_matches: int, *, spanning: bool = False) -> None:
        """`spanning`: return only as many pairs as connect the same files as all pairs would, for every
        number of matches. That is at most 12 per file. Each file is then compared with at most 4,096 others
        that agree with it in two traits. Raises ValueError unless 2 <= min_matches <= 12."""
        window = SPANNING_WINDOW if spanning else SIMILAR_WINDOW
        self._pairs = TraitPairs(index, min_matches, window, spanning=spanning)
        self._found = self._search()

    @property
    def flooded(self) -> int:
        """Files that appear in one pair only, with the smallest key among the files that share all their
        traits. This applies where more than 16 files share them."""
        return self._pairs.flooded

    @property
    def skipped(self) -> int:
        """Comparisons left out so far: those of files that agree in two traits with more than 65,536 others
        (4,096 for spanning pairs). Few of them would have given a pair."""
        return self._pairs.skipped

    def __iter__(self) -> Iterator[SimilarPair]:
        return self._found

    def __next__(self) -> SimilarPair:
        return next(self._found)

    def strongest(
        self, most: int, sketches: ReadableBuffer = b"", least_agreeing: int = 0
    ) -> tuple[array[int], int]:
        """The `most` remaining pairs with the most matches, and the number of other pairs.

        Typecode 'Q', most matches first, then by key; `keys_of` unpacks one. Hundreds of millions of pairs
        take seconds, and 16 bytes for each of `most`. Raises ValueError for a key of 2^30 or more.

        `sketches` has 32 bytes for each key, in order, all 0 if they are unknown. Pairs of known sketches
        that agree in fewer than `least_agreeing` bytes are left out, and not counted.
        """
        packed, others = self._pairs.strongest(most, sketches, least_agreeing)
        return array("Q", packed), others

    def _search(self) -> Iterator[SimilarPair]:
        while (found := self._pairs.step()) is not None:
            for first, second, matches in found:
                yield SimilarPair(first, second, matches)


def keys_of(packed: int) -> tuple[int, int]:
    """The smaller and the larger key of a pair from `strongest`."""
    return packed >> 30 & 0x3FFF_FFFF, packed & 0x3FFF_FFFF
