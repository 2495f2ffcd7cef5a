"""What a sync is asked to do and what it reports at its end."""

from __future__ import annotations

from enum import Enum

from rdc.errors import ExitCode
from rdc.records import dataclass, field

__all__ = ["FilterRule", "MessageCost", "Purpose", "RuleAction", "SyncOptions", "SyncReport"]


class RuleAction(Enum):
    INCLUDE = "+"
    EXCLUDE = "-"


@dataclass(frozen=True, slots=True)
class FilterRule:
    """One rule of the ordered list; the first rule that matches an entry decides, no match means include."""

    action: RuleAction
    pattern: bytes
    """As in rsync: '*' stops at '/', '**' does not; a leading '/' anchors at the root, a trailing '/' matches
    directories only, any other '/' makes the pattern match against the whole path's tail."""


@dataclass(frozen=True, slots=True)
class SyncOptions:
    checksum: bool = False
    """Compare content by root digest instead of the quick check by size and mtime."""
    delete: bool = False
    """Remove destination entries that the source does not have (and no filter rule protects)."""
    delete_excluded: bool = False
    """With `delete`: the filter rules protect nothing at the destination, they only leave out what the source
    has."""
    max_delete: int | None = None
    """Delete at most this many entries, then report exit code 25."""
    force_empty: bool = False
    """Let --delete empty a destination whose source root is empty."""
    dry_run: bool = False
    rules: tuple[FilterRule, ...] = ()
    fsync: bool = True
    items: bool = True
    """Whether the user's side wants to hear of every changed entry; their number is told in any case."""
    compress: bool | None = None
    """True: always, False: never, None: where it helps (not in one process)."""
    owner: bool | None = None
    """Keep uid and gid; None: only when the receiving side runs as root."""
    bandwidth: int = 0
    """Bytes a second that each side may send; 0: no limit."""
    timeout: int = 0
    """Seconds without a byte through the connection before both sides give up; 0: never."""
    update: bool = False
    """Leave files alone that are newer at the destination, by their mtimes."""
    existing: bool = False
    """Make nothing at the destination that it does not have; what is there is brought up to the source."""
    ignore_existing: bool = False
    """Leave alone what is there, directories apart: only make what is missing."""
    size_only: bool = False
    """Take a file of equal size as equal, whatever its mtime, unless `checksum` compares contents."""
    min_size: int = 0
    """Bytes: smaller files of the source are left alone, whatever is in their places."""
    max_size: int | None = None
    """The same of larger ones; None: no file is too large."""
    hard_links: bool = False
    """Regular files that are names of one file at the source are so at the destination."""
    acls: bool = False
    """Keep POSIX ACLs."""
    xattrs: bool = False
    """Keep extended attributes: user.*, and where owners are kept and both sides are root trusted.* and
    security.capability."""
    sparse: bool = False
    """Make holes where the content of files that are written is zeros."""
    one_file_system: bool = False
    """Neither side goes into a directory on another file system than its top: the source lists it without
    entries, and nothing at the destination is deleted there."""

    @property
    def narrows(self) -> bool:
        """Some of what differs is left alone: `rdc.plan.narrowing` has the rules."""
        return self.update or self.existing or self.ignore_existing or self.size_only or self.bounds_sizes

    @property
    def bounds_sizes(self) -> bool:
        """Files of some sizes are left alone."""
        return self.min_size > 0 or self.max_size is not None

    def is_left_for_size(self, size: int) -> bool:
        """Whether a regular file of so many bytes at the source is left alone."""
        return size < self.min_size or (self.max_size is not None and size > self.max_size)


class Purpose(Enum):
    """What messages are for."""

    MANIFEST = "manifest"
    """Which entries there are, and which differ."""
    ROOTS = "roots"
    """Which files differ, or are other ones under a new name."""
    NODES = "nodes"
    """Which chunks of a file differ."""
    BLOCKS = "sub-chunks"
    """Which parts of a chunk differ."""
    LITERALS = "literals"
    """Content."""
    OVERHEAD = "overhead"
    """Openings, reports, framing."""


@dataclass(frozen=True, slots=True)
class SyncReport:
    files: int
    """Regular files in the source, after filters."""
    total_bytes: int
    """Their bytes."""
    changed: int
    """Entries created or changed at the destination (or that would be, in a dry run)."""
    deleted: int
    bytes_sent: int
    """Every byte this process wrote to the transport, framing included."""
    bytes_received: int
    literal_bytes: int
    """File content that crossed the wire, before compression."""
    reused_bytes: int
    """Bytes of changed files that were found at the destination."""
    round_trips: int
    errors: int
    exit: ExitCode
    by_kind: tuple[MessageCost, ...] = field(default=())

    @property
    def by_purpose(self) -> dict[Purpose, int]:
        """Bytes through the connection, both ways; together bytes_sent + bytes_received."""
        return {
            purpose: sum(cost.bytes for cost in self.by_kind if cost.purpose is purpose)
            for purpose in Purpose
        }


@dataclass(frozen=True, slots=True)
class MessageCost:
    """What one kind of message cost, both ways."""

    name: str
    count: int
    bytes: int
    """Through the connection, framing and compression included; those of all kinds add up to what passed."""
    plain: int
    """Before compression."""
    purpose: Purpose
