"""The events that a job reports while it runs, and the Reporter that receives them."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.records import dataclass
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["Event", "ItemChanged", "PlanKnown", "Problem", "Progressed", "Reporter", "silent"]


@dataclass(frozen=True, slots=True)
class PlanKnown:
    """The comparison is complete. These totals describe the work ahead."""

    files: int
    """The number of entries to create or change."""
    bytes: int
    """The content bytes of the files among them."""
    deletes: int


@dataclass(frozen=True, slots=True)
class ItemChanged:
    """An entry was changed; in a dry run, it would be."""

    change: str
    """rsync's 11-character code, or '*deleting  '."""
    path: bytes
    """The path relative to the destination root. A directory ends in '/'."""
    target: bytes | None = None
    """The target of a symlink, the other name of a new hard link, or the new path of a moved file."""


@dataclass(frozen=True, slots=True)
class Progressed:
    """The progress of one phase."""

    phase: str
    """A sync has 'compare', 'transfer' and 'delete'; a scan 'read'; a dedupe 'compare' and 'share'."""
    done: int
    total: int | None
    """The total of the phase; None while unknown. 'delete' counts entries, the other phases bytes.

    In 'compare' these are the bytes that the destination reads of its own files.
    """


@dataclass(frozen=True, slots=True)
class Problem:
    """An error or notice about one path. The path is b'' if none is meant. The run continues."""

    code: ExitCode
    """The exit code. OK marks a notice that does not change it, such as a skipped socket."""
    path: bytes
    message: str
    """One printable line that names the path."""


Event: TypeAlias = PlanKnown | ItemChanged | Progressed | Problem


class Reporter(Protocol):
    """A function that receives the events of one job."""

    def __call__(self, event: Event, /) -> None: ...


def silent(event: Event, /) -> None:
    """A Reporter that ignores every event."""
