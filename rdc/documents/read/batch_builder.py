"""BatchBuilder: batches of the rows of one file, made of texts as they are found."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.documents.read.text_batch import TextBatch, TextSpan
from rdc.limits.searches import BATCH_BYTES, BATCH_DOCUMENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BatchBuilder"]

SPANS = 16
"""Most spans of a batch. More are joined, as each takes some calls of the kernel."""


class BatchBuilder:
    """A batch ends with the text that fills BATCH_BYTES, or the last of BATCH_DOCUMENTS."""

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._start()

    def _start(self) -> None:
        self._spans: list[TextSpan] = []
        self._rows = array("Q")
        self._size = 0

    def add(self, row: int, text: bytes) -> Iterator[TextBatch]:
        """Adds one text. Yields the batch that it fills."""
        return self.extend(row, text, array("q", [0, len(text)]))

    def extend(self, first: int, texts: bytes, bounds: array[int]) -> Iterator[TextBatch]:
        """Adds the texts of rows from the `first` on. Yields the batches that they fill.

        `bounds`: where each of the texts begins, and where the last one ends: typecode 'q'.
        """
        at, count = 0, len(bounds) - 1
        while at < count:
            full = bisect_left(bounds, bounds[at] + BATCH_BYTES - self._size, at + 1)
            end = min(full, count, at + BATCH_DOCUMENTS - len(self._rows))
            span = TextSpan(texts, bounds[at : end + 1])
            self._spans.append(span)
            self._rows.extend(range(first + at, first + end))
            self._size += span.size
            if self._size >= BATCH_BYTES or len(self._rows) == BATCH_DOCUMENTS:
                yield self._batch()
            at = end

    def rest(self) -> Iterator[TextBatch]:
        """The last batch, if there are texts for one."""
        if self._rows:
            yield self._batch()

    def _batch(self) -> TextBatch:
        rows, spans = self._rows, self._spans
        self._start()
        if len(spans) > SPANS:
            spans = [_joined(spans)]
        return TextBatch.of_rows(self._path, rows, spans)


def _joined(spans: list[TextSpan]) -> TextSpan:
    offsets = array("q", [0])
    for span in spans:
        before = offsets[-1] - span.offsets[0]
        offsets.extend([before + offset for offset in span.offsets[1:]])
    return TextSpan(b"".join([span.content() for span in spans]), offsets)
