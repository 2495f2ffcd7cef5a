"""SimilarPairs: all pairs of similar files in an index, as a stream in bounded memory."""

from __future__ import annotations

from array import array

from rdc.kernel import TraitPairs
from rdc.limits import SIMILAR_WINDOW, SPANNING_WINDOW
from rdc.records import dataclass
from rdc.similarity.traits import estimate_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.kernel import TraitIndex

__all__ = ["SimilarPair", "SimilarPairs", "keys_of"]


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """Two files that may have much in common: a hint."""

    first: int
    """The smaller key."""
    second: int
    matches: int
    """Traits that agree, of twelve."""

    @property
    def jaccard(self) -> float:
        return estimate_of(self.matches).jaccard


class SimilarPairs:
    """An iterator of SimilarPair, each given once, in no particular order.

    It goes over the index as it was when it was made, and takes about 60 bytes a file. A million unrelated
    files take 3 s, not the half a million million comparisons of all with all: two files with more than s
    matches agree in two traits of one of s sections, so it suffices to look among those.

    Unrelated files agree by accident: with 4 matches 13 million pairs of a million files pass, with 6 some
    6,000. At a resemblance of 0.8 six matches are found 998 times of 1,000, at 0.6 85 of 100.

    What floods of related files would make quadratic is bounded, and counted:
    """

    __slots__ = ("_found", "_pairs")

    def __init__(self, index: TraitIndex, min_matches: int, *, spanning: bool = False) -> None:
        """With `spanning`, only pairs enough to connect what all pairs would, for every number of matches: at
        most 12 a file, however many there are. Of files that agree in two traits each is then compared with
        4,096 others. ValueError unless 2 <= min_matches <= 12."""
        window = SPANNING_WINDOW if spanning else SIMILAR_WINDOW
        self._pairs = TraitPairs(index, min_matches, window, spanning=spanning)
        self._found = self._search()

    @property
    def flooded(self) -> int:
        """Files that stand in one pair only, with the smallest key of all that share all their traits: those
        of more than 16 such files."""
        return self._pairs.flooded

    @property
    def skipped(self) -> int:
        """Comparisons left out so far, of files that agree in two traits with more than 65,536 others, or
        4,096 for spanning pairs. Few of them would have given a pair."""
        return self._pairs.skipped

    def __iter__(self) -> Iterator[SimilarPair]:
        return self._found

    def __next__(self) -> SimilarPair:
        return next(self._found)

    def strongest(self, most: int) -> tuple[array[int], int]:
        """Those with most matches of all that are left, `most` of them, and how many others there are.

        Typecode 'Q', strongest first and then by key: `keys_of` takes one apart. Hundreds of millions of
        pairs take seconds, and 16 bytes for each of `most`. ValueError for a key from 2^30 on.
        """
        packed, others = self._pairs.strongest(most)
        return array("Q", packed), others

    def _search(self) -> Iterator[SimilarPair]:
        while (found := self._pairs.step()) is not None:
            for first, second, matches in found:
                yield SimilarPair(first, second, matches)


def keys_of(packed: int) -> tuple[int, int]:
    """The smaller and the larger key of a pair from `strongest`."""
    return packed >> 30 & 0x3FFF_FFFF, packed & 0x3FFF_FFFF
