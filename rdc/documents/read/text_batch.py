"""TextBatch: texts of several documents."""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

__all__ = ["TextBatch", "TextSpan"]


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Texts in Arrow's layout: those between the offsets, one after another."""

    text: Buffer
    """Valid UTF-8. Bytes before the first offset and after the last belong to no text."""
    offsets: array[int]
    """Typecode 'q', one more than texts."""

    @classmethod
    def join(cls, texts: Sequence[bytes]) -> TextSpan:
        """Makes one of these texts."""
        return cls(b"".join(texts), array("q", accumulate(map(len, texts), initial=0)))

    @property
    def size(self) -> int:
        """Bytes of its texts."""
        return self.offsets[-1] - self.offsets[0]

    def content(self) -> memoryview:
        """The bytes of its texts alone."""
        return memoryview(self.text)[self.offsets[0] : self.offsets[-1]]


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Texts, and the document of each. Documents are in increasing order."""

    paths: list[bytes]
    """In increasing order."""
    sources: array[int]
    """Typecode 'I': the number in `paths` of each document."""
    rows: array[int]
    """Typecode 'Q': the row of each document, 0 for a file."""
    spans: list[TextSpan]
    """The texts of the first documents, of those behind them, and so on."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def size(self) -> int:
        """Bytes of the texts."""
        return sum([span.size for span in self.spans])

    @classmethod
    def of_files(cls, paths: list[bytes], texts: Sequence[bytes]) -> TextBatch:
        """A batch of whole files."""
        count = len(paths)
        return cls(paths, array("I", range(count)), array("Q", bytes(8 * count)), [TextSpan.join(texts)])

    @classmethod
    def of_rows(cls, path: bytes, rows: array[int], spans: list[TextSpan]) -> TextBatch:
        """A batch of rows of one file."""
        return cls([path], array("I", bytes(4 * len(rows))), rows, spans)
