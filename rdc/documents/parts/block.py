"""Block: what is kept of the documents of one batch (DOCUMENTS.md, "A part")."""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right
from operator import sub

from rdc.documents.features import text_features
from rdc.kernel import upper_halves
from rdc.kernel.blake3_many import NAME_BYTES, name_parts
from rdc.lean.records import dataclass
from rdc.model.entries import little_endian
from rdc.similarity.samples import one_permutation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.documents.read.text_batch import TextBatch

__all__ = ["COUNTS", "DIGEST_BYTES", "SAMPLES", "SAMPLE_BYTES", "SEED", "BlockLayout", "encode_block"]

SAMPLES = 128
"""Samples a document."""

SAMPLE_BYTES = 4 * SAMPLES

SEED = 1

DIGEST_BYTES = 16
"""Bytes of the BLAKE3 digest of a text that tell equal texts."""

COUNTS = struct.Struct("<4Q")
"""Sources, documents, shingles, bytes of names."""


SLICE_BYTES = 256 << 10
"""Bytes of texts whose features are made and used before those of others. They take about as much."""


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """Where the columns of a block are, from its start."""

    sources: int
    documents: int
    shingles: int
    name_bytes: int

    @property
    def name_ends(self) -> int:
        return COUNTS.size

    @property
    def names(self) -> int:
        return self.name_ends + 8 * self.sources

    @property
    def source_of(self) -> int:
        return self.names + self.name_bytes

    @property
    def rows(self) -> int:
        return self.source_of + 4 * self.documents

    @property
    def sizes(self) -> int:
        return self.rows + 8 * self.documents

    @property
    def digests(self) -> int:
        return self.sizes + 8 * self.documents

    @property
    def samples(self) -> int:
        return self.digests + DIGEST_BYTES * self.documents

    @property
    def shingle_ends(self) -> int:
        return self.samples + SAMPLE_BYTES * self.documents

    @property
    def sets(self) -> int:
        return self.shingle_ends + 8 * self.documents

    @property
    def end(self) -> int:
        return self.sets + 4 * self.shingles


def encode_block(batch: TextBatch, unit: str) -> list[bytes]:
    """The columns of a block, in order; a column may be several spans. Threads may call it in parallel."""
    samples: list[bytes] = []
    sets: list[bytes] = []
    digests: list[bytes] = []
    sizes, ends = array("Q"), array("Q")
    shingles = 0
    for span in batch.spans:
        for offsets in _slices(span.offsets):
            column = text_features(span.text, offsets, unit)
            samples.append(one_permutation(column.features, column.offsets, SAMPLES, SEED).data)
            sets.append(upper_halves(column.features))
            ends.extend([shingles + end for end in array("q", column.offsets[8:])])
            shingles += len(sets[-1]) // 4
        lengths = array("Q", map(sub, span.offsets[1:], span.offsets))
        digests.append(_digests(name_parts(span.content(), lengths), len(lengths)))
        sizes += lengths
    names, name_ends = bytearray(), array("Q")
    for path in batch.paths:
        names += path
        name_ends.append(len(names))
    return [
        COUNTS.pack(len(batch.paths), len(batch), shingles, len(names)),
        little_endian(name_ends),
        bytes(names),
        little_endian(batch.sources),
        little_endian(batch.rows),
        little_endian(sizes),
        *digests,
        *map(_little_endian, samples),
        little_endian(ends),
        *map(_little_endian, sets),
    ]


def _slices(offsets: array[int]) -> Iterator[array[int]]:
    """The texts, some at a time: their features stay in the cache of a core until they are used."""
    first, count = 0, len(offsets) - 1
    while first < count:
        end = max(first + 1, bisect_right(offsets, offsets[first] + SLICE_BYTES) - 1)
        yield offsets[first : end + 1]
        first = end


def _digests(names: bytes, count: int) -> bytes:
    """The first DIGEST_BYTES of each name."""
    words, digests = array("Q", names), array("Q", bytes(DIGEST_BYTES * count))
    step = NAME_BYTES // 8
    digests[0::2], digests[1::2] = words[0::step], words[1::step]
    return digests.tobytes()


def _little_endian(numbers: bytes) -> bytes:
    """Native 32-bit numbers as those of a block."""
    return numbers if sys.byteorder == "little" else little_endian(array("I", numbers))
