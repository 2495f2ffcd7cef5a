"""TextBatch: texts of several documents as one column."""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

__all__ = ["TextBatch"]


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Valid UTF-8 in Arrow's layout, and the document of each text. Documents are in increasing order."""

    paths: list[bytes]
    """In increasing order."""
    sources: array[int]
    """Typecode 'I': the number in `paths` of each document."""
    rows: array[int]
    """Typecode 'Q': the row of each document, 0 for a file."""
    text: Buffer
    offsets: array[int]
    """Typecode 'q', one more than documents."""

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of_files(cls, paths: list[bytes], texts: Sequence[bytes]) -> TextBatch:
        """A batch of whole files."""
        count = len(paths)
        return cls(paths, array("I", range(count)), array("Q", bytes(8 * count)), *_column(texts))

    @classmethod
    def of_rows(cls, path: bytes, rows: array[int], texts: Sequence[bytes]) -> TextBatch:
        """A batch of rows of one file."""
        return cls([path], array("I", bytes(4 * len(rows))), rows, *_column(texts))


def _column(texts: Sequence[bytes]) -> tuple[bytes, array[int]]:
    return b"".join(texts), array("q", accumulate(map(len, texts), initial=0))
