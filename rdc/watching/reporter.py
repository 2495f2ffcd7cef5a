"""The function that receives the events of a watch."""

from __future__ import annotations

from rdc.lean.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.watch import WatchEvent
    from rdc.progress import Event

__all__ = ["WatchReporter"]


class WatchReporter(Protocol):
    """A function that receives the events of a watch, and those of the entries that its turns change."""

    def __call__(self, event: Event | WatchEvent, /) -> None: ...
