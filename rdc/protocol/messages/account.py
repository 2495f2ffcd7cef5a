"""Messages in which a side reports on its work, what may leave the source then, and the end of a session."""

from __future__ import annotations

from rdc.limits.wire import FILES_PER_MESSAGE, ITEMS_BYTES, ITEMS_PER_MESSAGE
from rdc.protocol.messages.field_types import Code, Count, Files, Line, TotalSize
from rdc.protocol.wire.codec import WireMessage, wire
from rdc.protocol.wire.column_fields import Strings
from rdc.protocol.wire.fields import Blob, Codes, Integer, Path, Total, Word
from rdc.records import dataclass
from rdc.typed import Annotated

__all__ = ["Done", "Items", "Landed", "Notice", "Plan", "Progress", "Removed"]

CODE_LENGTH = 11
"""Characters of a change's code."""

MARK_BYTES = 16
"""Bytes of the mark of a directory."""


@wire(17)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Notice(WireMessage):
    """Either side: a problem with one path that the other side's user must see. The session goes on."""

    code: Code
    """The problem's exit code; OK leaves the exit code unchanged."""
    path: Annotated[bytes, Path()]
    message: Line


@wire(18)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Items(WireMessage):
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


@wire(19)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Progress(WireMessage):
    """D: its progress."""

    phase: Annotated[str, Word(choices=("compare", "transfer", "delete"))]
    done: TotalSize
    total: Annotated[int | None, Total(optional=True)]


@wire(20)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(WireMessage):
    """D: the work that lies ahead."""

    files: Count
    bytes: TotalSize
    deletes: Count


@wire(62)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Landed(WireMessage):
    """D: these entries of one directory are at the destination, equal to their listing and durable."""

    files: Files
    """Entries of any kind but directories."""
    mark: Annotated[bytes, Blob(MARK_BYTES, MARK_BYTES)]
    """What identifies the directory of D that they are in (rdc.files.facts.directory_mark)."""


@wire(63)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Removed(WireMessage):
    """S: it has removed what it could of the oldest Landed. Each entry that stays came as a Notice."""

    count: Annotated[int, Integer(0, FILES_PER_MESSAGE)]
    """Entries that are gone."""


@wire(21)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Done(WireMessage):
    """D: its result, in the last message of a session."""

    changed: Count
    """Created, changed and moved entries."""
    deleted: Count
    moved: Count
    literal_bytes: TotalSize
    reused_bytes: TotalSize
    errors: Count
    code: Code
