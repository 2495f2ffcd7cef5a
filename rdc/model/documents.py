"""Options and results of the search for near-duplicate documents."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.lean.checks import check_fields
from rdc.lean.records import dataclass
from rdc.model.filter_rules import DirectoryRules, FilterRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "FORMATS",
    "SHINGLE_UNITS",
    "Document",
    "DocumentGroup",
    "DocumentOptions",
    "DocumentReport",
    "DocumentSlice",
    "DocumentSummary",
    "SimilarDocument",
]

SHINGLE_UNITS = ("words", "chars")

FORMATS = ("auto", "jsonl", "text")
"""The units that a shingle can consist of."""


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """The options of `rdc.similar_documents`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.DocumentOptions(field="body").threshold
    0.8
    """

    rules: tuple[FilterRule | DirectoryRules, ...] = ()
    """Filter rules, with patterns relative to each PATH."""
    one_file_system: bool = False
    field: str = "text"
    """The field of a JSONL object, or the column of a Parquet file, that holds the text."""
    format: str = "auto"
    """'auto': what a file holds is known by its name, and of a .json file by its first line; 'jsonl': every
    file holds JSON lines; 'text': every file is one document."""
    shingle: str = "words"
    """'words': five words in a row; 'chars': characters in a row, for scripts without spaces."""
    threshold: float = 0.8
    """Smallest share of shingles in common, of two similar documents: from 0.1 to 1."""
    against: str | bytes | None = None
    """A part of an older corpus: documents that resemble one of it are listed, in place of groups."""
    stage: str | bytes | None = None
    """A directory that keeps what was read of each file, so that a run after a kill reads only the rest."""
    workers: int | None = None
    """Threads that sample and compare; None for one per CPU of this process, at most four."""
    depth: int = 0
    """Calls to storage in flight at a time while files are listed, at most 64; 0: one, or more while they
    wait."""
    max_rate: int = 0
    """Bytes read in a second at most; 0: no bound."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Document:
    """A file, or a row of one. Documents are ordered by path, then row."""

    path: bytes
    row: int
    """The line of a JSONL file or the row of a Parquet file, from 1; 0 if the file is the document."""
    size: int
    """Bytes of its text."""


@dataclass(frozen=True, slots=True)
class SimilarDocument:
    """A document that resembles another."""

    document: Document
    resemblance: float
    """The shingles that it and `like` have in common, divided by those of both together. Exact."""
    estimate: float
    """The same, as the samples estimate it."""
    like: Document
    """The document most like it, of those that it was compared with."""
    copies: tuple[Document, ...]
    """Documents of equal text."""


@dataclass(frozen=True, slots=True)
class DocumentGroup:
    """Documents connected by resemblance. The first one in order, the least, names the group."""

    documents: tuple[SimilarDocument, ...]

    @property
    def label(self) -> Document:
        """The least document."""
        return self.documents[0].document

    @property
    def count(self) -> int:
        """The number of documents, copies included."""
        return sum([1 + len(one.copies) for one in self.documents])


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """The totals of a search for near-duplicate documents."""

    documents: int
    bytes: int
    """Of all texts."""
    copies: int
    """Documents whose text equals that of a lesser one."""
    empty: int
    """Different texts without a shingle. They are compared for equality only."""
    groups: int
    """Groups of two or more documents. With `against`: 0."""
    grouped: int
    """Documents in groups, copies included. With `against`: documents that resemble an old one."""
    candidates: int
    """Pairs of different texts whose shingles were compared."""
    pairs: int
    """Those that reach the threshold."""
    kept: int
    """Documents that a training set keeps: one of each group, and all outside of groups."""
    left_out: int
    """Rows and files that could not be read, and pairs that were not compared."""
    pairs_left_out: int = 0
    """Pairs among documents that share much with very many others, and that were not compared, at most. A
    pair counts once for each band of samples that it shares."""


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """The result of `rdc.similar_documents`."""

    groups: Iterable[DocumentGroup]
    """In the order of their labels, made anew by each iteration; none with `against`."""
    matches: Iterable[SimilarDocument]
    """With `against`: the documents that resemble one of the older corpus, in order."""
    kept: Iterable[Document]
    """What a training set keeps, in order, made anew by each iteration."""
    summary: DocumentSummary
    exit: ExitCode
    """OK; PARTIAL if something could not be read."""


@dataclass(frozen=True, slots=True)
class DocumentSlice:
    """What one slice of a search read."""

    documents: int
    bytes: int
    """Of all texts."""
    left_out: int
    """Rows and files that could not be read."""
    exit: ExitCode
    """OK; PARTIAL if something could not be read."""
