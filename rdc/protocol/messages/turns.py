"""Messages of a session that stays open: the changes that S announces after the first Done, turn by turn."""

from __future__ import annotations

from enum import IntEnum

from rdc.limits.paths import NAME_BYTES
from rdc.limits.watch import RESCAN_SECONDS
from rdc.limits.wire import GONE_BYTES, ORDINAL_LIMIT
from rdc.model.entries import Kind, Listing, Metadata, strings
from rdc.protocol.messages.field_types import Count, Line, Ordinal, Size
from rdc.protocol.messages.listings import ListingColumns
from rdc.protocol.wire.codec import WireMessage, wire
from rdc.protocol.wire.column_fields import Gaps
from rdc.protocol.wire.columns import increasing
from rdc.protocol.wire.fields import Blob, Flag, Integer, Member, Path
from rdc.protocol.wire.record_fields import MetadataItems
from rdc.records import dataclass
from rdc.typed import Annotated

__all__ = ["Changed", "Condition", "Follow", "Renamed", "SourceState", "Turn", "TurnEnd", "Watch"]

ORIGIN_BYTES = 16

UNVERIFIED_FILES = 32_768
"""More entries than a listing of half a frame has, at 29 bytes or more each; their gaps take two bytes
each."""


@wire(50)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Watch(WireMessage):
    """S, before Start: it watches its tree, and the session goes on after Done."""

    again: Annotated[bool, Flag()]
    """Whether S watched before and D then had everything. An empty destination then means a different
    tree."""
    origin: Annotated[bytes, Blob(ORIGIN_BYTES, ORIGIN_BYTES)]
    """Opaque id of the directory that S watches; it differs for another directory at the same path."""


@wire(51)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Turn(WireMessage):
    """S, after Done: begins a turn. Requests, ordinals and rounds start anew."""

    whole: Annotated[bool, Flag()]
    """Whether the trees are compared as at the start of a session. Otherwise S announces changes."""


@wire(52)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Renamed(WireMessage):
    """S: an entry moved since the last announcement from `old` to `new`, where no entry was."""

    old: Annotated[bytes, Path(inside=True)]
    new: Annotated[bytes, Path(inside=True)]
    entry: Annotated[Kind, Member(Kind)]
    size: Size
    """Bytes as last announced; 0 unless a regular file."""
    metadata: Annotated[Metadata, MetadataItems()]
    """Metadata as last announced."""

    def check(self) -> str | None:
        if not self.old or not self.new:
            return "old, new: the root"
        if self.new == self.old or self.new.startswith(self.old + b"/"):
            return "new: it is at or below the old path"
        if self.entry not in (Kind.FILE, Kind.DIRECTORY):
            return f"entry: a {self.entry.name.lower()}"
        return None


@wire(53)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Changed(WireMessage):
    """S: the changes in one directory since the last announcement. Parents come before children."""

    path: Annotated[bytes, Path(inside=True)]
    metadata: Annotated[Metadata, MetadataItems()]
    """Metadata of the directory."""
    first: Ordinal
    """Ordinal of the first entry of this part: entries count from 0 over all Changed of the turn."""
    gone: Annotated[bytes, Blob(0, GONE_BYTES)]
    """Removed names, strictly increasing, each followed by NUL."""
    listing: Annotated[Listing, ListingColumns()]
    """New or different entries only."""
    doubtful: Annotated[tuple[int, ...], Gaps(UNVERIFIED_FILES, UNVERIFIED_FILES, may_be_empty=True)]
    """Rows of `listing`: files whose content may differ even with an equal size and mtime."""

    def check(self) -> str | None:
        if self.first + len(self.listing) > ORDINAL_LIMIT:
            return f"first: {len(self.listing)} entries from {self.first} pass {ORDINAL_LIMIT}"
        if self.gone and self.gone[-1]:
            return "gone: no NUL at the end"
        if self.doubtful and self.doubtful[-1] >= len(self.listing):
            return f"doubtful: row {self.doubtful[-1]} of {len(self.listing)}"
        if any(self.listing.kinds[row] != Kind.FILE for row in self.doubtful):
            return "doubtful: one is no file"
        names = strings(self.gone)
        if any(not 0 < len(name) <= NAME_BYTES or b"/" in name or name in (b".", b"..") for name in names):
            return "gone: one is no name"
        if not increasing(tuple(names)):
            return "gone: not strictly increasing"
        return None


@wire(54)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TurnEnd(WireMessage):
    """S: all changes are announced; totals of the tree."""

    entries: Count
    """Entries of the whole tree."""
    files: Count
    """Regular files of the whole tree."""
    read_errors: Count
    """Directories that are unreadable."""


@wire(55)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Follow(WireMessage):
    """D as the dialler, right after Open: S is to watch its tree and send Watch when it can."""

    rescan: Annotated[int, Integer(0, RESCAN_SECONDS)]
    """Seconds between two comparisons of the whole trees; 0 for never."""
    origin: Annotated[bytes, Blob(0, ORIGIN_BYTES)]
    """The origin of Watch in an earlier session whose tree had entries; empty if there was none."""

    def check(self) -> str | None:
        return None if len(self.origin) in (0, ORIGIN_BYTES) else f"origin: {len(self.origin)} bytes"


class SourceState(IntEnum):
    """The condition of S's watch."""

    FOLLOWED = 0
    HALTED = 1
    """Nothing is announced until the tree is back."""
    LIMITED = 2
    """The tree is followed, but some of it without events."""


@wire(56)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Condition(WireMessage):
    """S, after Follow: whether its tree can be watched."""

    state: Annotated[SourceState, Member(SourceState)]
    reason: Line
    seconds: Annotated[int, Integer(0, RESCAN_SECONDS)]
    """For LIMITED: seconds between two scans."""
