"""A session that stays open: what S tells of changes after the first Done, turn by turn."""

from __future__ import annotations

from enum import IntEnum

from rdc.limits import GONE_BYTES, NAME_BYTES, ORDINAL_LIMIT, RESCAN_SECONDS
from rdc.model.entries import Kind, Listing, Metadata, strings
from rdc.protocol.codec import WireMessage, wire
from rdc.protocol.columns import increasing
from rdc.protocol.field_types import Count, Line, Ordinal, Size
from rdc.protocol.fields import Blob, Flag, Gaps, Integer, Member, MetadataItems, Path
from rdc.protocol.listings import ListingColumns
from rdc.records import dataclass
from rdc.typed import Annotated

__all__ = ["Changed", "Condition", "Follow", "Renamed", "SourceState", "Turn", "TurnEnd", "Watch"]

ORIGIN_BYTES = 16

DOUBTFUL_FILES = 32_768
"""More than a listing of half a frame has entries, of 29 bytes at least; as gaps two bytes each."""


@wire(50)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Watch(WireMessage):
    """S, before Start: it watches its tree, and the session goes on after Done."""

    again: Annotated[bool, Flag()]
    """It did so before, and D had everything then: a destination without anything in it is not the same."""
    origin: Annotated[bytes, Blob(ORIGIN_BYTES, ORIGIN_BYTES)]
    """Opaque: which directory S watches, to be told from another one at its path."""


@wire(51)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Turn(WireMessage):
    """S, after Done: the session goes on; requests, ordinals and rounds begin anew."""

    whole: Annotated[bool, Flag()]
    """The trees are compared as at the start of a session. Otherwise S tells what changed."""


@wire(52)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Renamed(WireMessage):
    """S: an entry, which was at `old` when D last heard of it, is at `new`, where nothing was."""

    old: Annotated[bytes, Path(inside=True)]
    new: Annotated[bytes, Path(inside=True)]
    entry: Annotated[Kind, Member(Kind)]
    size: Size
    """Bytes, as D last heard of it; 0 unless a regular file."""
    metadata: Annotated[Metadata, MetadataItems()]
    """As D last heard of them."""

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
    """S: what is different in one directory since D last heard of it; parents come before children."""

    path: Annotated[bytes, Path(inside=True)]
    metadata: Annotated[Metadata, MetadataItems()]
    """The directory's own."""
    first: Ordinal
    """Ordinal of the first entry here: entries count from 0 over all Changed of the turn."""
    gone: Annotated[bytes, Blob(0, GONE_BYTES)]
    """Names that are no more, each followed by NUL, strictly increasing."""
    listing: Annotated[Listing, ListingColumns()]
    """Entries that are new or different, and nothing of the others."""
    doubtful: Annotated[tuple[int, ...], Gaps(DOUBTFUL_FILES, DOUBTFUL_FILES, may_be_empty=True)]
    """Rows of `listing`, files whose content may differ where their size and mtime do not."""

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
    """S: that was all that changed."""

    entries: Count
    """Of the whole tree."""
    files: Count
    """Regular files among them."""
    read_errors: Count
    """Directories that could not be read."""


@wire(55)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Follow(WireMessage):
    """D, which dialled, right after Open: S is to watch its tree and say Watch, once it can."""

    rescan: Annotated[int, Integer(0, RESCAN_SECONDS)]
    """Seconds between two comparisons of the whole trees; 0: never."""
    origin: Annotated[bytes, Blob(0, ORIGIN_BYTES)]
    """What Watch said of a session before this one, in which S had entries; empty: there was none."""

    def check(self) -> str | None:
        return None if len(self.origin) in (0, ORIGIN_BYTES) else f"origin: {len(self.origin)} bytes"


class SourceState(IntEnum):
    """How a watch of S's stands."""

    FOLLOWED = 0
    HALTED = 1
    """Nothing is told until the tree is back."""
    LIMITED = 2
    """Followed, but not all of it by events."""


@wire(56)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Condition(WireMessage):
    """S, of a D that said Follow: whether its tree can be watched."""

    state: Annotated[SourceState, Member(SourceState)]
    reason: Line
    seconds: Annotated[int, Integer(0, RESCAN_SECONDS)]
    """Of LIMITED: between two looks."""
