"""Candidate pairs: documents that share a band, each pair once, in bounded memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import combinations

from rdc.documents.find.equal_keys import equal_positions
from rdc.documents.nameless_file import NamelessFile
from rdc.limits.documents import PAIRS, WINDOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.documents.find.band_keys import BandKeys

__all__ = ["candidate_batches"]

_FILES = 64
"""Files that pairs wait in, at most. Each has the pairs of one range of documents."""

_WAITING = 1 << 16
"""Pairs of one range in memory, before they are written."""


def candidate_batches(
    keys: BandKeys, count: int, is_old: Callable[[int], bool] | None = None
) -> Iterator[list[int]]:
    """Yields candidate pairs in increasing order: a position times 2^32 plus a larger position.

    `count`: the number of positions. With `is_old`, which tells documents of an older corpus, only pairs of
    a new document and an old one are yielded. A batch has PAIRS pairs or the pairs of one document.
    """
    waiting = _WaitingPairs(count)
    for band in range(keys.banding.bands):
        for positions in equal_positions(keys.band(band)):
            if is_old is None:
                _add_neighbours(positions, waiting)
            else:
                _add_across(positions, is_old, waiting)
    yield from waiting.batches()


def _add_neighbours(positions: Sequence[int], waiting: _WaitingPairs) -> None:
    if len(positions) <= WINDOW + 1:
        waiting.extend([first << 32 | second for first, second in combinations(positions, 2)])
        return
    for at, first in enumerate(positions):
        waiting.extend([first << 32 | second for second in positions[at + 1 : at + 1 + WINDOW]])


def _add_across(positions: Sequence[int], is_old: Callable[[int], bool], waiting: _WaitingPairs) -> None:
    """Each new document with the old ones next to it in order, half of WINDOW on either side."""
    old = [position for position in positions if is_old(position)]
    passed = 0
    for position in positions:
        if passed < len(old) and old[passed] == position:
            passed += 1
            continue
        for other in old[max(passed - WINDOW // 2, 0) : passed + WINDOW // 2]:
            waiting.add(min(position, other), max(position, other))


class _WaitingPairs:
    """Pairs divided by their first document, on disk where they are many."""

    def __init__(self, count: int) -> None:
        self._span = max(1 << 16, -(-count // _FILES))
        """Documents of one range."""
        self._waiting: list[array[int]] = [array("Q") for _ in range(0, count, self._span)]
        self._files: list[NamelessFile | None] = [None] * len(self._waiting)

    def add(self, first: int, second: int) -> None:
        """`first` is the smaller position."""
        self.extend([first << 32 | second])

    def extend(self, pairs: list[int]) -> None:
        """Adds pairs in increasing order."""
        while pairs:
            number = (pairs[0] >> 32) // self._span
            end = len(pairs)
            if (pairs[-1] >> 32) // self._span != number:
                end = bisect_left(pairs, (number + 1) * self._span << 32)
            waiting = self._waiting[number]
            waiting.extend(pairs[:end])
            if len(waiting) >= _WAITING:
                self._write(number)
            pairs = pairs[end:]

    def _write(self, number: int) -> None:
        """Writes the pairs of a range, those that came twice once."""
        file = self._files[number]
        if file is None:
            file = self._files[number] = NamelessFile()
        waiting = self._waiting[number]
        file.append([array("Q", sorted(set(waiting)))])
        del waiting[:]

    def batches(self) -> Iterator[list[int]]:
        for number, waiting in enumerate(self._waiting):
            file = self._files[number]
            if file is None:
                if waiting:
                    yield sorted(set(waiting))
                continue
            self._write(number)
            yield from self._from_file(file, number)

    def _from_file(self, file: NamelessFile, number: int) -> Iterator[list[int]]:
        """Reads the file once for each PAIRS pairs in it, with the pairs of a part of the documents each
        time."""
        passes = -(-file.size // (8 * PAIRS))
        start = number * self._span
        for one in range(passes):
            low = start + self._span * one // passes << 32
            high = start + self._span * (one + 1) // passes << 32
            found: set[int] = set()
            for at in range(0, file.size, 8 * _WAITING):
                span = file.read(at, min(8 * _WAITING, file.size - at))
                found.update([pair for pair in array("Q", span) if low <= pair < high])
            if found:
                yield sorted(found)
