"""Options and results of the searches for similar files and folders, and for near-duplicate documents."""

from __future__ import annotations

from os import fsdecode

from rdc.errors import ExitCode, WithPath
from rdc.lean.checks import Checked
from rdc.lean.records import Record, Report, renderer
from rdc.model.selection import DirectoryRules, FilterRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class SimilarOptions(Checked, Record):
    """The options of `rdc.similar`. Sizes are in bytes. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.SimilarOptions(to="report.txt", threshold=0.05).top
    20
    """

    rules: tuple[FilterRule | DirectoryRules, ...] = ()
    """Filter rules, with patterns relative to each PATH."""
    min_size: int = 512
    """Smallest size in bytes: smaller files have too few features."""
    max_size: int | None = None
    one_file_system: bool = False
    threshold: float = 0.5
    """Smallest Jaccard resemblance of two similar files, above 0 to 1."""
    workers: int | None = None
    """Threads that read; None for one per CPU of this process, at most four."""
    to: bytes | str | None = None
    """A file: the files that resemble it are ranked, in place of groups. A `threshold` of 0.05 suits it."""
    top: int = 20
    """The most files to rank, with `to`."""
    folders: bool = False
    """True if pairs of overlapping directories are searched for, in place of groups."""
    depth: int = 0
    """Calls to storage in flight at a time, at most 64; 0: one, or up to 32 while they wait."""
    max_rate: int = 0
    """Bytes read from storage in a second, RATE_LEAST at least; 0: no bound."""


class Resemblance(Record):
    """The common content of two files: their windows of 32 bytes, equal ones counted once."""

    jaccard: float
    """Common windows divided by the windows of both together."""
    first_in_second: float
    """Share of the first file that the second one contains."""
    second_in_first: float


class SimilarFile(WithPath, Record):
    """A file that resembles another."""

    path_bytes: bytes
    size: int
    similarity: float
    """Jaccard resemblance with `like`."""
    contained: float
    """Share of this file that `like` contains."""
    like_bytes: bytes
    """The most similar one of the files compared with this one."""
    copies_bytes: tuple[bytes, ...]
    """Files identical to this one, without other names of one file (hard links)."""

    @property
    def like(self) -> str:
        """`like_bytes` as text."""
        return fsdecode(self.like_bytes)

    @property
    def copies(self) -> tuple[str, ...]:
        """`copies_bytes` as texts."""
        return tuple([fsdecode(one) for one in self.copies_bytes])


class SimilarGroup(Record):
    """Files connected by resemblance: each is similar to at least one other, not to all."""

    files: tuple[SimilarFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


class SimilarFolders(Record):
    """Two directories, and the part of one that is in the other, in identical and similar files."""

    first: bytes
    second: bytes
    shared: int
    """Bytes that files of one have in common with files of the other, each file counted once. A similar
    file counts by its share of common windows."""
    first_bytes: int
    """Bytes of all files below, within the size limits."""
    second_bytes: int

    @property
    def overlap(self) -> float:
        """The shared part of the smaller directory."""
        least = min(self.first_bytes, self.second_bytes)
        return min(1.0, self.shared / least) if least else 0.0


class SimilarSummary(Record):
    """The totals of a search for similar files."""

    searched: int
    """Entries visited."""
    files: int
    """Files with distinct content that were compared by their traits."""
    groups: int
    grouped: int
    """Files in groups, without copies."""
    min_matches: int
    """Equal traits, of twelve, that make a pair a candidate."""
    candidates: int
    """Pairs whose windows were compared."""
    false_candidates: int
    """Candidates below the threshold."""
    left_out: int
    """Weakest candidates beyond the limit, which were not compared."""


class SimilarReport(Report, Record):
    """The result of `rdc.similar`."""

    groups: Iterable[SimilarGroup]
    """Groups, those with the most bytes first, made again by each iteration; none with `to` or `folders`."""
    matches: tuple[SimilarFile, ...]
    """The files that resemble that of `to`, the most alike first."""
    folders: tuple[SimilarFolders, ...]
    """The pairs of directories of `folders`, the most overlap first."""
    summary: SimilarSummary | None
    """None with `to`."""
    exit: ExitCode
    """OK; PARTIAL if some files could not be read, VANISHED if some changed meanwhile."""


SHINGLE_UNITS = ("words", "chars")
"""Units that a shingle can consist of."""

FORMATS = ("auto", "jsonl", "text")
"""Formats that files can be read in."""

LINKS = ("single", "complete")
"""Rules by which similar documents form groups."""


class DocumentOptions(Checked, Record):
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
    link: str = "single"
    """'single': a group is connected by similar pairs, so its ends may differ; 'complete': each pair in a
    group is similar, and a group has at most 256 different texts."""
    against: str | bytes | None = None
    """A part of an older corpus: documents that resemble one of it are listed, in place of groups."""
    excerpts: bool = False
    """True if the differences of similar documents are found, for which their texts are read again."""
    clean: str | bytes | None = None
    """A new or empty directory to write the documents that stay to, as JSONL, Parquet or plain files."""
    stage: str | bytes | None = None
    """A directory that keeps what was read of each file, so that a run after a kill reads only the rest."""
    workers: int | None = None
    """Threads that sample and compare; None for one per CPU of this process, at most four."""
    depth: int = 0
    """Calls to storage in flight at a time while files are listed, at most 64; 0: one, or more while they
    wait."""
    max_rate: int = 0
    """Bytes read in a second at most; 0: no bound."""


class Document(WithPath, Record):
    """A file, or a row of one. Documents are ordered by path, then row."""

    path_bytes: bytes
    row: int
    """The line of a JSONL file or the row of a Parquet file, from 1; 0 if the file is the document."""
    size: int
    """Bytes of its text."""


class TextDifference(Record):
    """A place where two documents differ, in a few words. A text that was cut has an ellipsis at the cut."""

    before: str
    """Text before it, which both have."""
    here: str
    """Text of this document; empty if it lacks what the other one has."""
    like: str
    """Text of the document most like it, in place of `here`."""
    after: str
    """Text after it, which both have."""


class SimilarDocument(Record):
    """A document that resembles another."""

    document: Document
    resemblance: float
    """The shingles that it and `like` have in common, divided by those of both together. Exact."""
    estimate: float
    """The resemblance, as the samples estimate it."""
    like: Document
    """The document most like it, of those that it was compared with."""
    copies: tuple[Document, ...]
    """Documents of equal text."""
    differences: tuple[TextDifference, ...] = ()
    """With DocumentOptions.excerpts: the first places where it differs from `like`, at most three."""


class DocumentGroup(Record):
    """Documents that resemble each other, by the rule of DocumentOptions.link. The first one in order names
    the group."""

    documents: tuple[SimilarDocument, ...]

    @property
    def label(self) -> Document:
        """The least document."""
        return self.documents[0].document

    @property
    def count(self) -> int:
        """The number of documents, copies included."""
        return sum([1 + len(one.copies) for one in self.documents])


class DocumentSummary(Record):
    """The totals of a search for near-duplicate documents."""

    documents: int
    bytes: int
    """The bytes of all texts."""
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
    """The pairs that reach the threshold."""
    kept: int
    """Documents that a training set keeps: one of each group, and all outside of groups."""
    left_out: int
    """Rows and files that could not be read, and pairs that were not compared."""
    pairs_left_out: int = 0
    """Pairs among documents that share much with very many others, and that were not compared, at most. A
    pair counts once for each band of samples that it shares."""


class DocumentReport(Report, Record):
    """The result of `rdc.similar_documents`."""

    groups: Iterable[DocumentGroup]
    """In the order of their labels, made again by each iteration; none with `against`."""
    matches: Iterable[SimilarDocument]
    """The documents that resemble one of the older corpus of `against`, in order."""
    kept: Iterable[Document]
    """The documents that a training set keeps, in order, made again by each iteration."""
    summary: DocumentSummary
    exit: ExitCode
    """OK; PARTIAL if something could not be read, VANISHED if it changed before it was copied to `clean`."""

    def to_html(self) -> str:
        """Return the page that `rdc similar --text --html` writes."""
        found: str = renderer("rdc.documents.page_report", "documents_html")(self)
        return found


class DocumentSlice(Record):
    """The figures of one slice of a search."""

    documents: int
    bytes: int
    """The bytes of all texts."""
    left_out: int
    """Rows and files that could not be read."""
    exit: ExitCode
    """OK; PARTIAL if something could not be read."""
