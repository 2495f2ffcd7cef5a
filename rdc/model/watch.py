"""What a watch is asked to do, what it tells while it runs, and what it reports at its end."""

from __future__ import annotations

from rdc.model.sync import SyncOptions
from rdc.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = [
    "Disconnected",
    "Halted",
    "InStep",
    "Limited",
    "Resumed",
    "UNWATCHED",
    "WatchEvent",
    "WatchOptions",
    "WatchReport",
]

RESCAN_SECONDS = 600
"""Between two comparisons of the whole trees, by default. One of 100,000 files costs some 0.3 s of CPU a side
and 600 bytes; what others change at the destination stays that long."""

UNWATCHED = (
    "dry_run", "checksum", "update", "existing", "ignore_existing", "size_only", "hard_links",
    "acls", "xattrs", "one_file_system", "delete_excluded", "min_size", "max_size",
)  # fmt: skip
"""Fields of SyncOptions that a watch does not take: they would cost all the time, or leave the two trees
different, where the point is that they are in step."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    sync: SyncOptions = field(default_factory=SyncOptions)
    rescan: int = RESCAN_SECONDS
    """Seconds between two comparisons of the whole trees; 0: never."""


@dataclass(frozen=True, slots=True)
class InStep:
    """The destination has everything that the source had when this turn began."""

    whole: bool
    """The whole trees were compared."""
    files: int
    """Of the source, after filters."""
    changed: int
    deleted: int
    bytes_sent: int
    """Every byte of the turn, framing included."""
    bytes_received: int
    seconds: float
    """From the turn's first step to its end."""


@dataclass(frozen=True, slots=True)
class Halted:
    """The source cannot be followed: nothing is done until it is back."""

    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """What had halted goes on."""


@dataclass(frozen=True, slots=True)
class Limited:
    """Not all directories can be watched: changes are also looked for from time to time."""

    reason: str
    seconds: int
    """Between two looks."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The far side is gone; it is dialled again."""

    reason: str
    seconds: float
    """Until it is."""


WatchEvent: TypeAlias = InStep | Halted | Resumed | Limited | Disconnected


@dataclass(frozen=True, slots=True)
class WatchReport:
    """All turns together."""

    turns: int
    changed: int
    deleted: int
    bytes_sent: int
    bytes_received: int
    errors: int
