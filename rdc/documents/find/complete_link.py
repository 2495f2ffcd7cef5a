"""Groups in which all documents resemble each other: the rule of `--link=complete` (DOCUMENTS.md, step 7)."""

from __future__ import annotations

from array import array
from itertools import groupby

from rdc.documents.find.comparison import compared_pairs
from rdc.limits import LINKED_DOCUMENTS
from rdc.progress import StopSignal, check_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.documents.find.candidates import WaitingPairs
    from rdc.documents.find.corpus import Corpus

_LOW = (1 << 32) - 1

STEP = 32
"""Members of a group that are compared with a document at a time. The first bad one ends it."""


class CompleteLink:
    """Divides documents into groups, so that each pair within a group reaches the threshold.

    Documents are taken in order. Each joins the first group, in the order of labels, that has room, has a
    document that the search found similar to it, and has only documents that resemble it. Without such a
    group it starts one. So the groups depend on the documents and the found pairs only.
    """

    def __init__(
        self, corpus: Corpus, compared: array[int], threshold: float, stop: StopSignal | None
    ) -> None:
        """Take `compared`: the documents, which are numbered by their position in this column."""
        self._corpus = corpus
        self._compared = compared
        self._threshold = threshold
        self._stop = stop
        self.labels = array("I", range(len(compared)))
        """The least member of the group of each position."""
        self._next = array("I", self.labels)
        """The members of each group as a ring."""
        self._counts = array("I", [1]) * len(compared)
        """By label."""

    def divide(self, found: WaitingPairs) -> None:
        """Fill `labels`. `found`: all similar pairs, the larger position times 2^32 plus the smaller one.
        Raises StoppedError."""
        # Sorted so, the pairs of a document with all before it come together, and after those of all before.
        for batch in found.batches():
            check_stop(self._stop)
            for position, pairs in groupby(batch, (32).__rrshift__):
                self._join(position, {pair & _LOW for pair in pairs})

    def _join(self, position: int, similar: set[int]) -> None:
        labels = self.labels
        for label in sorted({labels[one] for one in similar}):
            if self._counts[label] == LINKED_DOCUMENTS:
                continue
            others = [one for one in self._members(label) if one not in similar]
            if self._resembles(position, others):
                labels[position] = label
                self._next[position], self._next[label] = self._next[label], position
                self._counts[label] += 1
                return

    def _members(self, label: int) -> Iterator[int]:
        member = label
        while True:
            yield member
            member = self._next[member]
            if member == label:
                return

    def _resembles(self, position: int, others: list[int]) -> bool:
        """Return whether a document resembles all of these, none of which the search compared with it and
        found similar."""
        for at in range(0, len(others), STEP):
            check_stop(self._stop)
            pairs = array("Q", [position << 32 | one for one in others[at : at + STEP]])
            for done in compared_pairs(self._corpus, self._compared, [pairs], self._threshold, 1):
                if not all(done.resemblances):
                    return False
        return True
