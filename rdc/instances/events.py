"""Events that a deduplication reports while it runs."""

from __future__ import annotations

from rdc.model.instances import Instance
from rdc.progress import Problem, Progressed
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["DedupeEvent", "DedupeReporter"]

DedupeEvent: TypeAlias = Instance | Progressed | Problem


class DedupeReporter(Protocol):
    """A function that receives the events of a dedupe."""

    def __call__(self, event: DedupeEvent, /) -> None: ...
