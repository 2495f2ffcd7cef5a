"""Documents that are read again, file by file, and whether they are still what the search compared."""

from __future__ import annotations

from itertools import groupby, pairwise
from operator import attrgetter

from blake3 import blake3

from rdc.documents.parts.part_file import DIGEST_BYTES
from rdc.documents.read.file_units import FileUnit, UnitList
from rdc.errors import FileChangedError, RdcError, printable
from rdc.lean.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.documents.find.corpus import Corpus
    from rdc.documents.read.file_kinds import FileKind
    from rdc.documents.read.text_batch import TextBatch


class Wanted(NamedTuple):
    """A document to read again."""

    number: int
    """Its number in the corpus."""
    path: bytes
    row: int
    digest: bytes

    def is_text(self, text: bytes | memoryview) -> bool:
        """Return whether this is the text that was compared."""
        return blake3(text).digest()[:DIGEST_BYTES] == self.digest


def wanted_files(
    units: UnitList, corpus: Corpus, numbers: Iterable[int]
) -> Iterator[tuple[FileUnit, Iterator[Wanted]]]:
    """Yield each file with documents among `numbers`, as a unit of its own, and these documents in order.

    `numbers`: documents of `units`, increasing. The documents of a file are to be taken before the next file.
    Raises RdcError for a document of no file of `units`, which only a forged part has.
    """

    def wanted() -> Iterator[Wanted]:
        for number in numbers:
            document = corpus.document(number)
            yield Wanted(number, document.path_bytes, document.row, corpus.digest_of(number))

    # Files and documents are in the order of their paths.
    remaining = iter(units)
    places: dict[bytes, tuple[int, FileKind]] = {}
    for path, documents in groupby(wanted(), attrgetter("path")):
        while path not in places:
            unit = next(remaining, None)
            if unit is None:
                raise RdcError(
                    f"{printable(path)}: expected a file that was searched; a part of --stage has another;"
                    " delete that directory and run again"
                )
            places = {name: (row, unit.kind) for name, row in zip(unit.paths, unit.rows, strict=True)}
        row, kind = places[path]
        yield FileUnit([row], [path], units.files.sizes[row], kind), documents


def texts_of(batch: TextBatch) -> Iterator[tuple[int, memoryview]]:
    """Yield the row and the text of each document."""
    rows = iter(batch.rows)
    for span in batch.spans:
        text = memoryview(span.text)
        for start, end in pairwise(span.offsets):
            yield next(rows), text[start:end]


def changed_since(path: bytes) -> FileChangedError:
    """Return the error of a file whose documents are no longer those that were compared."""
    return FileChangedError(
        path,
        f"{printable(path)}: expected the texts that were compared, found others: it changed meanwhile; run"
        " again when nobody writes it",
    )
