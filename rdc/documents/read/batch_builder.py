"""BatchBuilder: batches of the rows of one file, made of texts as they are found."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.documents.read.text_batch import TextBatch
from rdc.limits.documents import BATCH_BYTES, BATCH_DOCUMENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BatchBuilder"]


class BatchBuilder:
    """A batch ends with the text that fills BATCH_BYTES, or the last of BATCH_DOCUMENTS."""

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._start()

    def _start(self) -> None:
        self._spans: list[bytes | memoryview] = []
        self._rows = array("Q")
        self._offsets = array("q", [0])

    def add(self, row: int, text: bytes) -> Iterator[TextBatch]:
        """Adds one text. Yields the batch that it fills."""
        return self.extend(row, text, array("q", [0, len(text)]))

    def extend(self, first: int, texts: bytes, bounds: array[int]) -> Iterator[TextBatch]:
        """Adds the texts of rows from the `first` on. Yields the batches that they fill.

        `bounds`: where each of the texts begins, and where the last one ends: typecode 'q'.
        """
        at, count = 0, len(bounds) - 1
        while at < count:
            size, start = self._offsets[-1], bounds[at]
            full = bisect_left(bounds, start + BATCH_BYTES - size, at + 1)
            end = min(full, count, at + BATCH_DOCUMENTS - len(self._rows))
            self._spans.append(memoryview(texts)[start : bounds[end]])
            self._rows.extend(range(first + at, first + end))
            self._offsets.extend([bound - start + size for bound in bounds[at + 1 : end + 1]])
            if self._offsets[-1] >= BATCH_BYTES or len(self._rows) == BATCH_DOCUMENTS:
                yield self._batch()
            at = end

    def rest(self) -> Iterator[TextBatch]:
        """The last batch, if there are texts for one."""
        if self._rows:
            yield self._batch()

    def _batch(self) -> TextBatch:
        rows = self._rows
        batch = TextBatch(
            [self._path], array("I", bytes(4 * len(rows))), rows, b"".join(self._spans), self._offsets
        )
        self._start()
        return batch
