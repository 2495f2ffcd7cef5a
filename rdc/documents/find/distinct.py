"""Distinct: which documents are compared, and which are copies of others."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import pairwise

from rdc.documents.find.equal_keys import equal_positions
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.documents.find.corpus import Corpus

__all__ = ["COPIED", "COPY", "Distinct", "distinct_documents"]

COPY, COPIED = 1, 2


@dataclass(frozen=True, slots=True)
class Distinct:
    """Documents of different texts. The least of several equal ones stands for all."""

    compared: array[int]
    """Typecode 'I', increasing: those with shingles."""
    empty: array[int]
    """The documents without shingles, as in `compared`."""
    kinds: bytearray
    """A code for each document: COPY if a lesser one has its text, COPIED if it is the least of several."""
    _copies: array[int]
    """Typecode 'Q', increasing: a document times 2^32, plus a copy of it."""

    def all_copies(self) -> Iterator[int]:
        """Every document whose text a lesser one has."""
        return (entry & 0xFFFFFFFF for entry in self._copies)

    def copies(self, document: int) -> list[int]:
        """The copies of a document, in order."""
        if self.kinds[document] != COPIED:
            return []
        at = bisect_left(self._copies, document << 32)
        found = []
        while at < len(self._copies) and self._copies[at] >> 32 == document:
            found.append(self._copies[at] & 0xFFFFFFFF)
            at += 1
        return found


def distinct_documents(corpus: Corpus) -> Distinct:
    """Compares the digests of all texts. Old documents and new ones are not copies of each other."""
    heads, tails = array("Q"), array("Q")
    for run in corpus.runs():
        words = array("Q", corpus.digests(run))
        heads += words[0::2]
        tails += words[1::2]
    kinds = bytearray(len(corpus))
    copies = array("Q")
    for positions in equal_positions(heads):
        for equal in _equal(corpus, tails, positions):
            kinds[equal[0]] = COPIED
            for number in equal[1:]:
                kinds[number] = COPY
                copies.append(equal[0] << 32 | number)
    compared, empty = array("I"), array("I")
    number = 0
    for run in corpus.runs():
        bounds = corpus.shingle_bounds(run)
        for start, end in pairwise(bounds):
            if kinds[number] != COPY:
                (compared if end > start else empty).append(number)
            number += 1
    return Distinct(compared, empty, kinds, array("Q", sorted(copies)))


def _equal(corpus: Corpus, tails: array[int], positions: array[int]) -> Iterator[list[int]]:
    """Divides documents, whose digests start equally, into those of equal text on one side.
    `tails`: the other halves of all digests."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for number in positions:
        groups.setdefault((tails[number], corpus.is_old(number)), []).append(number)
    yield from [group for group in groups.values() if len(group) > 1]
