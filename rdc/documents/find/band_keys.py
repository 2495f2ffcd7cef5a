"""BandKeys: the keys of all bands of all documents that are compared, in a file without a name."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.documents.nameless_file import NamelessFile
from rdc.documents.parts.block import SAMPLE_BYTES, SAMPLES
from rdc.kernel.blake3_many import NAME_BYTES, name_parts
from rdc.similarity.banding import Banding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.documents.find.corpus import Corpus

__all__ = ["BandKeys"]

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
        """The keys of the documents `compared`, by position in that column."""
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
        """The keys of one band, by position."""
        keys, start = array("Q"), 0
        for count in self._counts:
            keys.frombytes(self._file.read(start + 8 * count * band, 8 * count))
            start += 8 * count * self.banding.bands
        return keys
