"""The exact resemblance of candidate pairs: their shingles are compared."""

from __future__ import annotations

from array import array

from rdc.kernel.overlaps import set_overlaps
from rdc.limits.documents import OVERLAP_BYTES
from rdc.model.entries import little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.documents.find.corpus import Corpus

__all__ = ["resemblances"]


def resemblances(corpus: Corpus, compared: array[int], pairs: Sequence[int]) -> Iterator[float]:
    """Yields the Jaccard resemblance of each pair: the shingles that both have, divided by those that either
    has. `pairs`: as candidate_batches() yields them."""
    column = _Column(corpus, compared)
    for pair in pairs:
        column.add(pair >> 32, pair & 0xFFFFFFFF)
        if column.full:
            yield from column.compare()
            column = _Column(corpus, compared)
    yield from column.compare()


class _Column:
    """The shingles of some documents, and pairs among them."""

    def __init__(self, corpus: Corpus, compared: array[int]) -> None:
        self._corpus = corpus
        self._compared = compared
        self._numbers: dict[int, int] = {}
        self._sets: list[bytes] = []
        self._offsets = array("q", [0])
        self._pairs = array("I")

    @property
    def full(self) -> bool:
        return 4 * self._offsets[-1] >= OVERLAP_BYTES

    def add(self, first: int, second: int) -> None:
        self._pairs.append(self._number(first))
        self._pairs.append(self._number(second))

    def _number(self, position: int) -> int:
        number = self._numbers.get(position)
        if number is None:
            number = self._numbers[position] = len(self._sets)
            shingles = self._corpus.shingles(self._compared[position])
            self._sets.append(shingles)
            self._offsets.append(self._offsets[-1] + len(shingles) // 4)
        return number

    def compare(self) -> Iterator[float]:
        values = little_endian_integers("I", b"".join(self._sets))
        found = array("I", set_overlaps(values, self._offsets, self._pairs))
        for at in range(0, len(found), 2):
            yield found[at] / found[at + 1]
