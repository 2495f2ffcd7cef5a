"""StoredBound: how much documents may take on disk, by the size of the files that they come from."""

from __future__ import annotations

from rdc.errors import FileError, printable
from rdc.limits.searches import STORED_BYTES_LEAST, STORED_DOCUMENT_BYTES, STORED_FILE_BYTES, STORED_SHARE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.documents.read.text_batch import TextBatch

__all__ = ["StoredBound"]


class StoredBound:
    """Counts what is kept of the documents of one run, in its temporary files or its parts.

    A row of a few bytes, of which a packed file may have millions, is kept as half a kilobyte: 128 samples, a
    digest, a name. So a small file could fill a disk. What a run keeps is at most STORED_SHARE times the
    files that it has read or reads now, and STORED_BYTES_LEAST. It is estimated from documents and their
    bytes, so that the same rows count whoever reads them, in whatever order they are stored.
    """

    def __init__(self) -> None:
        self._stored = 0
        self._allowed = STORED_BYTES_LEAST

    def admit(self, files: int, size: int) -> None:
        """Count files that are about to be read, `size` bytes in all."""
        self._allowed += STORED_SHARE * max(size, files * STORED_FILE_BYTES)

    def count(self, path: bytes, batch: TextBatch) -> None:
        """Count documents of a file. Raises FileError once the files are too small for them."""
        more = len(batch) * STORED_DOCUMENT_BYTES + batch.size
        if self._stored + more > self._allowed:
            raise FileError(
                path,
                f"{printable(path)}: expected documents that take at most {STORED_SHARE} times its size in"
                " temporary files, found more, so the rest is left out: it repeats a few bytes, as files do"
                " that are made to fill disks; if it is meant so, unpack it",
            )
        self._stored += more
