"""What a side tells of its work, and how a session ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rdc.protocol.codec import WireMessage, wire
from rdc.protocol.field_types import Code, Count, Line, Size
from rdc.protocol.fields import Integer, Path, Word

__all__ = ["Bye", "Done", "Item", "Notice", "Plan", "Progress"]


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
class Item(WireMessage):
    """D: an entry was changed (or would be)."""

    change: Annotated[str, Word(length=11)]
    path: Annotated[bytes, Path()]
    target: Annotated[bytes | None, Path(optional=True)] = None


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
    """D: nothing more is wanted; its result."""

    changed: Count
    deleted: Count
    literal_bytes: Size
    reused_bytes: Size
    errors: Count
    code: Code


@wire(22)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bye(WireMessage):
    """S: the last message, after Done."""

    read_errors: Count
    code: Code
