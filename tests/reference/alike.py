"""Pairs within groups whose samples mostly agree, in plain Python: the definition for alike.c."""

from __future__ import annotations

from array import array
from itertools import combinations
from operator import eq

from rdc.lean.records import Record
from tests.reference.number_column import number_column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

__all__ = ["alike_counts", "alike_pairs", "label_pairs"]

SKIP = (1 << 32) - 1
"""The label of a document that is in no pair."""


def alike_pairs(
    samples: ReadableBuffer,
    labels: ReadableBuffer,
    members: ReadableBuffer,
    counts: ReadableBuffer,
    least: int,
    first: int,
    stop: int,
    /,
) -> bytes:
    """Return the pairs within each group that have different labels and at least `least` equal samples: u64,
    native, a member times 2^32 plus one that follows it in its group, in no particular order.

    `samples`: equally many bytes of each document; `labels`: one of each document; `members`: the documents
    of one group after another; `counts`: how many each group has (u32, native). Only the members at the
    positions `first` to before `stop` come first in a pair. ValueError for buffers that are no whole numbers
    or do not fit together, `least` below 1, and negative positions. A document labelled SKIP is in no pair.
    """
    columns = _Columns.of(samples, labels, members, counts)
    return array("Q", [one << 32 | other for one, other, _ in columns.alike(least, first, stop)]).tobytes()


def alike_counts(
    samples: ReadableBuffer,
    labels: ReadableBuffer,
    members: ReadableBuffer,
    counts: ReadableBuffer,
    least: int,
    first: int,
    stop: int,
    /,
) -> bytes:
    """Return how many of the pairs of alike_pairs() have 0, 1, 2 and more equal samples: u64, native, as many
    as a document has samples, and one more."""
    columns = _Columns.of(samples, labels, members, counts)
    found = array("Q", bytes(8 * (columns.width + 1)))
    for _, _, equal in columns.alike(least, first, stop):
        found[equal] += 1
    return found.tobytes()


def label_pairs(labels: ReadableBuffer, members: ReadableBuffer, counts: ReadableBuffer, /) -> bytes:
    """Return how many pairs of each group have different labels: u64, native. Arguments and errors are those
    of alike_pairs()."""
    columns = _Columns.of(b"", labels, members, counts)
    found, start = array("Q"), 0
    for size in columns.counts:
        own = [columns.labels[one] for one in columns.members[start : start + size]]
        found.append(sum(one != other for one, other in combinations([one for one in own if one != SKIP], 2)))
        start += size
    return found.tobytes()


class _Columns(Record):
    samples: bytes
    labels: array[int]
    members: array[int]
    counts: array[int]

    @classmethod
    def of(
        cls,
        samples: ReadableBuffer,
        labels: ReadableBuffer,
        members: ReadableBuffer,
        counts: ReadableBuffer,
    ) -> _Columns:
        numbers = [number_column("I", column) for column in (labels, members, counts)]
        columns = cls(bytes(memoryview(samples).cast("B")), *numbers)
        documents, size = len(columns.labels), len(columns.members)
        if sum(columns.counts) != size:
            raise ValueError(f"counts: {size} members are expected")
        if len(columns.samples) % documents if documents else columns.samples:
            raise ValueError(f"samples: equally many of {documents} documents are expected")
        if max(columns.members, default=-1) >= documents:
            raise ValueError(f"members: numbers below {documents} are expected")
        return columns

    @property
    def width(self) -> int:
        """Samples of a document."""
        return len(self.samples) // len(self.labels) if self.labels else 0

    def alike(self, least: int, first: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield two members, and how many of their samples are equal."""
        if least < 1 or min(first, stop) < 0:
            raise ValueError("least, first, stop: 1 or more, and 0 or more, are expected")
        start = 0
        for size in self.counts:
            for at in range(max(start, first), min(start + size, stop)):
                one = self.members[at]
                if self.labels[one] == SKIP:
                    continue
                for other in self.members[at + 1 : start + size]:
                    equal = sum(map(eq, self._samples(one), self._samples(other)))
                    if self.labels[other] not in (self.labels[one], SKIP) and equal >= least:
                        yield one, other, equal
            start += size

    def _samples(self, document: int) -> bytes:
        return self.samples[self.width * document : self.width * (document + 1)]
