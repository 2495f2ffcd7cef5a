"""A session that stays open: what S tells of changes after the first Done, turn by turn."""

from __future__ import annotations

from typing import Annotated

from rdc.limits import GONE_BYTES, NAME_BYTES, ORDINAL_LIMIT
from rdc.model.entries import Kind, Listing, Metadata, strings
from rdc.protocol.codec import WireMessage, wire
from rdc.protocol.columns import increasing
from rdc.protocol.field_types import Count, Ordinal, Size
from rdc.protocol.fields import Blob, Flag, Member, MetadataItems, Path
from rdc.protocol.listings import ListingColumns
from rdc.records import dataclass

__all__ = ["Changed", "Renamed", "Turn", "TurnEnd", "Watch"]


@wire(50)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Watch(WireMessage):
    """S, before Start: it watches its tree, and the session goes on after Done."""

    again: Annotated[bool, Flag()]
    """It did so before, and D had everything then: a destination without anything in it is not the same."""


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

    def check(self) -> str | None:
        if self.first + len(self.listing) > ORDINAL_LIMIT:
            return f"first: {len(self.listing)} entries from {self.first} pass {ORDINAL_LIMIT}"
        if self.gone and self.gone[-1]:
            return "gone: no NUL at the end"
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
    read_errors: Count
    """Directories that could not be read."""
