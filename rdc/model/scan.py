"""What a scan is asked to do and what it reports: values only, shared by the survey and all reports."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.model.sync import FilterRule
from rdc.records import dataclass, field

__all__ = [
    "DEFAULT_MEMORY",
    "FIXED_LEVELS",
    "Attribution",
    "Bin",
    "Coverage",
    "DirectorySummary",
    "LevelSummary",
    "Overlap",
    "ScanOptions",
    "ScanProblem",
    "ScanReport",
    "SimilarGroup",
    "TypeSummary",
]

FIXED_LEVELS = ("fixed-4096", "fixed-131072")
"""On request: blocks at fixed offsets, as block-based stores cut."""

DEFAULT_MEMORY = 512 << 20
"""Bytes for all tables of chunks: exact up to some 70 GB of unique data at 4 KiB, by sampling beyond."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    rules: tuple[FilterRule, ...] = ()
    one_file_system: bool = False
    """Do not descend into other file systems than the one a path is on."""
    fixed: tuple[str, ...] = ()
    """Of FIXED_LEVELS."""
    compress: bool = True
    """Estimate what zstd saves after deduplication."""
    memory: int = DEFAULT_MEMORY
    """Bytes for the tables of chunks; what does not fit is sampled by digest."""
    seconds: float | None = None
    """Stop reading after so long. Files are then read in random order."""
    sample: float | None = None
    """Read about this share of the bytes, 0 to 1, by choosing files at random."""
    seed: int = 0
    """Of every random choice: equal seeds over equal trees choose equally."""


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of a histogram: the chunks whose measure is above the previous bar's `upto` and at most this
    one's."""

    upto: int
    """Bytes in a histogram of sizes, copies in one of duplication; the last bar's is the largest seen."""
    chunks: int
    """Unique chunks."""
    bytes: int
    """Bytes of these unique chunks, one copy of each."""


@dataclass(frozen=True, slots=True)
class LevelSummary:
    """What one granularity of deduplication would keep."""

    name: str
    """'file', 'cdc-MEAN' or 'fixed-SIZE'."""
    mean_bytes: float
    """Bytes a chunk on average, as measured; 0 where there is none."""
    chunks: int
    bytes: int
    """Bytes of all these chunks: the report's `bytes`, and what chunks at the edges of holes have of them."""
    unique_chunks: int
    unique_bytes: int
    """One copy of each chunk. Estimated where not `exact`."""
    exact: bool
    """False: unique figures and histograms are estimates from a sample of digests."""
    low: int
    high: int
    """95 % bounds of unique_bytes; equal to it where exact."""
    compressed_bytes: int | None = None
    """unique_bytes after zstd, chunk by chunk; None where that was not measured."""
    compressed_low: int | None = None
    compressed_high: int | None = None
    """95 % bounds of compressed_bytes."""
    sizes: tuple[Bin, ...] = ()
    copies: tuple[Bin, ...] = ()

    @property
    def ratio(self) -> float:
        """bytes / unique_bytes; 1 where there is nothing."""
        return self.bytes / self.unique_bytes if self.unique_bytes else 1.0


@dataclass(frozen=True, slots=True)
class DirectorySummary:
    """One directory with everything below it."""

    path: bytes
    """As given on the command line, and what is below that."""
    files: int
    bytes: int
    duplicate_bytes: int
    """Its share of what deduplication saves: of a chunk that is there n times, each copy bears (n-1)/n, so
    that directories add up to the whole."""
    own_bytes: int
    own_duplicate_bytes: int
    """The same of the files directly in it."""


@dataclass(frozen=True, slots=True)
class TypeSummary:
    """Files with one suffix."""

    name: str
    """The suffix in lower case with its dot, '' for none."""
    files: int
    bytes: int
    duplicate_bytes: int
    """As in DirectorySummary."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two directories, neither inside the other, that hold the same chunks."""

    first: bytes
    second: bytes
    shared_bytes: int
    """Bytes of the unique chunks that are in both."""
    first_bytes: int
    second_bytes: int
    """Bytes of the unique chunks in each."""


@dataclass(frozen=True, slots=True)
class SimilarGroup:
    """Files that resemble each other without being identical."""

    paths: tuple[bytes, ...]
    bytes: int
    """Of all of them."""
    resemblance: float
    """The lowest Jaccard coefficient of the pairs that tie the group together, 0 to 1."""


@dataclass(frozen=True, slots=True)
class ScanProblem:
    path: bytes
    message: str
    """One printable line that names the path."""
    code: ExitCode


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what was found the figures are of."""

    complete: bool
    """All files were read but those in `errors`. Otherwise every figure is "of what was read"."""
    reason: str
    """'' where complete, else 'sample', 'time' or 'interrupted'."""
    found_files: int
    found_bytes: int
    """Files listed, hard links once, and the sum of their sizes."""
    known_bytes: int
    """Bytes not read because the catalog knew the files."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """How duplicate bytes were assigned to directories and types."""

    level: str
    """The level whose chunks were followed."""
    rate: float
    """Share of the digests that was followed: 1 is all, so that figures are exact."""


@dataclass(frozen=True, slots=True)
class ScanReport:
    """One scan, or several merged. Byte figures count each hard-linked file once and leave holes out."""

    paths: tuple[bytes, ...]
    files: int
    bytes: int
    """Content of the files that were read, without holes."""
    allocated_bytes: int
    """What the file system says these files take."""
    hardlinks: int
    """Further names of files that were counted under another name."""
    holes_bytes: int
    already_shared_bytes: int
    """Bytes in extents that the file system says are shared (reflinks, snapshots)."""
    duplicate_groups: int
    """Groups of two or more identical files that are not empty."""
    duplicate_bytes: int
    """Bytes of all but one file of each group."""
    levels: tuple[LevelSummary, ...]
    directories: tuple[DirectorySummary, ...]
    """Most duplicate bytes first; bounded in number, and with each directory all those above it."""
    types: tuple[TypeSummary, ...]
    overlaps: tuple[Overlap, ...]
    """Most shared bytes first."""
    similar: tuple[SimilarGroup, ...]
    errors: tuple[ScanProblem, ...]
    coverage: Coverage
    attribution: Attribution
    more_errors: int = 0
    """Problems beyond those in `errors`, whose number is bounded."""
    exit: ExitCode = field(default=ExitCode.OK)

    def level(self, name: str) -> LevelSummary | None:
        return next((level for level in self.levels if level.name == name), None)
