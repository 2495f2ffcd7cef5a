"""Messages of a session's course: what its sides report, what may leave the source, its end, and its turns.

A session that stays open has turns: after a Done, S announces what changed.
"""

from __future__ import annotations

from enum import IntEnum

from rdc.lean.typed import Annotated
from rdc.limits.paths import NAME_BYTES
from rdc.limits.watch import RESCAN_SECONDS
from rdc.limits.wire import FILES_PER_MESSAGE, GONE_BYTES, ITEMS_BYTES, ITEMS_PER_MESSAGE, ORDINAL_LIMIT
from rdc.model.entries import Kind, Listing, Metadata, strings
from rdc.model.sync_report import Purpose
from rdc.protocol.messages.field_types import Code, Count, Files, Line, Ordinal, Size, TotalSize
from rdc.protocol.messages.listings import ListingColumns
from rdc.protocol.wire.codec import (
    ANSWERING,
    ASKING,
    CLOSED,
    DESTINATION,
    DONE,
    EITHER,
    LISTING,
    SERVING,
    SOURCE,
    WATCHING,
    Message,
    message,
)
from rdc.protocol.wire.fields import Blob, Codes, Flag, Gaps, Integer, Member, Path, Strings, Total, Word
from rdc.protocol.wire.integers import increasing
from rdc.protocol.wire.record_fields import MetadataItems

CODE_LENGTH = 11
"""Characters of a change's code."""

MARK_BYTES = 16
"""Bytes of the mark of a directory."""


@message(17, by=EITHER, when=(*ANSWERING, WATCHING, ASKING))
class Notice(Message):
    """Either side: a problem with one path that the other side's user must see. The session goes on."""

    code: Code
    """The problem's exit code; OK leaves the exit code unchanged."""
    path: Annotated[bytes, Path()]
    message: Line


@message(18, by=DESTINATION, when=ASKING)
class Items(Message):
    """D: entries that were changed, or would be in a dry run."""

    changes: Annotated[str, Codes(CODE_LENGTH, ITEMS_PER_MESSAGE)]
    """The codes of the changes, concatenated."""
    paths: Annotated[tuple[bytes, ...], Strings(ITEMS_PER_MESSAGE, ITEMS_BYTES)]
    targets: Annotated[tuple[bytes, ...], Strings(ITEMS_PER_MESSAGE, ITEMS_BYTES)] = ()
    """The target of each symbolic link, an empty string for each other entry. Empty if there is no link at
    all."""

    def check(self) -> str | None:
        count = len(self.changes) // CODE_LENGTH
        if len(self.paths) != count:
            return f"paths: {len(self.paths)} for {count} changes"
        if len(self.targets) not in {0, count}:
            return f"targets: {len(self.targets)} for {count} changes"
        return None

    @property
    def codes(self) -> list[str]:
        """One code per item."""
        return [self.changes[at : at + CODE_LENGTH] for at in range(0, len(self.changes), CODE_LENGTH)]


@message(19, by=DESTINATION, when=ASKING)
class Progress(Message):
    """D: its progress."""

    phase: Annotated[str, Word(choices=("compare", "transfer", "delete"))]
    done: TotalSize
    total: Annotated[int | None, Total(optional=True)]


@message(20, by=DESTINATION, when=ASKING)
class Plan(Message):
    """D: the work that lies ahead."""

    files: Count
    bytes: TotalSize
    deletes: Count


@message(62, by=DESTINATION, when=ASKING, asks="files")
class Landed(Message):
    """D: these entries of one directory are at the destination, equal to their listing and durable."""

    files: Files
    """Entries of any kind but directories."""
    mark: Annotated[bytes, Blob(MARK_BYTES, MARK_BYTES)]
    """What identifies the directory of D that they are in (rdc.files.facts.directory_mark)."""


@message(63, by=SOURCE, when=SERVING, answers=Landed)
class Removed(Message):
    """S: it has removed what it could of the oldest Landed. Each entry that stays came as a Notice."""

    count: Annotated[int, Integer(0, FILES_PER_MESSAGE)]
    """Entries that are gone."""


@message(21, by=DESTINATION, when=ASKING, then=DONE, needs=SERVING, moves=(SERVING, CLOSED))
class Done(Message):
    """D: its result, in the last message of a session."""

    changed: Count
    """Created, changed and moved entries."""
    deleted: Count
    moved: Count
    literal_bytes: TotalSize
    reused_bytes: TotalSize
    errors: Count
    code: Code


# Turns of a session that stays open

ORIGIN_BYTES = 16

UNVERIFIED_FILES = 32_768
"""More entries than a listing of half a frame has, at 29 bytes or more each; their gaps take two bytes
each."""


@message(50, by=SOURCE, when=LISTING)
class Watch(Message):
    """S, before Start: it watches its tree, and the session goes on after Done."""

    again: Annotated[bool, Flag()]
    """Whether S watched before and D then had everything. An empty destination then means a different
    tree."""
    origin: Annotated[bytes, Blob(ORIGIN_BYTES, ORIGIN_BYTES)]
    """Opaque id of the directory that S watches; it differs for another directory at the same path."""


@message(51, by=SOURCE, when=WATCHING, then=LISTING, moves=(DONE, ASKING))
class Turn(Message):
    """S, after Done: begins a turn. Requests, ordinals and rounds start anew."""

    whole: Annotated[bool, Flag()]
    """Whether the trees are compared as at the start of a session. Otherwise S announces changes."""


@message(52, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class Renamed(Message):
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


@message(53, by=SOURCE, when=LISTING, purpose=Purpose.MANIFEST)
class Changed(Message):
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


@message(54, by=SOURCE, when=LISTING, then=SERVING, purpose=Purpose.MANIFEST)
class TurnEnd(Message):
    """S: all changes are announced; totals of the tree."""

    entries: Count
    """Entries of the whole tree."""
    files: Count
    """Regular files of the whole tree."""
    read_errors: Count
    """Directories that are unreadable."""


@message(55, by=DESTINATION, when=ASKING)
class Follow(Message):
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


@message(56, by=SOURCE, when=(LISTING, WATCHING))
class Condition(Message):
    """S, after Follow: whether its tree can be watched."""

    state: Annotated[SourceState, Member(SourceState)]
    reason: Line
    seconds: Annotated[int, Integer(0, RESCAN_SECONDS)]
    """For LIMITED: seconds between two scans."""
