"""Identical files: options and results of their search, of deduplication and of removal."""

from __future__ import annotations

from os import fsdecode

from rdc.errors import ExitCode, WithPath
from rdc.lean.checks import Checked
from rdc.lean.enums import Enum
from rdc.lean.records import Record, Report, renderer
from rdc.model.selection import DirectoryRules, FilterRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable
    from typing import TypeAlias


class DuplicateOrder(Enum):
    """Order of the groups."""

    WASTE = "waste"
    """The most wasted bytes first."""
    SIZE = "size"
    """The largest files first."""
    COUNT = "count"
    """The most files first."""
    PATH = "path"
    """They are in the order in which their first files were found: by PATH as given, then by name."""


class DuplicateOptions(Checked, Record):
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
    """True if directories on other file systems than their PATH are skipped."""
    links: bool = False
    """True if further names of a file (hard links) are listed with the first."""
    verify: bool = False
    """True if files with equal digests are also compared byte by byte."""
    order: DuplicateOrder = DuplicateOrder.WASTE
    workers: int | None = None
    """Threads that read; None for one per CPU of this process, at most four."""
    depth: int = 0
    """Calls to storage in flight at a time, at most 64; 0: one, or up to 32 while they wait."""
    max_rate: int = 0
    """Bytes read from storage in a second, RATE_LEAST at least; 0: no bound."""
    across: bool = False
    """True if a group must have files of several PATHs. Duplicates within one PATH alone are left out."""
    reference: tuple[bytes, ...] = ()
    """Directories whose files are known: a group is one file there and those of the PATHs that are identical.
    Empty: no such condition."""


class DuplicateFile(WithPath, Record):
    """One file under the name found first."""

    path_bytes: bytes
    """The PATH as given, and the rest of the path below it."""
    links_bytes: tuple[bytes, ...] = ()
    """Other names found, if they were requested."""
    unallocated: int = 0
    """Bytes of its size that take no space on disk: holes, or what the file system's compression saves."""

    covered: bool = False
    """True if all its names lie in further directories of `DuplicateReport.directories`, so that a list with
    these can leave it out."""

    @property
    def links(self) -> tuple[str, ...]:
        """`links_bytes` as texts."""
        return tuple([fsdecode(one) for one in self.links_bytes])


class DuplicateGroup(Record):
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

    @property
    def uncovered(self) -> DuplicateGroup | None:
        """The group without its covered files; None if that leaves one alone. The first is never covered."""
        left = tuple([file for file in self.files if not file.covered])
        if len(left) == len(self.files):
            return self
        return DuplicateGroup(self.size, left) if len(left) > 1 else None


class DirectoryGroup(Record):
    """Two or more directories with equal content: the same names and kinds of entries, files with the same
    content, symlinks with the same target.

    >>> import rdc
    >>> rdc.DirectoryGroup((b"a", b"b"), files=3, bytes=100, waste=100).paths
    ('a', 'b')
    """

    paths_bytes: tuple[bytes, ...]
    """The first found comes first. None lies in another one, nor in a further directory of another group."""
    files: int
    """Number of non-empty files in and below each directory."""
    bytes: int
    """Sum of their sizes."""
    waste: int
    """Bytes that would be free if of these directories only the first were left."""

    @property
    def paths(self) -> tuple[str, ...]:
        """`paths_bytes` as texts."""
        return tuple([fsdecode(one) for one in self.paths_bytes])


class DuplicateSummary(Record):
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


class DuplicateReport(Report, Record):
    """The result of `rdc.dupes`."""

    groups: Iterable[DuplicateGroup]
    """The groups in the chosen order, made again by each iteration. All at once may take much memory."""
    summary: DuplicateSummary
    exit: ExitCode
    """OK; PARTIAL if some files could not be read, VANISHED if some changed meanwhile."""
    directories: tuple[DirectoryGroup, ...] = ()
    """Directories with equal content, in the chosen order. Their files are in `groups`, too, where those of
    all directories but the first are marked as covered."""

    def to_html(self) -> str:
        """Return the page that `rdc dupes --html` writes."""
        found: str = renderer("rdc.duplicates.page_report", "duplicates_html")(self)
        return found


# Input, options and results of deduplication: identical files, runs of equal chunks, actions.

_Path: TypeAlias = bytes
"""Bytes, in a class that has a field of that name."""


class RootedPath(Record):
    """One name of a file."""

    root: int
    """Number of the root above it."""
    path: bytes
    """Path relative to that root."""


class IdenticalFiles(Record):
    """A group of files that had the same content when read. Code that acts on it checks again."""

    size: int
    """Bytes of each file."""
    roots: array[int]
    """Typecode 'H': number of the root of each path."""
    paths: tuple[bytes, ...]
    """Paths relative to their roots."""

    def __len__(self) -> int:
        return len(self.paths)


class EqualRuns(Record):
    """Equal ranges of two files as columns; the source's come first."""

    source: RootedPath
    destination: RootedPath
    source_offsets: array[int]
    """Typecode 'Q': offsets in the source, in bytes."""
    offsets: array[int]
    """Typecode 'Q': offsets, increasing; the ranges do not overlap."""
    lengths: array[int]
    """Typecode 'Q': bytes."""

    def __len__(self) -> int:
        return len(self.offsets)


class Action(Enum):
    """The action of `rdc.dedupe` on one file.

    >>> import rdc
    >>> rdc.Action("link")
    <Action.LINK: 'link'>
    """

    SHARE = "share"
    """The blocks of `source` replace those of `path`."""
    LINK = "link"
    """`path` becomes a hard link to `source`."""
    SEPARATE = "separate"
    """`path`, a hard link to `source`, becomes a separate file."""
    CLEAR = "clear"
    """The leftover of an interrupted run at `path` is removed; `source` has its content."""
    RESTORE = "restore"
    """The leftover of an interrupted run at `path` is moved back to `source`."""
    DELETE = "delete"
    """`path` is removed; `source` has its content."""
    MOVE = "move"
    """`path` goes to `destination`; `source` has its content."""
    SYMLINK = "symlink"
    """`path` becomes a symbolic link with the text `destination`, which leads to `source`."""
    RETURN = "return"
    """`path`, a removed duplicate, is a file again; `source` gave its content."""


class Instance(WithPath, Record):
    """One action, or one planned action of a dry run."""

    action: Action
    path_bytes: bytes
    """The path as the user named it."""
    source_bytes: bytes
    bytes: int
    """Bytes of content concerned."""
    won: int
    """Bytes of disk freed."""
    perhaps: int
    """Further bytes that may have become free, or will; `compressed` and `held` are parts of it."""
    destination: _Path = b""
    """The target of a moved file, or the text of a symbolic link; otherwise empty."""
    compressed: int = 0
    """Compressed bytes freed, which took less on disk."""
    held: int = 0
    """Bytes that something else holds, such as a snapshot. They become free once it lets go."""

    @property
    def source(self) -> str:
        """`source_bytes` as text."""
        return fsdecode(self.source_bytes)


class DedupeOptions(Checked, Record):
    """The options of `rdc.dedupe`. The default is a dry run that would share blocks.

    >>> import rdc
    >>> rdc.DedupeOptions(hardlink=True).apply
    False
    """

    apply: bool = False
    """True to act, False for a dry run."""
    hardlink: bool = False
    """True to make hard links instead of sharing blocks."""
    chunks: bool = False
    """True if equal parts of different files share blocks, too. Reads every file."""
    keep: tuple[bytes, ...] = ()
    """Directories and files that are never changed, only linked to or shared with."""
    rules: tuple[FilterRule | DirectoryRules, ...] = ()
    """Filter rules, with patterns relative to each path."""
    min_size: int = 1
    """Smallest size in bytes of a file that takes part."""
    max_files: int | None = None
    """Largest number of files to change; None for no limit."""
    max_bytes: int | None = None
    """Largest number of bytes in changed files; None for no limit."""
    journal: bytes | None = None
    """The file that records hard links; None for a new one in the user's state directory."""


class DuplicateListing(Checked, Record):
    """The output of `rdc dupes --json`. It is untrusted: contents are compared before a file changes."""

    text: bytes
    name: str = "the listing"
    """Its name in messages."""


class DedupeReport(Report, Record):
    """The result of `rdc.dedupe`. Sizes are in bytes."""

    groups: int
    """Groups with an action, done or planned."""
    files: int
    """Files changed or to be changed."""
    bytes: int
    """Bytes of content shared or linked."""
    won: int
    perhaps: int
    already: int
    """Bytes of content that were already shared."""
    skipped: int
    """Files skipped for a stated reason, without an error."""
    errors: int
    capped: bool
    """True if max_files or max_bytes ended the run."""
    exit: ExitCode
    journal: _Path | None = None
    """The path of the journal, if hard links were recorded."""
    compressed: int = 0
    """The part of `perhaps` that was compressed: it is free, and took less on disk."""
    held: int = 0
    """The part of `perhaps` that something else holds, such as a snapshot."""


# Options of the removal of duplicates: which file of a set stays, and what happens to the others.

REMOVALS = (Action.DELETE, Action.MOVE, Action.SYMLINK)
"""The ways in which a duplicate leaves its name."""


class KeepOrder(Enum):
    """The order that decides which file of a set stays."""

    NEWEST = "newest"
    """The latest mtime."""
    OLDEST = "oldest"
    """The earliest mtime."""
    SHORTEST_PATH = "shortest-path"
    """The fewest bytes in the path as shown."""
    LONGEST_PATH = "longest-path"
    FIRST = "first"
    """The first found: by PATH as given, then by name."""
    IN = "in"
    """A file below a directory."""


class KeepRule(Record):
    """One rule; where it finds files equal, the next one decides, and at last the order in which they were
    found."""

    order: KeepOrder
    directory: bytes = b""
    """The real path of the directory of `in`."""


class RemovalOptions(Record):
    """The options of `rdc dupes` that remove duplicates. Paths are as typed until `remove_duplicates`
    resolves them."""

    action: Action
    """One of REMOVALS."""
    apply: bool = False
    """True to act, False for a dry run."""
    rules: tuple[KeepRule, ...] = ()
    keep_in: tuple[bytes, ...] = ()
    """Real paths of directories below which nothing is changed. Their files count as copies."""
    only_in: tuple[bytes, ...] = ()
    """Real paths of directories outside of which nothing is changed. Empty: no such bound."""
    destination: bytes = b""
    """The real path of the directory that `move` fills."""
    sources: frozenset[int] = frozenset()
    """Numbers of the trees that are PATHs. The others are searched for copies only."""
    journal: bytes | None = None
    """The journal that records each change before it is made; required with `apply`."""
    pointer: bytes | None = None
    """Place of a symbolic link to the journal, by which a later run finds it."""
    journals: bytes | None = None
    """Directory of earlier journals and of links to them."""
    across: bool = False
    """True if files below the PATH of the one that stays are kept, too."""
