"""Finds near-duplicates among the documents of parts, and says what a training set keeps."""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left
from itertools import compress, pairwise
from operator import eq

from rdc.documents.find.candidates import (
    SKIP,
    BandKeys,
    CrowdedBands,
    WaitingPairs,
    equal_positions,
    neighbours,
    without,
)
from rdc.documents.find.comparison import compared_pairs
from rdc.documents.find.complete_link import CompleteLink
from rdc.documents.find.corpus import Corpus
from rdc.documents.parts.part_file import SAMPLES
from rdc.errors import ExitCode
from rdc.lean.records import Record
from rdc.lean.typed import Generic, Protocol, TypeVar
from rdc.model.similar import (
    Document,
    DocumentGroup,
    DocumentOptions,
    DocumentReport,
    DocumentSummary,
    SimilarDocument,
    TextDifference,
)
from rdc.progress import Progressed, Reporter, StopSignal, check_stop
from rdc.survey.read import usable_workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.documents.find.comparison import Compared
    from rdc.documents.gather import Gathered


# Forest: connected positions, eight bytes each.


class Forest:
    """Disjoint sets of the positions 0 to count - 1. Each set is named by its least position.

    The sets depend on the pairs that were joined, not on their order.
    """

    def __init__(self, count: int) -> None:
        self._above = array("I", range(count))
        self._next: array[int] | None = None

    def top(self, position: int) -> int:
        """Return the least position of its set. Path halving keeps later searches short."""
        above = self._above
        while (up := above[position]) != position:
            above[position] = above[up]
            position = up
        return position

    def join(self, first: int, second: int) -> None:
        """Unite the sets of two positions."""
        one, other = self.top(first), self.top(second)
        if one != other:
            self._above[max(one, other)] = min(one, other)
            self._next = None

    def is_top(self, position: int) -> bool:
        """Return whether it is the least of its set."""
        return self._above[position] == position

    def members(self, top: int) -> Iterator[int]:
        """Yield the positions of a set, in order."""
        chain = self._chains()
        position = top
        yield position
        while (position := chain[position]) != top:
            yield position

    def _chains(self) -> array[int]:
        """Return the next position of each set, and the least after the last."""
        if self._next is None:
            above = self._above
            chain = self._next = array("I", range(len(above)))
            for position in range(len(above) - 1, -1, -1):
                if above[position] != position:
                    top = self.top(position)
                    chain[position], chain[top] = chain[top], position
        return self._next


# Distinct: which documents are compared, and which are copies of others.

COPY, COPIED = 1, 2


class Distinct(Record):
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
        """Return every document whose text a lesser one has."""
        return (entry & 0xFFFFFFFF for entry in self._copies)

    def copies(self, document: int) -> list[int]:
        """Return the copies of a document, in order."""
        if self.kinds[document] != COPIED:
            return []
        at = bisect_left(self._copies, document << 32)
        found = []
        while at < len(self._copies) and self._copies[at] >> 32 == document:
            found.append(self._copies[at] & 0xFFFFFFFF)
            at += 1
        return found


def distinct_documents(corpus: Corpus) -> Distinct:
    """Compare the digests of all texts. Old documents and new ones are not copies of each other."""
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
    """Divide documents, whose digests start equally, into those of equal text on one side.
    `tails`: the other halves of all digests."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for number in positions:
        groups.setdefault((tails[number], corpus.is_old(number)), []).append(number)
    yield from [group for group in groups.values() if len(group) > 1]


_NONE = (1 << 32) - 1
"""Stands for no position: a document that resembles none."""


class Excerpts(Protocol):
    """Finds where two documents differ."""

    def of(self, number: int, other: int, /) -> tuple[TextDifference, ...]: ...


class Search:
    """A search among all documents of a corpus, and its results.

    Results depend on the set of documents only: not on parts, their order, threads or the kernel.
    """

    def __init__(
        self, corpus: Corpus, threshold: float, workers: int, *, across: bool, complete: bool = False
    ) -> None:
        """`workers`: threads that compare. `across`: only pairs of a new document with an old one count.
        `complete`: groups are those of CompleteLink, in place of connected components."""
        self.corpus = corpus
        self._threshold = threshold
        self._workers = workers
        self._across = across
        self.distinct = distinct_documents(corpus)
        count = len(self.distinct.compared)
        self._forest = Forest(0 if across else count)
        self._found = WaitingPairs(count) if complete else None
        """The similar pairs, if groups are made of them at the end: the larger position comes first."""
        self._best = array("d", bytes(8 * count))
        self._like = array("I", [_NONE]) * count
        self.candidates = 0
        self.pairs = 0
        self.excerpts: Excerpts | None = None
        """The source of the differences of similar documents."""
        self.pairs_left_out = 0
        """Candidate pairs that were not compared, at most."""

    def run(self, reporter: Reporter, stop: StopSignal | None) -> None:
        """Compare all candidates. Raises StoppedError."""
        compared = self.distinct.compared
        check_stop(stop)
        keys = BandKeys.of(self.corpus, compared, self._threshold)
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
        if self._found is not None:
            self._divide(self._found, stop)
        reporter(Progressed("compare", len(compared), len(compared)))

    def _compare(self, batches: Iterator[array[int]], stop: StopSignal | None) -> Iterator[int]:
        """Compare pairs, and yield how far they are."""
        compared = self.distinct.compared
        for done in compared_pairs(self.corpus, compared, batches, self._threshold, self._workers):
            check_stop(stop)
            self.candidates += len(done.pairs)
            similar = array("Q", compress(done.pairs, done.resemblances))
            self.pairs += len(similar)
            if self._found is not None:
                self._found.add(array("Q", [pair >> 32 | (pair & _NONE) << 32 for pair in similar]).tobytes())
            else:
                self._add(done)
            yield done.pairs[-1] >> 32

    def _divide(self, found: WaitingPairs, stop: StopSignal | None) -> None:
        """Make groups of the similar pairs, and add the pairs within groups."""
        compared = self.distinct.compared
        link = CompleteLink(self.corpus, compared, self._threshold, stop)
        link.divide(found)
        labels = link.labels
        within = (
            array("Q", [pair for pair in batch if labels[pair >> 32] == labels[pair & _NONE]])
            for batch in found.batches()
        )
        # They are compared again, since what each pair had in common was not kept.
        for done in compared_pairs(self.corpus, compared, within, self._threshold, self._workers):
            check_stop(stop)
            self._add(done)

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
        return self.corpus.is_old(self.distinct.compared[position])

    def _add(self, done: Compared) -> None:
        """Connect the similar pairs among these, and note for each document the one most like it."""
        for pair, found in compress(zip(done.pairs, done.resemblances, strict=True), done.resemblances):
            first, second = pair >> 32, pair & _NONE
            if not self._across:
                self._forest.join(first, second)
            for one, other in ((first, second), (second, first)):
                before = self._best[one]
                if found > before or (found == before and other < self._like[one]):
                    self._best[one], self._like[one] = found, other

    def groups(self) -> Iterator[DocumentGroup]:
        """Yield the groups in the order of their labels."""
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
        """Yield the new documents that resemble an old one, in order."""
        for position in range(len(self._like)):
            if self._across and self._like[position] != _NONE and not self._is_old(position):
                yield self._similar(position)

    def kept(self) -> Iterator[Document]:
        """Yield the documents that a training set keeps, in order."""
        return map(self.corpus.document, self.kept_numbers())

    def alike_numbers(self) -> array[int]:
        """Return the documents that resemble another one, in order, without copies."""
        compared = self.distinct.compared
        return array("I", [compared[at] for at, like in enumerate(self._like) if like != _NONE])

    def kept_numbers(self) -> Iterator[int]:
        """Yield the documents to keep, in order: of each group its label, and all other documents. Across:
        the new documents that resemble no old one."""
        compared, distinct = self.distinct.compared, self.distinct
        position = 0
        dropped: set[int] = set()
        for number in range(len(self.corpus)):
            is_compared = position < len(compared) and compared[position] == number
            if self._across:
                if is_compared and self._like[position] != _NONE:
                    dropped.update([number, *distinct.copies(number)])
                keep = number not in dropped and not self.corpus.is_old(number)
                dropped.discard(number)
            else:
                keep = distinct.kinds[number] != COPY and not (
                    is_compared and not self._forest.is_top(position)
                )
            position += is_compared
            if keep:
                yield number

    def summary(self, left_out: int) -> DocumentSummary:
        """Return the totals. Those of documents are of new ones only. `left_out`: rows that could not be
        used."""
        corpus, distinct = self.corpus, self.distinct
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
        """Return the number of groups and of documents in them. Across: 0 and the documents that match."""
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
        """Yield the positions that have copies or are like another one, in order."""
        kinds = self.distinct.kinds
        for position, (number, like) in enumerate(zip(self.distinct.compared, self._like, strict=True)):
            if like != _NONE or kinds[number] == COPIED:
                yield position

    def _similar(self, position: int) -> SimilarDocument:
        number, like = self.distinct.compared[position], self._like[position]
        if like == _NONE:
            return self._alone(number)
        other = self.distinct.compared[like]
        samples = (array("I", self.corpus.samples_of(one)) for one in (number, other))
        return SimilarDocument(
            self.corpus.document(number),
            self._best[position],
            sum(map(eq, *samples)) / SAMPLES,
            self.corpus.document(other),
            self._copies(number),
            () if self.excerpts is None else self.excerpts.of(number, other),
        )

    def _alone(self, number: int) -> SimilarDocument:
        """Return a document that has only copies."""
        copies = self._copies(number)
        return SimilarDocument(self.corpus.document(number), 1.0, 1.0, copies[0], copies)

    def _copies(self, number: int) -> tuple[Document, ...]:
        return tuple([self.corpus.document(copy) for copy in self.distinct.copies(number)])


# The report of a search: its totals, and results that are made when they are asked for.


T = TypeVar("T")


class _Again(Generic[T]):
    """An iterable that makes its items again each time it is read."""

    def __init__(self, make: Callable[[], Iterator[T]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[T]:
        return self._make()


def search_documents(
    gathered: Gathered,
    options: DocumentOptions,
    reporter: Reporter,
    stop: StopSignal | None,
    *,
    older: bool = False,
) -> Search:
    """Search what was gathered. Of `options`, threshold, link and workers count. `older`: the last part is of
    an older corpus. Raises StoppedError."""
    old = frozenset([len(gathered.parts) - 1]) if older else frozenset()
    corpus = Corpus(gathered.parts, gathered.blocks, old)
    workers, complete = options.workers or usable_workers(), options.link == "complete"
    search = Search(corpus, options.threshold, workers, across=older, complete=complete)
    search.run(reporter, stop)
    return search


def search_report(search: Search, gathered: Gathered) -> DocumentReport:
    """Return the results of a search that has run."""
    code = ExitCode.PARTIAL if any(problem.code for problem in gathered.problems) else ExitCode.OK
    return DocumentReport(
        _Again(search.groups),
        _Again(search.matches),
        _Again(search.kept),
        search.summary(gathered.left_out),
        code,
    )
