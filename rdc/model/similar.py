"""Options and results of the search for similar files and folders."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.lean.checks import check_fields
from rdc.lean.records import dataclass
from rdc.model.filter_rules import DirectoryRules, FilterRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Resemblance",
    "SimilarFile",
    "SimilarFolders",
    "SimilarGroup",
    "SimilarOptions",
    "SimilarReport",
    "SimilarSummary",
]


@dataclass(frozen=True, slots=True)
class SimilarOptions:
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
    """With `to`: the most files to rank."""
    folders: bool = False
    """Whether pairs of overlapping directories are searched for, in place of groups."""
    depth: int = 0
    """Calls to storage in flight at a time, at most 64; 0: one, or up to 32 while they wait."""
    max_rate: int = 0
    """Bytes read from storage in a second, RATE_LEAST at least; 0: no bound."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Resemblance:
    """The common content of two files: their windows of 32 bytes, equal ones counted once."""

    jaccard: float
    """Common windows divided by the windows of both together."""
    first_in_second: float
    """Share of the first file that the second one contains."""
    second_in_first: float


@dataclass(frozen=True, slots=True)
class SimilarFile:
    """A file that resembles another."""

    path: bytes
    size: int
    similarity: float
    """Jaccard resemblance with `like`."""
    contained: float
    """Share of this file that `like` contains."""
    like: bytes
    """The most similar one of the files compared with this one."""
    copies: tuple[bytes, ...]
    """Files identical to this one, without other names of one file (hard links)."""


@dataclass(frozen=True, slots=True)
class SimilarGroup:
    """Files connected by resemblance: each is similar to at least one other, not to all."""

    files: tuple[SimilarFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class SimilarFolders:
    """Two directories, and the part of one that is in the other, in identical and similar files."""

    first: bytes
    second: bytes
    shared: int
    """Bytes that files of one have in common with files of the other, each file counted once. Of similar
    files it is the share of common windows."""
    first_bytes: int
    """Bytes of all files below, within the size limits."""
    second_bytes: int

    @property
    def overlap(self) -> float:
        """The shared part of the smaller directory."""
        least = min(self.first_bytes, self.second_bytes)
        return min(1.0, self.shared / least) if least else 0.0


@dataclass(frozen=True, slots=True)
class SimilarSummary:
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


@dataclass(frozen=True, slots=True)
class SimilarReport:
    """The result of `rdc.similar`."""

    groups: Iterable[SimilarGroup]
    """Groups, those with the most bytes first, made anew by each iteration; none with `to` or `folders`."""
    matches: tuple[SimilarFile, ...]
    """With `to`: the files that resemble that file, the most alike first."""
    folders: tuple[SimilarFolders, ...]
    """With `folders`: pairs of directories, the most overlap first."""
    summary: SimilarSummary | None
    """None with `to`."""
    exit: ExitCode
    """OK; PARTIAL if some files could not be read, VANISHED if some changed meanwhile."""
