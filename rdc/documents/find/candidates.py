"""Candidate pairs: documents that share a band, each pair once, in bounded memory."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from functools import partial
from itertools import accumulate
from operator import itemgetter

from rdc.documents.parts.open_parts import NamelessFile
from rdc.documents.parts.part_file import SAMPLE_BYTES, SAMPLES
from rdc.kernel import alike_counts, alike_pairs, label_pairs, missing_pairs, neighbour_pairs, sorted_pairs
from rdc.kernel.blake3_many import NAME_BYTES, name_parts
from rdc.lean.records import Record
from rdc.limits import (
    COMPARED,
    COMPARED_LEAST,
    CROWD_LEVELS,
    EXAMINED,
    EXAMINED_LEAST,
    LEVEL_PREFIXES,
    PAIRS,
    RANGE_ROWS,
    WINDOW,
)
from rdc.similarity.banding import Banding
from rdc.survey.read import in_order
from rdc.survey.walk.file_columns import Groups, equal_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rdc.documents.find.corpus import Corpus


def equal_positions(keys: array[int]) -> Iterator[array[int]]:
    """Yield the positions of each key that occurs more than once, in increasing order. `keys`: as for
    equal_key_groups()."""
    for groups in equal_key_groups(keys):
        yield from groups


def equal_key_groups(keys: array[int]) -> Iterator[Groups]:
    """Yield groups of the positions of equal keys, in increasing order each.

    `keys`: typecode 'Q', hashes. They are sorted a range of values at a time.
    """
    ranges = -(-len(keys) // RANGE_ROWS)
    if ranges <= 1:
        yield equal_groups(keys, 8)
        return
    for number in range(ranges):
        low, high = (number << 64) // ranges, (number + 1 << 64) // ranges
        rows = array("I", [row for row, key in enumerate(keys) if low <= key < high])
        if len(rows) > 1:
            chosen = array("Q", itemgetter(*rows)(keys))
            yield equal_groups(chosen, 8).of(rows)


# BandKeys: the keys of all bands of all documents that are compared, in a file without a name.

BATCH = 1_024
"""Documents whose keys are made and stored together."""


class BandKeys:
    """One column of keys for each band, and a byte of each sample, on disk: eight bytes a document and band,
    and 128 a document."""

    def __init__(self, threshold: float) -> None:
        self.banding = Banding.plan(threshold, SAMPLES)
        self._file = NamelessFile()
        self._low = NamelessFile()
        self._counts: list[int] = []
        """Documents of each batch."""

    @staticmethod
    def of(corpus: Corpus, compared: array[int], threshold: float) -> BandKeys:
        """Return the keys of the documents `compared`, by position in that column."""
        keys = BandKeys(threshold)
        samples, waiting = bytearray(), 0
        number, at = 0, 0
        for run in corpus.runs():
            end = bisect_left(compared, number + run.count, at)
            if end > at:
                column = corpus.samples(run)
                if end - at < run.count:
                    column = b"".join(
                        [
                            column[SAMPLE_BYTES * (row - number) : SAMPLE_BYTES * (row - number + 1)]
                            for row in compared[at:end]
                        ]
                    )
                samples += column
                waiting += end - at
                if waiting >= BATCH:
                    keys._add(bytes(samples), waiting)
                    samples, waiting = bytearray(), 0
            number += run.count
            at = end
        if waiting:
            keys._add(bytes(samples), waiting)
        return keys

    def _add(self, samples: bytes, count: int) -> None:
        self._low.append([samples[::4]])  # little-endian at rest
        bands, rows = self.banding.bands, self.banding.rows
        used = 4 * bands * rows
        if used < SAMPLE_BYTES:
            samples = b"".join([samples[at : at + used] for at in range(0, len(samples), SAMPLE_BYTES)])
        # As in similarity.banding.supershingles, but a column at a time. Keys of other byte orders differ,
        # which matters to nothing: they do not leave this machine.
        names = array("Q", name_parts(samples, array("Q", [4 * rows]) * (bands * count)))
        step = NAME_BYTES // 8
        keys = names[::step]
        self._file.append([keys[band::bands] for band in range(bands)])
        self._counts.append(count)

    def low_bytes(self) -> memoryview:
        """Map the lowest byte of each sample, those of one document after another. Equal samples have equal
        bytes, and of others one in 256 has."""
        return self._low.mapped()

    def band(self, band: int) -> array[int]:
        """Return the keys of one band, by position."""
        keys, start = array("Q"), 0
        for count in self._counts:
            keys.frombytes(self._file.read(start + 8 * count * band, 8 * count))
            start += 8 * count * self.banding.bands
        return keys


# Crowded bands: pairs of documents that share a band with more others than WINDOW (DOCUMENTS.md, step 6).
#
# Documents with a template in common crowd a band, and a near-duplicate may be anywhere in it. So pairs of
# such a band are looked at too, as far as they are in different groups by then. Three bounds keep the work
# linear:
#
# 1. A pair is compared only if enough of its samples are equal, which costs some nanoseconds.
# 2. A level looks at a bounded number of pairs. It takes the smaller groups of documents. Larger ones are
#    divided by a further band: the next level looks at pairs that share two bands, then three.
# 3. A level compares a bounded number of pairs, those with the most equal samples.
#
# Everything here depends on the set of documents only. What is left out is counted.

SKIP = (1 << 32) - 1
"""The label of a document that takes no part any more."""

DEVIATIONS = 3.5
"""A pair at the threshold has fewer equal samples than are needed with a probability of 0.0003: this many
standard deviations below the mean are allowed."""

TASK_MEMBERS = 1 << 14
TASK_PAIRS = 1 << 24
"""Limits of one task: 0.1 s of work."""


class CrowdedBands:
    """Yields the pairs of crowded bands, level by level. Between two levels the caller compares them."""

    def __init__(
        self, keys: BandKeys, count: int, threshold: float, workers: int, check: Callable[[], None]
    ) -> None:
        """`count`: documents that are compared. `check`: called between tasks; it may raise StoppedError."""
        self._keys = keys
        self._count = count
        self._workers = workers
        self._check = check
        spread = math.sqrt(SAMPLES * threshold * (1 - threshold))
        self._least = max(1, math.floor(SAMPLES * threshold - DEVIATIONS * spread))
        """Equal samples that a pair needs."""
        self._level = 0
        self._buckets: _Buckets | None = None
        """The groups of documents of this level; of later ones, those that the level before left."""
        self._large: _Buckets | None = None
        """The groups of the first level that it left."""
        self._beyond = 0
        """Pairs with enough equal samples that were not compared."""

    def next_level(self, labels: array[int]) -> WaitingPairs | None:
        """Return the pairs of the next level that are to be compared; None after the last one.

        `labels`: the group of each document. Documents of one label are not paired, and those with SKIP with
        none.
        """
        level = self._level + 1
        if level > CROWD_LEVELS or math.comb(self._keys.banding.bands, level) > LEVEL_PREFIXES:
            return None
        if level == 1:
            self._buckets = self._crowded(labels)
        before = self._buckets
        if before is None or not len(before):
            return None
        self._level = level
        waiting, left = _Level(self, before, labels).pairs()
        self._buckets = left
        if level == 1:
            self._large = left
        return waiting

    def left_out(self, labels: array[int]) -> int:
        """Return how many pairs of documents that are not in one group were not compared, at most. A pair
        counts once for each band that it shares."""
        found = self._beyond
        if self._large is not None:
            found += sum(_pairs_across(_alone(members), labels)[0] for _, members in self._large)
        return found

    def _crowded(self, labels: array[int]) -> _Buckets:
        """Gather the crowded bands in which pairs are left."""
        buckets = _Buckets()
        for band in range(self._keys.banding.bands):
            self._check()
            for groups in equal_key_groups(self._keys.band(band)):
                if max(groups.counts, default=0) <= WINDOW + 1:
                    continue
                for members, pairs in zip(groups, _pairs_across(groups, labels), strict=True):
                    if len(members) > WINDOW + 1 and pairs:
                        buckets.add(band, members)
        return buckets


class _Level:
    """One level: the groups of documents, and which of them are looked at."""

    def __init__(self, bands: CrowdedBands, before: _Buckets, labels: array[int]) -> None:
        self._bands = bands
        self._before = before
        self._labels = labels
        self._samples = bands._keys.low_bytes()
        self._most = self._cut()

    def pairs(self) -> tuple[WaitingPairs, _Buckets]:
        """Return the pairs to be compared, and the groups that are too large to be looked at."""
        bands, left = self._bands, _Buckets()
        least = self._least_equal()
        waiting = WaitingPairs(bands._count)
        find = partial(self._found, least=least)
        for found in in_order(find, self._tasks(left), bands._workers):
            bands._check()
            waiting.add(found)
        return waiting, left

    def _cut(self) -> int:
        """Return the pairs of the largest group that is looked at."""
        sizes: Counter[int] = Counter()
        for _, groups in self._groups():
            sizes.update(_pairs_across(groups, self._labels))
        most = max(EXAMINED_LEAST, EXAMINED * self._bands._count)
        self._total = cut = 0
        for size in sorted(sizes):
            if self._total + size * sizes[size] > most:
                break
            self._total += size * sizes[size]
            cut = size
        return cut

    def _least_equal(self) -> int:
        """Return how many equal samples a pair needs to be among those that are compared."""
        bands = self._bands
        most = max(COMPARED_LEAST, COMPARED * bands._count)
        if self._total <= most:
            return bands._least
        counts = array("Q", bytes(8 * (SAMPLES + 1)))
        for found in in_order(self._counted, self._tasks(None), bands._workers):
            bands._check()
            counts = array("Q", map(int.__add__, counts, found))
        least, total = SAMPLES + 1, 0
        while least > bands._least and total + counts[least - 1] <= most:
            least -= 1
            total += counts[least]
        bands._beyond += sum(counts[bands._least : least])
        return least

    def _found(self, task: _Task, least: int) -> bytes:
        """Threads may call it in parallel."""
        columns = task.groups.members, task.groups.counts
        return alike_pairs(self._samples, self._labels, *columns, least, task.first, task.stop)

    def _counted(self, task: _Task) -> array[int]:
        columns = task.groups.members, task.groups.counts
        least = self._bands._least
        return array("Q", alike_counts(self._samples, self._labels, *columns, least, task.first, task.stop))

    def _tasks(self, left: _Buckets | None) -> Iterator[_Task]:
        """Yield the groups that are looked at, many small ones or a part of a large one together. Others go
        to `left`."""
        members, counts, waiting = array("I"), array("I"), 0
        for band, groups in self._groups():
            for one, size in zip(groups, _pairs_across(groups, self._labels), strict=True):
                if size > self._most:
                    if left is not None:
                        left.add(band, one)
                    continue
                if size > TASK_PAIRS:
                    rows = max(1, TASK_PAIRS // len(one))
                    for first in range(0, len(one), rows):
                        yield _Task(_alone(one), first, first + rows)
                    continue
                if not size:
                    continue
                members.extend(one)
                counts.append(len(one))
                waiting += size
                if waiting >= TASK_PAIRS or len(members) >= TASK_MEMBERS:
                    yield _Task(Groups(members, counts), 0, len(members))
                    members, counts, waiting = array("I"), array("I"), 0
        if counts:
            yield _Task(Groups(members, counts), 0, len(members))

    def _groups(self) -> Iterator[tuple[int, Groups]]:
        """Yield the groups of this level, and the last of the bands that the documents of each share."""
        if self._bands._level == 1:
            for band, members in self._before:
                yield band, _alone(members)
            return
        keys = self._bands._keys
        for last in range(keys.banding.bands - 1):
            if not self._before.has(last):
                continue
            for band in range(last + 1, keys.banding.bands):
                self._bands._check()
                column = keys.band(band)
                for members in self._before.of(last):
                    chosen = array("Q", itemgetter(*members)(column))
                    yield band, equal_groups(chosen, 8).of(members)


class _Task(Record):
    groups: Groups
    first: int
    """The position of the first member that comes first in a pair."""
    stop: int


class _Buckets:
    """Groups of documents on disk, each with the last band that its documents share."""

    def __init__(self) -> None:
        self._file = NamelessFile()
        self._bands = array("H")
        self._counts = array("I")

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, band: int, members: array[int]) -> None:
        self._file.append([members])
        self._bands.append(band)
        self._counts.append(len(members))

    def __iter__(self) -> Iterator[tuple[int, array[int]]]:
        for band, count, end in zip(self._bands, self._counts, accumulate(self._counts), strict=True):
            yield band, self._read(end - count, count)

    def has(self, band: int) -> bool:
        return band in self._bands

    def of(self, band: int) -> Iterator[array[int]]:
        """Yield the groups with this last band."""
        for one, count, end in zip(self._bands, self._counts, accumulate(self._counts), strict=True):
            if one == band:
                yield self._read(end - count, count)

    def _read(self, start: int, count: int) -> array[int]:
        return array("I", self._file.read(4 * start, 4 * count))


def _alone(members: array[int]) -> Groups:
    return Groups(members, array("I", [len(members)]))


def _pairs_across(groups: Groups, labels: array[int]) -> array[int]:
    """Return how many pairs of each group have different labels."""
    return array("Q", label_pairs(labels, groups.members, groups.counts))


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
    """Add pairs of each new document and the old ones next to it in order, half of WINDOW on either
    side."""
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
        """The end of each run of ordered pairs in a file, in bytes."""

    def add(self, pairs: bytes) -> None:
        """Add pairs (u64), each with the smaller position first."""
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
        """Write the pairs of a range, those that came twice once."""
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
        """Read the file once for each PAIRS pairs in it, with the pairs of a part of the documents each
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
