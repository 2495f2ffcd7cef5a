"""What deduplication is given, asked and answers: identical files, runs of equal chunks, results."""

from __future__ import annotations

from enum import Enum

from rdc.errors import ExitCode
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from rdc.model.attributes import Attributes
    from rdc.model.entries import Identity, Metadata

__all__ = [
    "Action",
    "DedupeOptions",
    "DedupeReport",
    "EqualRuns",
    "FileFacts",
    "IdenticalFiles",
    "Instance",
    "Place",
    "Sharing",
]


@dataclass(frozen=True, slots=True)
class Place:
    """One name of a file."""

    root: int
    """Number of the root that it is below."""
    path: bytes
    """Relative to that root."""


@dataclass(frozen=True, slots=True)
class IdenticalFiles:
    """One group of files that were found to have the same content; whoever acts on it looks again."""

    size: int
    """Bytes of each."""
    roots: array[int]
    """Typecode 'H': the number of the root that path i is below."""
    paths: tuple[bytes, ...]
    """Relative to their roots."""

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True, slots=True)
class EqualRuns:
    """Ranges of two files that were found equal, as columns; the source's come first."""

    source: Place
    destination: Place
    source_offsets: array[int]
    """Typecode 'Q': bytes."""
    offsets: array[int]
    """Typecode 'Q': increasing, the ranges do not overlap."""
    lengths: array[int]
    """Typecode 'Q': bytes."""

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a look at one file tells of the instance that it is."""

    identity: Identity
    metadata: Metadata
    links: int
    """Names that the file has, wherever they are."""
    allocated: int
    """Bytes on disk, shared ones included."""
    first_place: int | None
    """Where its first bytes lie on disk; None: a hole, among metadata, or unknown."""
    attributes: Attributes
    """Extended attributes, where they were asked for."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """A range of a file beside another's: where its bytes lie on disk."""

    same: int
    """Bytes that both have in one place already."""
    own: int
    """Bytes that nothing but this range uses: what sharing wins."""
    perhaps: int
    """Bytes that become free too, once whatever else shares them lets go; or of which the disk holds fewer,
    because they are compressed."""


class Action(Enum):
    SHARE = "share"
    """Blocks of `path` become those of `source`."""
    LINK = "link"
    """`path` becomes a hard link to `source`."""
    SEPARATE = "separate"
    """`path`, a hard link to `source`, becomes a file of its own."""
    CLEAR = "clear"
    """What an interrupted run left at `path` goes; `source` has its content."""
    RESTORE = "restore"
    """What an interrupted run left at `path` goes back to `source`."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One thing that was done, or in a dry run would be."""

    action: Action
    path: bytes
    """As the user named it."""
    source: bytes
    bytes: int
    """Content bytes concerned."""
    won: int
    """Bytes of disk freed."""
    perhaps: int
    """Bytes that may become free besides: see Sharing."""


@dataclass(frozen=True, slots=True)
class DedupeOptions:
    apply: bool = False
    """Act; else only look."""
    hardlink: bool = False
    """Hard links instead of shared blocks."""
    keep: tuple[bytes, ...] = ()
    """Real paths of directories and files that are never changed, only linked or shared with."""
    max_files: int | None = None
    """Change at most so many files."""
    max_bytes: int | None = None
    """Change files of at most so many bytes together."""
    searched: bool = True
    """The groups were found by this run: a dry run need not compare again what a report only claims."""
    journal: bytes | None = None
    """Where hard links are written down before they are made; needed for them when `apply` is set."""


@dataclass(frozen=True, slots=True)
class DedupeReport:
    groups: int
    """Groups in which something was, or would be, done."""
    files: int
    """Files changed, or that would be."""
    bytes: int
    """Their content, as far as it is shared or linked."""
    won: int
    perhaps: int
    already: int
    """Content bytes that were shared before: not won."""
    skipped: int
    """Files passed over for a reason that was named, without an error."""
    errors: int
    capped: bool
    """max_files or max_bytes ended it."""
    exit: ExitCode
