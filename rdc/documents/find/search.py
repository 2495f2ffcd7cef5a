"""Finds near-duplicates among the documents of parts, and says what a training set keeps."""

from __future__ import annotations

import heapq
from array import array
from itertools import compress
from operator import eq

from rdc.documents.find.band_keys import BandKeys
from rdc.documents.find.candidates import neighbours, without
from rdc.documents.find.corpus import Corpus
from rdc.documents.find.crowded_bands import SKIP, CrowdedBands
from rdc.documents.find.distinct import COPIED, COPY, distinct_documents
from rdc.documents.find.forest import Forest
from rdc.documents.find.resemblances import compared_pairs
from rdc.documents.parts.block import SAMPLES
from rdc.model.similar import Document, DocumentGroup, DocumentSummary, SimilarDocument
from rdc.progress import Progressed, check_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.progress import Reporter, StopSignal

__all__ = ["Search"]

_NONE = (1 << 32) - 1
"""Stands for no position: a document that resembles none."""


class Search:
    """A search among all documents of a corpus, and its results.

    Results depend on the set of documents only: not on parts, their order, threads or the kernel.
    """

    def __init__(self, corpus: Corpus, threshold: float, workers: int, *, across: bool) -> None:
        """`workers`: threads that compare. `across`: only pairs of a new document with an old one count."""
        self._corpus = corpus
        self._threshold = threshold
        self._workers = workers
        self._across = across
        self.distinct = distinct_documents(corpus)
        count = len(self.distinct.compared)
        self._forest = Forest(0 if across else count)
        self._best = array("d", bytes(8 * count))
        self._like = array("I", [_NONE]) * count
        self.candidates = 0
        self.pairs = 0
        self.pairs_left_out = 0
        """Candidate pairs that were not compared, at most."""

    def run(self, reporter: Reporter, stop: StopSignal | None) -> None:
        """Compares all candidates. Raises StoppedError."""
        compared = self.distinct.compared
        check_stop(stop)
        keys = BandKeys.of(self._corpus, compared, self._threshold)
        check_stop(stop)
        known = [neighbours(keys, len(compared), self._is_old if self._across else None)]
        for done in self._compare(known[0].batches(), stop):
            reporter(Progressed("compare", done, len(compared)))
        crowded = CrowdedBands(keys, len(compared), self._threshold, self._workers, lambda: check_stop(stop))
        while (level := crowded.next_level(self._labels())) is not None:
            batches = level.batches()
            for one in known:
                batches = without(batches, one)
            for _ in self._compare(batches, stop):
                pass
            known.append(level)
        self.pairs_left_out = crowded.left_out(self._labels())
        reporter(Progressed("compare", len(compared), len(compared)))

    def _compare(self, batches: Iterator[array[int]], stop: StopSignal | None) -> Iterator[int]:
        """Compare pairs, and yield how far they are."""
        compared = self.distinct.compared
        for done in compared_pairs(self._corpus, compared, batches, self._threshold, self._workers):
            check_stop(stop)
            self.candidates += len(done.pairs)
            for pair, one in compress(zip(done.pairs, done.resemblances, strict=True), done.resemblances):
                self._add(pair >> 32, pair & _NONE, one)
            yield done.pairs[-1] >> 32

    def _labels(self) -> array[int]:
        """Return what tells documents apart that need no comparison: their group. Across, new documents from
        old ones; those that have a match need none any more."""
        positions = range(len(self._like))
        if not self._across:
            return array("I", map(self._forest.top, positions))
        return array(
            "I",
            [0 if self._is_old(one) else SKIP if self._like[one] != _NONE else 1 for one in positions],
        )

    def _is_old(self, position: int) -> bool:
        return self._corpus.is_old(self.distinct.compared[position])

    def _add(self, first: int, second: int, found: float) -> None:
        self.pairs += 1
        if not self._across:
            self._forest.join(first, second)
        for one, other in ((first, second), (second, first)):
            before = self._best[one]
            if found > before or (found == before and other < self._like[one]):
                self._best[one], self._like[one] = found, other

    def groups(self) -> Iterator[DocumentGroup]:
        """The groups in the order of their labels."""
        if self._across:
            return
        compared, empty, forest = self.distinct.compared, self.distinct.empty, self._forest
        tops = ((compared[position], position) for position in self._grouped() if forest.is_top(position))
        for number, top in heapq.merge(tops, ((number, _NONE) for number in empty)):
            if top == _NONE:
                if self.distinct.copies(number):
                    yield DocumentGroup((self._alone(number),))
                continue
            yield DocumentGroup(tuple([self._similar(position) for position in forest.members(top)]))

    def matches(self) -> Iterator[SimilarDocument]:
        """The new documents that resemble an old one, in order."""
        for position in range(len(self._like)):
            if self._across and self._like[position] != _NONE and not self._is_old(position):
                yield self._similar(position)

    def kept(self) -> Iterator[Document]:
        """What a training set keeps, in order: of each group its label, and all other documents. Across: the
        new documents that resemble no old one."""
        compared, distinct = self.distinct.compared, self.distinct
        position = 0
        dropped: set[int] = set()
        for number in range(len(self._corpus)):
            is_compared = position < len(compared) and compared[position] == number
            if self._across:
                if is_compared and self._like[position] != _NONE:
                    dropped.update([number, *distinct.copies(number)])
                keep = number not in dropped and not self._corpus.is_old(number)
                dropped.discard(number)
            else:
                keep = distinct.kinds[number] != COPY and not (
                    is_compared and not self._forest.is_top(position)
                )
            position += is_compared
            if keep:
                yield self._corpus.document(number)

    def summary(self, left_out: int) -> DocumentSummary:
        """The totals. Those of documents are of new ones only. `left_out`: rows that could not be used."""
        corpus, distinct = self._corpus, self.distinct
        documents = size = number = 0
        for run in corpus.runs():
            if not (self._across and corpus.is_old(number)):
                documents += run.count
                size += sum(corpus.column(run, "Q", run.block.layout.sizes))
            number += run.count
        groups, grouped = self._group_counts()
        return DocumentSummary(
            documents=documents,
            bytes=size,
            copies=sum([not corpus.is_old(copy) for copy in distinct.all_copies()]),
            empty=sum([not corpus.is_old(number) for number in distinct.empty]),
            groups=groups,
            grouped=grouped,
            candidates=self.candidates,
            pairs=self.pairs,
            kept=documents - grouped + groups,
            left_out=left_out + self.pairs_left_out,
            pairs_left_out=self.pairs_left_out,
        )

    def _group_counts(self) -> tuple[int, int]:
        """The number of groups and of documents in them. Across: 0 and the documents that match."""
        compared, distinct = self.distinct.compared, self.distinct
        groups = grouped = 0
        if self._across:
            for position, like in enumerate(self._like):
                if like != _NONE and not self._is_old(position):
                    grouped += 1 + len(distinct.copies(compared[position]))
            return 0, grouped
        for position in self._grouped():
            grouped += 1 + len(distinct.copies(compared[position]))
            groups += self._forest.is_top(position)
        for number in distinct.empty:
            count = len(distinct.copies(number))
            if count:
                groups, grouped = groups + 1, grouped + 1 + count
        return groups, grouped

    def _grouped(self) -> Iterator[int]:
        """The positions that have copies or are like another one, in order."""
        kinds = self.distinct.kinds
        for position, (number, like) in enumerate(zip(self.distinct.compared, self._like, strict=True)):
            if like != _NONE or kinds[number] == COPIED:
                yield position

    def _similar(self, position: int) -> SimilarDocument:
        number, like = self.distinct.compared[position], self._like[position]
        if like == _NONE:
            return self._alone(number)
        other = self.distinct.compared[like]
        samples = (array("I", self._corpus.samples_of(one)) for one in (number, other))
        return SimilarDocument(
            self._corpus.document(number),
            self._best[position],
            sum(map(eq, *samples)) / SAMPLES,
            self._corpus.document(other),
            self._copies(number),
        )

    def _alone(self, number: int) -> SimilarDocument:
        """A document that has only copies."""
        copies = self._copies(number)
        return SimilarDocument(self._corpus.document(number), 1.0, 1.0, copies[0], copies)

    def _copies(self, number: int) -> tuple[Document, ...]:
        return tuple([self._corpus.document(copy) for copy in self.distinct.copies(number)])
