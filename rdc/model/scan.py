"""Options and results of a scan: values only, shared by the survey and all reports."""

from __future__ import annotations

from os import fsdecode

from rdc.errors import ExitCode, UsageError, WithPath
from rdc.lean.checks import Checked, check_fields
from rdc.lean.records import Record, Report, field, renderer
from rdc.limits import SCAN_SLICES
from rdc.model.selection import DirectoryRules, FilterRule

FIXED_LEVELS = ("fixed-4096", "fixed-131072")
"""Optional levels: blocks at fixed offsets, as block-based stores cut them."""

SHIFT_MOST = 32
"""At one chunk in 2^32, a petabyte has some fifty chunks in the sample; less would be none."""

DEFAULT_MEMORY = 512 << 20
"""Bytes for all tables of chunks: exact up to some 70 GB of unique data at 4 KiB, sampled beyond."""


class ScanSlice(Record):
    """One of several slices of a scan or of a search for documents, numbered from 1. All slices together read
    each file once.

    Raises TypeError for a wrong type, UsageError unless 1 <= number <= of <= 1,000,000.

    >>> import rdc
    >>> rdc.ScanSlice(2, 8).of
    8
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= self.number <= self.of <= SCAN_SLICES:
            raise UsageError(
                f"slice {self.number}/{self.of}: slices are numbered from 1 to their number, which is at most"
                f" {SCAN_SLICES}; a job array that counts from 0 adds 1"
            )

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class ScanOptions(Record):
    """The options of `rdc.scan`. Sizes are in bytes, times in seconds. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.ScanOptions(compress=False, seconds=60).sample is None
    True
    """

    rules: tuple[FilterRule | DirectoryRules, ...] = ()
    one_file_system: bool = False
    """Skip file systems other than that of each path."""
    fixed: tuple[str, ...] = ()
    """Levels out of FIXED_LEVELS."""
    compress: bool = True
    """Estimate the savings of zstd after deduplication."""
    memory: int = DEFAULT_MEMORY
    """Bytes for the tables of chunks; beyond them, chunks are sampled by digest."""
    seconds: float | None = None
    """Stop reading after this many seconds. Files are then read in random order."""
    sample: float | None = None
    """Share of the bytes to read, 0 to 1, by a random choice of files."""
    seed: int = 0
    """Seed of all random choices: equal seeds over equal trees choose equally."""
    shift: int = 0
    """Count one chunk in 2^shift from the start, 0 to 32, so that parts are small. Files of 64 KiB, 1 MiB and
    16 MiB at least are sampled 16, 256 and 4,096 times as densely."""
    slice: ScanSlice | None = None
    """Count only what belongs to this slice. All slices walk all directories."""
    depth: int = 0
    """Calls to storage in flight at a time, at most 64; 0: one, or up to 32 while they wait."""
    max_rate: int = 0
    """Bytes read from storage in a second, RATE_LEAST at least; 0: no bound."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.shift <= SHIFT_MOST:
            raise UsageError(f"a shift of {self.shift}: 0 to {SHIFT_MOST} is expected")


class MergeOptions(Checked, Record):
    """The options of `rdc.merge`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.MergeOptions().memory == 512 << 20
    True
    """

    memory: int = DEFAULT_MEMORY
    """Bytes for the tables of chunks; beyond them, chunks are sampled by digest."""


class Bin(Record):
    """One bar of a histogram: chunks with a measure above the previous bar's `upto` and at most this
    one's."""

    upto: int
    """Bytes in a histogram of sizes, copies in one of duplication. The last bar's is the largest value."""
    chunks: int
    """Unique chunks."""
    bytes: int
    """Bytes of these unique chunks, one copy each."""


class LevelSummary(Record):
    """The result of deduplication at one granularity."""

    name: str
    """'file', 'cdc-MEAN' or 'fixed-SIZE'."""
    mean_bytes: float
    """Measured average bytes per chunk; 0 without chunks."""
    chunks: int
    bytes: int
    """Bytes of all these chunks: the report's `bytes`, plus the bytes of holes in chunks at their edges."""
    unique_chunks: int
    unique_bytes: int
    """One copy of each chunk; an estimate unless `exact`."""
    exact: bool
    """False: unique figures and histograms are estimates from a sample of digests."""
    low: int
    high: int
    """95 % bounds of unique_bytes; equal to it if exact."""
    compressed_bytes: int | None = None
    """unique_bytes after zstd, chunk by chunk; None if not measured."""
    compressed_low: int | None = None
    compressed_high: int | None = None
    """95 % bounds of compressed_bytes."""
    sizes: tuple[Bin, ...] = ()
    copies: tuple[Bin, ...] = ()

    @property
    def ratio(self) -> float:
        """bytes / unique_bytes; 1 without data."""
        return self.bytes / self.unique_bytes if self.unique_bytes else 1.0


class DirectorySummary(WithPath, Record):
    """One directory with everything below it."""

    path_bytes: bytes
    """The path from the command line, and the rest below it."""
    files: int
    bytes: int
    duplicate_bytes: int
    """Its share of the bytes that deduplication saves. Each of n copies of a chunk bears (n-1)/n, so
    directories add up to the whole."""
    own_bytes: int
    own_duplicate_bytes: int
    """The duplicate bytes of the files directly in it."""


class TypeSummary(Record):
    """Files with one suffix."""

    name: str
    """The suffix in lower case with its dot, '' for none."""
    files: int
    bytes: int
    duplicate_bytes: int
    """The duplicate bytes, as in DirectorySummary."""


class Overlap(Record):
    """Two directories, neither inside the other, with common chunks."""

    first: bytes
    second: bytes
    shared_bytes: int
    """Bytes of the unique chunks in both."""
    first_bytes: int
    second_bytes: int
    """Bytes of the unique chunks in each."""


class SimilarFiles(Record):
    """Files that are similar without being identical."""

    paths_bytes: tuple[bytes, ...]
    bytes: int
    """Bytes of all of them."""
    resemblance: float
    """The lowest Jaccard coefficient of the pairs that connect the group, 0 to 1."""

    @property
    def paths(self) -> tuple[str, ...]:
        """`paths_bytes` as texts."""
        return tuple([fsdecode(one) for one in self.paths_bytes])


class IdenticalSummary(Record):
    """Files with the same content."""

    paths_bytes: tuple[bytes, ...]
    """The least paths; at most eight."""
    files: int
    """Number of all of them, hard links once."""
    size: int
    """Bytes of each, without holes."""

    @property
    def waste(self) -> int:
        """Bytes of all files but one."""
        return self.size * (self.files - 1)

    @property
    def paths(self) -> tuple[str, ...]:
        """`paths_bytes` as texts."""
        return tuple([fsdecode(one) for one in self.paths_bytes])


class AgeSummary(Record):
    """Files that were last modified in one year (UTC)."""

    year: int
    """1970 also for earlier times, 2100 also for later ones."""
    files: int
    bytes: int


class DirectoryGrowth(WithPath, Record):
    """A directory with everything below it, in two scans."""

    path_bytes: bytes
    before_bytes: int
    bytes: int


class TypeGrowth(Record):
    """Files with one suffix, in two scans."""

    name: str
    before_bytes: int
    bytes: int


class Growth(Record):
    """The changes since an earlier scan of the same paths."""

    before_files: int
    before_bytes: int
    complete: bool
    """True if both scans covered all files. Otherwise a part of the growth is a difference in coverage."""
    directories: tuple[DirectoryGrowth, ...]
    """The directories that changed most, in either direction, most first. A directory of whose change one
    below it has nearly all is left out."""
    types: tuple[TypeGrowth, ...]
    """The types that changed most, most first."""


class ScanProblem(WithPath, Record):
    """A file or directory that could not be read, or changed meanwhile."""

    path_bytes: bytes
    message: str
    """One printable line that names the path."""
    code: ExitCode


class Coverage(Record):
    """The part of the found files that the figures cover."""

    complete: bool
    """All files were read except those in `errors`. Otherwise each figure covers only what was read."""
    reason: str
    """'' if complete, else 'sample', 'time' or 'interrupted'."""
    found_files: int
    found_bytes: int
    """Listed files, hard links once, and the sum of their sizes."""
    known_bytes: int
    """Bytes not read because the catalog has the files."""


class Attribution(Record):
    """The assignment of duplicate bytes to directories and types."""

    level: str
    """The level whose chunks were assigned."""
    rate: float
    """Share of the digests that was assigned; 1 for all, which makes the figures exact."""


class ScanReport(Report, Record):
    """One scan, or several merged. Byte figures count each hard-linked file once and exclude holes."""

    paths_bytes: tuple[bytes, ...]
    files: int
    bytes: int
    """Content of the read files, without holes."""
    allocated_bytes: int
    """Bytes that these files occupy, according to the file system."""
    hardlinks: int
    """Further names of files that were counted under another name."""
    holes_bytes: int
    already_shared_bytes: int
    """Bytes in extents that the file system reports as shared (reflinks, snapshots)."""
    duplicate_groups: int
    """Groups of two or more identical, non-empty files."""
    duplicate_bytes: int
    """Bytes of all but one file of each group."""
    levels: tuple[LevelSummary, ...]
    directories: tuple[DirectorySummary, ...]
    """The directories with the most duplicate bytes and with the most bytes, the most duplicate bytes first;
    limited in number, and each directory comes with all directories above it."""
    types: tuple[TypeSummary, ...]
    overlaps: tuple[Overlap, ...]
    """The most shared bytes first."""
    similar: tuple[SimilarFiles, ...]
    errors: tuple[ScanProblem, ...]
    coverage: Coverage
    attribution: Attribution
    more_errors: int = 0
    """Problems beyond those in `errors`, whose number is limited."""
    exit: ExitCode = field(default=ExitCode.OK)
    identical: tuple[IdenticalSummary, ...] = ()
    """The groups of identical files with the most bytes in further copies, most first; limited in number,
    and in a scan of very many files to the larger ones."""
    ages: tuple[AgeSummary, ...] = ()
    """Files by the year of their last modification. Objects of a store have no such time."""
    growth: Growth | None = None
    """None without an earlier scan to compare with."""

    def to_html(self, *, price: float | None = None) -> str:
        """Return the page that `rdc scan --html` writes. `price`: of storage, in EUR a terabyte; then the
        page also states the savings in money."""
        found: str = renderer("rdc.survey.report.page", "scan_html")(self, price=price)
        return found

    def level(self, name: str) -> LevelSummary | None:
        return next((level for level in self.levels if level.name == name), None)

    @property
    def paths(self) -> tuple[str, ...]:
        """`paths_bytes` as texts."""
        return tuple([fsdecode(one) for one in self.paths_bytes])
