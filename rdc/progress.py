"""Events a long job reports while it runs, and the Reporter that takes them."""

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
    """The comparison is finished: what will be done."""

    files: int
    """Entries that will be created or changed."""
    bytes: int
    """Content bytes of the files among them."""
    deletes: int


@dataclass(frozen=True, slots=True)
class ItemChanged:
    """An entry was (in a dry run: would be) changed."""

    change: str
    """rsync's 11-character code, or '*deleting  '."""
    path: bytes
    """Relative to the destination root; directories end in '/'."""
    target: bytes | None = None
    """Where a symlink points; of a hard link that was made, the other name of the file."""


@dataclass(frozen=True, slots=True)
class Progressed:
    phase: str
    """'compare', 'transfer' or 'delete' of a sync, 'read' of a scan, 'compare' or 'share' of a
    deduplication."""
    done: int
    total: int | None
    """Entries in 'delete', bytes in the others: in 'compare' of what the destination reads of its own files
    to learn what differs. None while unknown."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something went wrong with one path (or with none, path b''); the run goes on."""

    code: ExitCode
    """OK for a notice that does not change the exit code, such as a skipped socket."""
    path: bytes
    message: str
    """One printable line that names the path."""


Event: TypeAlias = PlanKnown | ItemChanged | Progressed | Problem


class Reporter(Protocol):
    def __call__(self, event: Event, /) -> None: ...


def silent(event: Event, /) -> None:
    """A Reporter that drops everything."""
