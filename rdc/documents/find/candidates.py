"""Candidate pairs: documents that share a band, each pair once, in bounded memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.documents.find.equal_keys import equal_key_groups
from rdc.documents.nameless_file import NamelessFile
from rdc.kernel import missing_pairs, neighbour_pairs, sorted_pairs
from rdc.limits.searches import PAIRS, WINDOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rdc.documents.find.band_keys import BandKeys
    from rdc.survey.walk.equal_groups import Groups

__all__ = ["WaitingPairs", "neighbours", "without"]

_FILES = 64
"""Files that pairs wait in, at most. Each has the pairs of one range of documents."""

_WAITING = 1 << 20
"""Pairs in memory, before some are written."""

_MEMBERS = 1 << 14
"""Members of groups whose pairs are made at a time: 4 MiB at most."""


def neighbours(keys: BandKeys, count: int, is_old: Callable[[int], bool] | None = None) -> WaitingPairs:
    """Return the pairs of documents that are next to each other in a band.

    `count`: the number of positions. With `is_old`, which tells documents of an older corpus, only pairs of
    a new document and an old one are returned.
    """
    waiting = WaitingPairs(count)
    for band in range(keys.banding.bands):
        for groups in equal_key_groups(keys.band(band)):
            if is_old is None:
                _add_neighbours(groups, waiting)
            else:
                _add_across(groups, is_old, waiting)
    return waiting


def without(batches: Iterable[array[int]], known: WaitingPairs) -> Iterator[array[int]]:
    """Yield batches of pairs in increasing order, without those that `known` has."""
    others = known.batches()
    other = next(others, None)
    for batch in batches:
        left = batch
        while other is not None and other[0] <= batch[-1]:
            left = array("Q", missing_pairs(left, other))
            if other[-1] > batch[-1]:
                break  # the next batch needs it as well
            other = next(others, None)
        if left:
            yield left


def _add_neighbours(groups: Groups, waiting: WaitingPairs) -> None:
    for at in range(0, len(groups.members), _MEMBERS):
        waiting.add(neighbour_pairs(groups.members, groups.counts, WINDOW, at, at + _MEMBERS))


def _add_across(groups: Groups, is_old: Callable[[int], bool], waiting: WaitingPairs) -> None:
    """Each new document with the old ones next to it in order, half of WINDOW on either side."""
    for positions in groups:
        old = [position for position in positions if is_old(position)]
        passed = 0
        for position in positions:
            if passed < len(old) and old[passed] == position:
                passed += 1
                continue
            near = old[max(passed - WINDOW // 2, 0) : passed + WINDOW // 2]
            pairs = [min(position, other) << 32 | max(position, other) for other in near]
            waiting.add(array("Q", pairs).tobytes())


class WaitingPairs:
    """Pairs divided by their first document, on disk where they are many: a position times 2^32 plus a larger
    position each."""

    def __init__(self, count: int) -> None:
        self._span = max(1 << 16, -(-count // _FILES))
        """Documents of one range."""
        self._waiting: list[array[int]] = [array("Q") for _ in range(0, count, self._span)]
        self._files: list[NamelessFile | None] = [None] * len(self._waiting)
        self._ends = [array("Q") for _ in self._waiting]
        """Where each run of pairs in order ends in a file, in bytes."""

    def add(self, pairs: bytes) -> None:
        """Adds pairs (u64), each with the smaller position first."""
        if len(self._waiting) == 1:
            self._extend(0, array("Q", pairs))
            return
        ordered, at = array("Q", sorted_pairs(pairs)), 0
        while at < len(ordered):
            number = (ordered[at] >> 32) // self._span
            end = bisect_left(ordered, (number + 1) * self._span << 32, at)
            self._extend(number, ordered[at:end])
            at = end

    def _extend(self, number: int, pairs: array[int]) -> None:
        waiting = self._waiting[number]
        waiting += pairs
        if len(waiting) >= _WAITING // len(self._waiting):
            self._write(number)

    def _write(self, number: int) -> None:
        """Writes the pairs of a range, those that came twice once."""
        file = self._files[number]
        if file is None:
            file = self._files[number] = NamelessFile()
        waiting = self._waiting[number]
        file.append([sorted_pairs(waiting)])
        self._ends[number].append(file.size)
        del waiting[:]

    def batches(self) -> Iterator[array[int]]:
        """Yield the different pairs in increasing order, as often as needed. A batch has PAIRS pairs or the
        pairs of one document."""
        for number, waiting in enumerate(self._waiting):
            file = self._files[number]
            if file is None:
                if waiting:
                    yield array("Q", sorted_pairs(waiting))
                continue
            if waiting:
                self._write(number)
            yield from self._from_file(file, number)

    def _from_file(self, file: NamelessFile, number: int) -> Iterator[array[int]]:
        """Reads the file once for each PAIRS pairs in it, with the pairs of a part of the documents each
        time."""
        passes = -(-file.size // (8 * PAIRS))
        start = number * self._span
        for one in range(passes):
            low = start + self._span * one // passes << 32
            high = start + self._span * (one + 1) // passes << 32
            found, at = array("Q"), 0
            for end in self._ends[number]:
                run = array("Q", file.read(at, end - at))
                found += run[bisect_left(run, low) : bisect_left(run, high)]
                at = end
            if found:
                yield array("Q", sorted_pairs(found))
