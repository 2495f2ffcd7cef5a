"""Options and results of the search for identical files."""

from __future__ import annotations

from enum import Enum

from rdc.errors import ExitCode
from rdc.lean.checks import check_fields
from rdc.lean.records import dataclass
from rdc.model.filter_rules import DirectoryRules, FilterRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DuplicateFile",
    "DuplicateGroup",
    "DuplicateOptions",
    "DuplicateOrder",
    "DuplicateReport",
    "DuplicateSummary",
]


class DuplicateOrder(Enum):
    """Order of the groups."""

    WASTE = "waste"
    """The most wasted bytes first."""
    SIZE = "size"
    """The largest files first."""
    COUNT = "count"
    """The most files first."""
    PATH = "path"
    """In the order in which their first files were found: by PATH as given, then by name."""


@dataclass(frozen=True, slots=True)
class DuplicateOptions:
    """The options of `rdc.dupes`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.DuplicateOptions(min_size=1 << 20, order=rdc.DuplicateOrder.SIZE).verify
    False
    """

    rules: tuple[FilterRule | DirectoryRules, ...] = ()
    """Filter rules, with patterns relative to each PATH."""
    min_size: int = 1
    """Smallest size in bytes; with 0, empty files are identical to each other."""
    max_size: int | None = None
    """Largest size in bytes; None for any."""
    one_file_system: bool = False
    """Whether directories on other file systems than their PATH are skipped."""
    links: bool = False
    """Whether further names of a file (hard links) are listed with the first."""
    verify: bool = False
    """Whether files with equal digests are also compared byte by byte."""
    order: DuplicateOrder = DuplicateOrder.WASTE
    workers: int | None = None
    """Threads that read; None for one per CPU of this process, at most four."""
    depth: int = 0
    """Calls to storage in flight at a time, at most 64; 0: one, or up to 32 while they wait."""
    max_rate: int = 0
    """Bytes read from storage in a second, RATE_LEAST at least; 0: no bound."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class DuplicateFile:
    """One file under the name found first."""

    path: bytes
    """The PATH as given, and the rest of the path below it."""
    links: tuple[bytes, ...] = ()
    """Other names found, if they were requested."""
    unallocated: int = 0
    """Bytes of its size that take no space on disk: holes, or what the file system's compression saves."""


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Two or more files with the same content.

    >>> import rdc
    >>> rdc.DuplicateGroup(100, (rdc.DuplicateFile(b"a"), rdc.DuplicateFile(b"b"))).waste
    100
    """

    size: int
    """Bytes of each file."""
    files: tuple[DuplicateFile, ...]

    @property
    def waste(self) -> int:
        """Bytes on disk of all files but the first."""
        return sum([self.size - file.unallocated for file in self.files[1:]])


@dataclass(frozen=True, slots=True)
class DuplicateSummary:
    """The totals of a search for identical files."""

    searched: int
    """Number of entries visited."""
    groups: int
    files: int
    """Number of files in all groups; the names of one file count once."""
    waste: int
    """Bytes that would be free if of each group only the first file were left: their sizes, or what they take
    on disk if that is less."""
    files_read: int
    """Number of files that were read at least in part."""
    bytes_read: int
    """Bytes of content read; a file read in several stages counts for each."""


@dataclass(frozen=True, slots=True)
class DuplicateReport:
    """The result of `rdc.dupes`."""

    groups: Iterable[DuplicateGroup]
    """The groups in the chosen order, made anew by each iteration. All at once may take much memory."""
    summary: DuplicateSummary
    exit: ExitCode
    """OK; PARTIAL if some files could not be read, VANISHED if some changed meanwhile."""
