"""What a side tells of its work, and how a session ends."""

from __future__ import annotations

from rdc.limits import ITEMS_BYTES, ITEMS_PER_MESSAGE
from rdc.protocol.codec import WireMessage, wire
from rdc.protocol.field_types import Code, Count, Line, Size
from rdc.protocol.fields import Codes, Integer, Path, Strings, Word
from rdc.records import dataclass
from rdc.typed import Annotated

__all__ = ["Done", "Items", "Notice", "Plan", "Progress"]

CODE_LENGTH = 11
"""Characters of a change's code."""


@wire(17)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Notice(WireMessage):
    """Either side: a problem with one path that the other side's user must see; the session goes on."""

    code: Code
    """OK: does not change the exit code."""
    path: Annotated[bytes, Path()]
    message: Line


@wire(18)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Items(WireMessage):
    """D: entries were changed (or would be)."""

    changes: Annotated[str, Codes(CODE_LENGTH, ITEMS_PER_MESSAGE)]
    """Their codes, one behind the other."""
    paths: Annotated[tuple[bytes, ...], Strings(ITEMS_PER_MESSAGE, ITEMS_BYTES)]
    targets: Annotated[tuple[bytes, ...], Strings(ITEMS_PER_MESSAGE, ITEMS_BYTES)] = ()
    """Where the links among them point, an empty string for all else; nothing where there is no link."""

    def check(self) -> str | None:
        count = len(self.changes) // CODE_LENGTH
        if len(self.paths) != count:
            return f"paths: {len(self.paths)} for {count} changes"
        if len(self.targets) not in {0, count}:
            return f"targets: {len(self.targets)} for {count} changes"
        return None

    @property
    def codes(self) -> list[str]:
        """One an item."""
        return [self.changes[at : at + CODE_LENGTH] for at in range(0, len(self.changes), CODE_LENGTH)]


@wire(19)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Progress(WireMessage):
    """D: how far it is."""

    phase: Annotated[str, Word(choices=("compare", "transfer", "delete"))]
    done: Count
    total: Annotated[int | None, Integer(optional=True)]


@wire(20)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(WireMessage):
    """D: what it will do."""

    files: Count
    bytes: Size
    deletes: Count


@wire(21)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Done(WireMessage):
    """D, the last message of a session: nothing more is wanted; its result."""

    changed: Count
    deleted: Count
    literal_bytes: Size
    reused_bytes: Size
    errors: Count
    code: Code
