"""Options, events and final report of a watch."""

from __future__ import annotations

from rdc.lean.checks import Checked
from rdc.lean.records import Record, Report, field
from rdc.lean.typed import Protocol
from rdc.model.sync import SyncOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from rdc.progress import Event


RESCAN_SECONDS = 600
"""Default seconds between two comparisons of the whole trees. For 100,000 files one costs some 0.3 s of CPU
per side and 600 bytes. Foreign changes at the destination stay for that long."""


class WatchOptions(Checked, Record):
    """The options of `rdc.watch`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.WatchOptions(rdc.SyncOptions(delete=True)).rescan
    600
    """

    sync: SyncOptions = field(default_factory=SyncOptions)
    rescan: int = RESCAN_SECONDS
    """Seconds between two comparisons of the whole trees; 0 for never."""
    on_sync: tuple[str, ...] = ()
    """A program and its arguments, run without a shell once the trees are in sync and quiet after changes.
    Its environment has RDC_WATCH_TURNS, RDC_WATCH_CHANGED, RDC_WATCH_DELETED and RDC_WATCH_FILES."""


class InStep(Record):
    """The destination has everything that the source had when this turn began."""

    whole: bool
    """True if the whole trees were compared."""
    files: int
    """Files of the source after filters."""
    changed: int
    deleted: int
    bytes_sent: int
    """All bytes of the turn, with framing."""
    bytes_received: int
    seconds: float
    """Seconds from the turn's first step to its end."""


class Halted(Record):
    """The source cannot be followed; the watch waits for its return."""

    reason: str


class Resumed(Record):
    """A halted watch continues."""


class Limited(Record):
    """Not all directories can be watched; the tree is also scanned at intervals."""

    reason: str
    seconds: int
    """Seconds between two scans."""


class Disconnected(Record):
    """The remote side is gone and will be dialled again."""

    reason: str
    seconds: float
    """Seconds until the next dial."""


WatchEvent: TypeAlias = InStep | Halted | Resumed | Limited | Disconnected


class WatchReport(Report, Record):
    """Totals of all turns."""

    turns: int
    changed: int
    deleted: int
    bytes_sent: int
    bytes_received: int
    errors: int


class WatchReporter(Protocol):
    """A function that receives the events of a watch, and those of the entries that its turns change."""

    def __call__(self, event: Event | WatchEvent, /) -> None: ...
